"""Evaluators made of evaluators: sums, products, multiples, powers, normalised kernels, some columns."""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.cpu.profiles import log_in_place
from mercer.backends.cpu.program import Builder, Evaluator
from mercer.backends.cpu.steps import ADD, LOGARITHM, MULTIPLY, RAISE, SCALE
from mercer.backends.entries import ColumnsForm, NormalizedForm, PairForm, ScalarForm, Which


@final
class PairEvaluator(PairForm, Evaluator):
    """Sum or product of two evaluators on the same points."""

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        if log and not self.nonnegative:
            self.values(rows, cols, out)
            return log_in_place(out)
        other = np.empty_like(out)
        self._left.values(rows, cols, out, log=log)
        self._right.values(rows, cols, other, log=log)
        if log:
            (np.add if self._product else np.logaddexp)(out, other, out=out)
        else:
            self._combined(out, other)

    def emit(self, builder: Builder, *, log: bool) -> None:
        inner = log and self.nonnegative
        self._left.emit(builder, log=inner)
        self._right.emit(builder, log=inner)
        builder.join(MULTIPLY if self._product else ADD, inner)
        if log and not inner:
            builder.step(LOGARITHM, 0, True)

    def _combined(self, left: Array, right: Array) -> Array:
        return (np.multiply if self._product else np.add)(left, right, out=left)


@final
class ScalarEvaluator(ScalarForm, Evaluator):
    """A multiple or a power of one evaluator."""

    def emit(self, builder: Builder, *, log: bool) -> None:
        inner = log and (self._inner.nonnegative or not self._power)
        self._inner.emit(builder, log=inner)
        builder.step(RAISE if self._power else SCALE, 0, inner, self._value)
        if log and not inner:
            builder.step(LOGARITHM, 0, True)

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        if log and self._power and not self._inner.nonnegative:
            self.values(rows, cols, out)
            return log_in_place(out)
        self._inner.values(rows, cols, out, log=log)
        if not log:
            self._changed(out)
        elif self._power:
            out *= self._value
        else:
            out += np.log(self._value)

    def _changed(self, values: Array) -> Array:
        return (np.power if self._power else np.multiply)(values, values.dtype.type(self._value), out=values)


@final
class ColumnsEvaluator(ColumnsForm, Evaluator):
    """An evaluator on some columns of the points."""

    def emit(self, builder: Builder, *, log: bool) -> None:
        with builder.on(self._columns):
            self._inner.emit(builder, log=log)

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        self._inner.values(rows, cols, out, log=log)


@final
class NormalizedEvaluator(NormalizedForm, Evaluator):
    """k(x, y) / sqrt(k(x, x) k(y, y))."""

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
