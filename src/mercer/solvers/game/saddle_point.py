"""The saddle point of a robust regression by a barrier method with Newton steps.

With the adversary's maximum replaced by its dual the game is the convex programme

    min  t + bᵀy + εv + λ‖β‖²   over   S = tI - N(β) + A*y ≽ 0,   s = t - R̂(β) + bᵀy ≥ 0,   ‖y‖ ≤ v

whose multipliers are the adversary: C of the first constraint, a of the second, and their embedding lies in the ball by
the third. N is a convex quadratic of β in the order of matrices, so -log det S is self-concordant (the Schur complement
of a linear matrix inequality). For a barrier weight w the minimiser of

    w (objective) - log det S - log s - log(v² - ‖y‖²)

is followed while w grows; there C = S⁻¹/w and a = 1/(ws) are admissible, and worse by (order + 3)/w at most. The dual
point is taken with the Newton step's correction, which is admissible to first order before the step has converged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import (
    Array,
    add_to_diagonal,
    cholesky,
    cholesky_factor,
    cholesky_solve,
    copied,
    namespace,
    solve_triangular,
)
from mercer.backends.rounding import TINY
from mercer.problems.robust_regression import Adversary, RobustRegression
from mercer.solvers.solution import Status

_GROWTH = 10.0  # of the barrier weight
_CENTRED = 0.5  # Newton decrement below which a point counts as central
_ENOUGH = 0.1  # part of the predicted decrease that a step must achieve
_SHORTEST = 1e-8
_PATIENCE = 30  # Newton steps for one weight
_STUCK = 0.5  # a raised weight that leaves more of the gap than this has met rounding
_NOISE = 1e-12  # of the barrier function, by which rounding may raise it
_JITTER = 1e-13  # of a Hessian scaled to unit diagonal


@dataclass(frozen=True)
class SaddleStep:
    """One line of the history: the bounds on the value after so many Newton steps."""

    number: int
    objective: float
    lower: float
    seconds: float


@dataclass(frozen=True)
class SaddlePoint:
    """The learner with the least bound, the prices that prove it, and the adversary with the best one."""

    beta: Array
    prices: Array
    adversary: Adversary
    status: Status
    history: tuple[SaddleStep, ...]

    @property
    def n_iter(self) -> int:
        """Newton steps taken."""
        return self.history[-1].number if self.history else 0


Certify = Callable[[Array, Array, Adversary], Any]
Callback = Callable[[SaddleStep], Any]


def solve_saddle_point(
    problem: RobustRegression,
    certify: Certify,
    *,
    tol: float,
    max_iter: int = 300,
    callback: Callback | None = None,
) -> SaddlePoint:
    """Follow the central path until the certified relative gap is at most tol.

    Parameters
    ----------
    problem : RobustRegression
        The game.
    certify : callable
        Given β, y and an adversary, returns a certificate with ``lower`` and ``upper``.
    tol : float
        The relative gap to reach.
    max_iter : int, default=300
        Newton steps at most; about forty are needed for 1e-6.
    callback : callable, optional
        Receives the lines of the history; a true value ends the run.

    Notes
    -----
    Cost of a step: (l + q) s³ + (l + q)² s² + l² s² operations for l functions, order s and a projected space of
    dimension q. Memory: (l + q) s² numbers.
    """
    path = _CentralPath(problem, certify, callback)
    status = Status.MAX_ITER
    try:
        for number in range(1, max_iter + 1):
            verdict = path.step(number, tol)
            if verdict is not None:
                status = verdict
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return path.result(status)


class _Point(NamedTuple):
    """β, y, t and v."""

    beta: Array
    y: Array
    t: float
    v: float

    def moved(self, step: Array, length: float) -> _Point:
        l, q = self.beta.shape[0], self.y.shape[0]
        beta, y = self.beta + length * step[:l], self.y + length * step[l : l + q]
        return _Point(beta, y, self.t + length * float(step[-2]), self.v + length * float(step[-1]))


class _Derivatives(NamedTuple):
    """What a point's Newton steps are made of, for every barrier weight."""

    inverse_root: Array  # L⁻¹ of S = L Lᵀ
    changes: Array  # ∂S by every variable but v
    gap: float  # s
    gap_change: Array  # ∂s
    gradient: Array  # of the barrier
    hessian: Array


