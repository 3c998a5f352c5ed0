"""Evaluators made of evaluators: sums, products, multiples, powers, normalised kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.cpu.evaluator import Evaluator, Side, Which
from mercer.backends.cpu.profiles import log_in_place
from mercer.backends.rounding import EntryError, unit_of

Array = np.ndarray[Any, np.dtype[Any]]


class PairEvaluator(Evaluator):
    """Sum or product of two evaluators on the same points."""

    def __init__(self, left: Evaluator, right: Evaluator, product: bool, rows: Array, cols: Array | None) -> None:
        super().__init__(rows, cols, left.dtype)
        self.shape = left.shape
        self._left, self._right, self._product = left, right, product

    def panel(self, side: Side, which: Which) -> Any:
        return self._left.panel(side, which), self._right.panel(side, which)

    def tile(self, rows: Any, cols: Any, out: Array, *, log: bool = False) -> None:
        if log and not self.nonnegative:
            self.tile(rows, cols, out)
            return log_in_place(out)
        other = np.empty_like(out)
        self._left.tile(rows[0], cols[0], out, log=log)
        self._right.tile(rows[1], cols[1], other, log=log)
        self._combine(out, other, out, log)

    def _combine(self, a: Array, b: Array, out: Array, log: bool) -> None:
        operation = (np.add if self._product else np.logaddexp) if log else (np.multiply if self._product else np.add)
        operation(a, b, out=out)

    @property
    def nonnegative(self) -> bool:
        return self._left.nonnegative and self._right.nonnegative

    @property
    def cost(self) -> float:
        return self._left.cost + self._right.cost

    @property
    def entry_error(self) -> EntryError:
        left, right, unit = self._left.entry_error, self._right.entry_error, unit_of(self.dtype)
        if self._product:
            return left.times(right, unit=unit)
        return left.plus(right, nonnegative=self.nonnegative, unit=unit)

    def diagonal(self, side: Side = "rows") -> Array:
        out = self._left.diagonal(side)
        self._combine(out, self._right.diagonal(side), out, log=False)
        return out


class ScalarEvaluator(Evaluator):
    """A multiple or a power of one evaluator."""

    def __init__(self, inner: Evaluator, value: float, power: bool, rows: Array, cols: Array | None) -> None:
        super().__init__(rows, cols, inner.dtype)
        self.shape = inner.shape
        self._inner, self._value, self._power = inner, value, power

    def panel(self, side: Side, which: Which) -> Any:
        return self._inner.panel(side, which)

    def tile(self, rows: Any, cols: Any, out: Array, *, log: bool = False) -> None:
        if log and self._power and not self._inner.nonnegative:
            self.tile(rows, cols, out)
            return log_in_place(out)
        self._inner.tile(rows, cols, out, log=log)
        if log:
            out *= self._value if self._power else 1.0
            out += 0.0 if self._power else np.log(self._value)
        else:
            self._change(out)

    def _change(self, out: Array) -> None:
        value = out.dtype.type(self._value)
        if self._power:
            np.power(out, value, out=out)
        else:
            out *= value

    @property
    def nonnegative(self) -> bool:
        return self._inner.nonnegative or (self._power and self._value % 2 == 0)

    @property
    def cost(self) -> float:
        return self._inner.cost

    @property
    def entry_error(self) -> EntryError:
        inner, unit = self._inner.entry_error, unit_of(self.dtype)
        return inner.power(self._value, unit=unit) if self._power else inner.multiple(self._value, unit=unit)

    def diagonal(self, side: Side = "rows") -> Array:
        out = self._inner.diagonal(side)
        self._change(out)
        return out


class NormalizedEvaluator(Evaluator):
    """k(x, y) / sqrt(k(x, x) k(y, y))."""

    def __init__(self, inner: Evaluator, rows: Array, cols: Array | None) -> None:
        super().__init__(rows, cols, inner.dtype)
        self.shape = inner.shape
        self._inner = inner
        self._scales = {side: self._inverse_roots(inner, side) for side in ("rows", "cols")}

    @staticmethod
    def _inverse_roots(inner: Evaluator, side: Side) -> Array:
        diagonal = inner.diagonal(side)
        if np.any(diagonal < 0):
            raise ValueError("A kernel with a negative k(x, x) cannot be normalised.")
        with np.errstate(divide="ignore"):
            return np.where(diagonal > 0, 1 / np.sqrt(diagonal), 0).astype(diagonal.dtype)

    def panel(self, side: Side, which: Which) -> Any:
        return self._inner.panel(side, which), self._scales[side][which]

    def tile(self, rows: Any, cols: Any, out: Array, *, log: bool = False) -> None:
        self._inner.tile(rows[0], cols[0], out, log=log)
        if log:
            with np.errstate(divide="ignore"):
                out += np.log(rows[1])[:, None] + np.log(cols[1])
        else:
            out *= rows[1][:, None] * cols[1]  # the outer product first: it keeps the matrix symmetric to the last bit

    @property
    def nonnegative(self) -> bool:
        return self._inner.nonnegative

    @property
    def cost(self) -> float:
        return self._inner.cost

    @property
    def entry_error(self) -> EntryError:
        return self._inner.entry_error.normalised(unit=unit_of(self.dtype))

    def diagonal(self, side: Side = "rows") -> Array:
        return (self._scales[side] > 0).astype(self.dtype)
