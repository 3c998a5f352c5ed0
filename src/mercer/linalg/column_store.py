"""Columns of a matrix that come and go, and sums of them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, namespace
from mercer.backends.ordering import appended, as_indices, without
from mercer.linalg import stored_columns

_FIRST_SLOTS = 64
_GROWTH = 1.25  # of the slots, when there are too few: old and new ones lie beside each other for a moment


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
    reference : array, optional
        An array of the library and device that the columns belong to; NumPy if left out.

    Attributes
    ----------
    nodes : array of shape (n,)
        Which row of the matrix belongs to each column, in the order they came.
    """

    def __init__(self, size: int, max_bytes: int | None = None, *, reference: Any = None) -> None:
        self._most = sys.maxsize if max_bytes is None else max(1, int(max_bytes / (2 * 8 * max(size, 1))))
        first = min(_FIRST_SLOTS, self._most)
        xp = namespace(reference)
        device = getattr(reference, "device", None)
        self._buffer = (np.empty if xp is np else xp.zeros)((first, size), dtype=xp.float64, device=device)
        self._vacant = list(range(first))[::-1]
        self._slots = as_indices([], self._buffer)
        self.nodes = as_indices([], self._buffer)

    def append(self, node: int, column: Array) -> None:
        """Give a node the last place."""
        self.extend(as_indices([node], self._buffer), column[:, None])

    def extend(self, nodes: Array, block: Array) -> None:
        """Give some nodes the last places, their columns side by side."""
        count = int(nodes.shape[0])
        if count > len(self._vacant):
            self._grow(count)
        slots = as_indices([self._vacant.pop() for _ in range(count)], self._buffer)
        stored_columns.put(self._buffer, slots, block)
        self._slots, self.nodes = appended(self._slots, slots), appended(self.nodes, nodes)

    def _grow(self, count: int) -> None:
        """Make room for so many columns more, or for a quarter more than there are if that is more."""
        have, size = self._buffer.shape
        needed = have - len(self._vacant) + count
        larger = min(max(int(_GROWTH * have), needed), self._most)
        if larger < needed:
            raise NoRoomError(f"{self._most} columns of {size} entries are all that the memory set aside for them has")
        self._buffer = stored_columns.enlarged(self._buffer, larger)
        self._vacant = list(range(have, larger))[::-1] + self._vacant

    def remove(self, place: int) -> None:
        """Take the node at a place out."""
        self._vacant.append(int(self._slots[place]))
        self._slots, self.nodes = without(self._slots, place), without(self.nodes, place)

    def combine(self, v: Array, b: Array) -> tuple[Array, Array]:
        """Two sums of the columns, in one reading of them."""
        return stored_columns.combine(self._buffer, self._slots, v, b)

    def square(self) -> Array:
        """The entries of the columns in the rows of the nodes."""
        return self._buffer[self._slots[:, None], self.nodes]
