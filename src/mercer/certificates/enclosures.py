"""Eigenvalues bounded by a factorisation that succeeds, and squares of projections from both sides.

A - θS is positive semi-definite if a Cholesky factorisation of it, less a shift, runs to its end: RᵀR then differs from
the matrix by γ_{n+2} ``abs(Rᵀ) abs(R)`` at most (Higham 2002, theorem 10.3, in any order of summation), and the shift
is made larger than that. What the radii of the entries can do is taken off the diagonal before. Rows and columns are
scaled by powers of two first, so that the shift is small beside each diagonal entry, not beside the largest.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, eigh

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, up
from mercer.backends.rounding import UNIT, gamma

_TRIALS, _GROWTH = 60, 4.0
_FIRST_SHIFT = 8.0
_MORE = 1.1


def least_ratio(A: Ball, S: Ball | None = None) -> float:
    """A proved θ ≤ min ⟨A, C⟩ over C ≽ 0 with ⟨S, C⟩ = 1, S the identity if left out; minus infinity without a proof.

    Parameters
    ----------
    A, S : balls of shape (n, n)
        Symmetric matrices.

    Notes
    -----
    Cost: an eigenvalue of order n, and a few Cholesky factorisations.
    """
    A = _symmetric(A)
    S = Ball(np.eye(A.shape[0])) if S is None else _symmetric(S)
    if not (np.all(np.isfinite(A.magnitude())) and np.all(np.isfinite(S.magnitude()))):
        return -np.inf
    try:
        _, vectors = eigh(A.hi, S.hi, subset_by_index=[0, 0])
    except np.linalg.LinAlgError:
        vectors = np.eye(A.shape[0])[:, :1]
    v = vectors[:, 0]
    theta = float(v @ A.hi @ v) / float(v @ S.hi @ v)  # no less than the least
    if not np.isfinite(theta):
        return -np.inf
    room = np.abs(np.diag(A.hi)) + abs(theta) * np.abs(np.diag(S.hi))
    step = 4 * _FIRST_SHIFT * UNIT * float(v**2 @ room) / float(v @ S.hi @ v)
    for _ in range(_TRIALS):
        tried = theta - step
        if is_positive(A - S * tried):
            return tried
        step *= _GROWTH
    return -np.inf


def is_positive(H: Ball) -> bool:
    """Whether the symmetric matrix is proved to be positive semi-definite."""
    middle, radius = _symmetric(H).rounded()
    if not np.all(np.isfinite(middle) & np.isfinite(radius)):
        return False
    diagonal = np.diag(middle) * (1 - 2 * UNIT) - _swallowed(radius)
    if not np.all(diagonal > 0):
        return False
    n, powers = diagonal.size, -(np.frexp(diagonal)[1] // 2)
    middle = np.ldexp(middle, powers[:, None] + powers)
    middle[np.diag_indices(n)] = np.ldexp(diagonal, 2 * powers)  # between 1/4 and 4
    slack = 32 * UNIT
    shift = slack + gamma(n + 2, UNIT) * _FIRST_SHIFT
    for _ in range(2):
        try:
            R = np.abs(cholesky(middle - shift * np.eye(n), check_finite=False))
        except np.linalg.LinAlgError:
            return False
        needed = slack + _MORE * gamma(n + 2, UNIT) * float(np.max(R.T @ np.sum(R, axis=1)))
        if needed <= shift:
            return True
        shift = _MORE * needed
    return False


def _swallowed(radius: Array) -> Array:
    """A diagonal that, taken off, outweighs every symmetric matrix whose entries are at most the radii.

    2|x_i x_j| ≤ x_i² w_i/w_j + x_j² w_j/w_i for any positive w; with w² the diagonal entries, radii that are large in
    some rows do not spoil the others.
    """
    w = np.sqrt(np.diag(radius))
    return np.asarray(up(w * (radius @ (1.0 / w)) * _MORE))


def inverse_form(S: Ball, z: Ball) -> tuple[Array, Ball]:
    """x near S⁻¹z in double precision, and a ball that holds zᵀS⁻¹z, of infinite radius where S is not proved positive.

    zᵀS⁻¹z = 2xᵀz - xᵀSx + rᵀS⁻¹r with r = z - Sx, for any x.
    """
    try:
        x = np.linalg.solve(S.hi, z.hi)
    except np.linalg.LinAlgError:
        x = np.zeros(z.shape[0])
    image = S @ x
    rest = (z - image).magnitude()
    least = least_ratio(S)
    value = (z.scaled(1) - image) @ Ball(x)
    slack = up(float(rest @ rest)) / least if least > 0 else np.inf
    return x, value.widened(slack * _MORE)


def _symmetric(M: Ball) -> Ball:
    """The same symmetric matrix by a symmetric midpoint."""
    return (M + M.T).scaled(-1)
