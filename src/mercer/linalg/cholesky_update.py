"""A Cholesky factor that follows its matrix as rows and columns come and go.

    A = L Lᵀ, and Y = L⁻¹ R for some right-hand sides R

A new last row costs one forward substitution, a row taken out one sweep of Givens rotations, each n² flops instead of
the n³/3 of a new factor. The rows of Yᵀ ride along below L: the same substitution extends them by one entry, the same
rotations mend them, so that A⁻¹R takes one back substitution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.linalg import cholesky, solve_triangular

Array = np.ndarray[Any, np.dtype[Any]]
_FIRST_CAPACITY = 64
_EPS = float(np.finfo(np.float64).eps)


class SingularUpdateError(ArithmeticError):
    """A new row depends on the others to working precision."""


class UpdatedCholesky:
    """The factor of a growing and shrinking positive definite matrix, with right-hand sides.

    Parameters
    ----------
    n_sides : int
        Number of right-hand sides.

    Attributes
    ----------
    size : int
        Rows of the matrix at present.
    """

    def __init__(self, n_sides: int = 0) -> None:
        self.size = 0
        self._factor = np.zeros((_FIRST_CAPACITY, _FIRST_CAPACITY))
        self._sides = np.zeros((n_sides, _FIRST_CAPACITY))

    @property
    def factor(self) -> Array:
        """L; what lies above its diagonal is not kept zero."""
        return self._factor[: self.size, : self.size]

    def append(self, column: Array, diagonal: float, sides: Array) -> float:
        """Add a last row with these off-diagonal entries, diagonal entry and right-hand sides.

        Returns the square of the new pivot: the part of the diagonal that the other rows do not explain.
        """
        n = self.size
        self._reserve(n + 1)
        pivot = _append(self._factor, self._sides, n, np.ascontiguousarray(column), float(diagonal), sides)
        if not pivot > 8 * (n + 1) * _EPS * diagonal:
            raise SingularUpdateError(f"a row depends on {n} others, its pivot is {pivot:.1e} of {diagonal:.1e}")
        self.size = n + 1
        return float(pivot)

    def remove(self, position: int) -> None:
        """Take a row and its column out."""
        _remove(self._factor, self._sides, self.size, position)
        self.size -= 1

    def solve_sides(self) -> Array:
        """A⁻¹R, one right-hand side a row."""
        out = self._sides[:, : self.size].copy()
        _back_substitute(self._factor, self.size, out)
        return out

    def solve(self, sides: Array) -> Array:
        """A⁻¹R for other right-hand sides, one a row."""
        out = np.array(sides, dtype=np.float64, ndmin=2)
        _forward_substitute(self._factor, self.size, out)
        _back_substitute(self._factor, self.size, out)
        return out

    def set_sides(self, sides: Array) -> None:
        """Replace the right-hand sides, one a row."""
        self._sides[:, : self.size] = sides
        _forward_substitute(self._factor, self.size, self._sides[:, : self.size])

    def refactor(self, matrix: Array, sides: Array) -> None:
        """Start again from the matrix itself: n³/3 flops, and no error left of the updates before."""
        n = matrix.shape[0]
        try:
            fresh = cholesky(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            fresh = np.zeros_like(matrix)
        if not np.all(np.diagonal(fresh) ** 2 > n * _EPS * np.diagonal(matrix)):  # LAPACK takes rounding for a pivot
            raise SingularUpdateError(f"the matrix of {n} rows is singular to working precision")
        self._reserve(n)
        self._factor[:n, :n] = fresh
        self._sides[:, :n] = solve_triangular(fresh, sides.T, lower=True, check_finite=False).T
        self.size = n

    def _reserve(self, n: int) -> None:
        capacity = self._factor.shape[0]
        if n <= capacity:
            return
        larger = max(n, 2 * capacity)
        factor, sides = np.zeros((larger, larger)), np.zeros((self._sides.shape[0], larger))
        factor[:capacity, :capacity] = self._factor
        sides[:, :capacity] = self._sides
        self._factor, self._sides = factor, sides


# Sums may be taken in any order: each is a dot product of its own, and the order is the same from run to run.
_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot(a: Any, b: Any, n: int) -> Any:
    total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total


@njit(cache=True, nogil=True)
def _append(factor: Any, sides: Any, n: int, column: Any, diagonal: float, new_sides: Any) -> float:
    row = factor[n]
    for i in range(n):
        row[i] = (column[i] - _dot(factor[i], row, i)) / factor[i, i]
    pivot = diagonal - _dot(row, row, n)
    if pivot <= 0:
        return pivot
    row[n] = np.sqrt(pivot)
    for s in range(sides.shape[0]):
        sides[s, n] = (new_sides[s] - _dot(row, sides[s], n)) / row[n]
    return pivot


@njit(cache=True, nogil=True)
def _remove(factor: Any, sides: Any, n: int, position: int) -> None:
    cosines, sines = np.empty(n), np.empty(n)
    for i in range(position, n - 1):
        row = factor[i]
        row[: i + 2] = factor[i + 1, : i + 2]
        for k in range(position, i):
            a, b = row[k], row[k + 1]
            row[k] = cosines[k] * a + sines[k] * b
            row[k + 1] = cosines[k] * b - sines[k] * a
        length = np.hypot(row[i], row[i + 1])
        cosines[i], sines[i] = row[i] / length, row[i + 1] / length
        row[i] = length
    for s in range(sides.shape[0]):
        for k in range(position, n - 1):
            a, b = sides[s, k], sides[s, k + 1]
            sides[s, k] = cosines[k] * a + sines[k] * b
            sides[s, k + 1] = cosines[k] * b - sines[k] * a


@njit(cache=True, nogil=True)
def _back_substitute(factor: Any, n: int, out: Any) -> None:
    for s in range(out.shape[0]):
        x = out[s]
        for i in range(n - 1, -1, -1):
            x[i] /= factor[i, i]
            for k in range(i):
                x[k] -= x[i] * factor[i, k]


@njit(cache=True, nogil=True)
def _forward_substitute(factor: Any, n: int, out: Any) -> None:
    for s in range(out.shape[0]):
        for i in range(n):
            out[s, i] = (out[s, i] - _dot(factor[i], out[s], i)) / factor[i, i]
