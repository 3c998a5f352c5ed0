"""What fills the kernel matrix tile by tile: a form on given points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mercer.backends.rounding import EntryError

Array = np.ndarray[Any, np.dtype[Any]]
Side = Literal["rows", "cols"]
Which = slice | Array


class Evaluator(ABC):
    """One form on given points, filled tile by tile in the arithmetic of the points, or in a wider one."""

    def __init__(self, rows: Any, cols: Any | None, dtype: Any = None) -> None:
        self._points = {"rows": rows, "cols": rows if cols is None else cols}
        self.symmetric = cols is None
        self.shape = (rows.shape[0], self._points["cols"].shape[0])
        self.dtype = np.dtype(np.result_type(rows.dtype, self._points["cols"].dtype) if dtype is None else dtype)
        self.n_features = int(rows.shape[1])

    @abstractmethod
    def panel(self, side: Side, which: Which) -> Any:
        """Prepare some points of one side."""

    @abstractmethod
    def tile(self, rows: Any, cols: Any, out: Array, *, log: bool = False) -> None:
        """Write k (or log k) of two panels into the contiguous array out."""

    @abstractmethod
    def diagonal(self, side: Side = "rows") -> Array:
        """k(x, x) of every point of one side."""

    @property
    @abstractmethod
    def nonnegative(self) -> bool:
        """Whether k ≥ 0 is known, so that logarithms tell all of it and may be combined."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """What an entry costs to evaluate, in units of one coordinate of an inner product."""

    @property
    @abstractmethod
    def entry_error(self) -> EntryError:
        """How far an entry, the diagonal's too, can be from the kernel's value at the points given."""

    def fill(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        """Write k (or log k) of some rows and columns into out, with the diagonal as :meth:`diagonal` has it."""
        self.tile(self.panel("rows", rows), self.panel("cols", cols), out, log=log)
        self.set_diagonal(rows, cols, out, log=log)

    def set_diagonal(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        """Write the exact diagonal where a tile of a symmetric matrix crosses it."""
        if not self.symmetric:
            return
        if isinstance(rows, slice) and isinstance(cols, slice):
            i = np.arange(max(rows.start, cols.start), min(rows.stop, cols.stop))
            at: tuple[Array, ...] = (i - rows.start, i - cols.start)
            values = self._diagonal[i]
        elif isinstance(rows, slice) and not isinstance(cols, slice):
            hit = np.flatnonzero((cols >= rows.start) & (cols < rows.stop))
            at = (cols[hit] - rows.start, hit)
            values = self._diagonal[cols[hit]]
        else:
            columns = np.r_[cols] if isinstance(cols, slice) else cols
            at = np.nonzero(np.r_[rows][:, None] == columns)
            values = self._diagonal[columns[at[1]]]
        if log:  # where k(x, x) underflows, the tile knows its logarithm
            seen = values > 0
            at, values = (at[0][seen], at[1][seen]), np.log(values[seen])
        out[at] = values

    @cached_property
    def _diagonal(self) -> Array:
        return self.diagonal("rows")
