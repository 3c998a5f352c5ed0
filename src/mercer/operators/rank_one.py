"""A symmetric map with a multiple of vvᵀ added."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.operators.base import Array, Index, LinearMap


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
        super().__init__(inner.shape, inner.dtype, symmetric=True)
        self.inner = inner
        self.vector = np.asarray(vector, inner.dtype)
        self.coefficient = float(coefficient)
        if self.vector.shape != (inner.shape[0],):
            raise ValueError(f"The vector has shape {self.vector.shape} for a map of {inner.shape[0]} rows.")

    def _multiply(self, v: Array) -> Array:
        product = self.inner @ v
        product += np.outer(self.vector, (self.coefficient * self.vector) @ v)
        return product

    def _transpose_multiply(self, v: Array) -> Array:
        return self._multiply(v)

    def diagonal(self) -> Array:
        """Mᵢᵢ + c vᵢ²."""
        return np.asarray(self.inner.diagonal() + self.coefficient * self.vector**2, self.dtype)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        values = self.inner.block(rows, cols)
        return np.asarray(values + self.coefficient * np.outer(self.vector[rows], self.vector[cols]), self.dtype)
