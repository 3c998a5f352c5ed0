"""A score of three views of a row: how empty it is around it, far and near, and how it stands out from neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from mercer.backends.arrays import Array
from mercer.novelty.columns import quantiles
from mercer.novelty.scales import Parts

_GENTLE = 1 / 8  # of the weight of the ratio, in the views that are of empty places before all
_QUARTERS = (0.25, 0.5, 0.75)
_LEAST = 1e-6  # of a spread of logarithms: less is rounding


@final
@dataclass(frozen=True)
class Views:
    """Three sums of the parts, which are measured by the training rows.

    Attributes
    ----------
    weights, middles, spreads : arrays of shape (3,)
        The weight of the ratio, the median of the sum over the training rows, and the distance of its quartiles.
    """

    weights: Array
    middles: Array
    spreads: Array

    @classmethod
    def of(cls, parts: Parts, masses: Array, weight: float) -> Views:
        """The views of training rows, of which each counts so many times, where the ratio counts by ``weight``."""
        weights = weight * np.array([_GENTLE, _GENTLE, 1.0])
        low, middle, high = quantiles(_sums(parts, weights), _QUARTERS, masses)
        mean = masses @ (off := _sums(parts, weights) - middle) / masses.sum()
        deviation = np.sqrt(masses @ (off - mean) ** 2 / masses.sum())
        spreads = np.where(high - low > _LEAST, high - low, deviation)
        return cls(weights, middle, np.where(spreads > _LEAST, spreads, 1.0))

    def scores(self, parts: Parts) -> Array:
        """The score of every row, of shape (q,): that of the view in which it is farthest above the median."""
        return ((_sums(parts, self.weights) - self.middles) / self.spreads).max(axis=1)


def _sums(parts: Parts, weights: Array) -> Array:
    return np.column_stack([parts.far, parts.near, parts.near]) + parts.ratio[:, None] * weights
