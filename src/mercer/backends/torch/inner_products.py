"""Profiles of inner products on tensors."""

from __future__ import annotations

from typing import Any, final

import torch

from mercer.backends.arrays import like
from mercer.backends.entries import Side, Which
from mercer.backends.pairings import InnerProductForm
from mercer.backends.rounding import EntryError
from mercer.backends.torch.entries import Entries, Tensor
from mercer.backends.torch.profiles import applied
from mercer.backends.torch.triton_errors import matrix_units
from mercer.backends.torch.triton_plan import PRODUCTS, Plan, pairs_by_dot, profile_numbers, side_of


@final
class InnerProductEntries(InnerProductForm, Entries):
    """A profile of inner products of the points, or of their directions."""

    def plan(self) -> Plan | None:
        profile = profile_numbers(self._profile)
        if profile is None:
            return None
        number, degree, first, second = profile
        by_dot, points = pairs_by_dot(self.n_features, PRODUCTS), self._points["rows"]
        sides = [side_of(self.panel(side, slice(None)), None, by_dot) for side in self._sides()]
        return Plan(
            pair=PRODUCTS,
            norms=False,
            by_dot=by_dot,
            weights=points.new_empty(0, dtype=torch.float64),
            numbers=like([1.0, 0.0, first, second], points, dtype=torch.float64),
            profile=number,
            degree=degree,
            n_features=self.n_features,
            symmetric=self.symmetric,
            rows=sides[0],
            cols=sides[-1],
            diagonal=self.diagonal() if self.symmetric else self.full((0,), 0.0),
        )

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
