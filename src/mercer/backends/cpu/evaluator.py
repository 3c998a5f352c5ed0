"""What fills the kernel matrix tile by tile: a form on given points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.cpu.program import Builder, Compiled, NotCompiledError
from mercer.backends.rounding import EntryError

Side = Literal["rows", "cols"]
Which = slice | Array


class Evaluator(ABC):
    """One form on given points, evaluated block by block in the arithmetic of the points, or in a wider one.

    Most forms become a program of compiled loops (:attr:`compiled`); :meth:`values` is for those that do not.
    """

    def __init__(self, rows: Any, cols: Any | None, dtype: Any = None) -> None:
        self._points = {"rows": rows, "cols": rows if cols is None else cols}
        self.symmetric = cols is None
        self.shape = (rows.shape[0], self._points["cols"].shape[0])
        self.dtype = np.dtype(np.result_type(rows.dtype, self._points["cols"].dtype) if dtype is None else dtype)
        self.n_features = int(rows.shape[1])

    @abstractmethod
    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        """Write k (or log k) of some rows and columns into the contiguous array out."""

    def emit(self, builder: Builder, *, log: bool) -> None:
        """Add the steps of a compiled program that makes k (or log k)."""
        raise NotCompiledError

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
        self.values(rows, cols, out, log=log)
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

    @cached_property
    def compiled(self) -> Compiled | None:
        """The program of the entries; None where a part of the form is no program."""
        return self._compiled(log=False)

    @cached_property
    def compiled_log(self) -> Compiled | None:
        """The program of their logarithms."""
        return self._compiled(log=True)

    def _compiled(self, *, log: bool) -> Compiled | None:
        builder = Builder()
        try:
            self.emit(builder, log=log)
        except NotCompiledError:
            return None
        diagonal = self._diagonal if self.symmetric else np.empty(0, self.dtype)
        points = self._points["rows"], self._points["cols"]
        return Compiled(builder.program(self.n_features, self.shape, diagonal, self.dtype), points, builder.widest, {})
