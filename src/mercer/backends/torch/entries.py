"""What fills a tile of a kernel matrix on a torch device: a form on given points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal

import torch

from mercer.backends.arrays import dtype_name
from mercer.backends.rounding import EntryError, unit_of

Tensor = Any
Side = Literal["rows", "cols"]
Which = Any  # a slice of step one, or a tensor of whole numbers


class Entries(ABC):
    """One form on given points: two prepared panels become a tile of k or log k, in the arithmetic of the points.

    ``panel`` prepares a run of rows or columns (centred, scaled, transposed where that helps), ``tile`` pairs two of
    them into a new tensor that belongs to the caller. Points are widened panel by panel, so nothing of size n × d is
    copied.
    """

    def __init__(self, rows: Tensor, cols: Tensor | None, dtype: Any = None) -> None:
        self._points = {"rows": rows, "cols": rows if cols is None else cols}
        self.symmetric = cols is None
        self.shape = (int(rows.shape[0]), int(self._points["cols"].shape[0]))
        widest = torch.promote_types(rows.dtype, self._points["cols"].dtype)
        self.dtype = widest if dtype is None else getattr(torch, dtype_name(dtype))
        self.n_features = int(rows.shape[1])
        self.device = rows.device

    @property
    def unit(self) -> float:
        """The unit roundoff of the entries."""
        return unit_of(self.dtype)

    @abstractmethod
    def panel(self, side: Side, which: Which) -> Any:
        """Prepare some points of one side."""

    @abstractmethod
    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        """k (or log k) of two panels."""

    @abstractmethod
    def diagonal(self, side: Side = "rows") -> Tensor:
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

    def filled(self, rows: Which, cols: Which, panels: tuple[Any, Any] | None = None, *, log: bool = False) -> Tensor:
        """k (or log k) of some rows and columns, with the diagonal as :meth:`diagonal` has it."""
        x, y = panels or (self.panel("rows", rows), self.panel("cols", cols))
        tile = self.tile(x, y, log=log)
        if self.symmetric:
            self._set_diagonal(rows, cols, tile, log)
        return tile

    def _set_diagonal(self, rows: Which, cols: Which, tile: Tensor, log: bool) -> None:
        """Write the exact diagonal where a tile of a symmetric matrix crosses it."""
        if isinstance(rows, slice) and isinstance(cols, slice):
            first, last = max(rows.start, cols.start), min(rows.stop, cols.stop)
            if first >= last:
                return
            i = torch.arange(first, last, device=self.device)
            at: Any = (i - rows.start, i - cols.start)
            values = self._diagonal[i]
        else:
            i, j = (self._indices(which) for which in (rows, cols))
            at = torch.nonzero(i[:, None] == j, as_tuple=True)
            values = self._diagonal[j[at[1]]]
        if log:  # where k(x, x) underflows, the tile knows its logarithm
            seen = values > 0
            at, values = (at[0][seen], at[1][seen]), torch.log(values[seen])
        tile[at] = values

    def _indices(self, which: Which) -> Tensor:
        return torch.arange(which.start, which.stop, device=self.device) if isinstance(which, slice) else which

    @cached_property
    def _diagonal(self) -> Tensor:
        return self.diagonal("rows")


def log_in_place(values: Tensor) -> Tensor:
    """Replace values by their logarithm, minus infinity where they are zero or negative."""
    return values.clamp_(min=0).log_()
