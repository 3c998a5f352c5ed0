"""How far the residual of a partial Cholesky factor can be from positive semi-definite, by looking at the factor.

For a psd matrix A, pivots P with selection matrix S, and *any* matrix C of shape (n, k),

    (I - C Sᵀ) A (I - S Cᵀ) = A - C A_P - A_Pᵀ Cᵀ + C A_PP Cᵀ  ≽  0,

whatever rounding did to C. Let C be about F F_P⁻¹, with F_P the rows of F at the pivots, and R = A_Pᵀ - F F_Pᵀ, which
is zero in exact arithmetic, and T = C F_P - F. Then

    A - FFᵀ = (I - C Sᵀ) A (I - S Cᵀ) + C Rᵀ + R Cᵀ - C R_P Cᵀ - T Tᵀ

to the last digit: the first term is psd, and the others are bounded by the norms of the rows of C, R and T. Nothing is
believed of how F came about: a factor of another matrix has a large R.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from mercer.backends.arrays import Array, inverse, is_tensor, namespace, solve_triangular
from mercer.backends.chunks import row_chunks
from mercer.backends.rounding import UNIT, gamma
from mercer.backends.threads import run_chunks_of
from mercer.linalg.tall import square_row_lengths
from mercer.operators import LinearMap, LowRankOperator
from mercer.problems import Elliptope

_ROWS, _COLUMNS = 1024, 192
_TRIANGULAR = 1e-8  # of F_P: what rounding may leave above its diagonal
_seen: WeakKeyDictionary[LowRankOperator, tuple[Any, float, FactorErrors]] = WeakKeyDictionary()


class FactorErrors(NamedTuple):
    """Norms of the rows of C, R and T, and the norm of R at the pivots."""

    weights: Array
    disagreement: Array
    inexact: Array
    at_pivots: float

    def in_units_of(self, scaling: Array, entries: float) -> float:
        """A bound, in norm and in trace, on what is not psd of D(A - FFᵀ)D, A being known up to a norm of entries."""
        norm = namespace(scaling).linalg.vector_norm
        weight, off, left = (float(norm(scaling * rows)) for rows in self[:3])  # of C, R and T
        if not math.isfinite(weight):
            return weight
        formed = 2 * weight * off + weight**2 * self.at_pivots + left**2
        return 1.01 * (2 * formed + entries * (float(norm(scaling)) + weight) ** 2)


def factor_errors(matrix: LinearMap, F: Array, pivots: Array) -> FactorErrors:
    """Look at a factor of a symmetric matrix at all of its pivots: n k entries and 3 n k² flops, rows in chunks.

    F_P is lower triangular up to rounding N, so that products with it take half the flops, and N is counted as an
    error: ‖Cᵢ N‖ ≤ ‖Cᵢ‖ ‖N‖ and, since |Fᵢⱼ| ≤ cⱼ, ‖N Fᵢ‖ ≤ √k ‖N Diag(c)‖, N being largest where c is least. Of a
    factor that is not triangular all of F_P is taken, at twice the cost.
    """
    xp, (n, k) = namespace(F), F.shape
    zeros = xp.zeros(n, dtype=xp.float64, device=F.device)
    if k == 0:
        return FactorErrors(zeros, zeros, zeros, 0.0)
    at = F[pivots]
    lower = xp.tril(at)
    above = float(xp.linalg.vector_norm(at - lower))
    size, chain = float(xp.linalg.vector_norm(at)), gamma(k + 2, UNIT)
    triangular = above <= _TRIANGULAR * size
    beyond = float(xp.linalg.vector_norm((at - lower) * _largest_entries(F))) if triangular else 0.0
    inverse = _inverse(lower if triangular else at, triangular)
    if inverse is None:  # no bound, and an infinite one says so
        return FactorErrors(zeros + float("inf"), zeros, zeros, 0.0)
    if not triangular:
        lower, above = at, 0.0

    def look(part: slice) -> tuple[Array, Array, Array]:
        rows = xp.asarray(F[part], copy=True)
        C = _times(rows, inverse, triangular, below=True)
        lengths, weights = _row_lengths(rows), _row_lengths(C)
        inexact = _row_lengths(_times(C, lower, triangular, below=True) - rows)
        difference = xp.astype(matrix.block(part, pivots), xp.float64, copy=False)
        disagreement = _row_lengths(difference - _times(rows, lower.T, triangular, below=False))
        inexact += (chain * size + 1.01 * above) * weights + UNIT * lengths
        return weights, disagreement + (chain * size * lengths + 1.01 * k**0.5 * beyond), inexact

    found = run_chunks_of(F, look, row_chunks(n, _ROWS))
    weights, disagreement, inexact = (xp.concat(parts) for parts in zip(*found, strict=True))
    return FactorErrors(weights, disagreement, inexact, float(xp.linalg.vector_norm(disagreement[pivots])))


def _largest_entries(F: Array) -> Array:
    """The largest absolute value of each column."""
    xp = namespace(F)
    parts = run_chunks_of(F, lambda part: xp.max(xp.abs(F[part]), axis=0), row_chunks(F.shape[0], _ROWS))
    return xp.max(xp.stack(parts), axis=0)


def _inverse(at: Array, triangular: bool) -> Array | None:
    """About the inverse of F_P; None where it has none."""
    xp = namespace(at)
    try:
        if triangular:
            identity = xp.eye(at.shape[0], dtype=xp.float64, device=at.device)
            found = xp.tril(solve_triangular(at, identity, lower=True))
        else:
            found = inverse(at)
    except np.linalg.LinAlgError:
        return None
    return found if bool(xp.all(xp.isfinite(found))) else None


def _times(rows: Array, matrix: Array, triangular: bool, *, below: bool) -> Array:
    """The product with a square matrix; of one that is zero above, or else below, its diagonal, without the zeros."""
    xp, k = namespace(rows), matrix.shape[0]
    if not triangular or k <= _COLUMNS or is_tensor(rows):
        return rows @ matrix
    product = xp.empty_like(rows)
    for part in row_chunks(k, _COLUMNS):
        inner = slice(part.start, k) if below else slice(0, part.stop)
        np.matmul(rows[:, inner], matrix[inner, part], out=product[:, part])
    return product


def _row_lengths(rows: Array) -> Array:
    return namespace(rows).linalg.vector_norm(rows, axis=1)


def remembered_errors(problem: Elliptope, factored: LowRankOperator, matrix: LinearMap, F: Array) -> FactorErrors:
    """The same, once for a factor and an operator: a fit asks for several certificates."""
    operator, total, errors = _seen.get(factored, (None, 0.0, None))
    fingerprint = float(namespace(F).sum(square_row_lengths(F)))  # a factor that was changed in place is another
    if errors is None or operator is not problem.operator or total != fingerprint:
        errors = factor_errors(matrix, F, factored.landmarks)
        _seen[factored] = problem.operator, fingerprint, errors
    return errors
