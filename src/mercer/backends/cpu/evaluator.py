"""What fills the kernel matrix tile by tile: a form on points in this machine's memory."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.cpu.program import Builder, Compiled, NotCompiledError
from mercer.backends.entries import FormEntries, Which


class Evaluator(FormEntries):
    """One form on given points, evaluated block by block.

    Most forms become a program of compiled loops (:attr:`compiled`); :meth:`values` is for those that do not.
    """

    @abstractmethod
    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        """Write k (or log k) of some rows and columns into the contiguous array out."""

    def emit(self, builder: Builder, *, log: bool) -> None:
        """Add the steps of a compiled program that makes k (or log k)."""
        raise NotCompiledError

    def fill(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        """Write k (or log k) of some rows and columns into out, with the diagonal as :meth:`diagonal` has it."""
        self.values(rows, cols, out, log=log)
        self.set_diagonal(rows, cols, out, log=log)

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
