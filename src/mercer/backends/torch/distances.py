"""Profiles of distances on tensors: squared Euclidean, l1, chi-squared, and the weight of columns that differ."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import torch

from mercer.backends.arrays import like
from mercer.backends.entries import Side, Which
from mercer.backends.pairings import LARGEST_DISTANCE, DistanceForm
from mercer.backends.rounding import EntryError
from mercer.backends.torch.entries import Entries, Tensor
from mercer.backends.torch.profiles import applied
from mercer.backends.torch.triton_errors import EXPONENT, matrix_units
from mercer.backends.torch.triton_plan import ABSOLUTE, PRODUCTS, SQUARES, Plan

_PREPARE_ROWS = 4096


@final
class DistanceEntries(DistanceForm, Entries):
    """A profile of distances of scaled points, or of the weight of columns that differ."""

    @cached_property
    def _divisors(self) -> Tensor:
        """The length of every column, where the points lie."""
        return like(self._lengths, self._points["rows"], dtype=torch.float64)

    @cached_property
    def _multipliers(self) -> Tensor:
        """The power of two of every column, where the points lie."""
        return like(self._scales, self._points["rows"], dtype=self._work)

    def _center_of(self, points: Tensor) -> Tensor:
        """The mean, halved before the sum so that it cannot overflow."""
        n = max(int(points.shape[0]), 1)
        total = torch.zeros(points.shape[1], dtype=torch.float64, device=points.device)
        for part in torch.split(points, _PREPARE_ROWS):
            total += torch.sum(part.double() / (2.0 * n), dim=0)
        return 2 * total

    def _largest_norm(self) -> float:
        largest = 0.0
        for side in self._sides():
            for part in torch.split(self._points[side], _PREPARE_ROWS):
                if part.shape[0]:
                    largest = max(largest, float(self._centered(part)[1].max()))
        return largest

    def _profiled(self, values: Tensor) -> Tensor:
        return applied(self._profile, values)

    def _centered(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """(points - centre) / lengths, cut where squares would overflow, and the squared norms of that."""
        scaled = ((points.double() - self._center) / self._divisors).clamp_(-self._limit, self._limit).to(self._work)
        return scaled, scaled.double().square().sum(dim=1).to(self._work)

    def plan(self) -> Plan | None:
        if self._metric not in ("sqeuclidean", "cityblock"):
            return None
        limits = 1.0 if self._by_products else self._factor, LARGEST_DISTANCE[self._name]
        if self._by_products:
            return self._planned(self._profile, PRODUCTS, self._all_centered, norms=True, limits=limits)
        pair = ABSOLUTE if self._metric == "cityblock" else SQUARES
        weights = self._weights if self._weighed else ()
        return self._planned(self._profile, pair, self._all_scaled, limits=limits, weights=weights)

    def fused_error(self, plan: Plan) -> EntryError:
        narrow = plan.by_dot and self._work == torch.float32
        return self._error_with(EXPONENT * self.unit, matrix_units(self.n_features) if narrow else 0.0)

    def _all_centered(self, side: Side) -> tuple[Tensor, Tensor]:
        return self._centered(self._points[side])

    def _all_scaled(self, side: Side) -> tuple[Tensor, None]:
        return self._points[side].to(self._work) * self._multipliers, None

    def panel(self, side: Side, which: Which) -> Any:
        points = self._points[side][which]
        if self._by_products:
            return self._centered(points)
        scaled = points.to(self._work) * self._multipliers
        return scaled if side == "rows" else scaled.T.contiguous()

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        t = self._from_products(*rows, *cols) if self._by_products else self._from_differences(rows, cols)
        return applied(self._profile, t, log=log)

    def _from_products(self, x: Tensor, x_norms: Tensor, y: Tensor, y_norms: Tensor) -> Tensor:
        """max(0, |x|² + |y|² - 2 x·y): the norms are added first, so that their sum is rounded once."""
        norms = x_norms[:, None] + y_norms
        return norms.sub_(x @ y.T, alpha=2).clamp_(min=0).to(self.dtype)

    def _from_differences(self, x: Tensor, yt: Tensor) -> Tensor:
        """The distances coordinate by coordinate: two buffers of the size of the tile, whatever the features."""
        total = torch.zeros((x.shape[0], yt.shape[1]), dtype=self._work, device=self.device)
        off = torch.empty_like(total)
        for k in range(x.shape[1]):
            weight = float(self._weights[k]) if self._weighed else 1.0
            torch.sub(x[:, k, None], yt[k], out=off)
            if self._metric == "sqeuclidean":
                total.addcmul_(off, off, value=weight)
            elif self._metric == "cityblock":
                total.add_(off.abs_(), alpha=weight)
            elif self._metric == "mismatches":
                total.add_((off != 0).to(self._work), alpha=weight)
            else:
                both = x[:, k, None] + yt[k]
                total.add_(torch.where(both > 0, off * (off / both), 0.0))
        return total.mul_(self._factor).clamp_(max=LARGEST_DISTANCE[self._name]).to(self.dtype)
