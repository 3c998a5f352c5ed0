"""A density in up to three dimensions by its masses on a grid, for what has no closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from mercer.backends.arrays import Array, is_tensor, like, to_numpy
from mercer.backends.chunks import TABLE_ROWS, row_chunks
from mercer.density.arguments import (
    NOTHING_LEFT,
    checked_coordinates,
    checked_levels,
    checked_rows,
    checked_values,
    one_dimension,
)

_CELLS = {1: 8192, 2: 512, 3: 64}  # a side


@final
class TabulatedDensity:
    """A density on a box with the masses of the cells of a regular grid; draws are uniform inside each cell.

    Parameters
    ----------
    density : callable
        Takes points (n, d), returns the density at each, up to a factor; in any library.
    lower, upper : arrays of shape (d,)
        The box, which must hold all of the mass.
    points : array of shape (m, d)
        The support points, for pictures. Where they are a tensor, so are all answers.

    Attributes
    ----------
    mass : float
        What the cells sum to before they are scaled to one: for a density one, but for the error of the midpoint rule.
    sampling_error : float
        An estimate of the total-variation distance of the draws to the density: half the sum of the differences to a
        grid of half as many cells a side, over two, since a piecewise constant's error falls as the side of a cell.
    """

    def __init__(self, density: Callable[[Any], Any], lower: Any, upper: Any, points: Any) -> None:
        self._home = points[:0] if is_tensor(points) else None
        lower, upper = to_numpy(lower), to_numpy(upper)
        d = lower.size
        if d not in _CELLS:
            raise ValueError(f"A density without closed form is tabulated in up to 3 dimensions, not {d}.")
        self._lower, self._upper, self.points = lower, upper, points
        self._function, self._step = density, (upper - lower) / _CELLS[d]
        self._axes = [lower[k] + (np.arange(_CELLS[d]) + 0.5) * self._step[k] for k in range(d)]
        values = self._values(density)
        self.mass = float(values.sum() * np.prod(self._step))
        if not self.mass > 0:
            raise ValueError("The density has no mass in the box, or at the values given.")
        self._masses = values / values.sum()
        self.sampling_error = self._distance_to_half()

    @property
    def lower(self) -> Any:
        """The lower corner of the box."""
        return self._answer(self._lower)

    @property
    def upper(self) -> Any:
        """The upper corner of the box."""
        return self._answer(self._upper)

    def _answer(self, values: Array) -> Any:
        """Values in the library of the points."""
        return values if self._home is None else like(values, self._home)

    @property
    def n_features(self) -> int:
        """d."""
        return len(self._axes)

    def density(self, X: Any) -> Any:
        """The density at some points; zero outside the box."""
        return self._answer(self._density(checked_rows(to_numpy(X), self.n_features)))

    def _density(self, X: Array) -> Array:
        inside = np.all((self._lower <= X) & (self._upper >= X), axis=1)
        out = np.zeros(X.shape[0])
        out[inside] = to_numpy(self._function(X[inside])) / self.mass
        return out

    def score_samples(self, X: Any) -> Any:
        """Its logarithm; minus infinity outside the box."""
        with np.errstate(divide="ignore"):
            return self._answer(np.log(self._density(checked_rows(to_numpy(X), self.n_features))))

    def _values(self, density: Callable[[Any], Any]) -> Array:
        """The density at the centres of all cells."""
        shape = tuple(axis.size for axis in self._axes)
        out = np.empty(int(np.prod(shape)))
        for rows in row_chunks(out.size, TABLE_ROWS):
            places = np.unravel_index(np.arange(rows.start, rows.stop), shape)
            cells = np.column_stack([a[p] for a, p in zip(self._axes, places, strict=True)])
            out[rows] = to_numpy(density(cells))
        return out.reshape(shape)

    def _distance_to_half(self) -> float:
        coarse = self._masses
        for axis in range(coarse.ndim):
            pairs = coarse.reshape(*coarse.shape[:axis], -1, 2, *coarse.shape[axis + 1 :]).mean(axis=axis + 1)
            coarse = np.repeat(pairs, 2, axis=axis)
        return float(0.5 * np.abs(self._masses - coarse).sum() / 2)

    def _marginal_masses(self, axis: int) -> Array:
        return np.asarray(self._masses.sum(axis=tuple(k for k in range(self._masses.ndim) if k != axis)))

    def mean(self) -> Any:
        """The expectation."""
        return self._answer(self._mean())

    def _mean(self) -> Array:
        return np.array([self._marginal_masses(k) @ axis for k, axis in enumerate(self._axes)])

    def covariance(self) -> Any:
        """The covariance, with that of a uniform law inside each cell."""
        centred = [axis - middle for axis, middle in zip(self._axes, self._mean(), strict=True)]
        d = len(centred)
        out = np.diag(self._step**2 / 12)
        for i in range(d):
            for j in range(d):
                others = tuple(k for k in range(d) if k not in (i, j))
                joint = self._masses.sum(axis=others)
                out[i, j] += joint @ centred[i] ** 2 if i == j else _bilinear(joint, centred, i, j)
        return self._answer(out)

    def marginal(self, coordinates: Any) -> TabulatedDensity:
        """The density of some coordinates: sums over the cells of the others, interpolated between them."""
        kept = checked_coordinates(coordinates, self.n_features)
        others = tuple(np.setdiff1d(np.arange(self.n_features), kept))
        heights = self._masses.sum(axis=others).transpose(np.argsort(np.argsort(kept)))
        between = RegularGridInterpolator([self._axes[k] for k in kept], heights, bounds_error=False, fill_value=None)

        def density(X: Array) -> Array:
            return np.maximum(between(X), 0.0)

        found = TabulatedDensity(density, self._lower[kept], self._upper[kept], self.points[:, kept])
        found.sampling_error += self.sampling_error
        return found

    def conditional(self, coordinates: Any, values: Any) -> TabulatedDensity:
        """The density of the other coordinates, given the values of these."""
        given = checked_coordinates(coordinates, self.n_features)
        at = checked_values(values, self._lower[given], self._upper[given])
        others = np.setdiff1d(np.arange(self.n_features), given)
        if others.size == 0:
            raise ValueError(NOTHING_LEFT)

        def density(X: Array) -> Array:
            whole = np.empty((X.shape[0], self.n_features))
            whole[:, given], whole[:, others] = at, X
            return to_numpy(self._function(whole))

        return TabulatedDensity(density, self._lower[others], self._upper[others], self.points[:, others])

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x) in one dimension."""
        levels, edges = self._distribution("cdf")
        x = np.asarray(to_numpy(x), np.float64).reshape(-1)
        return self._answer(np.interp(x, edges, levels, left=0.0, right=1.0))

    def quantile(self, levels: Any) -> Any:
        """The inverse of the distribution function in one dimension."""
        levels = checked_levels(levels)
        reached, edges = self._distribution("quantile")
        rising = np.concatenate([[True], np.diff(reached) > 0])
        return self._answer(np.interp(levels, reached[rising], edges[rising]))

    def _distribution(self, what: str) -> tuple[Array, Array]:
        """The distribution function at the edges of the cells."""
        if self.n_features != 1:
            raise ValueError(one_dimension(what, self.n_features))
        edges = self._lower[0] + self._step[0] * np.arange(self._axes[0].size + 1)
        return np.concatenate([[0.0], np.cumsum(self._masses)]), edges

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        """Draws whose law is within ``sampling_error`` of the density in total variation."""
        chances = np.cumsum(self._masses.reshape(-1))
        cells = np.searchsorted(chances, rng.uniform(0, chances[-1], n), side="right")
        places = np.unravel_index(np.minimum(cells, chances.size - 1), self._masses.shape)
        inside = rng.uniform(0, 1, (n, len(places)))
        return self._answer(self._lower + self._step * (np.column_stack(places) + inside))


def _bilinear(joint: Array, centred: list[Array], i: int, j: int) -> float:
    rows, cols = (centred[i], centred[j]) if i < j else (centred[j], centred[i])
    return float(rows @ joint @ cols)
