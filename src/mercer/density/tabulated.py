"""A density in up to three dimensions by its masses on a grid, for what has no closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.chunks import TABLE_ROWS, row_chunks
from mercer.density.law import Law

_CELLS = {1: 8192, 2: 512, 3: 64}  # a side


@final
class TabulatedDensity(Law):
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
    """

    def __init__(self, density: Callable[[Any], Any], lower: Any, upper: Any, points: Any) -> None:
        super().__init__(points, lower, upper)
        d = self.n_features
        if d not in _CELLS:
            raise ValueError(f"A density without closed form is tabulated in up to 3 dimensions, not {d}.")
        self._function, self._step = density, (self._upper - self._lower) / _CELLS[d]
        self._axes = [self._lower[k] + (np.arange(_CELLS[d]) + 0.5) * self._step[k] for k in range(d)]
        values = self._values(density)
        self.mass = float(values.sum() * np.prod(self._step))
        if not self.mass > 0:
            raise ValueError("The density has no mass in the box, or at the values given.")
        self._masses = values / values.sum()
        self._error = self._distance_to_half()

    @property
    def sampling_error(self) -> float:
        """An estimate of the total-variation distance of the draws to the density.

        Half the sum of the differences to a grid of half as many cells a side, over two, since a piecewise constant's
        error falls as the side of a cell; a marginal adds that of its table.
        """
        return self._error

    def score_samples(self, X: Any) -> Any:
        """The logarithm of the density at some points; minus infinity outside the box."""
        X = self._rows(to_numpy(X))
        inside = np.all((self._lower <= X) & (self._upper >= X), axis=1)
        out = np.full(X.shape[0], -np.inf)
        with np.errstate(divide="ignore"):
            out[inside] = np.log(to_numpy(self._function(X[inside])) / self.mass)
        return self._answer(out)

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

    def _mean(self) -> Array:
        return np.array([self._marginal_masses(k) @ axis for k, axis in enumerate(self._axes)])

    def _covariance(self) -> Array:
        """With that of a uniform law inside each cell."""
        centred = [axis - middle for axis, middle in zip(self._axes, self._mean(), strict=True)]
        d = len(centred)
        out = np.diag(self._step**2 / 12)
        for i in range(d):
            for j in range(d):
                others = tuple(k for k in range(d) if k not in (i, j))
                joint = self._masses.sum(axis=others)
                out[i, j] += joint @ centred[i] ** 2 if i == j else _bilinear(joint, centred, i, j)
        return out

    def _marginal(self, kept: Array, others: Array) -> TabulatedDensity:
        """Sums over the cells of the others, interpolated between them."""
        heights = self._masses.sum(axis=tuple(others)).transpose(np.argsort(np.argsort(kept)))
        between = RegularGridInterpolator([self._axes[k] for k in kept], heights, bounds_error=False, fill_value=None)

        def density(X: Array) -> Array:
            return np.maximum(between(X), 0.0)

        found = self._of(density, kept)
        found._error += self._error
        return found

    def _conditional(self, given: Array, at: Array, others: Array) -> TabulatedDensity:
        def density(X: Array) -> Array:
            whole = np.empty((X.shape[0], self.n_features))
            whole[:, given], whole[:, others] = at, X
            return to_numpy(self._function(whole))

        return self._of(density, others)

    def _of(self, density: Callable[[Any], Any], coordinates: Array) -> TabulatedDensity:
        """A table of some of the coordinates."""
        points = self._answer(self._points[:, coordinates])
        return TabulatedDensity(density, self._lower[coordinates], self._upper[coordinates], points)

    def _cdf(self, x: Array) -> Array:
        levels, edges = self._distribution()
        return np.interp(x, edges, levels, left=0.0, right=1.0)

    def _quantile(self, levels: Array) -> Array:
        reached, edges = self._distribution()
        rising = np.concatenate([[True], np.diff(reached) > 0])
        return np.interp(levels, reached[rising], edges[rising])

    def _distribution(self) -> tuple[Array, Array]:
        """The distribution function at the edges of the cells, in one dimension."""
        edges = self._lower[0] + self._step[0] * np.arange(self._axes[0].size + 1)
        return np.concatenate([[0.0], np.cumsum(self._masses)]), edges

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        chances = np.cumsum(self._masses.reshape(-1))
        cells = np.searchsorted(chances, rng.uniform(0, chances[-1], n), side="right")
        places = np.unravel_index(np.minimum(cells, chances.size - 1), self._masses.shape)
        inside = rng.uniform(0, 1, (n, len(places)))
        return np.asarray(self._lower + self._step * (np.column_stack(places) + inside))


def _bilinear(joint: Array, centred: list[Array], i: int, j: int) -> float:
    rows, cols = (centred[i], centred[j]) if i < j else (centred[j], centred[i])
    return float(rows @ joint @ cols)
