"""Columns of a large matrix, made when they are asked for and kept while they fit.

A method that moves from column to column asks for the same few again and again. The cache has room for a fixed number
of them, all in one array, and gives a new one the place of the column that has not been asked for longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from mercer.backends.arrays import Array, as_double, is_tensor, namespace
from mercer.backends.chunks import panel_columns
from mercer.backends.ordering import as_indices, as_integers
from mercer.linalg import stored_columns


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
    reference : array, optional
        An array of the library and device that the columns belong to; NumPy if left out.

    Attributes
    ----------
    capacity : int
        Columns that fit.
    hits, misses : int
        Columns asked for so far that were there, and that had to be made.

    Notes
    -----
    Memory is taken from the system as the first columns come. While columns are made, a panel of them
    (:func:`mercer.backends.chunks.panel_columns`) lies beside the store.
    """

    def __init__(self, columns: Callable[[Array], Array], size: int, max_bytes: int, *, reference: Any = None) -> None:
        self.max_bytes = int(max_bytes)
        self.capacity = max(2, min(size, self.max_bytes // (8 * size)))
        self.hits = 0
        self.misses = 0
        self._columns = columns
        xp, device = namespace(reference), getattr(reference, "device", None)
        self._store = xp.empty((self.capacity, size), dtype=xp.float64, device=device)  # one column a row
        self._lockable = not is_tensor(self._store)
        self._places: OrderedDict[int, int] = OrderedDict()
        self._free = list(range(self.capacity))[::-1]
        self._width = min(self.capacity, panel_columns(size))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, index: int) -> bool:
        return index in self._places

    def get(self, index: int) -> Array:
        """One column, not to be written to: good until ``capacity - 1`` others have been asked for."""
        place = self._places.get(index)
        if place is None:
            place = self._places_of([index])[0]
        else:
            self.hits += 1
            self._places.move_to_end(index)
        column = self._store[place]
        if self._lockable:
            column.flags.writeable = False
        return column

    def get_many(self, indices: Any) -> Array:
        """A copy of some columns, N × m; those that do not fit are made and not kept."""
        xp, wanted = namespace(self._store), as_integers(indices)
        out = xp.empty((len(wanted), self._store.shape[1]), dtype=xp.float64, device=self._store.device)
        for part in self._parts(wanted):
            out[part] = self._store[self._places_of([wanted[k] for k in part])]
        return out.T

    def add_product(self, total: Array, indices: Any, coefficients: Array) -> None:
        """Add these multiples of columns to a vector: total += A[:, indices] @ coefficients.

        Cost: N·m multiplications, spread over the threads, and the columns that are not there.
        """
        wanted, coefficients = as_integers(indices), as_double(coefficients)
        for part in self._parts(wanted):
            places = as_indices(self._places_of([wanted[k] for k in part]), self._store)
            stored_columns.add(total, self._store, places, coefficients[as_indices(part, self._store)])

    def _parts(self, wanted: list[int]) -> Iterator[list[int]]:
        """Positions in what is wanted: what is there comes first, before new columns take its place, panel by panel."""
        there = [k for k, index in enumerate(wanted) if index in self._places]
        missing = [k for k, index in enumerate(wanted) if index not in self._places]
        if there:
            yield there
        for lo in range(0, len(missing), self._width):
            yield missing[lo : lo + self._width]

    def _places_of(self, wanted: list[int]) -> list[int]:
        """The rows of the store that hold these columns, made where they are missing: one panel of them at most."""
        missing = [index for index in dict.fromkeys(wanted) if index not in self._places]
        self.misses += len(missing)
        self.hits += len(wanted) - len(missing)
        for index in wanted:
            if index in self._places:
                self._places.move_to_end(index)
        if missing:
            self._make(missing)
        return [self._places[index] for index in wanted]

    def _make(self, missing: list[int]) -> None:
        """Make columns and find places for them; a column is on record only while its place holds it."""
        block = self._columns(as_indices(missing, self._store))
        while len(self._free) < len(missing):
            self._free.append(self._places.popitem(last=False)[1])
        places = self._free[-len(missing) :]
        stored_columns.put(self._store, as_indices(places, self._store), block)
        del self._free[-len(missing) :]
        self._places.update(zip(missing, places, strict=True))
