"""Densities with respect to a measure that is a sum over nodes: probabilities of points."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, like, to_numpy
from mercer.backends.rounding import EPS
from mercer.density.law import Law


@final
class PointMasses(Law):
    """The law Σ_q P_q δ(x_q): its density is with respect to the counting measure, the probability of a point.

    Parameters
    ----------
    points : array of shape (Q, d)
        x; equal points are one.
    masses : array of shape (Q,)
        P up to a factor, none negative.
    """

    _masses: Array

    def __init__(self, points: Any, masses: Any) -> None:
        super().__init__(points, None, None)
        self._points, place = np.unique(self._points, axis=0, return_inverse=True)
        totals = np.bincount(place.reshape(-1), weights=np.asarray(to_numpy(masses), np.float64))
        if not totals.sum() > 0:
            raise ValueError("The density has no mass at any node of its reference.")
        self._masses = totals / totals.sum()

    @property
    def masses(self) -> Any:
        """P, one for each of the points."""
        return self._answer(self._masses)

    @property
    def sampling_error(self) -> float:
        """Rounding."""
        return EPS * self._masses.size

    def score_samples(self, X: Any) -> Any:
        """log P at points of the law; minus infinity elsewhere."""
        rows = np.asarray(to_numpy(self._rows(X)), np.float64)
        place = np.unique(np.concatenate([self._points, rows]), axis=0, return_inverse=True)[1].reshape(-1)
        masses = np.zeros(int(place.max()) + 1)
        masses[place[: self._masses.size]] = self._masses
        with np.errstate(divide="ignore"):
            logs = np.log(masses[place[self._masses.size :]])
        return logs if self._home is None else like(logs, self._home)

    def _mean(self) -> Array:
        return self._masses @ self._points

    def _covariance(self) -> Array:
        apart = self._points - self._mean()
        return (apart.T * self._masses) @ apart

    def _marginal(self, kept: Array, others: Array) -> PointMasses:
        return PointMasses(self._answer(self._points[:, kept]), self._masses)

    def _conditional(self, given: Array, at: Array, others: Array) -> PointMasses:
        there = np.all(self._points[:, given] == at, axis=1)
        if not there.any():
            raise ValueError(f"No node of the reference has the values {at.tolist()}: condition on those of a node.")
        return PointMasses(self._answer(self._points[np.ix_(there, others)]), self._masses[there])

    def _cdf(self, x: Array) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(self._masses)])
        return np.clip(sums[np.searchsorted(self._points[:, 0], x, side="right")], 0.0, 1.0)

    def _quantile(self, levels: Array) -> Array:
        places = np.searchsorted(np.cumsum(self._masses), levels * (1 - EPS), side="left")
        return self._points[np.minimum(places, self._masses.size - 1), 0]

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._points[rng.choice(self._masses.size, n, p=self._masses)]
