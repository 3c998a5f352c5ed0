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
from mercer.problems.robust_regression import Adversary, RobustRegression, SaddlePoint
from mercer.solvers.game.central_path import CentralPath
from mercer.solvers.run import Report
from mercer.solvers.solution import Status

_JITTER = 1e-13  # of a Hessian scaled to unit diagonal


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
class Barrier(CentralPath[RobustRegression, SaddlePoint]):
    """The barrier method of the programme above.

    The saddle point at hand is the learner with the least upper bound and the admissible adversary with the largest
    lower one, which may belong to different points of the path. It starts where it knows best, whatever it is given.

    Notes
    -----
    About forty steps for a gap of 1e-6. Cost of a step: (l + q) s³ + (l + q)² s² + l² s² operations for l functions,
    order s and a projected space of dimension q. Memory: (l + q) s² numbers.
    """

    handles = frozenset({"an adversary"})
    growth = 4.0  # ten took as many steps, or more, and sometimes lost the path
    patience = 60
    stuck_for = 4

    _point: _Point
    _parts: _Derivatives

    def start(self, problem: RobustRegression, point: Any) -> Report[SaddlePoint]:
        self._problem = problem
        beta, self._lower = problem.best_response(problem.anchor)
        prices = namespace(beta).zeros_like(problem.goal)
        self._best = SaddlePoint(beta, prices, problem.anchor)
        self._upper = problem.upper_bound(beta, prices)
        top = problem.worst_case(beta, prices)
        t = 1.5 * top if top > 0 else 1.0
        self._weight = (problem.order + 3) / t
        v = 2 / (self._weight * problem.radius)  # where the barrier is least for y = 0
        self._point = _Point(beta, prices, t, v)
        return self._begin()

    def _report(self, steps: int, status: Status | None = None) -> Report[SaddlePoint]:
        return Report(self._best, self._upper, gap=self._upper - self._lower, steps=steps, status=status)

    def _moved(self, step: Array, length: float) -> _Point:
        return self._point.moved(step, length)

    def _slack(self, point: _Point, losses: Array) -> tuple[Array, float, float]:
        """S, s and v² - ‖y‖², N(β) given."""
        problem = self._problem
        S = problem.priced(point.y) - losses
        add_to_diagonal(S, point.t)
        gap = point.t - problem.sample.value(point.beta) + float(problem.goal @ point.y)
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
        flat = problem.packed(scaled)
        hessian[:-1, :-1] = flat @ flat.T
        hessian[:l, :l] += 2 * problem.loss_curvature(root.T @ root)
        gap_change = xp.concat([-problem.sample.gradient(point.beta), problem.goal, xp.asarray([1.0, 0.0], **options)])
        if problem.keeps_sample:
            gradient -= gap_change / gap
            hessian += gap_change[:, None] * gap_change / gap**2
            hessian[:l, :l] += 2 * problem.sample.curvature / gap
        ends = xp.zeros(l, **options), xp.asarray([0.0, 2 * point.v], **options)
        cone_change = xp.concat([ends[0], -2 * point.y, ends[1]])
        gradient -= cone_change / cone
        hessian += cone_change[:, None] * cone_change / cone**2
        add_to_diagonal(hessian[l : l + q, l : l + q], 2 / cone)
        hessian[-1, -1] -= 2 / cone
        return _Derivatives(root, changes, gap, gap_change, gradient, hessian)

    def _newton_step(self) -> tuple[Array, float] | None:
        """The Newton step for the weight at hand; None where rounding hides the curvature."""
        problem, point, parts = self._problem, self._point, self._parts
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

    def _bound(self, step: Array) -> None:
        """Bounds from this point and its next step; the best ones are kept."""
        xp, parts, root = namespace(step), self._parts, self._parts.inverse_root
        corrected = -(root @ xp.tensordot(step[:-1], parts.changes, axes=1) @ root.T)
        add_to_diagonal(corrected, 1.0)
        C = root.T @ corrected @ root / self._weight
        share = (1 - float(parts.gap_change @ step) / parts.gap) / (self._weight * parts.gap)
        adversary = self._problem.admissible(Adversary(C, share))
        upper = self._problem.upper_bound(self._point.beta, self._point.y)
        lower = self._problem.best_response(adversary)[1]
        self._narrowed(upper - lower)
        if upper < self._upper:
            self._upper, self._best = upper, self._best._replace(beta=self._point.beta, prices=self._point.y)
        if lower > self._lower:
            self._lower, self._best = lower, self._best._replace(adversary=adversary)
