"""Partial Cholesky factors that stand in for the matrix: given ones, checked first, and those of the proof itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, namespace
from mercer.backends.rounding import gamma, unit_of
from mercer.certificates.factor_errors import factor_errors, remembered_errors
from mercer.certificates.low_rank_bound import StandIn
from mercer.certificates.scaled_matrix import ScaledMatrix, removed_vector
from mercer.linalg import rp_cholesky
from mercer.linalg.tall import square_row_lengths
from mercer.operators import LinearMap, LowRankOperator
from mercer.operators.base import part_of
from mercer.problems import Elliptope

_RANKS = (64, 256, 1024)
_DIAGONAL = 132  # in units of rounding: what is cut off the diagonal of an operator, and the sum of squares


def given_stand_in(scaled: ScaledMatrix, factored: LowRankOperator) -> StandIn:
    """The stand-in from a partial Cholesky factor of A = Ã + vvᵀ that a caller built, checked first."""
    problem, root = scaled.problem, scaled.root
    matrix = _Undeflated(problem, namespace(root).ones_like(root))
    if factored.landmarks is None or not factored.symmetric or factored.shape != matrix.shape:
        raise ValueError("stand_in must be a partial Cholesky factor of the problem's A, as rp_cholesky returns it.")
    F = as_double(factored.factor)
    errors = remembered_errors(problem, factored, matrix, F)
    rounding = unit_of(matrix.dtype) + unit_of(factored.dtype)
    allowed = 1e3 * (F.shape[1] + 8) * rounding * float(abs(matrix.diagonal()).max())
    if not float(errors.disagreement.max()) <= allowed * math.sqrt(F.shape[1] + 1):
        raise ValueError(
            "stand_in does not agree with the problem's operator at its own pivots: build it by rp_cholesky from "
            "the same kernel, points and weights, without deflation."
        )
    leftover, rounding = root**2 * _left_out(matrix, F), errors.in_units_of(root, scaled.allowed.entries)
    return StandIn(F, root, leftover, root * matrix.removed, scaled.deflated, rounding)


def own_stand_ins(
    scaled: ScaledMatrix, rng: np.random.Generator, memory: int, *, everything: bool = False
) -> Iterator[StandIn]:
    """Stand-ins of growing rank, as long as that brings down what they leave out and memory allows.

    ``everything``: also where the rank is no small part of n.
    """
    problem, root = scaled.problem, scaled.root
    matrix = _Undeflated(problem, root)
    ones = namespace(root).ones_like(root)
    entries = scaled.allowed.entries * float((root**2).max())
    before = np.inf
    for rank in _RANKS:
        if not everything and (rank > problem.size // 4 or 32 * problem.size * rank > memory):
            return
        factored = rp_cholesky(matrix, rank, rng)
        F = factored.factor
        leftover = _left_out(matrix, F)
        rounding = factor_errors(matrix, F, factored.landmarks).in_units_of(ones, entries)
        yield StandIn(F, ones, leftover, root * matrix.removed, scaled.deflated, rounding)
        if leftover.sum() > 0.5 * before or F.shape[1] < rank:
            return
        before = float(leftover.sum())


def _left_out(matrix: _Undeflated, F: Array) -> Array:
    """The diagonal of A - FFᵀ, from above."""
    diagonal = abs(matrix.diagonal())
    slack = gamma(F.shape[1] + _DIAGONAL, unit_of(matrix.dtype)) * diagonal
    return namespace(F).clip(diagonal - square_row_lengths(F), 0.0, None) + slack


@final
class _Undeflated(LinearMap):
    """DAD with A = Ã + vvᵀ, by its blocks and its diagonal."""

    def __init__(self, problem: Elliptope, root: Array) -> None:
        operator = problem.operator
        super().__init__(operator.shape, operator.dtype, symmetric=True, reference=operator.reference)
        self._inner = operator
        self._root = root
        self.removed = removed_vector(problem)

    def _multiply(self, v: Array) -> Array:
        scaled = self._root[:, None] * v
        product = self._inner @ scaled + self.removed[:, None] * (self.removed @ scaled)
        return self._root[:, None] * product

    def diagonal(self) -> Array:
        return self._root**2 * (self._inner.diagonal() + self.removed**2)

    def block(self, rows: Any, cols: Any) -> Array:
        left, right = part_of(self._root, rows), part_of(self._root, cols)
        outer = (left * part_of(self.removed, rows))[:, None] * (right * part_of(self.removed, cols))
        return left[:, None] * self._inner.block(rows, cols) * right + outer
