"""The kernel Stein discrepancy: how far a sample is from a density whose normalising constant is not needed.

With s = ∇ log p and a radial kernel k, the function

    u(x, y) = k s(x)ᵀs(y) + s(x)ᵀ∇ᵧk + s(y)ᵀ∇ₓk + Σᵢ ∂²k/∂xᵢ∂yᵢ

has ∫ u(x, y) p(x) dx = 0 for every y where p falls to zero at the boundary, and KSD² = E u(x, x') for independent x and
x' of another law is positive (Liu, Lee, Jordan 2016; Chwialkowski, Strathmann, Gretton 2016). Coordinates are divided
by the lengths of the kernel first, which leaves both true.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import THREAD_BYTES, panel_rows, row_chunks
from mercer.backends.rounding import EPS, gamma
from mercer.backends.threads import run_chunks
from mercer.kernels.radial import Radial

_COPIES = 6  # of a block of u that are alive at once
_TERMS = 64  # room for what the terms of u add up to, in units of their largest square


@final
class SteinForm:
    """The matrix u(xᵢ, xⱼ) without its diagonal, made some rows at a time.

    Parameters
    ----------
    kernel : Radial
        k.
    X : array of shape (n, d)
        The sample.
    scores : array of shape (n, d)
        s at its points.
    """

    def __init__(self, kernel: Radial, X: Array, scores: Array) -> None:
        self._profile = kernel.profile
        self._x = (X - X.mean(axis=0)) / kernel.lengths
        with np.errstate(over="ignore"):
            self._s = scores * kernel.lengths
            self._squares = np.sum(self._x**2, axis=1)
            largest = float(np.max(self._squares) + np.max(np.sum(self._s**2, axis=1)))
        if not largest * _TERMS * self.size**2 < np.inf:  # a p-value of what is no number would mean nothing
            raise ValueError("The squares of X and of ∇ log p exceed the largest number: bring X to a scale near one.")
        self._own = np.sum(self._x * self._s, axis=1)

    @property
    def size(self) -> int:
        """n."""
        return int(self._x.shape[0])

    def block(self, rows: slice) -> Array:
        """Some rows of the matrix."""
        x, s, d = self._x[rows], self._s[rows], self._x.shape[1]
        t = np.maximum(self._squares[rows][:, None] + self._squares - 2 * x @ self._x.T, 0.0)
        value, slope, bend = self._profile(t)
        apart = self._own[rows][:, None] + self._own - x @ self._s.T - s @ self._x.T  # (x - y)ᵀ(s(x) - s(y))
        out = value * (s @ self._s.T - 2 * slope * (apart + d) - 4 * bend)
        places = np.arange(rows.stop - rows.start)
        out[places, rows.start + places] = 0.0
        return np.asarray(out)


class SteinSums(NamedTuple):
    """Sums over the matrix U of a form, all over n(n - 1) pairs.

    Attributes
    ----------
    forms : array of shape (B,)
        wᵀUw for every column w of signs; for w = 1 the unbiased estimate of KSD².
    rows : array of shape (n,)
        n U1: their mean is the estimate.
    rounding : float
        How far two forms that are equal in exact arithmetic may lie apart.
    """

    forms: Array
    rows: Array
    rounding: float


def stein_sums(form: SteinForm, signs: Array) -> SteinSums:
    """One pass over the n² entries, made once; n² B operations for B columns of signs. Memory: some rows a thread."""
    n = form.size

    def of_rows(rows: slice) -> tuple[Array, Array, float]:
        block = form.block(rows)
        forms = np.einsum("ib,ib->b", block @ signs, signs[rows])
        return forms, block.sum(axis=1), float(np.abs(block).sum())

    parts = run_chunks(of_rows, row_chunks(n, panel_rows(_COPIES * n + signs.shape[1], most=THREAD_BYTES)))
    forms, rows = np.sum([part[0] for part in parts], axis=0), np.concatenate([part[1] for part in parts])
    rounding = 2 * gamma(2 * n, EPS) * sum(part[2] for part in parts)
    return SteinSums(forms / (n * (n - 1)), rows / (n - 1), rounding / (n * (n - 1)))
