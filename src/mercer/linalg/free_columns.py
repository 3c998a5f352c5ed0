"""Columns of a matrix that come and go, and sums of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mercer.backends.threads import run_chunks

Array = np.ndarray[Any, np.dtype[Any]]

_FIRST_SLOTS = 64
_GROWTH = 1.25  # of the slots, when there are too few: old and new ones lie beside each other for a moment
_CHUNK = 4096
_THREADS_FROM = 4_000_000  # entries, below which waking threads costs more than the sums


class NoRoomError(MemoryError):
    """A column more than the memory set aside for them."""


class FreeColumns:
    """The columns of some nodes, each in a slot of its own, so that a node that leaves moves no other.

    Parameters
    ----------
    size : int
        Length of a column.
    max_bytes : int, optional
        Memory for columns, 8 bytes an entry, the copy at growth included; unbounded if left out. One column is kept
        whatever it is.

    Attributes
    ----------
    nodes : array of shape (n,)
        Which row of the matrix belongs to each column, in the order they came.
    """

    def __init__(self, size: int, max_bytes: int | None = None) -> None:
        most = np.iinfo(np.intp).max if max_bytes is None else max(1, int(max_bytes / (2 * 8 * max(size, 1))))
        self._most = int(most)
        first = min(_FIRST_SLOTS, self._most)
        self._buffer = np.empty((first, size))
        self._vacant = list(range(first))[::-1]
        self._slots = np.empty(0, np.intp)
        self.nodes = np.empty(0, np.intp)

    def append(self, node: int, column: Array) -> None:
        """Give a node the last place."""
        if not self._vacant:
            self._grow()
        slot = self._vacant.pop()
        self._buffer[slot] = column
        self._slots, self.nodes = np.append(self._slots, slot), np.append(self.nodes, node)

    def _grow(self) -> None:
        count, size = self._buffer.shape
        larger = min(max(int(_GROWTH * count), count + 1), self._most)
        if larger == count:
            raise NoRoomError(f"{count} columns of {size} entries are all that the memory set aside for them holds")
        buffer = np.empty((larger, size))
        buffer[:count] = self._buffer
        self._buffer = buffer
        self._vacant = list(range(count, larger))[::-1]

    def remove(self, place: int) -> None:
        """Take the node at a place out."""
        self._vacant.append(int(self._slots[place]))
        self._slots, self.nodes = np.delete(self._slots, place), np.delete(self.nodes, place)

    def combine(self, v: Array, b: Array) -> tuple[Array, Array]:
        """Two sums of the columns, in one reading of them."""
        size = self._buffer.shape[1]
        first, second = np.empty(size), np.empty(size)

        def fill(lo: int) -> None:
            _combine(self._buffer, self._slots, v, b, lo, min(lo + _CHUNK, size), first, second)

        if size * v.size < _THREADS_FROM:
            for lo in range(0, size, _CHUNK):
                fill(lo)
        else:
            run_chunks(fill, range(0, size, _CHUNK))
        return first, second

    def square(self) -> Array:
        """The entries of the columns in the rows of the nodes."""
        return self._buffer[self._slots[:, None], self.nodes]


# Sums may be taken in any order: it is the same from run to run, and for any number of threads.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _combine(columns: Any, slots: Any, v: Any, b: Any, start: int, stop: int, first: Any, second: Any) -> None:
    """Two linear combinations in one reading of the columns, four at a time, in pieces that stay in the first cache."""
    for lo in range(start, stop, 512):
        hi = min(lo + 512, stop)
        x, y = first[lo:hi], second[lo:hi]
        x[:], y[:] = 0.0, 0.0
        whole = slots.size - slots.size % 4
        for k in range(0, whole, 4):
            p, q = columns[slots[k], lo:hi], columns[slots[k + 1], lo:hi]
            r, s = columns[slots[k + 2], lo:hi], columns[slots[k + 3], lo:hi]
            v0, v1, v2, v3 = v[k], v[k + 1], v[k + 2], v[k + 3]
            b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
            for i in range(hi - lo):
                x[i] += v0 * p[i] + v1 * q[i] + v2 * r[i] + v3 * s[i]
                y[i] += b0 * p[i] + b1 * q[i] + b2 * r[i] + b3 * s[i]
        for k in range(whole, slots.size):
            p = columns[slots[k], lo:hi]
            for i in range(hi - lo):
                x[i] += v[k] * p[i]
                y[i] += b[k] * p[i]
