"""Compiled shortest paths on a sparse graph, from one source at a time, without the interpreter's lock."""

from __future__ import annotations

import numpy as np
from numba import njit

from mercer.backends.arrays import Array


def path_lengths(graph: tuple[Array, Array, Array], starts: Array, offsets: Array) -> Array:
    """Lengths of the shortest paths from some sources to all vertices, by Dijkstra's method with a binary heap.

    Parameters
    ----------
    graph : tuple of arrays
        ``indptr``, ``indices`` and ``data`` of a symmetric CSR matrix of lengths that are not negative.
    starts, offsets : arrays of shape (s, k)
        The vertices to which every source is linked, and the lengths of these links; those that are infinite are none.

    Returns
    -------
    array of shape (s, n)
        Infinite where there is no path. Cost: e log n comparisons a source, e the edges.
    """
    indptr, indices, data = graph
    lengths = np.empty((starts.shape[0], indptr.shape[0] - 1))
    _fill(indptr, indices, data, starts, offsets, lengths)
    return lengths


@njit(nogil=True, cache=True)
def _fill(indptr: Array, indices: Array, data: Array, starts: Array, offsets: Array, lengths: Array) -> None:
    room = data.shape[0] + starts.shape[1]
    keys, vertices = np.empty(room), np.empty(room, np.int64)
    for i in range(starts.shape[0]):
        _from_source(indptr, indices, data, starts[i], offsets[i], keys, vertices, lengths[i])


@njit(nogil=True, cache=True)
def _from_source(
    indptr: Array, indices: Array, data: Array, starts: Array, offsets: Array, keys: Array, vertices: Array, out: Array
) -> None:
    out[:] = np.inf
    size = 0
    for p in range(starts.shape[0]):
        if offsets[p] < out[starts[p]]:
            out[starts[p]] = offsets[p]
            size = _push(keys, vertices, size, offsets[p], starts[p])
    while size > 0:
        length, vertex = keys[0], vertices[0]
        size = _pop(keys, vertices, size)
        if length > out[vertex]:  # a shorter path was found since
            continue
        for e in range(indptr[vertex], indptr[vertex + 1]):
            beyond = length + data[e]
            if beyond < out[indices[e]]:
                out[indices[e]] = beyond
                size = _push(keys, vertices, size, beyond, indices[e])


@njit(nogil=True, cache=True)
def _push(keys: Array, vertices: Array, size: int, key: float, vertex: int) -> int:
    at = size
    while at > 0 and keys[(at - 1) // 2] > key:
        above = (at - 1) // 2
        keys[at], vertices[at] = keys[above], vertices[above]
        at = above
    keys[at], vertices[at] = key, vertex
    return size + 1


@njit(nogil=True, cache=True)
def _pop(keys: Array, vertices: Array, size: int) -> int:
    """Remove the first; the last takes its place and sinks."""
    last = size - 1
    key, vertex, at = keys[last], vertices[last], 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at], vertices[at] = keys[below], vertices[below]
        at = below
    keys[at], vertices[at] = key, vertex
    return last
