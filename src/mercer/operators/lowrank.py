"""Matrices of low rank: one given by a factor, and a multiple of vvᵀ added to any other."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, cast, is_tensor, like, namespace
from mercer.backends.chunks import TALL_ROWS, depth_of_sum, row_chunks
from mercer.backends.threads import run_chunks
from mercer.kernels.checks import as_points
from mercer.operators.base import Index, LinearMap, part_of, require_square

_SUMMED = 2**20  # entries a chunk of a sum


@final
class LowRankOperator(LinearMap):
    """F Fᵀ for an n × r factor F, or F Gᵀ with a second factor. A product costs 2 n r flops a column.

    Parameters
    ----------
    factor : array of shape (n, r)
        F; the map works in its library.
    right : array of shape (m, r), optional
        G; F if left out.
    landmarks : array of int, optional
        Indices of the columns the factor was built from.
    basis : array of shape (n, r), optional
        The vectors whose images the factor was built from, where these are not columns.
    residual_diagonal : array of shape (n,), optional
        The diagonal of what the factor leaves out, where that is known.
    """

    def __init__(
        self,
        factor: Any,
        right: Any = None,
        *,
        landmarks: Any = None,
        basis: Any = None,
        residual_diagonal: Any = None,
    ) -> None:
        self.landmarks = landmarks
        self.basis = basis
        self.residual_diagonal = residual_diagonal
        self.factor = _as_factor(factor, "factor")
        self.right = self.factor if right is None else like(_as_factor(right, "right"), self.factor)
        if self.factor.shape[1] != self.right.shape[1]:
            raise ValueError(
                f"The factors have {self.factor.shape[1]} and {self.right.shape[1]} columns: they must agree."
            )
        shape = (self.factor.shape[0], self.right.shape[0])
        dtype = namespace(self.factor).result_type(self.factor, self.right)
        super().__init__(shape, dtype, symmetric=right is None, reference=self.factor)

    @property
    def rank(self) -> int:
        """The number of columns of the factor."""
        return int(self.factor.shape[1])

    @property
    def inner_depth(self) -> int:
        """Roundings that a term of Gᵀv goes through at most in a product."""
        n = int(self.right.shape[0])
        return n if is_tensor(self.right) else depth_of_sum(n, TALL_ROWS)

    def _multiply(self, v: Array) -> Array:
        return cast(_product(self.factor, self.right, v), self.dtype)

    def _transpose_multiply(self, v: Array) -> Array:
        return cast(_product(self.right, self.factor, v), self.dtype)

    def diagonal(self) -> Array:
        """Σₖ Fᵢₖ Gᵢₖ."""
        require_square(self)
        if is_tensor(self.reference):
            return namespace(self.reference).sum(self.factor * self.right, axis=1)
        return np.einsum("ij,ij->i", self.factor, self.right)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        left, right = (cast(part_of(F, which), self.dtype) for F, which in ((self.factor, rows), (self.right, cols)))
        return left @ right.T


def _product(left: Array, right: Array, v: Array) -> Array:
    """F Gᵀ v on our threads, rows in chunks of fixed size, so that it is the same for any number of threads."""
    if is_tensor(left):
        return cast(left, v.dtype) @ (cast(right, v.dtype).T @ v)  # threads and devices are torch's own
    inner = sum(run_chunks(lambda rows: right[rows].T @ v[rows], row_chunks(right.shape[0], TALL_ROWS)))
    if not right.shape[0]:
        inner = np.zeros((right.shape[1], v.shape[1]))
    out = np.empty((left.shape[0], v.shape[1]), np.result_type(left, v))

    def fill(rows: slice) -> None:
        np.matmul(left[rows], inner, out=out[rows])

    run_chunks(fill, row_chunks(left.shape[0], TALL_ROWS))
    return out


def _as_factor(factor: Any, name: str) -> Array:
    """Check a factor as points are checked, with two liberties: no columns, which mean zero, and any memory order."""
    array = factor if is_tensor(factor) else np.asarray(factor)
    xp = namespace(array)
    floating = array.dtype in (xp.float32, xp.float64)
    if array.ndim == 2 and array.shape[1] == 0:
        return array if floating else cast(array, xp.float64)
    usable = floating and array.ndim == 2 and array.shape[0] > 0
    return array if usable and _is_finite(array) else as_points(factor, name)


def _is_finite(array: Array) -> bool:
    """Whether the sum of all entries is a finite number, on our threads along the order in memory."""
    if is_tensor(array):
        return bool(array.sum().isfinite())
    lines = array.T if array.flags.f_contiguous else array
    rows = max(1, _SUMMED // max(1, lines.shape[1]))
    sums = run_chunks(lambda part: float(np.sum(lines[part])), row_chunks(lines.shape[0], rows))
    return math.isfinite(sum(sums))


@final
class RankOneUpdate(LinearMap):
    """M + c vvᵀ for a symmetric map M: a diffusion matrix without its stationary part (c = -1), or with it again.

    Parameters
    ----------
    inner : LinearMap
        M, symmetric, n × n.
    vector : array of shape (n,)
        v.
    coefficient : float
        c.
    """

    def __init__(self, inner: LinearMap, vector: Any, coefficient: float) -> None:
        if not inner.symmetric:
            raise ValueError("A rank-one update is of a symmetric map.")
        super().__init__(inner.shape, inner.dtype, symmetric=True, reference=inner.reference)
        self.inner = inner
        self.vector = like(vector, self.reference, dtype=self.dtype)
        self.coefficient = float(coefficient)
        if tuple(self.vector.shape) != (inner.shape[0],):
            raise ValueError(f"The vector has shape {tuple(self.vector.shape)} for a map of {inner.shape[0]} rows.")

    def _multiply(self, v: Array) -> Array:
        product = self.inner @ v
        product += self.vector[:, None] * ((self.coefficient * self.vector) @ v)
        return product

    def diagonal(self) -> Array:
        """Mᵢᵢ + c vᵢ²."""
        return self.inner.diagonal() + self.coefficient * self.vector**2

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        values = self.inner.block(rows, cols)
        return values + self.coefficient * (part_of(self.vector, rows)[:, None] * part_of(self.vector, cols))
