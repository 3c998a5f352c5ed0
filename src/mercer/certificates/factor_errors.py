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

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from mercer.backends.rounding import gamma, unit_of
from mercer.backends.threads import run_chunks
from mercer.operators import LinearMap, LowRankOperator
from mercer.problems import Elliptope

Array = np.ndarray[Any, np.dtype[Any]]
_ROWS = 2048
_seen: WeakKeyDictionary[LowRankOperator, tuple[Any, float, FactorErrors]] = WeakKeyDictionary()


class FactorErrors(NamedTuple):
    """Norms of the rows of C, R and T, and the norm of R at the pivots."""

    weights: Array
    disagreement: Array
    inexact: Array
    at_pivots: float

    def in_units_of(self, scaling: Array, entries: float) -> float:
        """A bound, in norm and in trace, on what is not psd of D(A - FFᵀ)D, A being known but for a norm of entries."""
        C, R, T = (float(np.linalg.norm(scaling * rows)) for rows in self[:3])
        formed = 2 * C * R + C**2 * self.at_pivots + T**2
        return 1.01 * (2 * formed + entries * (float(np.linalg.norm(scaling)) + C) ** 2)


def factor_errors(matrix: LinearMap, F: Array, pivots: Array) -> FactorErrors:
    """Look at a factor of a symmetric matrix at all of its pivots: n k entries and 6 n k² flops, rows in chunks."""
    n, k = F.shape
    if k == 0:
        return FactorErrors(np.zeros(n), np.zeros(n), np.zeros(n), 0.0)
    at, unit = F[pivots], unit_of(np.float64)
    size, chain = float(np.linalg.norm(at)), gamma(k + 2, unit)
    try:
        inverse = np.linalg.inv(at)
    except np.linalg.LinAlgError:  # no bound, and an infinite one says so
        return FactorErrors(np.full(n, np.inf), np.zeros(n), np.zeros(n), 0.0)
    weights, disagreement, inexact = np.empty(n), np.empty(n), np.empty(n)

    def look(lo: int) -> None:
        part = slice(lo, min(lo + _ROWS, n))
        rows = np.ascontiguousarray(F[part])
        C = rows @ inverse
        lengths = np.linalg.norm(rows, axis=1)
        weights[part] = np.linalg.norm(C, axis=1)
        inexact[part] = np.linalg.norm(C @ at - rows, axis=1) + chain * size * weights[part] + unit * lengths
        difference = np.asarray(matrix.block(part, pivots), np.float64) - rows @ at.T
        disagreement[part] = np.linalg.norm(difference, axis=1) + chain * size * lengths

    run_chunks(look, range(0, n, _ROWS))
    return FactorErrors(weights, disagreement, inexact, float(np.linalg.norm(disagreement[pivots])))


def remembered_errors(problem: Elliptope, factored: LowRankOperator, matrix: LinearMap, F: Array) -> FactorErrors:
    """The same, once for a factor and an operator: certificates of one fit ask for it again and again."""
    operator, total, errors = _seen.get(factored, (None, 0.0, None))
    if errors is None or operator is not problem.operator or total != float(np.sum(F)):
        errors = factor_errors(matrix, F, np.asarray(factored.landmarks))
        _seen[factored] = problem.operator, float(np.sum(F)), errors
    return errors
