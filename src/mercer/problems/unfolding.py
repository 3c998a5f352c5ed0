"""Maximum variance unfolding on the pairs of a graph (RKHS (114), whose "all pairs" would leave one feasible point).

    max Σᵢ mᵢ ‖yᵢ - ȳ‖² = ⟨V, B⟩    subject to    loₑ ≤ ‖yᵢ - yⱼ‖² ≤ hiₑ for every pair e = (i, j),    B = YYᵀ ≽ 0,

with V = Diag(m) - mmᵀ/Σm, so that a point of mass two counts as the same point twice. Neither side sees a translation
of all points: B is any matrix of inner products, and the last point may be held at the origin. The dual

    min Σₑ hiₑ wₑ⁺ - loₑ wₑ⁻    subject to    L_w = Σₑ wₑ (eᵢ - eⱼ)(eᵢ - eⱼ)ᵀ ≽ V

asks for springs on the pairs that hold the points against a pull outwards; it is strictly feasible if the graph is
connected, and the programme is unbounded if it is not.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import coo_array, csr_array

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS, TINY
from mercer.problems.problem import Problem

_LIGHT = 1e-6
_ROOM, _TRIES = 2.0, 12


class InfeasibleDistancesError(ValueError):
    """No points have such distances.

    Attributes
    ----------
    pair : int
        The number of a pair that is too long for the others.
    """

    def __init__(self, pair: int) -> None:
        super().__init__(f"No points have such distances: pair {pair} is too long for the others.")
        self.pair = pair


@final
class Unfolding(Problem):
    """The variance of points with masses, and bounds on the squared distances of pairs.

    Parameters
    ----------
    pairs : array of int, of shape (E, 2)
        Two different points each, no pair twice; the graph they make is connected.
    lower, upper : arrays of shape (E,)
        0 ≤ lo < hi, bounds on the squared distances.
    masses : array of shape (n,)
        m > 0.
    rounding : float, default=0
        By what part of themselves the numbers that lo and hi stand for may differ from them.
    mass_rounding : float, default=0
        The same of the masses.
    """

    def __init__(
        self,
        pairs: Array,
        lower: Array,
        upper: Array,
        masses: Array,
        *,
        rounding: float = 0.0,
        mass_rounding: float = 0.0,
    ) -> None:
        self.pairs, self.lower, self.upper, self.masses = pairs, lower, upper, masses
        self.rounding, self.mass_rounding = rounding, mass_rounding
        self.size = int(masses.shape[0])

    @cached_property
    def raised(self) -> Unfolding:
        """The same with no mass below a millionth of the mean of all but the heaviest: light points ask for digits.

        V is the least over c of Σ mᵢ(xᵢ - c)², and so grows with every mass: what bounds the variance of the raised
        masses bounds that of these.
        """
        others = (self.masses.sum() - self.masses.max()) / (self.size - 1)
        masses = np.maximum(self.masses, _LIGHT * others)
        return Unfolding(self.pairs, self.lower, self.upper, masses, rounding=self.rounding)

    @cached_property
    def two_sided(self) -> bool:
        """Whether any pair has a lower bound."""
        return bool(np.any(self.lower > 0))

    @cached_property
    def differences(self) -> Any:
        """The sparse matrix of shape (E, n) that takes points to yᵢ - yⱼ for every pair."""
        count = self.pairs.shape[0]
        rows = np.repeat(np.arange(count), 2)
        signs = np.tile([1.0, -1.0], count)
        return csr_array(coo_array((signs, (rows, self.pairs.ravel())), shape=(count, self.size)))

    def laplacian(self, multipliers: Array) -> Any:
        """L_w, sparse."""
        D = self.differences
        return csr_array(D.T @ D.multiply(multipliers[:, None]))

    @cached_property
    def pull(self) -> Array:
        """V, dense."""
        return np.diag(self.masses) - np.outer(self.masses, self.masses / self.masses.sum())

    def squares(self, points: Array) -> Array:
        """The squared distance of every pair of points Y."""
        return ((points[self.pairs[:, 0]] - points[self.pairs[:, 1]]) ** 2).sum(axis=1)

    def squares_of_gram(self, gram: Array) -> Array:
        """The same from the inner products of all points."""
        (i, j), diagonal = self.pairs.T, gram.diagonal()
        return diagonal[i] + diagonal[j] - 2 * gram[i, j]

    def variance(self, points: Array) -> float:
        """The objective at Y."""
        centred = points - self.masses @ points / self.masses.sum()
        return float(self.masses @ (centred**2).sum(axis=1))

    def dual_value(self, multipliers: Array) -> float:
        """Σ hi w⁺ - lo w⁻."""
        return float(np.maximum(self.upper * multipliers, self.lower * multipliers).sum())

    def principal_points(self, gram: Array) -> Array:
        """Points with these inner products, centred, along their principal axes, that of most variance first."""
        root, total = np.sqrt(self.masses), self.masses.sum()
        centred = gram - self.masses @ gram / total
        centred = centred - (centred @ self.masses)[:, None] / total
        values, vectors = np.linalg.eigh(root[:, None] * (centred + centred.T) / 2 * root)
        return vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0)) / root[:, None]

    def of_fewer_coordinates(self, points: Array, left_out: float) -> Array:
        """The first coordinates of principal points, as large as the upper bounds allow.

        The others together hold no more than the part ``left_out`` of the variance. To leave them out shortens
        distances and breaks no upper bound; the factor by which all points are stretched then is the largest allowed.
        """
        variances = self.masses @ points**2
        kept = int((np.cumsum(variances) < (1 - left_out) * variances.sum()).sum()) + 1
        return self.stretched(points[:, :kept])

    def stretched(self, points: Array) -> Array:
        """The points times the largest factor at which no upper bound is passed, with room for all that rounds."""
        room = self.rounding + _ROOM * (points.shape[1] + 16) * EPS
        for _ in range(_TRIES):
            part = float(np.min(self.upper / np.maximum(self.squares(points), TINY)))
            points = points * (np.sqrt(min(part, 1 / TINY)) * (1 - room))
            if np.all(self.squares(points) <= self.upper * (1 - room)):
                break
            room *= 4  # differences of points far from the origin round by more than their own digits
        return points
