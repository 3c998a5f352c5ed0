"""The saddle point of a game on candidates by a primal-dual interior-point method.

With the adversary's maximum replaced by its dual the game is the convex programme

    min  Σ_j μ̂_j T_j + ε‖g‖ + λ‖β‖²   over   ℓ_p(f_j, y_j) ≤ T_j  for every candidate j and piece p of the loss

where the levels T_j = t + g_j are those of a constant and a function of pairs; without an adversary they are free. The
multipliers z of a candidate's constraints are the adversary's weight of it, and the mean of the slopes of its pieces,
weighed by them, is the slope of the tangent that bounds its loss from below. A step is Newton's for

    ∇(objective) + Σ z ∇(ℓ_p - T_j) = 0,      z (T_j - ℓ_p) = 1/w

with a weight w that grows as the products shrink (Boyd and Vandenberghe 2004, section 11.7). That takes half the steps
of following the central path, and fails where products shrink faster than the gradient, as with λ near 1e-7: then
:mod:`mercer.solvers.game.candidate_barrier` goes on. The norm is smoothed as
the least of (‖g‖²/v + v)/2 - log(v)/(εw) over v > 0, which is done in closed form.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal, norm
from mercer.backends.rounding import TINY
from mercer.problems.candidate_game import CandidateGame, Play
from mercer.solvers.game.candidate_plays import BestPlay, first_level, newton_step, weighted_gram
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

_GROWTH = 10.0  # of the weight, beside the products of multipliers and slacks
_NEAREST = 0.01  # part of a slack or a multiplier that a step leaves at least
_SHORTER = 0.7
_SHORT = 0.2  # a part of a step below which the next one leaves the weight
_ENOUGH = 0.01  # part of the residual that a full step must take away
_SHORTEST = 1e-8
_STUCK = 25  # steps that do not narrow the gap by a tenth


class _Here(NamedTuple):
    """What the constraints are at a point: arrays of shape (pieces, N)."""

    slack: Array  # T_j - ℓ_p
    slopes: Array
    curvatures: Array


@final
class CandidateInteriorPoint(Method[CandidateGame, Play]):
    """Newton steps for learner and adversary at once; every line of the history is one.

    The play at hand is the learner with the least upper bound and the admissible adversary with the largest lower one,
    which may belong to different steps. It starts where it knows best, whatever it is given.

    Notes
    -----
    Some twenty steps for a gap of 1e-6. Cost of a step: N (l + q)² + (l + q)³/3 operations. Memory: (l + q)²
    numbers.
    """

    name = phase = "interior point"
    handles = frozenset({"candidates"})

    def start(self, problem: CandidateGame, point: Any) -> Report[Play]:
        self._problem = problem
        self._size = l = problem.functions.shape[1]
        self._levels, self._cost = self._level_map(problem)
        top = first_level(problem)
        self._point = np.zeros(self._cost.shape[0])
        self._point[-1 if problem.has_adversary else slice(l, None)] = top
        self._here = self._at(self._point)
        self._multipliers = top / self._here.slack / self._here.slack.size
        self._best = BestPlay(problem)
        self._narrowest, self._idle, self._length = self._best.upper - self._best.lower, 0, 1.0
        return self._best.report(0)

    def step(self, problem: CandidateGame, most: int) -> Report[Play]:
        growth = _GROWTH if self._length > _SHORT else 1.0  # a short step is followed by one that centres
        self._weight = growth * self._here.slack.size / float(np.sum(self._here.slack * self._multipliers))
        step = self._newton_step()
        if step is None or not self._walked(*step):
            return self._best.report(0, Status.STALLED)
        self._bound()
        return self._best.report(1, Status.STALLED if self._idle == _STUCK else None)

    def _level_map(self, problem: CandidateGame) -> tuple[Array, Array]:
        """The levels T as a matrix of their variables, and the linear cost of all variables."""
        N, l = problem.functions.shape
        levels = np.column_stack([problem.price_functions, np.ones(N)]) if problem.has_adversary else np.eye(N)
        return levels, np.concatenate([np.zeros(l), problem.shares @ levels])

    def _values(self, x: Array) -> tuple[Array, Array]:
        """f and T at the candidates."""
        return self._problem.functions @ x[: self._size], self._levels @ x[self._size :]

    def _prices(self, x: Array) -> Array:
        return x[self._size : -1] if self._problem.has_adversary else np.zeros(self._best.play.prices.shape)

    def _at(self, x: Array) -> _Here:
        f, T = self._values(x)
        values, slopes, curvatures = self._problem.loss.pieces(f, self._problem.targets)
        return _Here(T - values, slopes, curvatures)

    def _width(self, prices: Array) -> float:
        """The v at which ε (‖g‖²/v + v)/2 - log(v)/w is least."""
        return self._least_width + float(np.hypot(self._least_width, norm(prices)))

    @property
    def _least_width(self) -> float:
        return max(1 / (self._weight * self._problem.radius), TINY)

    def _gradient(self, x: Array, here: _Here, multipliers: Array) -> Array:
        """That of the objective, and of the constraints by their multipliers."""
        l, problem = self._size, self._problem
        gradient = self._cost.copy()
        gradient[:l] += 2 * problem.regularization * x[:l]
        gradient[:l] += problem.functions.T @ np.sum(here.slopes * multipliers, axis=0)
        gradient[l:] -= self._levels.T @ np.sum(multipliers, axis=0)
        if problem.has_adversary:
            prices = self._prices(x)
            gradient[l:-1] += problem.radius / self._width(prices) * prices
        return gradient

    def _hessian(self) -> Array:
        problem, l, (slack, slopes, curvatures) = self._problem, self._size, self._here
        ratio = self._multipliers / slack
        across = np.sum(slopes * ratio, axis=0)
        own = np.sum(slopes**2 * ratio + curvatures * self._multipliers, axis=0)
        hessian = np.empty((self._cost.size, self._cost.size))
        hessian[:l, :l] = weighted_gram(problem.functions, own)
        hessian[:l, l:] = -(problem.functions.T * across) @ self._levels
        hessian[l:, :l] = hessian[:l, l:].T
        hessian[l:, l:] = weighted_gram(self._levels, np.sum(ratio, axis=0))
        add_to_diagonal(hessian[:l, :l], 2 * problem.regularization)
        if problem.has_adversary:
            prices = self._prices(self._point)
            v, block = self._width(prices), hessian[l:-1, l:-1]
            root, share = v - self._least_width, prices / v  # apart, so that no product of small numbers vanishes
            block -= problem.radius / max(root, TINY) * share[:, None] * share
            add_to_diagonal(block, problem.radius / v)
        return hessian

    def _newton_step(self) -> tuple[Array, Array] | None:
        """The changes of the point and of the multipliers; None where rounding hides the curvature."""
        slack, slopes, _ = self._here
        central = 1 / (self._weight * slack)
        gradient, matrix = self._gradient(self._point, self._here, central), self._hessian()
        step = newton_step(matrix, gradient)
        if step is None:
            return None
        f, T = self._values(step)
        return step, central - self._multipliers - self._multipliers / slack * (T - slopes * f)

    def _residual(self, x: Array, here: _Here, multipliers: Array) -> float:
        gradient, products = self._gradient(x, here, multipliers), here.slack * multipliers - 1 / self._weight
        return float(np.sqrt(gradient @ gradient + np.sum(products**2)))

    def _walked(self, step: Array, change: Array) -> bool:
        """Move along a step as far as slacks and multipliers stay positive and the residual falls; whether it does."""
        falls = change < 0
        most = float(np.min(-self._multipliers[falls] / change[falls], initial=np.inf))
        length, before = min(1.0, (1 - _NEAREST) * most), self._residual(self._point, self._here, self._multipliers)
        while length > _SHORTEST:
            x, multipliers = self._point + length * step, self._multipliers + length * change
            here = self._at(x)
            inside = bool(np.all(here.slack > _NEAREST * self._here.slack))
            if inside and self._residual(x, here, multipliers) <= (1 - _ENOUGH * length) * before:
                self._point, self._here, self._multipliers, self._length = x, here, multipliers, length
                return True
            length *= _SHORTER
        return False

    def _bound(self) -> None:
        """Bounds from this point; the best ones are kept."""
        x, weights = self._point, self._multipliers.sum(axis=0)
        slopes = np.sum(self._multipliers * self._here.slopes, axis=0) / weights
        self._best.offer(x[: self._size], self._prices(x), weights, slopes)
        self._idle += 1
        gap = self._best.upper - self._best.lower
        if gap < 0.9 * self._narrowest:
            self._narrowest, self._idle = gap, 0
