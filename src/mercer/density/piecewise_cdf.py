"""Laws on the line whose densities are smooth at a known scale: distribution functions, quantiles, to rounding.

A density that is a sum of squares of Gaussian sections of width σ, whatever its coefficients, is to rounding a
polynomial of degree 19 on every cell of length σ. So its values at 20 Gauss-Legendre nodes of each cell are all there
is to know: they give the mass of the cell and, integrated term by term as a Legendre series, every partial mass. Cells
far from all support points hold no mass and are left out.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.polynomial import legendre

from mercer.backends.arrays import Array

_NODES = 20
_REACH = 6.0  # in units of σ: exp(-2·6²) is below rounding, also where coefficients cancel to eight digits
_MOST_STEPS = 80
_CLOSE = 1e-14  # of the length of a cell


@final
class LineCells:
    """Cells of length σ around some points, for laws on [lower, upper].

    Parameters
    ----------
    centres : array of shape (m,)
        The support points.
    sigma : float
        σ of the sections exp(-(x - z)²/σ²).
    lower, upper : float
        The ends, possibly infinite.

    Attributes
    ----------
    nodes : array of shape (c, 20)
        Where the densities have to be known.
    """

    def __init__(self, centres: Array, sigma: float, lower: float = -np.inf, upper: float = np.inf) -> None:
        left, right = _cells_near(np.sort(centres), sigma, lower, upper)
        places, self._weights = legendre.leggauss(_NODES)
        self._left, self._half = left, (right - left) / 2
        self.nodes = left[:, None] + self._half[:, None] * (places + 1)
        degrees = np.arange(_NODES)
        # The coefficients of the Legendre series of the polynomial through values at the nodes.
        self._series = legendre.legvander(places, _NODES - 1) * self._weights[:, None] * (degrees + 0.5)

    def masses(self, values: Array) -> Array:
        """The masses of the cells, for densities with such values (n, c, 20) at the nodes; never negative."""
        return np.maximum(values @ self._weights, 0.0) * self._half

    def cdf(self, values: Array, x: Array) -> Array:
        """P(X ≤ x) under one law, with values (c, 20) at the nodes; not normalised."""
        masses = self.masses(values)
        before = np.concatenate([[0.0], np.cumsum(masses)])
        cell = np.searchsorted(self._left, x, side="right") - 1
        inside = np.maximum(cell, 0)
        place = np.clip((x - self._left[inside]) / self._half[inside] - 1.0, -1.0, 1.0)
        part = legendre.legval(place, self._integrals(values[inside]), tensor=False) * self._half[inside]
        return np.where(cell < 0, 0.0, before[inside] + np.clip(part, 0.0, masses[inside]))

    def quantiles(self, values: Array, levels: Array) -> Array:
        """For each level in (0, 1) where the distribution function of its law reaches it.

        Parameters
        ----------
        values : array of shape (n, c, 20)
            Of n laws, or of one; normalised or not.
        levels : array of shape (n,)
            One for each law, or as many as you like for one.
        """
        masses = self.masses(values)
        before = np.cumsum(masses, axis=1)
        goals = levels * before[:, -1]
        cell = np.minimum(np.sum(before < goals[:, None], axis=1), masses.shape[1] - 1)
        law = np.broadcast_to(np.arange(values.shape[0]), levels.shape)
        left_over = goals - (before[law, cell] - masses[law, cell])
        half = self._half[cell]
        place = _invert(values[law, cell] @ self._series, self._integrals(values[law, cell]), left_over / half)
        return np.asarray(self._left[cell] + half * (place + 1))

    def _integrals(self, values: Array) -> Array:
        """Legendre coefficients, one law a column, of ∫ from -1 of the polynomials with values (n, 20) at the nodes."""
        return np.asarray(legendre.legint((values @ self._series).T, lbnd=-1))


def _cells_near(centres: Array, sigma: float, lower: float, upper: float) -> tuple[Array, Array]:
    """The ends of the cells, counted from the least that matters, that lie near some centre."""
    start = max(lower, float(centres[0]) - _REACH * sigma)
    start = start if start < upper else max(lower, upper - _REACH * sigma)
    first = np.floor((centres - _REACH * sigma - start) / sigma)
    numbers = np.unique(first[:, None] + np.arange(2 * _REACH + 2)).astype(np.int64)
    left = start + sigma * numbers[numbers >= 0]
    left = left[left < upper]
    if left.size == 0:  # the interval lies beyond the reach of all centres
        count = max(1, int(np.ceil((min(upper, start + _REACH * sigma) - start) / sigma)))
        left = start + sigma * np.arange(count)
    return left, np.minimum(left + sigma, upper)


def _invert(slopes: Array, rising: Array, goals: Array) -> Array:
    """Where on [-1, 1] the rising polynomials reach the goals: Newton's steps, halvings where they leave the bracket.

    ``slopes`` (n, 20) are the coefficients of the derivatives, ``rising`` (21, n) of the polynomials.
    """
    low, high = np.full(goals.shape, -1.0), np.full(goals.shape, 1.0)
    place = np.zeros(goals.shape)
    for _ in range(_MOST_STEPS):
        excess = legendre.legval(place, rising, tensor=False) - goals
        low, high = np.where(excess < 0, place, low), np.where(excess < 0, high, place)
        slope = legendre.legval(place, slopes.T, tensor=False)
        step = np.divide(excess, slope, out=np.full(goals.shape, np.inf), where=slope > 0)
        inside = (place - step > low) & (place - step < high)
        there = np.abs(step) <= _CLOSE
        place = np.where(there, place, np.where(inside, place - step, (low + high) / 2))
        if np.all(there | (high - low <= _CLOSE)):
            break
    return place
