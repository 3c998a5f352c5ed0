"""Rows that do not lie, or do not all lie, in this process's memory: in a file, or on the workers of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np


class RowSource(ABC):
    """A table of n × d numbers that gives its rows a block at a time.

    It stands where an array of points would: it has a shape and a dtype, and ``source[rows]`` are rows as an array of
    this process. What needs all rows at once asks for :meth:`blocks`, and keeps no more than one of them.

    Attributes
    ----------
    shape : tuple of int
        (n, d).
    dtype : numpy.dtype
        Of the blocks.
    """

    shape: tuple[int, int]
    dtype: Any
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray[Any, np.dtype[Any]]:
        return self.take(rows)

    @abstractmethod
    def take(self, rows: Any) -> np.ndarray[Any, np.dtype[Any]]:
        """Some rows, given by a slice or an array of row numbers in any order."""

    @abstractmethod
    def blocks(self, most: int) -> Iterator[tuple[slice, np.ndarray[Any, np.dtype[Any]]]]:
        """All rows in their order, at most ``most`` at a time, each block with the slice of rows that it is."""
