"""Evaluators made of evaluators: sums, products, multiples, powers, normalised kernels."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.cpu.evaluator import Evaluator, Side, Which
from mercer.backends.cpu.profiles import log_in_place
from mercer.backends.cpu.program import Builder
from mercer.backends.cpu.steps import ADD, LOGARITHM, MULTIPLY, RAISE, SCALE
from mercer.backends.rounding import EntryError, unit_of


class PairEvaluator(Evaluator):
    """Sum or product of two evaluators on the same points."""

    def __init__(self, left: Evaluator, right: Evaluator, product: bool, rows: Array, cols: Array | None) -> None:
        super().__init__(rows, cols, left.dtype)
        self.shape = left.shape
        self._left, self._right, self._product = left, right, product

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        if log and not self.nonnegative:
            self.values(rows, cols, out)
            return log_in_place(out)
        other = np.empty_like(out)
        self._left.values(rows, cols, out, log=log)
        self._right.values(rows, cols, other, log=log)
        self._combine(out, other, out, log)

    def emit(self, builder: Builder, *, log: bool) -> None:
        inner = log and self.nonnegative
        self._left.emit(builder, log=inner)
        self._right.emit(builder, log=inner)
        builder.join(MULTIPLY if self._product else ADD, inner)
        if log and not inner:
            builder.step(LOGARITHM, 0, True)

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

    def emit(self, builder: Builder, *, log: bool) -> None:
        inner = log and (self._inner.nonnegative or not self._power)
        self._inner.emit(builder, log=inner)
        builder.step(RAISE if self._power else SCALE, 0, inner, float(self._value))
        if log and not inner:
            builder.step(LOGARITHM, 0, True)

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        if log and self._power and not self._inner.nonnegative:
            self.values(rows, cols, out)
            return log_in_place(out)
        self._inner.values(rows, cols, out, log=log)
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

    def emit(self, builder: Builder, *, log: bool) -> None:
        self._inner.emit(builder, log=log)
        builder.scaled(self._scales["rows"], self._scales["cols"], log)

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        self._inner.values(rows, cols, out, log=log)
        left, right = self._scales["rows"][rows], self._scales["cols"][cols]
        if log:
            with np.errstate(divide="ignore"):
                out += np.log(left)[:, None] + np.log(right)
        else:
            out *= left[:, None] * right  # the outer product first: it keeps the matrix symmetric to the last bit

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
