"""A convex quadratic over a spectrahedron of small order, by a primal-dual interior-point method.

    minimise ‖A s - b‖² + ⟨R, S⟩   over   S ≽ 0, Tr S = 1,   s = the entries of S

With H = 2AᵀA the optimality conditions are ∇f(S) - y I = Z ≽ 0, S Z = 0. Newton's method on S Z = μ I in the scaling of
Nesterov and Todd, μ by Mehrotra's rule. The dual residual is zero from the start and stays so: ⟨S, Z⟩ is the gap.
"""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, cholesky, cholesky_factor, cholesky_solve, namespace
from mercer.backends.symmetric_entries import SymmetricEntries
from mercer.backends.threads import single_threaded_blas

_MOST_STEPS = 60
_TO_BOUNDARY = 0.98
_RIDGE = 1e-15
_PROGRESS, _STEPS_BACK = 0.9, 4  # a gap no smaller than some steps ago is as small as it gets


def minimise_small(A: Array, b: Array, R: Array, *, tol: float) -> Array:
    """Minimise over the spectrahedron of order k, until the duality gap is at most tol or rounding ends the progress.

    Parameters
    ----------
    A : array of shape (q, k(k+1)/2)
        The linear map in the coordinates of :class:`SymmetricEntries`.
    b : array of shape (q,)
        Its goal.
    R : array of shape (k, k)
        The linear term, symmetric.
    tol : float
        The absolute gap.

    Returns
    -------
    array of shape (k, k)
        S, positive definite, of trace one to rounding.

    Notes
    -----
    Some twenty steps of O(k⁶/24) operations: for k up to about 40.
    """
    k = R.shape[0]
    entries = SymmetricEntries(k, R)
    if k == 1:
        return entries.identity
    with single_threaded_blas():
        H, c = 2.0 * (A.T @ A), entries.pack(R) - 2.0 * (A.T @ b)
        return _minimised(entries, H, c, tol)


def _minimised(entries: SymmetricEntries, H: Array, c: Array, tol: float) -> Array:
    """Minimise ½ s·Hs + c·s over the entries s of the matrices of the spectrahedron."""
    k = entries.order
    xp, identity = namespace(c), entries.identity
    S = identity / k
    slope = entries.unpack(H @ entries.pack(S) + c)
    levels = xp.linalg.eigvalsh(slope)
    spread = max(float(levels[-1] - levels[0]), tol)
    Z = slope - (levels[0] - 0.1 * spread) * identity
    gaps: list[float] = []
    for _ in range(_MOST_STEPS):
        gaps.append(float((S * Z).sum()))
        if gaps[-1] <= tol or gaps[-1] > _PROGRESS * min(gaps[:-_STEPS_BACK], default=np.inf):
            break
        try:
            S, Z = _step(entries, H, S, Z)
        except np.linalg.LinAlgError:  # S or Z has reached the boundary to rounding
            break
    return S / xp.linalg.trace(S)


def _step(entries: SymmetricEntries, H: Array, S: Array, Z: Array) -> tuple[Array, Array]:
    """One predictor and one corrector step."""
    k = entries.order
    xp = namespace(S)
    mu = float((S * Z).sum()) / k
    L = cholesky(S)
    inverse = xp.linalg.inv(L)
    values, vectors = xp.linalg.eigh(L.T @ Z @ L)
    if values[0] <= 0:
        raise np.linalg.LinAlgError("Z is not positive definite.")
    P = inverse.T @ (vectors * xp.sqrt(values)) @ vectors.T @ inverse  # P S P = Z
    scaling = entries.congruence((P + P.T) / 2)
    matrix = H + scaling
    diagonal = xp.arange(matrix.shape[0], device=matrix.device)
    matrix[diagonal, diagonal] *= 1.0 + _RIDGE
    factor = cholesky_factor(matrix)
    centre = entries.pack(inverse.T @ inverse)
    ones = entries.pack(entries.identity)
    unit = cholesky_solve(factor, ones)

    def direction(target: float) -> tuple[Array, Array]:
        """dS and dZ towards S Z = target · I, along Tr dS = 0."""
        wanted = target * centre - entries.pack(Z)
        free = cholesky_solve(factor, wanted)
        move = free - (ones @ free) / (ones @ unit) * unit
        return entries.unpack(move), entries.unpack(wanted - scaling @ move)

    dS, dZ = direction(0.0)
    length = min(_longest(S, dS), _longest(Z, dZ))
    ahead = max(float(((S + length * dS) * (Z + length * dZ)).sum()) / k, 0.0)
    dS, dZ = direction(mu * (ahead / mu) ** 3)
    length = min(_longest(S, dS), _longest(Z, dZ))
    return S + length * dS, Z + length * dZ


def _longest(M: Array, dM: Array) -> float:
    """The step, at most one, that keeps M + t dM well inside the cone."""
    linalg = namespace(M).linalg
    inverse = linalg.inv(cholesky(M))
    least = float(linalg.eigvalsh(inverse @ dM @ inverse.T)[0])
    return 1.0 if least > -_TO_BOUNDARY else -_TO_BOUNDARY / least
