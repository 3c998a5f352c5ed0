"""Profiles of distances on tensors: squared Euclidean, l1 and chi-squared.

Squared distances come from inner products when that is accurate, and from differences otherwise, by the same rule as on
CPU threads: with the points centred and divided by the bandwidth, inner products leave an error of about u·R² in the
exponent, R the largest norm and u the unit roundoff. Where u·R² is too large, float32 points are multiplied in float64,
and where that is not enough the points are subtracted. Differences need no centre: the points are multiplied by a power
of two near 1 / length, which is exact, and the rest of the length goes into the distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch

from mercer.backends import forms
from mercer.backends.accuracy import (
    COORDINATE_LIMIT,
    DIRECT_UP_TO,
    EXPONENT_ERROR,
    LARGEST_DISTANCE,
    PRODUCTS,
    SUBTRACTIONS,
    power_of_two_below,
    profile_error,
)
from mercer.backends.arrays import dtype_name
from mercer.backends.profiles import BesselMatern
from mercer.backends.rounding import EntryError, gamma, unit_of
from mercer.backends.torch.entries import Entries, Side, Tensor, Which
from mercer.backends.torch.profiles import applied

_PREPARE_ROWS = 4096


class DistanceEntries(Entries):
    """A profile of squared Euclidean, l1 or chi-squared distances of scaled points."""

    def __init__(self, form: forms.Pairing, rows: Tensor, cols: Tensor | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self._metric, self._profile = form.metric, form.profile
        self._length = float(form.length)
        self._name = dtype_name(self.dtype)
        self._work = self.dtype
        euclidean = form.metric == "sqeuclidean" and self.n_features > DIRECT_UP_TO
        self._by_products = euclidean and self._inner_products_hold()
        if not self._by_products:
            self._choose_scale()

    def _inner_products_hold(self) -> bool:
        """Find the precision in which inner products are accurate enough, if there is one."""
        self._limit = COORDINATE_LIMIT[self._name]
        self._center = _center(self._points["cols"])
        self._largest = largest = self._largest_norm()
        allowed = EXPONENT_ERROR[self._name] ** (1 / self._profile.power_at_zero)
        for work in (self.dtype, torch.float64):
            self._work = work
            if torch.finfo(work).eps * largest <= allowed:
                return True
        return False

    def _largest_norm(self) -> float:
        largest = 0.0
        for side in ("rows",) if self.symmetric else ("rows", "cols"):
            for part in torch.split(self._points[side], _PREPARE_ROWS):
                if part.shape[0]:
                    largest = max(largest, float(self._centered(part)[1].max()))
        return largest

    def _choose_scale(self) -> None:
        """Points times a power of two, distances times a factor: a division by the length without rounding."""
        largest = max(float(ends.abs().max()) for ends in self._extremes())
        scale = power_of_two_below(1 / self._length, COORDINATE_LIMIT["float64"], largest)
        narrow = self._name == "float32" and scale * largest < COORDINATE_LIMIT["float32"] and 1e-30 < scale < 1e30
        self._work = self.dtype if narrow else torch.float64
        self._scale = scale
        rest = min(1 / max(self._length * scale, 1e-300), COORDINATE_LIMIT[self._name])
        self._factor = rest**2 if self._metric == "sqeuclidean" else rest

    def _extremes(self) -> Iterator[Tensor]:
        """Least and greatest coordinates, and zero."""
        for points in self._points.values():
            none = points.new_zeros(points.shape[1])
            yield torch.minimum(points.amin(dim=0), none) if points.shape[0] else none
            yield torch.maximum(points.amax(dim=0), none) if points.shape[0] else none

    def _centered(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """(points - centre) / length, cut where squares would overflow, and the squared norms of that."""
        scaled = ((points.double() - self._center) / self._length).clamp_(-self._limit, self._limit).to(self._work)
        return scaled, scaled.double().square().sum(dim=1).to(self._work)

    def panel(self, side: Side, which: Which) -> Any:
        points = self._points[side][which]
        if self._by_products:
            return self._centered(points)
        scaled = points.to(self._work) * self._scale
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
            torch.sub(x[:, k, None], yt[k], out=off)
            if self._metric == "sqeuclidean":
                total.addcmul_(off, off)
            elif self._metric == "cityblock":
                total.add_(off.abs_())
            else:
                both = x[:, k, None] + yt[k]
                total.add_(torch.where(both > 0, off * (off / both), 0.0))
        return total.mul_(self._factor).clamp_(max=LARGEST_DISTANCE[self._name]).to(self.dtype)

    @property
    def nonnegative(self) -> bool:
        return self._profile.nonnegative

    @property
    def cost(self) -> float:
        return (self.n_features if self._by_products else 4 * self.n_features) + (
            1000 if isinstance(self._profile, BesselMatern) else 10
        )

    @cached_property
    def entry_error(self) -> EntryError:
        d, dtype = self.n_features, np.dtype(self._name)
        if not self._by_products:
            relative = gamma(d + SUBTRACTIONS, self.unit)
            return profile_error(self._profile, dtype, relative, 0.0, self._most())
        lost = gamma(2 * d + PRODUCTS, unit_of(self._work)) * self._largest
        return profile_error(self._profile, dtype, 4 * self.unit, lost, 4 * self._largest)

    def _most(self) -> float:
        """A bound on the distances of the points."""
        ends = [end.double() / self._length for end in self._extremes()]
        ranges = torch.maximum(ends[1], ends[3]) - torch.minimum(ends[0], ends[2])
        return float(torch.sum(ranges**2 if self._metric == "sqeuclidean" else ranges))

    def diagonal(self, side: Side = "rows") -> Tensor:
        zeros = torch.zeros(1, dtype=self.dtype, device=self.device)
        return applied(self._profile, zeros).expand(self._points[side].shape[0]).clone()


def _center(points: Tensor) -> Tensor:
    """A point amid the others: the mean, halved before the sum so that it cannot overflow."""
    n = max(int(points.shape[0]), 1)
    total = torch.zeros(points.shape[1], dtype=torch.float64, device=points.device)
    for part in torch.split(points, _PREPARE_ROWS):
        total += torch.sum(part.double() / (2.0 * n), dim=0)
    return 2 * total
