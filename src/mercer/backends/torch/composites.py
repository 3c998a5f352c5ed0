"""Entries made of entries on tensors: sums, products, multiples, powers, normalised kernels, some columns."""

from __future__ import annotations

import math
from typing import Any, final

import torch

from mercer.backends.entries import ColumnsForm, NormalizedForm, PairForm, ScalarForm, Side, Which
from mercer.backends.torch.entries import Entries, Tensor, log_in_place


@final
class PairEntries(PairForm, Entries):
    """Sum or product of two kernels on the same points."""

    def panel(self, side: Side, which: Which) -> Any:
        return self._left.panel(side, which), self._right.panel(side, which)

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        if log and not self.nonnegative:
            return log_in_place(self.tile(rows, cols))
        left, right = self._left.tile(rows[0], cols[0], log=log), self._right.tile(rows[1], cols[1], log=log)
        if log:
            return left.add_(right) if self._product else torch.logaddexp(left, right)
        return self._combined(left, right)

    def _combined(self, left: Tensor, right: Tensor) -> Tensor:
        return left.mul_(right) if self._product else left.add_(right)


@final
class ScalarEntries(ScalarForm, Entries):
    """A multiple or a power of one kernel."""

    def panel(self, side: Side, which: Which) -> Any:
        return self._inner.panel(side, which)

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        if log and self._power and not self._inner.nonnegative:
            return log_in_place(self.tile(rows, cols))
        tile = self._inner.tile(rows, cols, log=log)
        if log:
            return tile.mul_(self._value) if self._power else tile.add_(math.log(self._value))
        return self._changed(tile)

    def _changed(self, values: Tensor) -> Tensor:
        return values.pow_(self._value) if self._power else values.mul_(self._value)


@final
class ColumnsEntries(ColumnsForm, Entries):
    """A kernel on some columns of the points."""

    def panel(self, side: Side, which: Which) -> Any:
        return self._inner.panel(side, which)

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        return self._inner.tile(rows, cols, log=log)


@final
class NormalizedEntries(NormalizedForm, Entries):
    """k(x, y) / sqrt(k(x, x) k(y, y))."""

    def panel(self, side: Side, which: Which) -> Any:
        return self._inner.panel(side, which), self._scales[side][which]

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        tile = self._inner.tile(rows[0], cols[0], log=log)
        if log:
            return tile.add_(torch.log(rows[1])[:, None] + torch.log(cols[1]))
        return tile.mul_(rows[1][:, None] * cols[1])  # the outer product first: it keeps the matrix symmetric exactly
