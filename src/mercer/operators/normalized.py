"""Normalisation by the diagonal."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.threads import run_chunks
from mercer.kernels.validation import positive_number
from mercer.operators.base import Array, Index, LinearMap
from mercer.operators.gram import GramOperator

_ROWS = 256


@final
class NormalizedOperator(LinearMap):
    """K(i, j) / M_t(K(i, i), K(j, j)), M_t the power mean of order t.

    Order 0, the limit t → 0, is the geometric mean: the cosine normalisation K(i, j)/sqrt(K(i, i) K(j, j)) (the
    survey's (70)). Any t > 0 gives (72) with M_t(a, b) = ((a^t + b^t)/2)^(1/t). The diagonal becomes one; a row whose
    K(i, i) is zero becomes zero.

    Parameters
    ----------
    gram : GramOperator
        Symmetric, or a block between new points and training points, without weights.
    order : float, default=0
        t ≥ 0.
    """

    def __init__(self, gram: GramOperator, order: float = 0.0) -> None:
        if gram.weights is not None:
            raise ValueError("A weighted Gram operator cannot be normalised: normalise first, weigh afterwards.")
        super().__init__(gram.shape, gram.dtype, symmetric=gram.symmetric)
        self.gram = gram
        self.order = positive_number(order, "order", zero=True)
        self._rows = _checked_diagonal(gram.kernel_diagonal())
        self._cols = self._rows if gram.symmetric else _checked_diagonal(gram.kernel_diagonal("cols"))

    def _multiply(self, v: Array) -> Array:
        if self.order == 0:
            return _inverse_root(self._rows)[:, None] * (self.gram @ (_inverse_root(self._cols)[:, None] * v))
        out = np.empty((self.shape[0], v.shape[1]), self.dtype)

        def fill(lo: int) -> None:
            out[lo : lo + _ROWS] = self.block(slice(lo, lo + _ROWS), slice(None)) @ v

        run_chunks(fill, range(0, self.shape[0], _ROWS))
        return out

    def _transpose_multiply(self, v: Array) -> Array:
        if self.order == 0:
            return _inverse_root(self._cols)[:, None] * (self.gram.T @ (_inverse_root(self._rows)[:, None] * v))
        out = np.empty((self.shape[1], v.shape[1]), self.dtype)

        def fill(lo: int) -> None:
            out[lo : lo + _ROWS] = self.block(slice(None), slice(lo, lo + _ROWS)).T @ v

        run_chunks(fill, range(0, self.shape[1], _ROWS))
        return out

    def diagonal(self) -> Array:
        """One, or zero where the kernel's diagonal is zero; computed for a block of two sets of points."""
        if self.symmetric:
            return (self._rows > 0).astype(self.dtype)
        return np.asarray(self.gram.diagonal() / self._mean(self._rows, self._cols), self.dtype)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        values = self.gram.block(rows, cols)
        if self.order == 0:
            return values * (_inverse_root(self._rows[rows])[:, None] * _inverse_root(self._cols[cols]))
        return np.asarray(values / self._mean(self._rows[rows][:, None], self._cols[cols]), self.dtype)

    def _mean(self, a: Any, b: Any) -> Any:
        if self.order == 0:
            mean = np.sqrt(a) * np.sqrt(b)
        else:
            # With M the larger of a and b and r their ratio, log(M_t / M) = log(1 + (r^t - 1)/2) / t: nothing overflows
            # for a large order, and nothing cancels for a small one.
            largest = np.maximum(a, b)
            ratio = np.minimum(a, b) / np.where(largest > 0, largest, 1)
            with np.errstate(divide="ignore", over="ignore"):  # in double precision, since float32 has no 1e-50
                power = np.expm1(self.order * np.log(ratio, dtype=np.float64))
                mean = largest * np.exp(np.log1p(power / 2) / self.order)
        return np.where((a > 0) & (b > 0), mean, np.inf)


def _inverse_root(diagonal: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.where(diagonal > 0, 1 / np.sqrt(diagonal), 0).astype(diagonal.dtype)


def _checked_diagonal(diagonal: Array) -> Array:
    if np.any(diagonal < 0):
        raise ValueError("A kernel with a negative k(x, x) cannot be normalised.")
    return diagonal
