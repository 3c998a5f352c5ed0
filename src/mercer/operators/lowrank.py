"""A matrix given by a factor."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.threads import run_chunks
from mercer.kernels.validation import as_points
from mercer.operators.base import Array, Index, LinearMap, require_square

_ROWS = 4096


@final
class LowRankOperator(LinearMap):
    """F Fᵀ for an n × r factor F, or F Gᵀ with a second factor. A product costs 2 n r flops a column.

    Parameters
    ----------
    factor : array of shape (n, r)
        F.
    right : array of shape (m, r), optional
        G; F if left out.
    landmarks : array of int, optional
        Indices of the columns the factor was built from.
    residual_diagonal : array of shape (n,), optional
        The diagonal of what the factor leaves out, where that is known.
    """

    def __init__(self, factor: Any, right: Any = None, *, landmarks: Any = None, residual_diagonal: Any = None) -> None:
        self.landmarks = landmarks
        self.residual_diagonal = residual_diagonal
        self.factor = _as_factor(factor, "factor")
        self.right = self.factor if right is None else _as_factor(right, "right")
        if self.factor.shape[1] != self.right.shape[1]:
            raise ValueError(
                f"The factors have {self.factor.shape[1]} and {self.right.shape[1]} columns: they must agree."
            )
        shape = (self.factor.shape[0], self.right.shape[0])
        super().__init__(shape, np.result_type(self.factor, self.right), symmetric=right is None)

    @property
    def rank(self) -> int:
        """The number of columns of the factor."""
        return int(self.factor.shape[1])

    def _multiply(self, v: Array) -> Array:
        return np.asarray(_product(self.factor, self.right, v), self.dtype)

    def _transpose_multiply(self, v: Array) -> Array:
        return np.asarray(_product(self.right, self.factor, v), self.dtype)

    def diagonal(self) -> Array:
        """Σₖ Fᵢₖ Gᵢₖ."""
        require_square(self)
        return np.einsum("ij,ij->i", self.factor, self.right)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        return np.asarray(self.factor[rows] @ self.right[cols].T, self.dtype)


def _product(left: Array, right: Array, v: Array) -> Array:
    """F Gᵀ v on our threads, rows in chunks of fixed size, so that it is the same for any number of threads."""
    inner = sum(run_chunks(lambda lo: right[lo : lo + _ROWS].T @ v[lo : lo + _ROWS], range(0, right.shape[0], _ROWS)))
    if not right.shape[0]:
        inner = np.zeros((right.shape[1], v.shape[1]))
    out = np.empty((left.shape[0], v.shape[1]), np.result_type(left, v))

    def fill(lo: int) -> None:
        np.matmul(left[lo : lo + _ROWS], inner, out=out[lo : lo + _ROWS])

    run_chunks(fill, range(0, left.shape[0], _ROWS))
    return out


def _as_factor(factor: Any, name: str) -> Array:
    """Check a factor as points are checked, with two liberties: no columns, which mean zero, and any memory order."""
    array = np.asarray(factor)
    if array.ndim == 2 and array.shape[1] == 0:
        return array.astype(np.result_type(array, np.float32))
    floating = array.dtype in (np.float32, np.float64) and array.ndim == 2 and array.shape[0] > 0
    return array if floating and np.isfinite(array.sum()) else as_points(factor, name)
