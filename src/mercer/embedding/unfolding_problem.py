"""From points, or a matrix of distances, to the programme of an unfolding, and from its solution back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, distinct_rows
from mercer.backends.rounding import EPS, UNIT, gamma
from mercer.certificates.unfolding import UnfoldingCertificate
from mercer.embedding.local_extension import LocalExtension
from mercer.embedding.spread_landmarks import spread_landmarks
from mercer.embedding.unfolding_graph import Groups, PairGraph, given_pairs, neighbour_pairs, refuse_long_pairs
from mercer.problems.unfolding import Unfolding
from mercer.support import Support, choose_support

_PLAIN = 100  # powers of two between which lengths are taken as they are
_MOST_POWERS = 940  # of two, of a weight times a squared length: 80 less than double precision has
_UNEVEN = 1e8  # between squared distances of neighbours, beyond which digits run out


@final
@dataclass(frozen=True, eq=False)
class PosedUnfolding:
    """The programme in units that leave room, on distinct points, and how it belongs to the rows of X.

    Attributes
    ----------
    problem : Unfolding
        Squared lengths are in units of unit², masses in those of the support.
    support : Support
        The rows that the programme is posed on.
    groups : Groups
        Which of these are equal.
    points : array of shape (m, d) or None
        The distinct points; None for a matrix of distances.
    unit : float
        A power of two.
    """

    problem: Unfolding
    support: Support
    groups: Groups
    points: Array | None
    unit: float

    @classmethod
    def of(cls, model: Any, X: Any, weights: Array | None) -> PosedUnfolding:
        """The programme of a model's parameters."""
        support = _support(model, X, weights)
        return cls.on(model, X, support)

    @classmethod
    def on(cls, model: Any, X: Any, support: Support) -> PosedUnfolding:
        """The programme on rows that are chosen."""
        rows = np.arange(X.shape[0]) if support.indices is None else support.indices
        points, unit = None, 1.0
        if model.metric == "precomputed":
            graph, groups = given_pairs(X, int(model.n_neighbors))
            unit = _unit(np.sqrt(graph.squares))
            graph = graph._replace(squares=graph.squares / unit / unit)
            if model.distances == "kept":
                refuse_long_pairs(graph, rows[groups.first], float(model.distance_tol), unit)
        else:
            chosen = X if support.indices is None else X[support.indices]
            groups = Groups(*distinct_rows(chosen))
            points = chosen[groups.first]
            _refuse_one_point(points)
            unit = _unit(points - points[0])
            scaled, named = (points - points[0]) / unit, rows[groups.first]
            graph = neighbour_pairs(scaled, named, int(model.n_neighbors), connect=bool(model.connect))
            graph = _apart(graph, points / unit)
        _refuse_extreme(unit, support.unit)
        return cls(_programme(model, graph, *_masses(support, groups)), support, groups, points, unit)

    @property
    def place(self) -> Array:
        """Which distinct point every row of the support is."""
        return self.groups.place

    @property
    def rows(self) -> Array:
        """The row of X that every distinct point is first."""
        first = self.groups.first
        return first if self.support.indices is None else self.support.indices[first]

    @property
    def named_pairs(self) -> Array:
        """The pairs as rows of X."""
        return self.rows[self.problem.pairs]

    @property
    def masses_unit(self) -> float:
        """What one unit of mass in the programme is."""
        return self.support.unit**2

    @property
    def _variance_unit(self) -> float:
        """What one unit of a mass times a squared length is; of the two, either may leave double precision."""
        return (self.unit * self.support.unit) ** 2

    def in_user_weights(self, multipliers: Array) -> Array:
        """Multipliers, which are masses, in the unit of the weights."""
        with np.errstate(over="ignore"):
            found = self.masses_unit * multipliers
        if not np.isfinite(found).all():
            pair = self.named_pairs[int(np.argmax(np.abs(multipliers)))]
            raise ValueError(
                f"The multiplier of rows {pair[0]} and {pair[1]}, which goes as weights do, leaves double precision: "
                "divide sample_weight by a constant."
            )
        return np.asarray(found)

    def uneven_pairs(self) -> str:
        """A sentence where neighbours are so near, beside others, that inner products do not tell them apart."""
        squares, pairs = self.problem.upper, self.named_pairs
        near, far = int(np.argmin(squares)), int(np.argmax(squares))
        if squares[far] <= _UNEVEN * squares[near]:
            return ""
        ratio = math.sqrt(squares[far] / squares[near])
        return (
            f"Rows {pairs[near, 0]} and {pairs[near, 1]} are neighbours {ratio:.0e} times as near as rows "
            f"{pairs[far, 0]} and {pairs[far, 1]}, which double precision has no room for: make near rows equal, or "
            "leave outliers out."
        )

    def in_units(self, certificate: UnfoldingCertificate) -> UnfoldingCertificate:
        """The certificate in the units of X and of the weights."""
        return certificate.in_units(self._variance_unit)

    def described(self, coordinates: Array, tol: float) -> dict[str, Any]:
        """What a model says of its coordinates, which lie along their principal axes."""
        masses = self.problem.masses
        points = coordinates[self.groups.first] / self.unit
        centred = points - masses @ points / masses.sum()
        sums = masses @ centred**2
        return {
            "eigenvalues_": self._variance_unit * sums,
            "explained_variance_ratio_": sums / sums.sum(),
            "rank_": min(int((np.cumsum(sums) < (1 - tol) * sums.sum()).sum()) + 1, sums.size),
        }

    def extension(self, coordinates: Array, n_neighbors: int) -> LocalExtension | None:
        """The map of new points, None where there are no points."""
        if self.points is None:
            return None
        m = self.points.shape[0]
        return LocalExtension(self.points, coordinates[self.groups.first], min(n_neighbors, m))


