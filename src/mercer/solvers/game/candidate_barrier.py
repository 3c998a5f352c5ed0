"""The saddle point of a game on candidates by a barrier method with Newton steps.

With the adversary's maximum replaced by its dual the game is the convex programme

    min  Σ_j μ̂_j T_j + ε‖g‖ + λ‖β‖²   over   ℓ_p(f_j, y_j) ≤ T_j  for every candidate j and piece p of the loss

where the levels T_j = t + g_j are those of a constant and a function of pairs; without an adversary they are free. The
norm is taken as the least of (‖g‖²/v + v)/2 over v > 0: a second-order cone in its place would keep long steps from
centring, and the quotient goes with the barrier -log v as a quadratic does. The multipliers of a candidate's
constraints are the adversary's weight of it, and the mean of the slopes of its pieces, weighed by them, is the slope of
the tangent that bounds its loss from below. For a barrier weight w the minimiser of

    w (objective) - Σ log(T_j - ℓ_p) - log v

is followed while w grows. Multipliers are taken with the Newton step's correction, which sum to one before the step has
converged.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal
from mercer.problems.candidate_game import CandidateGame, Play
from mercer.solvers.game.candidate_plays import BestPlay, first_level, newton_step, weighted_gram
from mercer.solvers.game.central_path import CentralPath
from mercer.solvers.run import Report
from mercer.solvers.solution import Status

_PROMISED = 3.0  # times the gap of a central point


class _Parts(NamedTuple):
    """A point x = (β, levels, v), and what its Newton steps are made of for every barrier weight."""

    slack: Array  # T_j - ℓ_p, of shape (pieces, N)
    slopes: Array  # of the pieces
    curvatures: Array
    gradient: Array  # of the barrier
    hessian: Array


@final
class CandidateBarrier(CentralPath[CandidateGame, Play]):
    """The barrier method of the programme above.

    The play at hand is the learner with the least upper bound and the admissible adversary with the largest lower one,
    which may belong to different points of the path. It starts where it knows best, whatever it is given.

    Notes
    -----
    About fifty steps for a gap of 1e-6. Cost of a step: N (l + q)² + (l + q)³/3 operations. Memory: (l + q)² numbers.
    """

    handles = frozenset({"candidates"})
    growth = 10.0
    patience = 40
    stuck_for = 2
    _point: Array
    _parts: _Parts

    def start(self, problem: CandidateGame, point: Any) -> Report[Play]:
        self._problem = problem
        N, l = problem.functions.shape
        self._size = l
        self._levels, self._cost = self._level_map(problem)
        top = first_level(problem)
        pieces = problem.loss.pieces(np.zeros(N), problem.targets).values.shape[0]
        self._parameter = pieces * N + 1
        self._weight = self._parameter / top
        self._point = self._first_point(top)
        self._best = BestPlay(problem)
        return self._begin()

    def _report(self, steps: int, status: Status | None = None) -> Report[Play]:
        return self._best.report(steps, status)

    def _moved(self, step: Array, length: float) -> Array:
        return self._point + length * step

    def _level_map(self, problem: CandidateGame) -> tuple[Array, Array]:
        """The levels T as a matrix of their variables, and the linear cost of all variables."""
        N, l = problem.functions.shape
        if not problem.has_adversary:
            return np.eye(N), np.concatenate([np.zeros(l), problem.shares])
        levels = np.column_stack([problem.price_functions, np.ones(N)])
        return levels, np.concatenate([np.zeros(l), problem.shares @ levels, [problem.radius / 2]])

    def _first_point(self, top: float) -> Array:
        """f = 0 and levels above all losses; v is where the barrier is least without prices."""
        x = np.zeros(self._cost.shape[0])
        if self._problem.has_adversary:
            x[-2], x[-1] = top, 2 / (self._weight * self._problem.radius)
        else:
            x[self._size :] = top
        return x

    def _values(self, x: Array) -> tuple[Array, Array]:
        """f and T at the candidates."""
        l, q = self._size, self._levels.shape[1]
        return self._problem.functions @ x[:l], self._levels @ x[l : l + q]

    def _prices(self, x: Array) -> Array:
        return x[self._size : -2] if self._problem.has_adversary else np.zeros(self._best.play.prices.shape)

    def _derivatives(self) -> _Parts:
        problem, x, l, q = self._problem, self._point, self._size, self._levels.shape[1]
        f, T = self._values(x)
        values, slopes, curvatures = problem.loss.pieces(f, problem.targets)
        inverse = 1 / (T - values)
        gradient, hessian = np.zeros_like(x), np.zeros((x.size, x.size))
        gradient[:l] = problem.functions.T @ np.sum(slopes * inverse, axis=0)
        gradient[l : l + q] = -self._levels.T @ np.sum(inverse, axis=0)
        across = np.sum(slopes * inverse**2, axis=0)
        own = np.sum(slopes**2 * inverse**2 + curvatures * inverse, axis=0)
        hessian[:l, :l] = weighted_gram(problem.functions, own)
        hessian[:l, l : l + q] = -(problem.functions.T * across) @ self._levels
        hessian[l : l + q, :l] = hessian[:l, l : l + q].T
        hessian[l : l + q, l : l + q] = weighted_gram(self._levels, np.sum(inverse**2, axis=0))
        if problem.has_adversary:
            gradient[-1], hessian[-1, -1] = -1 / x[-1], 1 / x[-1] ** 2
        return _Parts(T - values, slopes, curvatures, gradient, hessian)

    def _add_penalties(self, gradient: Array, hessian: Array) -> None:
        """Add what λ‖β‖² and ε‖g‖²/(2v) give, times the barrier weight."""
        x, l, w = self._point, self._size, self._weight
        gradient[:l] += 2 * w * self._problem.regularization * x[:l]
        add_to_diagonal(hessian[:l, :l], 2 * w * self._problem.regularization)
        if self._problem.has_adversary:
            tilt, strength = self._prices(x) / x[-1], w * self._problem.radius
            gradient[l:-2] += strength * tilt
            gradient[-1] -= strength / 2 * float(tilt @ tilt)
            add_to_diagonal(hessian[l:-2, l:-2], strength / x[-1])
            hessian[l:-2, -1] -= strength / x[-1] * tilt
            hessian[-1, l:-2] -= strength / x[-1] * tilt
            hessian[-1, -1] += strength / x[-1] * float(tilt @ tilt)

    def _newton_step(self) -> tuple[Array, float] | None:
        """The Newton step for the weight at hand, and the root of the decrease that it predicts; None for rounding."""
        gradient, matrix = self._parts.gradient + self._weight * self._cost, self._parts.hessian.copy()
        self._add_penalties(gradient, matrix)
        step = newton_step(matrix, gradient)
        return None if step is None else (step, float(np.sqrt(max(-float(gradient @ step), 0.0))))

    def _terms(self, x: Array) -> tuple[float, float]:
        """The objective and the barrier; infinite outside."""
        problem, beta = self._problem, x[: self._size]
        f, T = self._values(x)
        slack = T - problem.loss.pieces(f, problem.targets).values
        if not float(slack.min()) > 0:
            return np.inf, np.inf
        value, barrier = (
            float(self._cost @ x) + problem.regularization * float(beta @ beta),
            -float(np.log(slack).sum()),
        )
        if problem.has_adversary:
            if x[-1] <= 0:
                return np.inf, np.inf
            prices = self._prices(x)
            value += problem.radius * float(prices @ prices) / (2 * x[-1])
            barrier -= float(np.log(x[-1]))
        return value, barrier

    def _bound(self, step: Array) -> None:
        """Bounds from this point and its next step; the best ones are kept."""
        here, x = self._parts, self._point
        moved, raised = self._values(step)
        change = (raised - here.slopes * moved) / here.slack
        multipliers = np.maximum((1 - change) / here.slack, 0.0) / self._weight
        weights = multipliers.sum(axis=0)
        tilted = np.sum(multipliers * (here.slopes + here.curvatures * moved), axis=0)
        slopes = np.where(weights > 0, tilted / np.where(weights > 0, weights, 1.0), here.slopes.mean(axis=0))
        gap = self._best.offer(x[: self._size], self._prices(x), weights, slopes)
        self._narrowed(gap, _PROMISED * self._parameter / self._weight)