@final
class _CentralPath:
    """The iterate, its barrier weight, and the best bounds so far."""

    def __init__(self, problem: RobustRegression, certify: Certify, callback: Callback | None) -> None:
        self._problem, self._certify, self._callback = problem, certify, callback
        self._began = time.perf_counter()
        beta, least = problem.best_response(problem.anchor)
        nothing = namespace(beta).zeros_like(problem.goal)
        top = problem.worst_case(beta, nothing)
        t = 1.5 * top if top > 0 else 1.0
        self._weight = (problem.order + 3) / t
        v = 2 / (self._weight * problem.radius)  # where the barrier is least for y = 0
        self._point = _Point(beta, nothing, t, v)
        self._here = self._terms(self._point)
        self._at_weight = self._stuck = 0
        self._upper, self._lower = np.inf, least
        self._learner, self._adversary = (beta, self._point.y), problem.anchor
        self._history: list[SaddleStep] = []

    def step(self, number: int, tol: float) -> Status | None:
        """One Newton step; a central point is certified first, and its weight raised."""
        parts = self._derivatives()
        newton = self._newton(parts)
        if newton is None:
            return self._give_up(number, parts, tol)
        step, decrement = newton
        self._at_weight += 1
        if decrement < _CENTRED or self._at_weight > _PATIENCE:
            verdict = self._certified(number, parts, step, tol)
            if verdict is not None:
                return verdict
            self._weight *= _GROWTH
            self._at_weight = 0
            newton = self._newton(parts)
            if newton is None:
                return Status.STALLED
            step, decrement = newton
        return None if self._walked(step, decrement) else self._give_up(number, parts, tol)

    def _give_up(self, number: int, parts: _Derivatives, tol: float) -> Status:
        """Rounding leaves no direction of descent: what can be proved here is kept."""
        nowhere = namespace(parts.gradient).zeros_like(parts.gradient)
        return self._certified(number, parts, nowhere, tol) or Status.STALLED

    def result(self, status: Status) -> SaddlePoint:
        beta, y = self._learner
        return SaddlePoint(beta, y, self._adversary, status, tuple(self._history))

    def _slack(self, point: _Point, losses: Array) -> tuple[Array, float, float]:
        """S, s and v² - ‖y‖², N(β) given."""
        problem = self._problem
        S = problem.priced(point.y) - losses
        add_to_diagonal(S, point.t)
        gap = point.t - problem.sample_loss(point.beta) + float(problem.goal @ point.y)
        return S, gap, point.v**2 - float(point.y @ point.y)

    def _derivatives(self) -> _Derivatives:
        problem, point = self._problem, self._point
        l, q, order = problem.n_functions, problem.goal.shape[0], problem.order
        xp, options = namespace(point.beta), {"dtype": point.beta.dtype, "device": point.beta.device}
        losses, slopes = problem.loss_derivatives(point.beta)
        S, gap, cone = self._slack(point, losses)
        identity = xp.eye(order, **options)
        root = solve_triangular(cholesky(S), identity)
        changes = xp.concat([-slopes, problem.embeddings, identity[None]])
        scaled = root @ changes @ root.T
        gradient, hessian = xp.zeros(l + q + 2, **options), xp.zeros((l + q + 2, l + q + 2), **options)
        gradient[:-1] = -xp.linalg.trace(scaled)
        flat = xp.reshape(scaled, (l + q + 1, order**2))
        hessian[:-1, :-1] = flat @ flat.T
        hessian[:l, :l] += 2 * problem.loss_curvature(root.T @ root)
        slope = 2 * (problem.sample_curvature @ point.beta - problem.sample_slope)
        gap_change = xp.concat([-slope, problem.goal, xp.asarray([1.0, 0.0], **options)])
        if problem.keeps_sample:
            gradient -= gap_change / gap
            hessian += gap_change[:, None] * gap_change / gap**2
            hessian[:l, :l] += 2 * problem.sample_curvature / gap
        ends = xp.zeros(l, **options), xp.asarray([0.0, 2 * point.v], **options)
        cone_change = xp.concat([ends[0], -2 * point.y, ends[1]])
        gradient -= cone_change / cone
        hessian += cone_change[:, None] * cone_change / cone**2
        add_to_diagonal(hessian[l : l + q, l : l + q], 2 / cone)
        hessian[-1, -1] -= 2 / cone
        return _Derivatives(root, changes, gap, gap_change, gradient, hessian)

    def _newton(self, parts: _Derivatives) -> tuple[Array, float] | None:
        """The Newton step for the weight at hand and its decrement; None where rounding hides the curvature."""
        problem, point = self._problem, self._point
        l = problem.n_functions
        strength = problem.regularization
        xp, beta = namespace(point.beta), point.beta
        last = xp.asarray([1.0, problem.radius], dtype=beta.dtype, device=beta.device)
        slope = xp.concat([2 * strength * beta, problem.goal, last])
        gradient = parts.gradient + self._weight * slope
        hessian = copied(parts.hessian)
        add_to_diagonal(hessian[:l, :l], 2 * self._weight * strength)
        scale = 1 / xp.sqrt(xp.clip(xp.linalg.diagonal(hessian), TINY, None))
        matrix = hessian * scale[:, None] * scale
        add_to_diagonal(matrix, _JITTER)
        try:
            step = -scale * cholesky_solve(cholesky_factor(matrix), scale * gradient)
        except np.linalg.LinAlgError:
            return None
        return step, float(np.sqrt(max(-float(gradient @ step), 0.0)))

    def _terms(self, point: _Point) -> tuple[float, float]:
        """The objective and the barrier; infinite outside."""
        problem, beta = self._problem, point.beta
        S, gap, cone = self._slack(point, problem.loss_matrix(beta))
        if cone <= 0 or point.v <= 0 or (problem.keeps_sample and gap <= 0):
            return np.inf, np.inf
        try:
            root = cholesky(S)
        except np.linalg.LinAlgError:
            return np.inf, np.inf
        value = point.t + float(problem.goal @ point.y) + problem.radius * point.v
        value += problem.regularization * float(beta @ beta)
        kept = float(np.log(gap)) if problem.keeps_sample else 0.0
        logs = namespace(root).log(namespace(root).linalg.diagonal(root))
        return value, -2 * float(logs.sum()) - kept - float(np.log(cone))

    def _walked(self, step: Array, decrement: float) -> bool:
        """Move along the step as far as the barrier allows; whether that was possible."""
        here, length = self._weight * self._here[0] + self._here[1], 1.0
        noise = _NOISE * abs(here)
        while length > _SHORTEST:
            point = self._point.moved(step, length)
            value, barrier = self._terms(point)
            if self._weight * value + barrier <= here - _ENOUGH * length * decrement**2 + noise:
                self._point, self._here = point, (value, barrier)
                return True
            length /= 2
        return False

    def _certified(self, number: int, parts: _Derivatives, step: Array, tol: float) -> Status | None:
        """Bounds from this point; the best ones are kept."""
        xp = namespace(step)
        change = xp.tensordot(step[:-1], parts.changes, axes=1)
        root = parts.inverse_root
        corrected = -(root @ change @ root.T)
        add_to_diagonal(corrected, 1.0)
        C = root.T @ corrected @ root / self._weight
        share = (1 - float(parts.gap_change @ step) / parts.gap) / (self._weight * parts.gap)
        adversary = Adversary(C, share if self._problem.keeps_sample else 0.0)
        before = self._upper - self._lower
        certificate = self._certify(self._point.beta, self._point.y, adversary)
        if certificate.upper < self._upper:
            self._upper, self._learner = certificate.upper, (self._point.beta, self._point.y)
        if certificate.lower > self._lower:
            self._lower, self._adversary = certificate.lower, adversary
        line = SaddleStep(number, self._upper, self._lower, time.perf_counter() - self._began)
        self._history.append(line)
        if self._callback is not None and self._callback(line):
            return Status.STOPPED
        if self._upper - self._lower <= tol * abs(self._upper):
            return Status.CONVERGED
        self._stuck = self._stuck + 1 if self._upper - self._lower > _STUCK * before else 0
        return Status.STALLED if self._stuck == 2 else None
