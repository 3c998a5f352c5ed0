"""Centring in feature space."""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array, like, namespace
from mercer.operators.base import Index, LinearMap, part_of, require_square


@final
class CenteredOperator(LinearMap):
    """The Gram matrix of features with their training mean removed.

    For training points it is H K H, H = I - 11ᵀ/n. For new points, a t × n block K_t against the training points
    becomes K_t - (1/n) K_t 11ᵀ - (1/n) 1 1ᵀK + (1/n²) 1 (1ᵀK1) 1ᵀ (the survey's (65) with its third term put right).

    Parameters
    ----------
    gram : LinearMap
        The n × n map of the training points, or a t × n map between new points and training points.
    reference : CenteredOperator, optional
        The centred map of the training points; needed for a block of new points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import CenteredOperator, GramOperator, Linear
    >>> X = np.array([[1.0], [3.0]])
    >>> train = CenteredOperator(GramOperator(Linear(), X))
    >>> train.to_dense()
    array([[ 1., -1.],
           [-1.,  1.]])
    >>> CenteredOperator(GramOperator(Linear(), [[2.0]], X), reference=train).to_dense()
    array([[0., 0.]])
    """

    def __init__(self, gram: LinearMap, *, reference: CenteredOperator | None = None) -> None:
        if reference is None and not gram.symmetric:
            raise ValueError("Centring new points needs reference=, the centred operator of the training points.")
        if reference is not None and gram.shape[1] != reference.shape[0]:
            raise ValueError(f"gram has {gram.shape[1]} columns for {reference.shape[0]} training points.")
        super().__init__(gram.shape, gram.dtype, symmetric=reference is None, reference=gram.reference)
        self.gram = gram
        self._row_means = gram.row_sums() / gram.shape[1]
        self.column_means: Array = (
            self._row_means if reference is None else like(reference.column_means, self.reference, dtype=self.dtype)
        )
        xp = namespace(self.reference)
        self.mean = float(xp.sum(self.column_means, dtype=xp.float64)) / max(gram.shape[1], 1)

    def _multiply(self, v: Array) -> Array:
        sums = v.sum(axis=0)
        product = self.gram @ v - self._row_means[:, None] * sums
        return product - (self.column_means @ v - self.mean * sums)

    def _transpose_multiply(self, v: Array) -> Array:
        sums = v.sum(axis=0)
        product = self.gram.T @ v - self.column_means[:, None] * sums
        return product - (self._row_means @ v - self.mean * sums)

    def diagonal(self) -> Array:
        """k(xᵢ, xᵢ) - row mean - column mean + mean."""
        require_square(self)
        return self.gram.diagonal() - self._row_means - self.column_means + self.mean

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        shift = part_of(self._row_means, rows)[:, None] + part_of(self.column_means, cols) - self.mean
        return self.gram.block(rows, cols) - shift
