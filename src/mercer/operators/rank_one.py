"""A symmetric map with a multiple of vvᵀ added."""

from __future__ import annotations

from typing import Any, final

from mercer.backends.arrays import Array, like
from mercer.operators.base import Index, LinearMap, part_of


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
