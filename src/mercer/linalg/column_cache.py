"""Columns of a large matrix, made when they are asked for and kept while they fit.

A method that moves from column to column asks for the same few again and again. The cache has room for a fixed number
of them, all in one array, and gives the place of the column that nobody has asked for longest to a new one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit

from mercer.backends.threads import run_chunks

Array = np.ndarray[Any, np.dtype[Any]]

_PANEL_BYTES = 32 * 2**20  # columns made at a time: more would be slower, the system hands out fresh pages one by one
_PANEL_COLUMNS = 128
_TILE = 2048  # rows of the sum that stay in the first-level cache while columns pass by
_WORTH_THREADS = 2**18


class ColumnCache:
    """A bounded store of columns, the least recently used given up first.

    Parameters
    ----------
    columns : callable
        Given an array of m indices, returns the N × m block of these columns.
    size : int
        N, the length of a column.
    max_bytes : int
        Memory for columns, 8 N bytes each: it decides how many fit. Two are kept whatever it is.

    Attributes
    ----------
    capacity : int
        Columns that fit.
    hits, misses : int
        Columns asked for so far that were there, and that had to be made.

    Notes
    -----
    Memory is taken from the system as the first columns come. While columns are made, a panel of 32 MB at most (one
    column at least) lies beside the store.
    """

    def __init__(self, columns: Callable[[Array], Array], size: int, max_bytes: int) -> None:
        self.max_bytes = int(max_bytes)
        self.capacity = max(2, min(size, self.max_bytes // (8 * size)))
        self.hits = 0
        self.misses = 0
        self._columns = columns
        self._store = np.empty((self.capacity, size))  # one column a row
        self._places: OrderedDict[int, int] = OrderedDict()
        self._free = list(range(self.capacity))[::-1]
        self._width = max(1, min(self.capacity, _PANEL_COLUMNS, _PANEL_BYTES // (8 * size)))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, index: int) -> bool:
        return index in self._places

    def get(self, index: int) -> Array:
        """One column, read-only: good until ``capacity - 1`` others have been asked for."""
        place = self._places.get(index)
        if place is None:
            place = int(self._places_of(np.array([index]))[0])
        else:
            self.hits += 1
            self._places.move_to_end(index)
        column = self._store[place]
        column.flags.writeable = False
        return column

    def get_many(self, indices: Array) -> Array:
        """A copy of some columns, N × m; those that do not fit are made and not kept."""
        out = np.empty((len(indices), self._store.shape[1]))
        for part in self._parts(indices):
            out[part] = self._store[self._places_of(indices[part])]
        return out.T

    def add_product(self, total: Array, indices: Array, coefficients: Array) -> None:
        """Add these multiples of columns to a vector: total += A[:, indices] @ coefficients.

        Cost: N·m multiplications, spread over the threads, and the columns that are not there.
        """
        for part in self._parts(indices):
            places = self._places_of(indices[part])
            self._add(total, places, np.ascontiguousarray(coefficients[part], np.float64))

    def _parts(self, indices: Array) -> Iterator[Array]:
        """Positions in ``indices``, a panel at a time; what is there comes first, before new columns take its place."""
        there = np.array([int(index) in self._places for index in indices], dtype=bool)
        for positions in (np.flatnonzero(there), np.flatnonzero(~there)):
            for lo in range(0, positions.size, self._width):
                yield positions[lo : lo + self._width]

    def _places_of(self, indices: Array) -> Array:
        """The rows of the store that hold these columns, at most ``capacity`` of them, made where they are missing."""
        wanted = [int(index) for index in indices]
        missing = [index for index in dict.fromkeys(wanted) if index not in self._places]
        self.misses += len(missing)
        self.hits += len(wanted) - len(missing)
        for index in wanted:
            if index in self._places:
                self._places.move_to_end(index)
        if missing:
            self._make(missing)
        return np.array([self._places[index] for index in wanted])

    def _make(self, missing: list[int]) -> None:
        """Make columns and find places for them; a column is on record only while its place holds it."""
        block = self._columns(np.array(missing))
        while len(self._free) < len(missing):
            self._free.append(self._places.popitem(last=False)[1])
        places = self._free[-len(missing) :]
        _store_columns(self._store, np.array(places), block)
        del self._free[-len(missing) :]
        self._places.update(zip(missing, places, strict=True))

    def _add(self, total: Array, places: Array, coefficients: Array) -> None:
        def fill(lo: int) -> None:
            _add_columns(total, self._store, places, coefficients, lo, min(lo + step, total.size))

        step = 8 * _TILE if total.size * places.size > _WORTH_THREADS else total.size
        run_chunks(fill, range(0, total.size, step))


@njit(cache=True, nogil=True)
def _store_columns(store: Any, places: Any, block: Any) -> None:
    n, m = block.shape
    for lo in range(0, n, 64):  # a tile of rows is read once and written to every column while it is in cache
        for k in range(m):
            row = store[places[k]]
            for i in range(lo, min(lo + 64, n)):
                row[i] = block[i, k]


@njit(cache=True, nogil=True)
def _add_columns(total: Any, store: Any, places: Any, coefficients: Any, lo: int, hi: int) -> None:
    for first in range(lo, hi, _TILE):
        last = min(first + _TILE, hi)
        part = total[first:last]
        for k in range(places.size):
            column = store[places[k], first:last]
            for i in range(last - first):
                part[i] += coefficients[k] * column[i]
