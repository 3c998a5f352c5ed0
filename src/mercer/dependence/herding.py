"""Kernel herding: points of equal weight that stand for a measure (Chen, Welling, Smola 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.optimize import minimize

from mercer.backends.arrays import Array, as_double, cast, is_source, like, namespace, taken, to_numpy
from mercer.dependence.mean_embedding import MeanEmbedding
from mercer.kernels import Gaussian
from mercer.kernels.checks import as_points
from mercer.kernels.integrals import GaussianMixture
from mercer.operators import GramOperator
from mercer.validation import require_points, true_or_false, whole_number

_Values = tuple[float, float, float]  # of w, of Σ k(·, x_s) and of k(x, x) at a point


@final
@dataclass(frozen=True, eq=False)
class Herding:
    """Points that herding chose, in the order in which it chose them: the first t of them stand for the measure, too.

    Attributes
    ----------
    points : array of shape (t, d)
        The super-samples; each has the weight 1/t.
    indices : array of shape (t,) or None
        Which candidates they are; None where they were moved off them.
    distances : array of shape (t,)
        The maximum mean discrepancy between the measure and the first 1, 2, … t points. It is the root of a difference,
        so that below 1e-8 times the norm of the measure it is rounding.
    embedding : MeanEmbedding
        Of the points.
    """

    points: Array
    indices: Array | None
    distances: Array
    embedding: MeanEmbedding

    def __len__(self) -> int:
        return int(self.points.shape[0])


def kernel_herding(
    measure: Any,
    n_points: int,
    *,
    candidates: Any = None,
    kernel: Any = None,
    distinct: bool = False,
    refine: bool = False,
) -> Herding:
    """Choose points, one after the other, whose equal-weighted mean embedding is near that of a measure.

    With w the embedding of the measure, of mass one, and x₁ … x_t chosen, the next point is the candidate for which
    ‖w - (k(x₁, ·) + … + k(x_{t+1}, ·))/(t + 1)‖ is least, which is

        argmax  w(x) - (k(x, x₁) + … + k(x, x_t) + k(x, x)/2) / (t + 1).

    Where the kernel has finite rank the distance falls like 1/t, for random points like 1/√t. For optimal weights, and
    a proof of them, take :class:`mercer.QuadratureSparsifier`.

    Parameters
    ----------
    measure : MeanEmbedding or array of shape (n, d)
        What the points stand for; a sample is embedded with ``kernel``. Its weights are divided by their sum, which
        must be positive.
    n_points : int
        t.
    candidates : array of shape (m, d), optional
        Where points may lie; the points of the sample if left out. A density has none: give it some, such as
        ``model.sample(5000)``.
    kernel : Kernel, optional
        Of a sample; the Gaussian with the median bandwidth if left out.
    distinct : bool, default=False
        Whether no candidate may be chosen twice.
    refine : bool, default=False
        Move every point from the best candidate to the nearest local optimum before the next one is chosen: the
        super-samples need not be points of the sample. For ``Gaussian`` with one bandwidth.

    Returns
    -------
    Herding
        The points, their row numbers, and the distance after each of them.

    Notes
    -----
    Cost: m n kernel evaluations for w, n²/2 for its norm and m for each point; refining costs n for each of some dozen
    steps. Memory: linear in n + m. The result does not depend on chance: of equal candidates the first is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import kernel_herding
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> chosen = kernel_herding(X, 20)
    >>> chosen.points.shape, bool(chosen.distances[-1] < 0.5 / np.sqrt(20))
    ((20, 2), True)
    """
    target = _of_mass_one(measure, kernel)
    count = whole_number(n_points, "n_points", 1)
    true_or_false(distinct, "distinct")
    true_or_false(refine, "refine")
    places = _checked_candidates(target, candidates)
    if distinct and refine:
        raise ValueError("refine=True moves points off the candidates, so that distinct=True says nothing: leave one.")
    if distinct and count > places.shape[0]:
        raise ValueError(f"There are {places.shape[0]} candidates, fewer than the {count} distinct points asked for.")
    if refine and not (isinstance(target.kernel, Gaussian) and np.ndim(target.kernel.sigma) == 0):
        raise ValueError(f"refine=True needs Gaussian() with one bandwidth, not {target.kernel!r}: leave it out.")
    return _Herd(target, places, refine=refine, distinct=distinct).choose(count)


def _of_mass_one(measure: Any, kernel: Any) -> MeanEmbedding:
    """The embedding of the measure divided by its mass."""
    if not isinstance(measure, MeanEmbedding):
        require_points(kernel, "Herding evaluates the kernel between points")
        measure = MeanEmbedding(kernel, measure)
    elif kernel is not None:
        raise ValueError("kernel belongs to a sample; an embedding has its own: leave it out.")
    masses = [float(part.weights.sum()) for part in measure.parts]  # a law of any variance has mass one
    total = sum(masses)
    if not total > 0:
        raise ValueError(f"The measure has the mass {total:.3g}: points of positive weight cannot stand for it.")
    return measure / total


def _checked_candidates(target: MeanEmbedding, candidates: Any) -> Array:
    if candidates is not None:
        table = target._table
        points = target._at_home(as_points(candidates if table is None else table.coded(candidates), "candidates"))
        if points.shape[1] != target.n_features:
            raise ValueError(
                f"candidates has {points.shape[1]} features and the measure {target.n_features}: they must agree."
            )
        if not points.shape[0]:
            raise ValueError("candidates has no rows: give at least one.")
        return cast(points, target.parts[0].means.dtype)
    if any(part.variance for part in target.parts) or len(target.parts) > 1:
        raise ValueError(
            "The measure is a density, which has no points to choose from: give candidates, such as model.sample(5000)."
        )
    points = target.parts[0].means
    if is_source(points):
        raise ValueError(f"{points.name} is read a block at a time: give candidates, such as rows[:10_000].")
    return points


class _Herd:
    """The points chosen so far, and at every candidate w(x) and Σ k(x, x_s)."""

    def __init__(self, target: MeanEmbedding, places: Array, *, refine: bool, distinct: bool) -> None:
        self.table = target._table
        self.target = MeanEmbedding._made(target.kernel, target.parts)  # of numbers, as the candidates are
        self.places, self.refine, self.distinct = places, refine, distinct
        self.attraction = as_double(target(places))
        self.repulsion = namespace(places).zeros_like(self.attraction)
        self.own = as_double(target.kernel.diag(places))
        self.points: list[Array] = []
        self.indices: list[int] = []

    def choose(self, count: int) -> Herding:
        """Choose so many points."""
        squares, inner, energy = np.empty(count), 0.0, 0.0
        length = self.target.norm_squared
        for t in range(count):
            value, crowd, own = self._add_next(t)
            inner += value
            energy += 2 * crowd + own
            squares[t] = length - 2 * inner / (t + 1) + energy / (t + 1) ** 2
        points, indices = self._chosen()
        distances = np.sqrt(np.maximum(squares, 0.0))
        weights = like(np.full(count, 1.0 / count), points)
        embedding = MeanEmbedding._made(self.target.kernel, [GaussianMixture(weights, points, 0.0)], self.table)
        return Herding(points, None if self.refine else indices, like(distances, points), embedding)

    def _chosen(self) -> tuple[Array, Array]:
        indices = like(np.asarray(self.indices), self.places)
        if not self.refine:
            return taken(self.places, indices), indices
        return namespace(self.places).concat(self.points), indices

    def _add_next(self, t: int) -> _Values:
        """Choose a point; return w, Σ k(·, x_s) over the earlier ones and k(x, x) there."""
        gain = self.attraction - (self.repulsion + self.own / 2) / (t + 1)
        if self.distinct and self.indices:
            gain[like(np.asarray(self.indices), self.places)] = -np.inf
        best = int(namespace(gain).argmax(gain))
        self.indices.append(best)
        point = self.places[best : best + 1, :]
        found = float(self.attraction[best]), float(self.repulsion[best]), float(self.own[best])
        if self.refine:
            point, found = self._moved(point, found, t)
            self.points.append(point)
        self.repulsion += as_double(GramOperator(self.target.kernel, self.places, point).to_dense())[:, 0]
        return found

    def _moved(
        self, point: Array, start: tuple[float, float, float], t: int
    ) -> tuple[Array, tuple[float, float, float]]:
        """The point at the top of the slope on which it lies; where it is if there is none."""
        slope = _Slope(self.target, self.points, t + 1)
        width = float(self.target.kernel.sigma)  # type: ignore[attr-defined]
        origin = to_numpy(as_double(point))[0]
        result = minimize(
            lambda u: slope(origin + width * u, width), np.zeros(origin.size), jac=True, method="L-BFGS-B"
        )
        place = cast(like((origin + width * result.x)[None, :], point), point.dtype)
        pull, push = slope.values(place)
        if pull - push / (t + 1) < start[0] - start[1] / (t + 1):
            return point, start
        return place, (pull, push, 1.0)


class _Slope:
    """w(x) - Σ k(x, x_s)/t and its gradient, for the Gaussian kernel."""

    def __init__(self, target: MeanEmbedding, chosen: list[Array], t: int) -> None:
        self.target, self.t = target, t
        self.chosen = namespace(chosen[0]).concat(chosen) if chosen else None

    def values(self, place: Array) -> tuple[float, float]:
        """w and Σ k(·, x_s) at a point."""
        push = 0.0 if self.chosen is None else float(as_double(self.target.kernel(place, self.chosen)).sum())
        return float(self.target(place)[0]), push

    def __call__(self, x: Array, width: float) -> tuple[float, Array]:
        """Minus the value, and minus the gradient in units of the bandwidth, at a NumPy point."""
        value, gradient = 0.0, np.zeros(x.size)
        ones = (
            None
            if self.chosen is None
            else namespace(self.chosen).ones(
                self.chosen.shape[0], dtype=namespace(self.chosen).float64, device=self.chosen.device
            )
        )
        chosen = [] if ones is None else [GaussianMixture(-ones / self.t, self.chosen, 0.0)]
        for part in (*self.target.parts, *chosen):
            kernel, factor = self.target._widened(part.variance)
            xp = namespace(part.means)
            moments = xp.concat([part.weights[:, None], part.weights[:, None] * as_double(part.means)], axis=1)
            point = like(x[None, :], part.means, dtype=part.means.dtype)
            sums = factor * to_numpy(as_double(GramOperator(kernel, point, part.means) @ moments))[0]
            value += sums[0]
            sigma = float(kernel.sigma)  # type: ignore[attr-defined]
            gradient += 2 * (width / sigma) * ((sums[1:] - sums[0] * x) / sigma)  # σ² may overflow
        return -value, -gradient
