"""Symmetric matrices as vectors of their entries on and above the diagonal, with the same inner products."""

from __future__ import annotations

import math
from typing import final

from mercer.backends.arrays import Array, double, namespace, upper_triangle


@final
class SymmetricEntries:
    """The entries of symmetric matrices of order k as vectors of length k(k+1)/2, those beside the diagonal times √2.

    Parameters
    ----------
    order : int
        k.
    reference : array, optional
        Whose library and device the vectors belong to; NumPy's if left out.

    Attributes
    ----------
    rows, cols : arrays of shape (k(k+1)/2,)
        Where the entries stand, row by row.
    scale : array of shape (k(k+1)/2,)
        One on the diagonal, √2 beside it.
    identity : array of shape (k, k)
        I.
    """

    def __init__(self, order: int, reference: Array = None) -> None:
        self.order = order
        self.rows, self.cols = upper_triangle(order, reference)
        xp, options = namespace(reference), {"dtype": double(reference), "device": self.rows.device}
        self.identity = xp.eye(order, **options)
        self.scale = xp.full(self.rows.shape[0], math.sqrt(2.0), **options)
        self.scale[self.rows == self.cols] = 1.0

    def pack(self, matrices: Array) -> Array:
        """The vectors of matrices of shape (..., k, k), whose symmetric parts are taken."""
        both = matrices[..., self.rows, self.cols] + matrices[..., self.cols, self.rows]
        return both * (0.5 * self.scale)

    def unpack(self, vectors: Array) -> Array:
        """The matrices of vectors of shape (..., k(k+1)/2)."""
        shape = (*vectors.shape[:-1], self.order, self.order)
        out = namespace(vectors).empty(shape, dtype=vectors.dtype, device=vectors.device)
        out[..., self.rows, self.cols] = out[..., self.cols, self.rows] = vectors / self.scale
        return out

    def congruence(self, P: Array) -> Array:
        """The matrix of S ↦ P S P, P symmetric, on these vectors."""
        take, one, other = namespace(P).take, P[self.rows], P[self.cols]
        matrix = take(one, self.rows, axis=1) * take(other, self.cols, axis=1)
        matrix += take(one, self.cols, axis=1) * take(other, self.rows, axis=1)
        matrix *= 0.5 * self.scale
        matrix *= self.scale[:, None]
        return matrix
