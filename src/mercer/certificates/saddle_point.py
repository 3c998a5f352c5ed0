"""How far a robust regression can be from the best one: two bounds on the value of the game, recomputed.

Nothing is believed of the solver but the learner's f with the prices y, which bound the value from above by one extreme
eigenvalue, and the adversary's distribution, which bounds it from below by a ridge regression.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.problems.robust_regression import Adversary

Array = np.ndarray[Any, np.dtype[Any]]


class SaddleBounds(Protocol):
    """What a proof asks of a game: :class:`RobustRegression`, or the same in extended precision."""

    order: int
    regularization: float

    def admissible(self, matrix: Array, share: float, /) -> Adversary:
        """A distribution of the ball near to this one."""

    def best_response(self, adversary: Adversary, /) -> tuple[Array, float]:
        """The learner's best function against a distribution, and its objective."""

    def worst_case(self, learner: Array, y: Array, /) -> float:
        """What a function risks at most."""

    def squared_norm(self, learner: Array, /) -> float:
        """‖f‖²."""


def certify_saddle_point(problem: SaddleBounds, learner: Array, prices: Array, adversary: Adversary) -> Certificate:
    """Bound min max of the robust regression from both sides.

    Parameters
    ----------
    problem : SaddleBounds
        The game: for a proof that rounding cannot spoil, :class:`mercer.problems.precise_regression.PreciseRegression`.
    learner : array of shape (l,)
        The learner's function, by the coordinates that the game takes.
    prices : array of shape (q,)
        y, the dual vector of the ball.
    adversary : Adversary
        Any C and a; the part of C that is not positive semi-definite is cut off, and what is left is made admissible.

    Returns
    -------
    Certificate
        ``upper`` is what f risks at most, plus λ‖f‖²; ``lower`` what no learner can go below. Where rounding has
        brought them past each other, both are moved apart by as much.

    Notes
    -----
    Cost: two eigendecompositions of order s, one linear system of order l, and the integrals.
    """
    values, vectors = np.linalg.eigh(0.5 * (adversary.matrix + adversary.matrix.T))
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    fair = problem.admissible(positive, max(adversary.share, 0.0))
    _, lower = problem.best_response(fair)
    risk = problem.worst_case(learner, prices)
    upper = risk + problem.regularization * problem.squared_norm(learner)
    rounding = problem.order * float(np.finfo(np.float64).eps) * abs(upper) + max(lower - upper, 0.0)
    return Certificate(
        lower=min(lower, upper) - rounding,
        upper=upper + rounding,
        failure_probability=0.0,
        method="ridge regression on the adversary, extreme eigenvalue for the learner",
        n_products=0,
        minimised=True,
    )
