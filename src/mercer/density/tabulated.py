"""A density in up to three dimensions by its masses on a grid, for what has no closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_CELLS = {1: 8192, 2: 512, 3: 64}  # a side
_PANEL = 65_536


@final
class TabulatedDensity:
    """Masses of the cells of a regular grid on a box, uniform inside each cell.

    Parameters
    ----------
    density : callable
        Takes points (n, d), returns the density at each.
    lower, upper : arrays of shape (d,)
        The box, which must hold all of the mass.

    Attributes
    ----------
    mass : float
        What the cells sum to before they are scaled to one: one, but for the error of the midpoint rule.
    error : float
        An estimate of the total-variation distance to the density: half the sum of the differences to a grid of half as
        many cells a side, over two, since the error of a piecewise constant falls as the side of a cell.
    """

    def __init__(self, density: Callable[[Array], Array], lower: Array, upper: Array) -> None:
        d = lower.size
        if d not in _CELLS:
            raise ValueError(f"A density without closed form is tabulated in up to 3 dimensions, not {d}.")
        self._lower, self._step = lower, (upper - lower) / _CELLS[d]
        self._axes = [lower[k] + (np.arange(_CELLS[d]) + 0.5) * self._step[k] for k in range(d)]
        values = self._values(density)
        self.mass = float(values.sum() * np.prod(self._step))
        self._masses = values / values.sum()
        self.error = self._distance_to_half()

    def _values(self, density: Callable[[Array], Array]) -> Array:
        """The density at the centres of all cells."""
        shape = tuple(axis.size for axis in self._axes)
        out = np.empty(int(np.prod(shape)))
        for lo in range(0, out.size, _PANEL):
            places = np.unravel_index(np.arange(lo, min(lo + _PANEL, out.size)), shape)
            out[lo : lo + _PANEL] = density(np.column_stack([a[p] for a, p in zip(self._axes, places, strict=True)]))
        return out.reshape(shape)

    def _distance_to_half(self) -> float:
        coarse = self._masses
        for axis in range(coarse.ndim):
            pairs = coarse.reshape(*coarse.shape[:axis], -1, 2, *coarse.shape[axis + 1 :]).mean(axis=axis + 1)
            coarse = np.repeat(pairs, 2, axis=axis)
        return float(0.5 * np.abs(self._masses - coarse).sum() / 2)

    def _marginal_masses(self, axis: int) -> Array:
        return np.asarray(self._masses.sum(axis=tuple(k for k in range(self._masses.ndim) if k != axis)))

    def mean(self) -> Array:
        """The expectation."""
        return np.array([self._marginal_masses(k) @ axis for k, axis in enumerate(self._axes)])

    def covariance(self) -> Array:
        """The covariance, with that of a uniform law inside each cell."""
        centred = [axis - middle for axis, middle in zip(self._axes, self.mean(), strict=True)]
        d = len(centred)
        out = np.diag(self._step**2 / 12)
        for i in range(d):
            for j in range(d):
                others = tuple(k for k in range(d) if k not in (i, j))
                joint = self._masses.sum(axis=others)
                out[i, j] += joint @ centred[i] ** 2 if i == j else _bilinear(joint, centred, i, j)
        return np.asarray(out)

    def cdf(self, x: Array) -> Array:
        """P(X ≤ x) in one dimension."""
        if len(self._axes) != 1:
            raise ValueError(f"cdf is for one dimension, not {len(self._axes)}.")
        edges = self._lower[0] + self._step[0] * np.arange(self._axes[0].size + 1)
        return np.interp(x, edges, np.concatenate([[0.0], np.cumsum(self._masses)]), left=0.0, right=1.0)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws whose law is within ``error`` of the density in total variation."""
        chances = np.cumsum(self._masses.reshape(-1))
        cells = np.searchsorted(chances, rng.uniform(0, chances[-1], n), side="right")
        places = np.unravel_index(np.minimum(cells, chances.size - 1), self._masses.shape)
        return np.asarray(self._lower + self._step * (np.column_stack(places) + rng.uniform(0, 1, (n, len(places)))))


def _bilinear(joint: Array, centred: list[Array], i: int, j: int) -> float:
    rows, cols = (centred[i], centred[j]) if i < j else (centred[j], centred[i])
    return float(rows @ joint @ cols)