def _support(model: Any, X: Any, weights: Array | None) -> Support:
    """The rows that carry the programme; so many of them, spread evenly, where an integer was given."""
    wanted = model.landmarks
    if isinstance(wanted, Integral) and not isinstance(wanted, bool):
        if wanted < 2:
            raise ValueError(f"landmarks={wanted} must be at least 2, or rows of X.")
        given = np.ones(X.shape[0]) if weights is None else weights
        return choose_support(spread_landmarks(X, given, int(wanted)), None, X)
    support = choose_support(wanted, weights, X)
    if model.metric == "precomputed" and support.indices is not None:
        raise ValueError("metric='precomputed' knows no points, and rows of weight zero have no place: leave them out.")
    return support


def _refuse_one_point(points: Array) -> None:
    if points.shape[0] < 2:
        raise ValueError("All points are equal: there is nothing to unfold.")


def _unit(lengths: Array) -> float:
    """One; where squares of some lengths would leave double precision, a power of two near the largest."""
    power = math.frexp(float(np.abs(lengths).max(initial=0.0)) or 1.0)[1]
    return 1.0 if abs(power) < _PLAIN else math.ldexp(1.0, power)


def _refuse_extreme(length: float, root_weight: float) -> None:
    """Refuse units in which the variances of the points, weights times squared lengths, leave double precision."""
    powers = 2 * (math.frexp(length)[1] + math.frexp(root_weight)[1])
    if abs(powers) > _MOST_POWERS:
        raise ValueError(
            f"The points lie some {length:.0e} apart, so that their variance is no number of double precision: "
            + ("divide" if powers > 0 else "multiply")
            + " X, or sample_weight, by a constant."
        )


def _apart(graph: PairGraph, points: Array) -> PairGraph:
    """The squared distances of the points themselves: those that were moved to the origin first are rounded."""
    i, j = graph.pairs.T
    return graph._replace(squares=((points[i] - points[j]) ** 2).sum(axis=1))


def _masses(support: Support, groups: Groups) -> tuple[Array, float]:
    """The weight of each distinct point, and by what part of itself the sum may be wrong."""
    masses = np.bincount(groups.place, support.scaled).astype(np.float64)
    most = int(np.bincount(groups.place).max())
    return masses, 0.0 if support.weights is None or most == 1 else gamma(most, UNIT)


def _programme(model: Any, graph: PairGraph, masses: Array, mass_rounding: float) -> Unfolding:
    squares, part = graph.squares, float(model.distance_tol)
    if model.distances == "kept":
        lower, upper = squares * (1 - part) ** 2, squares * (1 + part) ** 2
    else:
        lower, upper = np.zeros_like(squares), squares.copy()
    rounding = graph.rounding + 8 * EPS
    return Unfolding(graph.pairs, lower, upper, masses, rounding=rounding, mass_rounding=mass_rounding)
