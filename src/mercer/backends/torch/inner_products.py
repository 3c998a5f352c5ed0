"""Profiles of inner products on tensors."""

from __future__ import annotations

from typing import Any, final

import torch

from mercer.backends.entries import Side, Which
from mercer.backends.pairings import InnerProductForm
from mercer.backends.rounding import EntryError
from mercer.backends.torch.entries import Entries, Tensor
from mercer.backends.torch.profiles import applied
from mercer.backends.torch.triton_errors import matrix_units
from mercer.backends.torch.triton_plan import PRODUCTS, Plan


@final
class InnerProductEntries(InnerProductForm, Entries):
    """A profile of inner products of the points, or of their directions."""

    def plan(self) -> Plan | None:
        return self._planned(self._profile, PRODUCTS, lambda side: (self.panel(side, slice(None)), None))

    def fused_error(self, plan: Plan) -> EntryError:
        narrow = plan.by_dot and self.dtype == torch.float32
        return self._error_with(matrix_units(self.n_features) if narrow else 0.0)

    def panel(self, side: Side, which: Which) -> Tensor:
        points = self._points[side][which]
        return points.to(self.dtype) if self._metric == "dot" else _directions(points).to(self.dtype)

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        return applied(self._profile, rows @ cols.T, log=log)

    def _profiled(self, values: Tensor) -> Tensor:
        return applied(self._profile, values)

    def diagonal(self, side: Side = "rows") -> Tensor:
        points = self._points[side]
        if self._metric == "dot":
            return self._profiled(points.to(self.dtype).square().sum(dim=1))
        return self._profiled((points != 0).any(dim=1).to(self.dtype))


def _directions(points: Tensor) -> Tensor:
    """Rows divided by their length, in double precision; zero rows stay zero."""
    wide = points.double()
    largest = wide.abs().amax(dim=1, keepdim=True)
    wide = wide / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    return wide / torch.where(length > 0, length, 1.0)
