"""The certificate by factorisation: every bound from the matrix itself, and no chance involved."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal, as_double, like, namespace
from mercer.backends.rounding import UNIT
from mercer.certificates.allowances import Allowances
from mercer.certificates.certificate import GOOD_GAP, N_LEAST, EmbeddingCertificate
from mercer.certificates.factorisation import (
    bound_largest_eigenvalue,
    estimate_largest_eigenvalue,
    least_eigenvalues,
)
from mercer.certificates.residuals import optimality_residuals
from mercer.certificates.scaled_matrix import positive_multipliers
from mercer.linalg.tall import row_products
from mercer.problems import Elliptope

_SLACK = 1e-2  # of the tolerance
_LARGE = 1e4  # entries of M, in units of its largest eigenvalue
_ROUNDS = 3  # of bringing an additive bound near, where many multipliers vanish: it counts n times


def certify_by_factorisation(
    problem: Elliptope,
    H: Array,
    rng: np.random.Generator,
    *,
    spectrum: bool,
    tol: float | None,
    multipliers: Array | None = None,
) -> EmbeddingCertificate:
    """Bounds from the dense matrix of the rows that take part.

    The multiplicative bound comes first, of the multipliers that are handed in and of those of H; where it does not
    prove the tolerance (or 1e-9), the additive ones are tried: y = z + δ with δ = max(0, λmax(J - Diag(z))), and the
    same for Ã and z/d, its shift weighted by Σd. They hold for multipliers of any sign, and are tried alone where
    multipliers must vanish, as those of rows that may be short do: made positive they would cost more than the
    tolerance. A factorisation each: n³/3 flops, n² entries, 4 n² doubles.
    """
    active = namespace(problem.active).nonzero(problem.active)[0]
    if active.shape[0] == 0:
        return _of_nothing(problem)
    allowed = Allowances(problem)
    matrix = as_double(problem.operator.block(active, active))
    s = as_double(problem.scale[active])
    H = H[active]
    G = s[:, None] * (matrix @ (s[:, None] * H))
    z = row_products(H, G)
    lower = allowed.lower(z, H.shape[1])
    wanted = GOOD_GAP if tol is None else tol
    own = positive_multipliers(H, G, z, s**2 * matrix.diagonal(), wanted)
    upper, wide = np.inf, wanted * abs(lower)
    rounds = 1 if problem.repulsion is None else _ROUNDS
    first, last = ([own], []) if rounds == 1 or float((own - z).sum()) <= wide else ([], [own])
    if multipliers is not None:
        first.insert(0, as_double(like(multipliers, s))[active])
    for y in first:
        if not upper - lower <= wide:
            upper = min(upper, allowed.upper(_dominating(matrix, s, H, y, wanted, rng)))
    for scale in (s, namespace(s).ones_like(s)):
        if not upper - lower <= wide:
            upper = min(upper, allowed.upper(_shifted(matrix, s, H, z, scale, rng, rounds)))
    for y in last:
        if not upper - lower <= wide:
            upper = min(upper, allowed.upper(_dominating(matrix, s, H, y, wanted, rng)))
    return EmbeddingCertificate(
        lower=lower,
        upper=upper,
        failure_probability=0.0,
        method="factorisation proof",
        n_products=int(active.shape[0]),
        least_eigenvalues=_least(matrix, z / s**2, upper / lower - 1 if lower > 0 else 1.0, rng, spectrum),
        **optimality_residuals(s, H, G, z),
        rounding=allowed.width(z, H.shape[1]),
    )


def _of_nothing(problem: Elliptope) -> EmbeddingCertificate:
    """No row takes part: whatever rounding took away of them is all there is."""
    upper = Allowances(problem).upper(as_double(problem.scale[:0]))
    return EmbeddingCertificate(
        0.0, upper, failure_probability=0.0, method="factorisation proof", n_products=0, rounding=upper
    )


def _least(matrix: Array, slack: Array, excess: float, rng: np.random.Generator, spectrum: bool) -> Array:
    """The least eigenvalues of Diag(z/d) - Ã, where they are asked for; the matrix is used up."""
    if not spectrum:
        return slack[:0]
    matrix *= -1
    add_to_diagonal(matrix, slack)
    shift = 2 * max(excess, 0.0) * float(abs(slack).max())
    return least_eigenvalues(matrix, min(N_LEAST, slack.shape[0]), shift, rng)


def _dominating(matrix: Array, s: Array, H: Array, y: Array, tol: float, rng: np.random.Generator) -> Array:
    """Y with J ≼ Diag(Y): λmax(M) y where y > 0, M = Diag(y)^-½ J Diag(y)^-½; y and a shift where some are not.

    A multiplier that nearly vanishes where Jᵢᵢ < 0 makes M so large that the rounding of its factor proves nothing.
    """
    if not (y > 0).all() or (-(s**2) * matrix.diagonal() > _LARGE * y).any():
        return _shifted(matrix, s, H, y, s, rng)
    y_root = namespace(y).sqrt(y)
    root = s / y_root
    M = root[:, None] * matrix * root
    guess = estimate_largest_eigenvalue(M, _start(y_root[:, None] * H, rng))
    return max(bound_largest_eigenvalue(M, guess, slack=_SLACK * tol), 0.0) * y * (1 + 8 * UNIT)


def _shifted(
    matrix: Array, s: Array, H: Array, y: Array, scale: Array, rng: np.random.Generator, rounds: int = 1
) -> Array:
    """y + δ w, w = (s/scale)² and δ ≥ λmax(N), N = Diag(scale) Ã Diag(scale) - Diag(y/w): so J ≼ Diag(y + δ w)."""
    weights = (s / scale) ** 2
    N = scale[:, None] * matrix * scale
    add_to_diagonal(N, -y / weights)
    guess = estimate_largest_eigenvalue(N, _start((s / scale)[:, None] * H, rng))
    rounding = 4 * UNIT * float(abs(y / weights).max())
    excess = max(bound_largest_eigenvalue(N, guess, rounds=rounds) + rounding, 0.0)
    return y + excess * weights + 8 * UNIT * (abs(y) + excess * weights)


def _start(directions: Array, rng: np.random.Generator) -> Array:
    """A vector near the leading eigenvectors, with a share of everything else."""
    norm = namespace(directions).linalg.vector_norm
    towards = directions @ like(rng.standard_normal(directions.shape[1]), directions)
    noise = like(rng.standard_normal(towards.shape[0]), directions)
    return towards + 0.1 * norm(towards) / norm(noise) * noise
