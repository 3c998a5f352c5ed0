"""The certificate by factorisation: every bound from the matrix itself, and no chance involved."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.factorisation import bound_largest_eigenvalue, estimate_largest_eigenvalue, least_eigenvalues
from mercer.certificates.multipliers import (
    UNIT,
    additive_upper,
    multiplicative_upper,
    positive_multipliers,
    product_rounding,
    removed_vector,
)
from mercer.certificates.residuals import complementarity, conformality_residual, mean_value_residual
from mercer.problems import Elliptope

Array = np.ndarray[Any, np.dtype[Any]]
LEAST = 6
_GOOD = 1e-9
_SLACK = 1e-2  # of the tolerance


def certify_by_factorisation(
    problem: Elliptope, H: Array, *, rng: np.random.Generator, spectrum: bool, tol: float | None
) -> Certificate:
    """Bounds from the dense matrix of the rows that take part.

    The multiplicative bound comes first; where it does not prove the tolerance (or 1e-9), the additive ones are tried:
    y = z + δ with δ = max(0, λmax(J - Diag(z))), and the same for Ã and z/d, its shift weighted by Σd. They hold for
    multipliers of any sign. A factorisation each: n³/3 flops, n² entries, 3 n² doubles.
    """
    active = np.flatnonzero(problem.active)
    matrix = np.asarray(problem.operator.block(active, active), np.float64)
    s = problem.scale[active].astype(np.float64)
    v, H = removed_vector(problem)[active], H[active]
    G = s[:, None] * (matrix @ (s[:, None] * H))
    z = np.einsum("ij,ij->i", H, G)
    size = float(s @ np.abs(matrix) @ s) + 2 * float(s @ v) ** 2
    lower = float(z.sum()) - product_rounding(size, active.size, UNIT)
    wanted = _GOOD if tol is None else tol
    upper, excess = _multiplicative(matrix, s, v, H, G, z, wanted, rng)
    if not upper - lower <= wanted * lower:
        upper = min(upper, _additive(matrix, s, v, H, z, s, rng), _additive(matrix, s, v, H, z, np.ones_like(s), rng))
    least = np.empty(0)
    if spectrum:
        slack = z / s**2
        matrix *= -1
        matrix[np.diag_indices_from(matrix)] += slack
        shift = 2 * excess * float(np.max(np.abs(slack)))
        least = least_eigenvalues(matrix, min(LEAST, active.size), shift, rng)
    return Certificate(
        lower=lower,
        upper=max(upper, lower),
        failure_probability=0.0,
        method="factorisation proof",
        n_products=int(active.size),
        least_eigenvalues=least,
        complementarity=complementarity(s, H, G, z),
        mean_value_residual=mean_value_residual(s, H, G, z),
        conformality_residual=conformality_residual(H, G),
    )


def _multiplicative(
    matrix: Array, s: Array, v: Array, H: Array, G: Array, z: Array, tol: float, rng: np.random.Generator
) -> tuple[float, float]:
    """max(λmax(M), 0) Σy, and how far λmax(M) lies above one."""
    y = positive_multipliers(H, G, z, s**2 * np.diagonal(matrix), tol)
    root = s / np.sqrt(y)
    M = root[:, None] * matrix * root
    guess = estimate_largest_eigenvalue(M, _start(np.sqrt(y)[:, None] * H, rng))
    top = bound_largest_eigenvalue(M, guess, entry_error=_entry_rounding(M, root * v), slack=_SLACK * tol)
    return multiplicative_upper(top, y), max(top - 1, 0.0)


def _additive(matrix: Array, s: Array, v: Array, H: Array, z: Array, scale: Array, rng: np.random.Generator) -> float:
    """Σz + δ Σw, w = (s/scale)² and δ ≥ λmax(N), N = Diag(scale) Ã Diag(scale) - Diag(z/w): so J ≼ Diag(z + δ w)."""
    weights = (s / scale) ** 2
    N = scale[:, None] * matrix * scale
    N[np.diag_indices_from(N)] -= z / weights
    guess = estimate_largest_eigenvalue(N, _start((s / scale)[:, None] * H, rng))
    rounding = _entry_rounding(N, scale * v) + 4 * UNIT * float(np.max(np.abs(z / weights)))
    return additive_upper(z, bound_largest_eigenvalue(N, guess, entry_error=rounding), weights)


def _start(directions: Array, rng: np.random.Generator) -> Array:
    """A vector near the leading eigenvectors, with a share of everything else."""
    towards = directions @ rng.standard_normal(directions.shape[1])
    noise = rng.standard_normal(towards.size)
    return towards + 0.1 * np.linalg.norm(towards) / np.linalg.norm(noise) * noise


def _entry_rounding(M: Array, v: Array) -> float:
    """A bound on ‖ΔM‖ for the roundings that formed M from the kernel's values: eight an entry, and the subtraction."""
    bound = float(np.abs(M).sum(axis=1).max(initial=0.0))
    return 8 * UNIT * (bound + 2 * float(v.max(initial=0.0) * v.sum()))
