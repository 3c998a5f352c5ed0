"""Normalisation by the diagonal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, cast, namespace
from mercer.backends.chunks import ENTRY_ROWS, row_chunks
from mercer.backends.entries import checked_diagonal, inverse_root
from mercer.backends.threads import run_chunks
from mercer.kernels.checks import positive_number
from mercer.operators.base import Index, LinearMap, part_of
from mercer.operators.gram import GramOperator


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
        super().__init__(gram.shape, gram.dtype, symmetric=gram.symmetric, reference=gram.reference)
        self.gram = gram
        self.order = positive_number(order, "order", zero=True)
        self._rows = checked_diagonal(gram.kernel_diagonal())
        self._cols = self._rows if gram.symmetric else checked_diagonal(gram.kernel_diagonal("cols"))
        self._sparse = gram.entrywise(self._normalised) if self.order else None

    def _normalised(self, values: Array, rows: Array, cols: Array) -> Array:
        return cast(values / self._mean(self._rows[rows], self._cols[cols]), self.dtype)

    def _multiply(self, v: Array) -> Array:
        if self.order == 0:
            return inverse_root(self._rows)[:, None] * (self.gram @ (inverse_root(self._cols)[:, None] * v))
        if self._sparse is not None:
            return self._sparse.multiply(v)
        return self._by_rows(v, self.shape[0], lambda rows: self.block(rows, slice(None)))

    def _transpose_multiply(self, v: Array) -> Array:
        if self.order == 0:
            return inverse_root(self._cols)[:, None] * (self.gram.T @ (inverse_root(self._rows)[:, None] * v))
        if self._sparse is not None:
            return self._sparse.multiply(v, transpose=True)
        return self._by_rows(v, self.shape[1], lambda cols: self.block(slice(None), cols).T)

    def _by_rows(self, v: Array, n: int, rows_of: Callable[[slice], Array]) -> Array:
        """The product with a block, some rows of the n of the map or of its transpose at a time."""
        out = namespace(v).empty((n, v.shape[1]), dtype=self.dtype, device=v.device)

        def fill(rows: slice) -> None:
            out[rows] = rows_of(rows) @ v

        run_chunks(fill, row_chunks(n, ENTRY_ROWS))
        return out

    def diagonal(self) -> Array:
        """One, or zero where the kernel's diagonal is zero; computed for a block of two sets of points."""
        if self.symmetric:
            return cast(self._rows > 0, self.dtype)
        return cast(self.gram.diagonal() / self._mean(self._rows, self._cols), self.dtype)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        values = self.gram.block(rows, cols)
        a, b = part_of(self._rows, rows), part_of(self._cols, cols)
        if self.order == 0:
            return values * (inverse_root(a)[:, None] * inverse_root(b))
        return cast(values / self._mean(a[:, None], b), self.dtype)

    def _mean(self, a: Any, b: Any) -> Any:
        xp = namespace(a)
        if self.order == 0:
            mean = xp.sqrt(a) * xp.sqrt(b)
        else:
            # With M the larger of a and b and r their ratio, log(M_t / M) = log(1 + (r^t - 1)/2) / t: nothing overflows
            # for a large order, and nothing cancels for a small one.
            largest = xp.maximum(a, b)
            ratio = xp.minimum(a, b) / xp.where(largest > 0, largest, 1.0)
            with np.errstate(divide="ignore", over="ignore"):  # in double precision, since float32 has no 1e-50
                power = xp.expm1(self.order * xp.log(as_double(ratio)))
                mean = largest * xp.exp(xp.log1p(power / 2) / self.order)
        return xp.where((a > 0) & (b > 0), mean, float("inf"))
