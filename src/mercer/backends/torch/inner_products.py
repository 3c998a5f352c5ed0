"""Profiles of inner products on tensors."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch

from mercer.backends import forms
from mercer.backends.profiles import Identity, PowerOfAffine, TanhOfAffine
from mercer.backends.rounding import EntryError, gamma
from mercer.backends.torch.entries import Entries, Side, Tensor, Which
from mercer.backends.torch.profiles import applied

_ROUNDINGS = 8  # of a direction, of a sum but for its length
_PREPARE_ROWS = 4096


class InnerProductEntries(Entries):
    """A profile of inner products of the points, or of their directions."""

    def __init__(self, form: forms.Pairing, rows: Tensor, cols: Tensor | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self._metric, self._profile = form.metric, form.profile

    def panel(self, side: Side, which: Which) -> Tensor:
        points = self._points[side][which]
        return points.to(self.dtype) if self._metric == "dot" else _directions(points).to(self.dtype)

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        return applied(self._profile, rows @ cols.T, log=log)

    @property
    def nonnegative(self) -> bool:
        return self._profile.nonnegative

    @property
    def cost(self) -> float:
        return float(self.n_features + (0 if isinstance(self._profile, Identity) else 40))

    @cached_property
    def entry_error(self) -> EntryError:
        """|Δ(x·y)| ≤ γ ‖x‖‖y‖, and (γ‖x‖‖y‖ + c)² ≤ (γ‖x‖² + c)(γ‖y‖² + c) where c ≥ 0."""
        profile, unit = self._profile, self.unit
        lost = gamma(self.n_features + _ROUNDINGS, unit)
        if isinstance(profile, Identity):
            return EntryError(unit, lost)
        if isinstance(profile, PowerOfAffine) and profile.coef0 >= 0:
            return EntryError(8 * unit, math.expm1(profile.degree * math.log1p(lost + 4 * unit)))
        if isinstance(profile, PowerOfAffine):
            base = profile.gamma * self._largest_square() + abs(profile.coef0)
            return EntryError(8 * unit, 0.0, base**profile.degree * math.expm1(profile.degree * math.log1p(2 * lost)))
        if isinstance(profile, TanhOfAffine):
            return EntryError(8 * unit, 0.0, (profile.gamma * self._largest_square() + abs(profile.coef0)) * lost)
        return EntryError(8 * unit, 0.0, float("inf"))

    def _largest_square(self) -> float:
        largest = 0.0
        for points in self._points.values():
            for part in torch.split(points, _PREPARE_ROWS):
                if part.shape[0]:
                    largest = max(largest, float(part.double().square().sum(dim=1).max()))
        return largest

    def diagonal(self, side: Side = "rows") -> Tensor:
        points = self._points[side]
        if self._metric == "dot":
            values = points.to(self.dtype).square().sum(dim=1)
        else:
            values = (points != 0).any(dim=1).to(self.dtype)
        return applied(self._profile, values)


def _directions(points: Tensor) -> Tensor:
    """Rows divided by their length, in double precision; zero rows stay zero."""
    wide = points.double()
    largest = wide.abs().amax(dim=1, keepdim=True)
    wide = wide / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    return wide / torch.where(length > 0, length, 1.0)
