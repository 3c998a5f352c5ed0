"""Expectations over the distributions of an MMD ball, by a primal-dual interior-point method.

    maximise fᵀa   over   a ≥ 0,  Σ aᵢ = 1,  t = ½(ε² - ‖Φᵀ(a - p)‖²) ≥ 0

With slacks s ≥ 0 of a and the price λ ≥ 0 of the ball the conditions are -f + λΦr + y = s, r = Φᵀ(a - p), s∘a = μ,
λt = μ. Newton's method on them, for falling μ: a step's matrix is a diagonal plus one of the rank of Φ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS
from mercer.problems.worst_case import ExpectationInBall, PricedWeights
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

_TO_BOUNDARY = 0.95
_PATIENCE = 8
_FIRST_MASS = 0.5  # of the way to the sphere, that the even distribution is mixed in at the start


class _State(NamedTuple):
    """a and its slacks s, the room t before the sphere and its price λ, and y."""

    a: Array
    s: Array
    t: float
    price: float
    y: float

    def moved(self, step: _State, length: float) -> _State:
        return _State(*(mine + length * ahead for mine, ahead in zip(self, step, strict=True)))

    @property
    def mu(self) -> float:
        """The mean of all products that should vanish."""
        return (float(self.a @ self.s) + self.t * self.price) / (self.a.size + 1)

    def longest(self, step: _State) -> float:
        """The step, at most one, that keeps all that must be positive so."""
        shares = [np.max(-step.a / self.a), np.max(-step.s / self.s), -step.t / self.t, -step.price / self.price]
        return min(1.0, _TO_BOUNDARY / max(float(max(shares)), EPS))


@final
class BallInteriorPoint(Method[ExpectationInBall, PricedWeights]):
    """One predictor and corrector a step; a point has positive weights, and a price.

    Notes
    -----
    A step costs N r² operations, r the columns of the features; fifteen to thirty are usual.
    """

    name = "ball interior point"
    phase = "interior"

    def start(self, problem: ExpectationInBall, point: Any) -> Report[PricedWeights]:
        """Report the sample with a part of the even distribution on all points."""
        even = np.full(problem.size, 1.0 / problem.size)
        away = float(np.linalg.norm(problem.offset(even)))
        a = problem.shares + _FIRST_MASS * min(1.0, problem.radius / max(away, EPS)) * (even - problem.shares)
        r = problem.offset(a)
        spread = max(float(np.ptp(problem.values)), EPS)
        price = spread / problem.radius
        slack = price * (problem.features @ r) - problem.values
        y = 0.1 * spread - float(np.min(slack))
        t = max(0.5 * (problem.radius**2 - float(r @ r)), 1e-3 * problem.radius**2)
        self._now = _State(a, slack + y, t, price, y)
        self._idle, self._least_gap = 0, math.inf
        return self._report(problem)

    def step(self, problem: ExpectationInBall, most: int) -> Report[PricedWeights] | None:
        """Take one step."""
        now, system = self._now, _System(problem, self._now)
        affine = system.step(0.0)
        if affine is None:
            return None
        reached = now.moved(affine, now.longest(affine)).mu
        step = system.step(now.mu * min(max(reached / now.mu, 0.01) ** 2, 0.5))
        if step is None:
            return None
        self._now = now.moved(step, now.longest(step))
        return self._report(problem)

    def _report(self, problem: ExpectationInBall) -> Report[PricedWeights]:
        """The point, brought into the ball, with its price."""
        a = self._now.a / self._now.a.sum()
        size = float(np.linalg.norm(problem.offset(a)))
        if size > problem.radius:
            a = problem.shares + (problem.radius / size) * (a - problem.shares)
        value, offset = problem.objective(a), problem.offset(a)
        prices = (self._now.price, 0.0)
        gaps = [max(problem.bound(offset, price) - value, 0.0) for price in prices]
        best = int(np.argmin(gaps))
        self._idle = 0 if gaps[best] < 0.9 * self._least_gap else self._idle + 1
        self._least_gap = min(gaps[best], self._least_gap)
        status = Status.STALLED if self._idle > _PATIENCE else None
        point = PricedWeights(a, prices[best])
        return Report(point, value, gaps[best], size=problem.size, merit=-gaps[best], status=status)


@final
class _System:
    """The linear system of one step: (Diag(s/a) + λΦΦᵀ + (λ/t) Φrrᵀ Φᵀ) da + dy = …, by least squares of order r."""

    def __init__(self, problem: ExpectationInBall, now: _State) -> None:
        self._now, self._features = now, problem.features
        self._r = r = problem.offset(now.a)
        self._pull = problem.features @ r
        self._dual = -problem.values + now.price * self._pull - now.s + now.y
        self._short = now.t + 0.5 * (float(r @ r) - problem.radius**2)
        self._total = float(now.a.sum()) - 1.0
        self._root = np.sqrt(now.a / now.s)
        outer = problem.features * math.sqrt(now.price)
        wide = np.concatenate([outer, (math.sqrt(now.price / now.t) * self._pull)[:, None]], axis=1)
        tall = np.concatenate([self._root[:, None] * wide, np.eye(wide.shape[1])])
        self._basis = np.linalg.qr(tall)[0] if np.all(np.isfinite(tall)) else None

    def _solve(self, right: Array) -> Array:
        """(D + VVᵀ)⁻¹ b from the residual of min ‖D^{-½}b - D^{-½}Vw‖² + ‖w‖², in which little cancels."""
        Q = self._basis
        assert Q is not None
        rest = np.concatenate([self._root * right, np.zeros(Q.shape[1])])
        for _ in range(2):
            rest = rest - Q @ (Q.T @ rest)
        return np.asarray(self._root * rest[: right.size])

    def step(self, target: float) -> _State | None:
        """The change towards products of this size; None where the numbers end."""
        if self._basis is None:
            return None
        now = self._now
        wanted = (target - now.price * now.t + now.price * self._short) / now.t
        right = -self._dual + target / now.a - now.s - self._pull * wanted
        free, unit = self._solve(right), self._solve(np.ones(now.a.size))
        dy = (float(free.sum()) + self._total) / float(unit.sum())
        da = free - dy * unit
        ds = target / now.a - now.s - now.s / now.a * da
        along = float(self._pull @ da)
        step = _State(da, ds, -self._short - along, wanted + now.price / now.t * along, dy)
        return step if all(np.all(np.isfinite(part)) for part in step) else None
