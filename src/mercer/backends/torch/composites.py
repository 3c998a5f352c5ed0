"""Entries made of entries on tensors: sums, products, multiples, powers, normalised kernels."""

from __future__ import annotations

import math
from typing import Any

import torch

from mercer.backends.rounding import EntryError
from mercer.backends.torch.entries import Entries, Side, Tensor, Which, log_in_place


class PairEntries(Entries):
    """Sum or product of two kernels on the same points."""

    def __init__(self, left: Entries, right: Entries, product: bool, rows: Tensor, cols: Tensor | None) -> None:
        super().__init__(rows, cols, left.dtype)
        self.shape = left.shape
        self._left, self._right, self._product = left, right, product

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

    @property
    def nonnegative(self) -> bool:
        return self._left.nonnegative and self._right.nonnegative

    @property
    def cost(self) -> float:
        return self._left.cost + self._right.cost

    @property
    def entry_error(self) -> EntryError:
        left, right = self._left.entry_error, self._right.entry_error
        if self._product:
            return left.times(right, unit=self.unit)
        return left.plus(right, nonnegative=self.nonnegative, unit=self.unit)

    def diagonal(self, side: Side = "rows") -> Tensor:
        return self._combined(self._left.diagonal(side), self._right.diagonal(side))


class ScalarEntries(Entries):
    """A multiple or a power of one kernel."""

    def __init__(self, inner: Entries, value: float, power: bool, rows: Tensor, cols: Tensor | None) -> None:
        super().__init__(rows, cols, inner.dtype)
        self.shape = inner.shape
        self._inner, self._value, self._power = inner, float(value), power

    def panel(self, side: Side, which: Which) -> Any:
        return self._inner.panel(side, which)

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        if log and self._power and not self._inner.nonnegative:
            return log_in_place(self.tile(rows, cols))
        tile = self._inner.tile(rows, cols, log=log)
        if log:
            return tile.mul_(self._value) if self._power else tile.add_(math.log(self._value))
        return self._changed(tile)

    def _changed(self, tile: Tensor) -> Tensor:
        return tile.pow_(self._value) if self._power else tile.mul_(self._value)

    @property
    def nonnegative(self) -> bool:
        return self._inner.nonnegative or (self._power and self._value % 2 == 0)

    @property
    def cost(self) -> float:
        return self._inner.cost

    @property
    def entry_error(self) -> EntryError:
        inner = self._inner.entry_error
        return inner.power(self._value, unit=self.unit) if self._power else inner.multiple(self._value, unit=self.unit)

    def diagonal(self, side: Side = "rows") -> Tensor:
        return self._changed(self._inner.diagonal(side))


class NormalizedEntries(Entries):
    """k(x, y) / sqrt(k(x, x) k(y, y))."""

    def __init__(self, inner: Entries, rows: Tensor, cols: Tensor | None) -> None:
        super().__init__(rows, cols, inner.dtype)
        self.shape = inner.shape
        self._inner = inner
        self._scales = {"rows": _inverse_roots(inner.diagonal("rows"))}
        self._scales["cols"] = self._scales["rows"] if cols is None else _inverse_roots(inner.diagonal("cols"))

    def panel(self, side: Side, which: Which) -> Any:
        return self._inner.panel(side, which), self._scales[side][which]

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        tile = self._inner.tile(rows[0], cols[0], log=log)
        if log:
            return tile.add_(torch.log(rows[1])[:, None] + torch.log(cols[1]))
        return tile.mul_(rows[1][:, None] * cols[1])  # the outer product first: it keeps the matrix symmetric exactly

    @property
    def nonnegative(self) -> bool:
        return self._inner.nonnegative

    @property
    def cost(self) -> float:
        return self._inner.cost

    @property
    def entry_error(self) -> EntryError:
        return self._inner.entry_error.normalised(unit=self.unit)

    def diagonal(self, side: Side = "rows") -> Tensor:
        return (self._scales[side] > 0).to(self.dtype)


def _inverse_roots(diagonal: Tensor) -> Tensor:
    if bool((diagonal < 0).any()):
        raise ValueError("A kernel with a negative k(x, x) cannot be normalised.")
    return torch.where(diagonal > 0, 1 / torch.sqrt(diagonal), 0.0)
