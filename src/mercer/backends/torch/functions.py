"""Entries by a function of the kernel's own, on tensors."""

from __future__ import annotations

from typing import Any, final

from mercer.backends import forms
from mercer.backends.arrays import like
from mercer.backends.entries import FunctionForm, Side, Which
from mercer.backends.torch.entries import Entries, Tensor, log_in_place


@final
class FunctionEntries(FunctionForm, Entries):
    """Blocks of entries from a function that takes tensors and returns them."""

    def panel(self, side: Side, which: Which) -> Tensor:
        return self._points[side][which].to(self.dtype)

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        shape = (rows.shape[0], cols.shape[0])
        if log and self._form.logarithm is not None:
            return self._owned(self._form.logarithm(rows, cols), shape)
        values = self._owned(self._form.function(rows, cols), shape)
        return log_in_place(values) if log else values

    def _owned(self, values: Any, shape: tuple[int, ...]) -> Tensor:
        """A tensor that may be written to: the function may have returned one of its own, or a NumPy array."""
        forms.require_block(values, shape)
        return like(values, self._points["rows"], dtype=self.dtype).clone()

    def diagonal(self, side: Side = "rows") -> Tensor:
        return self._owned(self._form.diagonal(self.panel(side, slice(None))), (self._points[side].shape[0],))
