"""Gaussian sections with covariances of their own, and the integrals of their products, with proved errors."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, exponential
from mercer.backends.chunks import BALL_ENTRIES, row_chunks, rows_within
from mercer.kernels.integrals.integral_enclosures import powered


@final
class GaussianSectionEnclosures:
    """The closed forms evaluated anew as balls: what comes out holds for the exact functions of the numbers given.

    Parameters
    ----------
    means : array of shape (m, d)
        μ of every section.
    roots : array of shape (m, d, d)
        L, lower triangular.
    factors : array of shape (m,)
        c.
    highest : int
        The section whose height is the unit of all.

    Notes
    -----
    Cost: d³/6 operations of twice the double precision for every pair of sections, and d²/2 for every section at every
    point.
    """

    def __init__(self, means: Array, roots: Array, factors: Array, highest: int) -> None:
        self._means, self._roots, self._highest = means, roots, highest
        self._rates = Ball(factors).inverse()  # 1/c

    @cached_property
    def _precisions(self) -> list[list[Ball]]:
        """P = L Lᵀ/c by entries, each a ball of shape (m,)."""
        d = self._roots.shape[1]
        return [[self._inner(i, j) * self._rates for j in range(d)] for i in range(d)]

    def _inner(self, i: int, j: int) -> Ball:
        """(L Lᵀ)_ij."""
        few = min(i, j) + 1
        return (Ball(self._roots[:, i, :few]) * Ball(self._roots[:, j, :few])).sum(axis=1)

    @cached_property
    def _heights(self) -> Ball:
        """|P|^{1/4} over that of the highest section, of shape (m,)."""
        d, one = self._roots.shape[1], self._highest
        total = powered((self._rates / self._rates[one]).root(), d)
        for i in range(d):
            total = total * (Ball(self._roots[:, i, i]) / Ball(self._roots[one, i, i]))
        return total.root()

    def mass(self) -> Ball:
        """W: 2^{d/2} (|P_i| |P_j|)^{1/4}/|A| exp(-¼ (A⁻¹P_iδ)ᵀ(A⁻¹P_jδ)) with A Aᵀ = P_i + P_j, δ = μ_i - μ_j."""
        m, d = self._means.shape
        rows, cols = np.triu_indices(m)
        A = _factored([[entry[rows] + entry[cols] for entry in line] for line in self._precisions])
        apart = [Ball(self._means[rows, i]) - Ball(self._means[cols, i]) for i in range(d)]
        left, right = (
            _solved(A, [_dotted([entry[at] for entry in line], apart) for line in self._precisions])
            for at in (rows, cols)
        )
        values = exponential(-_dotted(left, right).scaled(-2))
        rates = (self._rates[rows] * self._rates[cols]).root()
        for i in range(d):
            own = Ball(self._roots[rows, i, i]) * Ball(self._roots[cols, i, i]) * rates
            values = values * (own.scaled(1).root() / A[i][i])
        return _mirrored(values, m, rows, cols)

    def gram(self) -> Ball:
        """The identity."""
        return Ball(np.eye(self._means.shape[0]))

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """Their values, in units of the highest, at some rows of X at a time."""
        m, d = self._means.shape
        for rows in row_chunks(X.shape[0], rows_within(BALL_ENTRIES, m)):
            apart = [Ball(X[rows, i][:, None]) - Ball(self._means[:, i]) for i in range(d)]
            squares = Ball(np.zeros((apart[0].shape[0], m)))
            for j in range(d):
                squares = squares + _dotted([Ball(self._roots[:, i, j]) for i in range(j, d)], apart[j:]).squared()
            yield rows, exponential(-(squares * self._rates).scaled(-2)) * self._heights


def _dotted(left: Sequence[Ball], right: Sequence[Ball]) -> Ball:
    """Σ_i a_i b_i."""
    return reduce(operator.add, (a * b for a, b in zip(left, right, strict=True)))


def _factored(M: list[list[Ball]]) -> list[list[Ball]]:
    """The lower Cholesky factors of many matrices at once, given by entries."""
    A: list[list[Ball]] = []
    for i, line in enumerate(M):
        own: list[Ball] = []
        for j in range(i):
            rest = line[j] - _dotted(own, A[j][:j]) if j else line[j]
            own.append(rest / A[j][j])
        own.append((line[i] - _dotted(own, own)).root() if i else line[i].root())
        A.append(own)
    return A


def _solved(A: list[list[Ball]], right: list[Ball]) -> list[Ball]:
    """A⁻¹b for many lower triangular A at once."""
    out: list[Ball] = []
    for line, value in zip(A, right, strict=True):
        rest = value - _dotted(line[:-1], out) if out else value
        out.append(rest / line[-1])
    return out


def _mirrored(values: Ball, m: int, rows: Array, cols: Array) -> Ball:
    """The symmetric matrix of values on and above its diagonal."""
    parts = []
    for part in (values.hi, values.lo, values.radius):
        whole = np.empty((m, m))
        whole[rows, cols] = whole[cols, rows] = part
        parts.append(whole)
    return Ball(*parts)
