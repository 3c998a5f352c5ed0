"""A Cholesky factor that follows its matrix as rows and columns come and go.

    A = L Lᵀ, and Y = L⁻¹ R for some right-hand sides R

A new last row costs one forward substitution, a row taken out one sweep of Givens rotations, each n² flops instead of
the n³/3 of a new factor. The rows of Yᵀ ride along below L: the same substitution extends them by one entry, the same
rotations mend them, so that A⁻¹R takes one back substitution.

NumPy arrays are worked on by compiled loops, tensors by operations of their library, in :mod:`cholesky_tensors`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.linalg import cholesky, solve_triangular

from mercer.backends.arrays import Array, copied, is_tensor, namespace
from mercer.backends.rounding import EPS
from mercer.linalg.cholesky_tensors import TensorSweeps

_FIRST_CAPACITY = 64
_ABREAST = 4  # rows that are rotated side by side


class SingularUpdateError(ArithmeticError):
    """A new row depends on the others to working precision."""


class UpdatedCholesky:
    """The factor of a growing and shrinking positive definite matrix, with right-hand sides.

    Parameters
    ----------
    n_sides : int
        Number of right-hand sides.
    reference : array, optional
        An array of the library and device that the matrix belongs to; NumPy if left out.

    Attributes
    ----------
    size : int
        Rows of the matrix at present.
    """

    def __init__(self, n_sides: int = 0, *, reference: Any = None) -> None:
        self.size = 0
        self._sweeps: Any = TensorSweeps if is_tensor(reference) else _CompiledSweeps
        self._factor, self._sides = _zeros(_FIRST_CAPACITY, n_sides, reference)

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
        pivot = self._sweeps.append(self._factor, self._sides, n, column, float(diagonal), sides)
        if not pivot > 8 * (n + 1) * EPS * diagonal:
            raise SingularUpdateError(f"a row depends on {n} others, its pivot is {pivot:.1e} of {diagonal:.1e}")
        self.size = n + 1
        return float(pivot)

    def remove(self, position: int) -> None:
        """Take a row and its column out."""
        self._sweeps.remove(self._factor, self._sides, self.size, position)
        self.size -= 1

    def solve_sides(self) -> Array:
        """A⁻¹R, one right-hand side a row."""
        return self._sweeps.back(self._factor, self.size, copied(self._sides[:, : self.size]))

    def solve(self, sides: Array) -> Array:
        """A⁻¹R for other right-hand sides, one a row."""
        rows = sides[None] if sides.ndim == 1 else sides
        return self._sweeps.back(self._factor, self.size, self._sweeps.forward(self._factor, self.size, copied(rows)))

    def set_sides(self, sides: Array) -> None:
        """Replace the right-hand sides, one a row."""
        self._sides[:, : self.size] = self._sweeps.forward(self._factor, self.size, copied(sides))

    def refactor(self, matrix: Array, sides: Array) -> None:
        """Start again from the matrix itself: n³/3 flops, and no error left of the updates before."""
        n, xp = matrix.shape[0], namespace(matrix)
        fresh = self._sweeps.fresh(matrix)
        pivots, diagonal = xp.linalg.diagonal(fresh) ** 2, xp.linalg.diagonal(matrix)
        if not xp.all(pivots > n * EPS * diagonal):  # LAPACK takes rounding for a pivot
            raise SingularUpdateError(f"the matrix of {n} rows is singular to working precision")
        self._reserve(n)
        self._factor[:n, :n] = fresh
        self._sides[:, :n] = self._sweeps.solve_lower(fresh, sides.T).T
        self.size = n

    def _reserve(self, n: int) -> None:
        capacity = self._factor.shape[0]
        if n <= capacity:
            return
        factor, sides = _zeros(max(n, 2 * capacity), self._sides.shape[0], self._factor)
        factor[:capacity, :capacity] = self._factor
        sides[:, :capacity] = self._sides
        self._factor, self._sides = factor, sides


def _zeros(capacity: int, n_sides: int, reference: Any) -> tuple[Array, Array]:
    """Room for a factor and for right-hand sides."""
    xp, device = namespace(reference), getattr(reference, "device", None)
    factor = xp.zeros((capacity, capacity), dtype=xp.float64, device=device)
    return factor, xp.zeros((n_sides, capacity), dtype=xp.float64, device=device)


class _CompiledSweeps:
    """The sweeps over a factor in NumPy arrays."""

    @staticmethod
    def append(factor: Array, sides: Array, n: int, column: Array, diagonal: float, new_sides: Array) -> float:
        """Extend the factor by a row and the sides by an entry each; returns the square of the pivot."""
        return float(_append(factor, sides, n, np.ascontiguousarray(column), diagonal, new_sides))

    @staticmethod
    def remove(factor: Array, sides: Array, n: int, position: int) -> None:
        """Take a row out."""
        _remove(factor, sides, n, position)

    @staticmethod
    def back(factor: Array, n: int, out: Array) -> Array:
        """L⁻ᵀ applied to rows, in place."""
        _back_substitute(factor, n, out)
        return out

    @staticmethod
    def forward(factor: Array, n: int, out: Array) -> Array:
        """L⁻¹ applied to rows, in place."""
        _forward_substitute(factor, n, out)
        return out

    @staticmethod
    def fresh(matrix: Array) -> Array:
        """A new factor; zeros where there is none."""
        try:
            return cholesky(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return np.zeros_like(matrix)

    @staticmethod
    def solve_lower(factor: Array, right: Array) -> Array:
        """L⁻¹ applied to columns."""
        return solve_triangular(factor, right, lower=True, check_finite=False)


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
    for first in range(position, n - 1, _ABREAST):
        last = min(first + _ABREAST, n - 1)
        for i in range(first, last):
            factor[i, : i + 2] = factor[i + 1, : i + 2]
        if last - first == _ABREAST:
            _rotate_abreast(factor, first, position, cosines, sines)
        else:
            for i in range(first, last):
                _rotate(factor[i], position, first, cosines, sines)
        for i in range(first, last):
            row = factor[i]
            _rotate(row, first, i, cosines, sines)
            length = np.hypot(row[i], row[i + 1])
            cosines[i], sines[i] = row[i] / length, row[i + 1] / length
            row[i] = length
    for s in range(sides.shape[0]):
        _rotate(sides[s], position, n - 1, cosines, sines)


@njit(cache=True, nogil=True, inline="always")
def _rotate(row: Any, start: int, stop: int, cosines: Any, sines: Any) -> None:
    for k in range(start, stop):
        a, b = row[k], row[k + 1]
        row[k] = cosines[k] * a + sines[k] * b
        row[k + 1] = cosines[k] * b - sines[k] * a


@njit(cache=True, nogil=True)
def _rotate_abreast(factor: Any, first: int, position: int, cosines: Any, sines: Any) -> None:
    """As :func:`_rotate` up to ``first`` for four rows: each waits for its last rotation, but not for the others."""
    p, q, r, s = factor[first], factor[first + 1], factor[first + 2], factor[first + 3]
    a, b, c, d = p[position], q[position], r[position], s[position]
    for k in range(position, first):
        cosine, sine = cosines[k], sines[k]
        e, f, g, h = p[k + 1], q[k + 1], r[k + 1], s[k + 1]
        p[k], a = cosine * a + sine * e, cosine * e - sine * a
        q[k], b = cosine * b + sine * f, cosine * f - sine * b
        r[k], c = cosine * c + sine * g, cosine * g - sine * c
        s[k], d = cosine * d + sine * h, cosine * h - sine * d
    p[first], q[first], r[first], s[first] = a, b, c, d


@njit(cache=True, nogil=True)
def _back_substitute(factor: Any, n: int, out: Any) -> None:
    for i in range(n - 1, -1, -1):  # a row is read once for all sides
        row = factor[i]
        for s in range(out.shape[0]):
            x = out[s]
            x[i] /= row[i]
            for k in range(i):
                x[k] -= x[i] * row[k]


@njit(cache=True, nogil=True)
def _forward_substitute(factor: Any, n: int, out: Any) -> None:
    for s in range(out.shape[0]):
        for i in range(n):
            out[s, i] = (out[s, i] - _dot(factor[i], out[s], i)) / factor[i, i]
