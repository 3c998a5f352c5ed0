"""What both methods for a game on candidates share: the best play so far, a first level, and a scaled Newton system."""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal, cholesky_factor, cholesky_solve
from mercer.backends.rounding import TINY
from mercer.problems.candidate_game import CandidateGame, Play
from mercer.solvers.run import Report
from mercer.solvers.solution import Status

_JITTER = 1e-14  # of a Hessian scaled to unit diagonal


@final
class BestPlay:
    """The learner with the least upper bound and the adversary with the largest lower one that were offered.

    It begins with f = 0, no prices, and the sample.
    """

    def __init__(self, problem: CandidateGame) -> None:
        self._problem = problem
        N, l = problem.functions.shape
        nothing = problem.loss.admissible(np.zeros(N), problem.targets)
        self.play = Play(np.zeros(l), np.zeros(problem.price_functions.shape[1]), problem.shares, nothing)
        self.upper = problem.upper_bound(*self.play[:2])
        self.lower = problem.lower_bound(*self.play[2:])

    def offer(self, beta: Array, prices: Array, weights: Array, slopes: Array) -> float:
        """Keep each side where it is better, made admissible; the gap of what is offered alone."""
        problem = self._problem
        weights, slopes = problem.admissible(weights), problem.loss.admissible(slopes, problem.targets)
        upper, lower = problem.upper_bound(beta, prices), problem.lower_bound(weights, slopes)
        if upper < self.upper:
            self.upper, self.play = upper, self.play._replace(beta=beta, prices=prices)
        if lower > self.lower:
            self.lower, self.play = lower, self.play._replace(weights=weights, slopes=slopes)
        return upper - lower

    def report(self, steps: int, status: Status | None = None) -> Report[Play]:
        """What a method tells the driver."""
        return Report(self.play, self.upper, gap=self.upper - self.lower, steps=steps, status=status)


def first_level(problem: CandidateGame) -> float:
    """A number above all losses of f = 0."""
    largest = float(problem.losses(np.zeros(problem.functions.shape[1])).max())
    return 1.5 * largest + (0.0 if largest > 0 else 1.0)


def newton_step(hessian: Array, gradient: Array) -> Array | None:
    """-H⁻¹g, H brought to unit diagonal in place; None where rounding hides the curvature."""
    scale = 1 / np.sqrt(np.maximum(np.diag(hessian), TINY))
    hessian *= scale[:, None]
    hessian *= scale
    add_to_diagonal(hessian, _JITTER)
    try:
        return -scale * cholesky_solve(cholesky_factor(hessian), scale * gradient)
    except np.linalg.LinAlgError:
        return None


def weighted_gram(A: Array, weights: Array) -> Array:
    """Aᵀ Diag(w) A for w ≥ 0, as the product of a matrix with its own transpose, which costs half."""
    scaled = np.sqrt(weights)[:, None] * A
    return np.asarray(scaled.T @ scaled)
