"""Coordinates of new points from those of their neighbours, exact at the points that have coordinates.

x is written as an affine combination of its k nearest points, with the weights c, Σc = 1, that minimise

    ‖x - Σ cⱼxⱼ‖² + ε Σ cⱼ²‖x - xⱼ‖²,

and its coordinates are Σ cⱼyⱼ: reproduced linearly where the map is linear (Roweis and Saul 2000). The penalty of each
weight vanishes with the distance of its point, so that the map is continuous there and exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.spatial import cKDTree

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within

_PENALTY = 1e-3
_ENTRIES = 2**20  # numbers of a block of neighbours
_LARGEST = 2.0**500  # coordinate whose square, and sums of such, are numbers


@final
@dataclass(frozen=True, eq=False)
class LocalExtension:
    """Points with coordinates, and how many of them a new point is compared with.

    Attributes
    ----------
    points : array of shape (m, f)
        Distinct.
    coordinates : array of shape (m, r)
        Theirs.
    n_neighbors : int
        At most m.
    """

    points: Array
    coordinates: Array
    n_neighbors: int

    def __getstate__(self) -> dict[str, Any]:
        """What is stored: the tree is made again."""
        return {name: value for name, value in vars(self).items() if name not in ("_tree", "_unit")}

    @cached_property
    def _unit(self) -> float:
        """A power of two near the largest coordinate: in it, squares of distances are numbers."""
        largest = float(np.abs(self.points).max())
        return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest > 0 else 1.0

    @cached_property
    def _tree(self) -> Any:
        return cKDTree(self.points / self._unit)

    def of(self, X: Array) -> Array:
        """The coordinates of new points, one by one: each depends on its own row alone."""
        out, points = np.empty((X.shape[0], self.coordinates.shape[1])), self._tree.data
        with np.errstate(over="ignore"):
            X = X / self._unit
        near = (np.abs(X) < _LARGEST).all(axis=1)
        if not near.all():
            raise ValueError(
                f"Row {int(np.argmin(near))} of X is so far from the data that squares of its distances leave double "
                "precision: it has no place."
            )
        for rows in row_chunks(X.shape[0], rows_within(_ENTRIES, self.n_neighbors * (X.shape[1] + self.n_neighbors))):
            distances, numbers = self._tree.query(X[rows], self.n_neighbors)
            numbers = numbers.reshape(-1, self.n_neighbors)
            weights = _weights(X[rows, None] - points[numbers], distances.reshape(numbers.shape))
            out[rows] = np.einsum("ik,ikr->ir", weights, self.coordinates[numbers])
        return out


def _weights(differences: Array, distances: Array) -> Array:
    """c for every row, the nearest point's alone where that is the point itself."""
    k = distances.shape[1]
    itself = distances[:, 0] == 0
    unit = np.where(distances[:, -1] > 0, distances[:, -1], 1.0)
    scaled, lengths = differences / unit[:, None, None], distances / unit[:, None]
    gram = np.einsum("ikf,ilf->ikl", scaled, scaled)
    gram[:, np.arange(k), np.arange(k)] += _PENALTY * lengths**2
    gram[itself] = np.eye(k)
    weights = np.linalg.solve(gram, np.ones((distances.shape[0], k, 1)))[:, :, 0]
    weights /= weights.sum(axis=1, keepdims=True)
    weights[itself] = np.eye(k)[0]
    return weights
