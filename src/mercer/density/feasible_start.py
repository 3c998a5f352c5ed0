"""A density that keeps bounds on its functionals strictly, or the proof that there is none.

With e = ±(u_j - middle)/half for the ends of an interval, and u_j less its bound in units of its range plus one where
it has one bound alone, all e must be below one. The largest is smoothed, max e ≤ τ log Σ exp(e/τ) ≤ max e + τ log n.
The barrier minimises that, for falling τ, until a density inside is found; a bound above one says that there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from mercer.backends.arrays import Array
from mercer.problems.convex_squares import ConvexSquares, PricedFactor
from mercer.problems.observed_function import ObservedFunction
from mercer.solvers.run import Goal, solve
from mercer.solvers.spectrahedron.barrier import Barrier

_SHARPNESS = (0.3, 0.03, 0.003)
_INSIDE = 0.999  # of the way from the middle to a bound
_TOLERANCE = 1e-3
_ROUNDING = 1e-6  # more than double precision loses in the bound


class _Excess(NamedTuple):
    """e = slopes ∘ u[entries] - offsets, which must be below one."""

    entries: Array
    slopes: Array
    offsets: Array

    def of(self, u: Array) -> Array:
        return self.slopes * u[self.entries] - self.offsets


def inside_bounds(problem: ConvexSquares, max_iter: int) -> PricedFactor | None:
    """A first point strictly within the bounds; None where the middle of the spectrahedron is one.

    Raises
    ------
    ValueError
        If there is no such density.
    """
    s, none = problem.dimension, np.zeros(problem.count)
    point = PricedFactor(np.eye(s) / np.sqrt(s), none, none)
    excess = _excess(problem)
    if problem.n_bounds == 0 or float(np.max(excess.of(problem.functional_values(point.factor)))) < _INSIDE:
        return None
    least, reached = -np.inf, _Reached(excess)
    for sharpness in _SHARPNESS:
        softened = _softened(problem, excess, sharpness)
        goal = Goal(_TOLERANCE, absolute=_TOLERANCE, max_iter=max_iter)
        solution = solve(softened, Barrier(reached), point, goal=goal)
        point = solution.point
        if reached(problem.functional_values(point.factor)):
            return PricedFactor(point.factor, none, none)
        proved = max(line.objective - (line.gap or 0.0) for line in solution.history)
        least = max(least, proved - sharpness * float(np.log(excess.entries.size)))
    if least > 1 + _ROUNDING:
        raise ValueError(
            f"No density on this support keeps the bounds: each is beyond one of them by {least - 1:.2g} of half its "
            "interval at least. Widen the bounds, or give more support points or a narrower kernel."
        )
    raise ValueError(
        "No density was found that keeps all bounds with room to spare: widen them, or give more support points."
    )


class _Reached:
    """Whether u lies strictly inside."""

    def __init__(self, excess: _Excess) -> None:
        self._excess = excess

    def __call__(self, u: Array) -> bool:
        return float(np.max(self._excess.of(u))) < _INSIDE


def _excess(problem: ConvexSquares) -> _Excess:
    """Two lines for every interval, one for every half line, whose unit is the functional's range."""
    lower, upper = problem.lower, problem.upper
    both = np.isfinite(lower) & np.isfinite(upper)
    half = np.where(
        both, (np.where(both, upper, 1.0) - np.where(both, lower, 0.0)) / 2, np.maximum(problem.ranges, 1e-300)
    )
    above, below = np.flatnonzero(np.isfinite(upper)), np.flatnonzero(np.isfinite(lower))
    entries = np.concatenate([above, below])
    slopes = np.concatenate([1.0 / half[above], -1.0 / half[below]])
    ends = np.concatenate([upper[above] / half[above], -lower[below] / half[below]])
    return _Excess(entries, slopes, ends - 1.0)


def _softened(problem: ConvexSquares, excess: _Excess, sharpness: float) -> ConvexSquares:
    """The programme whose function is the smoothed largest excess, without bounds and penalty."""
    q = problem.count
    spread = np.zeros((excess.entries.size, q))
    spread[np.arange(excess.entries.size), excess.entries] = excess.slopes

    def value(u: Array) -> float:
        return sharpness * float(logsumexp(excess.of(u) / sharpness))

    def gradient(u: Array) -> Array:
        return np.asarray(softmax(excess.of(u) / sharpness) @ spread)

    def hessian(u: Array) -> Array:
        shares = softmax(excess.of(u) / sharpness)
        mean = shares @ spread
        return np.asarray(((spread.T * shares) @ spread - np.outer(mean, mean)) / sharpness)

    function = ObservedFunction(value, gradient, hessian, problem.ranges)
    return problem.with_function(function)
