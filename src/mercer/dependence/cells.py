"""Groups of rows that are neighbours of each other: a partition by repeated halving."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS
from mercer.backends.threads import blas_for


def neighbour_cells(features: Array, size: int) -> Array:
    """A label for each row: cells of ``size`` to 2·``size`` - 1 rows that lie close together.

    A cell of 2·``size`` rows or more is cut in two across the direction in which it is longest, as near to its middle
    as equal rows allow: rows that are equal share a cell, however many they are. Cost: n p² log n.

    Parameters
    ----------
    features : array of shape (n, p)
        Coordinates of the rows.
    size : int
        The fewest rows that a cut leaves.
    """
    labels, found = np.empty(features.shape[0], np.intp), 0
    noise = np.sqrt(EPS) * float(np.max(np.abs(features), initial=0.0))
    waiting = [np.arange(features.shape[0])]
    with blas_for(features.shape[1]):
        while waiting:
            rows = waiting.pop()
            halves = _halves(features[rows], size, noise) if rows.size >= 2 * size else None
            if halves is None:
                labels[rows], found = found, found + 1
            else:
                waiting.extend([rows[halves], rows[~halves]])
    return labels


def _halves(features: Array, size: int, noise: float) -> Array | None:
    """Which rows lie on one side of the cut; None where there is none that leaves enough rows on both sides."""
    centred = features - features.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    along = centred @ directions[:, -1]
    ascending = np.sort(along)
    places = np.flatnonzero(np.diff(ascending) > noise) + 1  # where a cut separates no equal rows
    places = places[(places >= size) & (places <= along.size - size)]
    if places.size == 0:
        return None
    place = places[np.argmin(np.abs(places - along.size / 2))]
    return np.asarray(along < 0.5 * (ascending[place - 1] + ascending[place]))
