"""Lengths of shortest paths between any points, through the neighbour graph of the training points."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.cpu.neighbours import row_keys
from mercer.backends.cpu.shortest_paths import path_lengths
from mercer.backends.rounding import EntryError
from mercer.backends.threads import run_chunks
from mercer.kernels.distance_kernel import centred_roundings
from mercer.kernels.linked_points import LinkedPoints, Links
from mercer.kernels.trained import digest_of

_BLOCK = 2**20  # lengths that a thread has in hand
_OWN, _KEY, _LINKS = 0, 1, 2  # columns of an identity: u, a key of the point, then numbers and lengths of its links


@final
class GeodesicColumns:
    """The geodesic kernel of a neighbour graph, ½ (u(x) + u(y) - d²(x, y)) with d the length of the shortest path.

    An identity is u(x), a key of the point, and the training points to which it is linked, with their distances.

    Parameters
    ----------
    points : LinkedPoints
        The training points.
    graph : sparse CSR array of shape (m, m)
        Lengths of edges, symmetric, in one part.
    centre : tuple of arrays
        Which training points the kernel is centred on, and their weights, which sum to one.
    """

    linked: LinkedPoints
    weights: Array
    half_mean: float
    _centre: tuple[Array, Array]
    _graph: tuple[Array, Array, Array]
    _own: Array

    def __init__(self, points: LinkedPoints, graph: Any, centre: tuple[Array, Array]) -> None:
        self.linked, self._centre, self.weights = points, centre, centre[1]
        self._graph = graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data
        rows, weights = centre
        means = self._mean_squares_of_training(rows, weights)
        self.half_mean = 0.5 * float(weights @ means[rows])
        self._own = means - self.half_mean

    @property
    def positions(self) -> Array:
        """The distinct training points."""
        return self.linked.positions

    @cached_property
    def digest(self) -> str:
        """What tells these training points and their graph from others."""
        return digest_of(self.linked.metric, self.positions, *self._graph, *self._centre)

    @property
    def width(self) -> int:
        return _LINKS + 2 * max(self.linked.k, 1)

    def read(self, points: Array) -> Array:
        links = self.linked.links(points)
        fresh = np.flatnonzero(links.known < 0)
        identity = np.column_stack([self._own[np.maximum(links.known, 0)], _keys(points), links.numbers, links.lengths])
        if fresh.size:
            rows, weights = self._centre
            to_centre = np.empty((fresh.size, rows.size))
            self._lengths(_some(links, fresh), self._training(rows), to_centre)
            identity[fresh, _OWN] = np.square(to_centre) @ weights - self.half_mean
        return identity

    def block(self, rows: Array, cols: Array, out: Array) -> None:
        self.lengths(rows, cols, out)
        for part in row_chunks(out.shape[0], rows_within(_BLOCK, out.shape[1])):
            np.square(out[part], out=out[part])
            np.subtract(rows[part, _OWN][:, None] + cols[:, _OWN], out[part], out=out[part])
            out[part] *= 0.5

    def own(self, identity: Array) -> Array:
        return identity[:, _OWN]

    def roundings(self, *identities: Array) -> EntryError:
        """A path of h edges of f features errs by h + f + 3 roundings of its length, and h is below m."""
        if not identities:
            return EntryError(0.0, 0.0, float("inf"))  # a point may be as far as it likes
        sides = [identity[:, _OWN : _OWN + 1] for identity in identities]
        return centred_roundings(EntryError(2.0 * (sum(self.positions.shape) + 4)), self, sides)

    def lengths(self, rows: Array, cols: Array, out: Array) -> None:
        """Write the lengths of the shortest paths between two sets of identities."""
        x, y = self._links(rows), self._links(cols)
        self._lengths(x, y, out)
        fresh_x, fresh_y = np.flatnonzero(x.known < 0), np.flatnonzero(y.known < 0)
        if fresh_x.size and fresh_y.size:  # a point is no distance from itself, wherever it lies
            i, j = np.nonzero(rows[fresh_x, _KEY][:, None] == cols[fresh_y, _KEY])
            out[fresh_x[i], fresh_y[j]] = 0.0

    def _mean_squares_of_training(self, rows: Array, weights: Array) -> Array:
        def part_of_mean(part: slice) -> Array:
            links = self._training(rows[part])
            return weights[part] @ np.square(path_lengths(self._graph, links.numbers, links.lengths))

        chunks = row_chunks(rows.size, rows_within(_BLOCK, self.positions.shape[0]))
        return np.sum(run_chunks(part_of_mean, chunks), axis=0)

    def _training(self, rows: Array) -> Links:
        """Training points by their numbers, linked to themselves."""
        return Links(rows, rows[:, None], np.zeros((rows.size, 1)))

    def _links(self, identity: Array) -> Links:
        numbers, lengths = np.split(identity[:, _LINKS:], 2, axis=1)
        numbers = numbers.astype(np.int64)
        return Links(np.where(lengths[:, 0] == 0, numbers[:, 0], -1), numbers, lengths)

    def _lengths(self, x: Links, y: Links, out: Array) -> None:
        """Lengths between all pairs of linked points, by searches from the fewer of them."""
        if x.known.size > y.known.size:
            x, y, out = y, x, out.T

        def search(part: slice) -> None:
            found = path_lengths(self._graph, x.numbers[part], x.lengths[part])
            out[part] = found[:, y.numbers[:, 0]] + y.lengths[:, 0]
            fresh = np.flatnonzero(y.known < 0)
            for p in range(1, y.numbers.shape[1]) if fresh.size else ():
                out[part, fresh] = np.minimum(out[part, fresh], found[:, y.numbers[fresh, p]] + y.lengths[fresh, p])

        run_chunks(search, row_chunks(x.known.size, rows_within(_BLOCK, self.positions.shape[0])))


def _some(links: Links, rows: Array) -> Links:
    return Links(*(part[rows] for part in links))


def _keys(points: Array) -> Array:
    """A number for every point that is the same for equal ones: as many bits of a key as a double holds."""
    return (row_keys(points) >> np.uint64(11)).astype(np.float64)
