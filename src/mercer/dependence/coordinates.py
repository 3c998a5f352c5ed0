"""The coordinates in which directions of x are looked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array

_FLAT = 1e-10  # of the largest variance: a direction with less has none


class Coordinates(NamedTuple):
    """z = (x - mean) A; A is a diagonal matrix, given by its entries, or one of shape (d, q)."""

    mean: Array
    matrix: Array

    def of(self, X: Array) -> Array:
        """Points in these coordinates."""
        centred = X - self.mean
        moved: Array = centred * self.matrix if self.matrix.ndim == 1 else centred @ self.matrix
        return moved

    def back(self, U: Array) -> Array:
        """The directions of x, d × m, along which the coordinates Uᵀz are measured: Uᵀz = (AU)ᵀ(x - mean)."""
        directions: Array = self.matrix[:, None] * U if self.matrix.ndim == 1 else self.matrix @ U
        return directions


def learn_coordinates(X: Array, shares: Array, scaling: str | None) -> Coordinates:
    """Columns, or all directions, of variance one; or x itself. Of more columns than rows, their span is enough.

    A column that is the same everywhere stays as it is, which is zero; a direction in which there is no variance is
    left out where directions are scaled.
    """
    mean = shares @ X
    centred = X - mean
    if not np.isfinite(centred).all():
        raise ValueError("The differences of rows of X exceed the largest number: divide X by a constant.")
    scale = np.ones(X.shape[1]) if scaling is None else 1.0 / _deviations(centred, shares)
    if scaling != "whiten" and X.shape[1] <= X.shape[0]:
        return Coordinates(mean, scale)
    spread, vectors = _principal(np.sqrt(shares)[:, None] * (centred * scale))
    if scaling == "whiten":
        vectors = vectors / np.sqrt(spread)
    return Coordinates(mean, scale[:, None] * vectors)


def _deviations(centred: Array, shares: Array) -> Array:
    """The standard deviation of every column, in any unit; one where a column is the same everywhere."""
    largest = np.abs(centred).max(axis=0)
    largest = np.where(largest > np.finfo(float).tiny, largest, 1.0)
    deviations = largest * np.sqrt(shares @ (centred / largest) ** 2)
    usual: Array = np.where(deviations > np.finfo(float).tiny, deviations, 1.0)
    return usual


def _principal(rows: Array) -> tuple[Array, Array]:
    """The variances and directions of rows in which they vary, largest first."""
    _, lengths, vectors = np.linalg.svd(rows, full_matrices=False)
    kept = lengths**2 > _FLAT * max(float(lengths[0]) ** 2, np.finfo(float).tiny)
    return lengths[kept] ** 2, vectors[kept].T
