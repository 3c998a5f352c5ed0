"""A kernel matrix centred for a measure of dependence, made block by block."""

from __future__ import annotations

from copy import copy
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, cast
from mercer.backends.chunks import THREAD_BYTES, panel_rows, row_chunks
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import gamma, unit_of
from mercer.backends.threads import run_chunks
from mercer.kernels import Kernel
from mercer.operators import GramOperator
from mercer.operators.signed_measure import overflowing
from mercer.validation import normalised

_STORED = 1500  # rows up to which the centred matrix is kept: 18 megabytes
_ENTRY = 8  # roundings of a centred entry beside those of the kernel and of its means


@final
class CentredGram:
    """The matrix of a kernel less the means of its rows and columns, in double precision and made block by block.

    Entries are k(xᵢ,xⱼ) - mᵢ - mⱼ + m. With m the means over the sample, weighted by w, it is H K H, as (117) of RKHS
    has it. For the unbiased estimator of Song et al. (2012) mᵢ = Σ_{j≠i} kᵢⱼ/(n - 2) and m = Σ_{i≠j} kᵢⱼ/((n-1)(n-2)),
    and the diagonal is zero: rows sum to zero without it.

    Parameters
    ----------
    kernel : Kernel
        With its parameters fixed.
    points : array of shape (n, d)
        The sample, or a kernel matrix.
    weights : array of shape (n,), optional
        How often the rows count in the means.
    unbiased : bool, default=False
        Whether to centre for the unbiased estimator, which takes no weights.
    """

    def __init__(self, kernel: Kernel, points: Any, weights: Array | None = None, *, unbiased: bool = False) -> None:
        self.gram = GramOperator(kernel, points)
        self.unbiased = unbiased
        self.size = n = self.gram.shape[0]
        own = as_double(self.gram.diagonal())
        self.largest = float(np.max(np.abs(own), initial=0.0))
        if unbiased:
            sums = as_double(self.gram.row_sums()) - own
            self._means, self._mean = sums / (n - 2), float(sums.sum()) / ((n - 1) * (n - 2))
        else:
            shares = normalised(weights, n)
            self._means = as_double(self.gram @ cast(shares, self.gram.dtype))
            self._mean = float(shares @ self._means)
        if not np.isfinite(self._means).all():
            raise ValueError(overflowing(kernel))
        self._counts: Array | None = None
        self._stored: Array | None = None
        if n <= _STORED:
            self._stored = self.block(slice(None), slice(None))

    @property
    def matrix(self) -> KernelMatrix:
        """The kernel matrix, not centred, in double precision."""
        kernel = self.gram.kernel
        return kernel.matrix(*kernel._checked(self.gram.points, None), dtype=np.float64)

    def weighed(self, counts: Array | None) -> CentredGram:
        """The matrix with entries wᵢ wⱼ aᵢⱼ; itself where there are no weights."""
        if counts is None:
            return self
        twin = copy(self)
        twin._counts = counts
        twin._stored = None if self._stored is None else self._stored * counts[:, None] * counts
        return twin

    def block(self, rows: Any, cols: Any) -> Array:
        """Some rows and columns, given by slices or index arrays."""
        if self._stored is not None:
            return self._stored[rows][:, cols]
        values = np.array(self.gram.block(rows, cols), np.float64)
        values -= (self._means[rows] - self._mean)[:, None]
        values -= self._means[cols]
        if self.unbiased:
            places = np.arange(self.size)
            values[places[rows][:, None] == places[cols]] = 0.0
        if self._counts is not None:
            values *= self._counts[rows][:, None] * self._counts[cols]
        return values

    def error(self) -> float:
        """A bound of the Frobenius norm of what the entries differ by from those in exact arithmetic."""
        error, unit = self.gram.entry_error, unit_of(self.gram.dtype)
        of_kernel = (error.relative + error.scaled) * self.largest + error.absolute
        of_means = gamma(self.gram.product_depth + _ENTRY, unit) * self.largest
        count = self.size if self._counts is None else float(self._counts @ self._counts)
        return 4 * (of_kernel + of_means) * count


def inner_product(one: CentredGram, other: CentredGram) -> float:
    """Σᵢⱼ aᵢⱼ bᵢⱼ of two centred matrices, some rows at a time."""

    def of_rows(rows: slice) -> float:
        return float(np.vdot(one.block(rows, slice(None)), other.block(rows, slice(None))))

    return float(sum(run_chunks(of_rows, row_chunks(one.size, panel_rows(one.size, most=THREAD_BYTES)))))
