"""How far a robust regression can be from the best one: two bounds on the value of the game, recomputed.

Nothing is believed of the solver but the learner's β with the prices y, which bound the value from above by one extreme
eigenvalue, and the adversary's distribution, which bounds it from below by a ridge regression.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.problems.robust_regression import Adversary, RobustRegression

Array = np.ndarray[Any, np.dtype[Any]]


def certify_saddle_point(problem: RobustRegression, beta: Array, prices: Array, adversary: Adversary) -> Certificate:
    """Bound min max of the robust regression from both sides.

    Parameters
    ----------
    problem : RobustRegression
        The game.
    beta : array of shape (l,)
        The learner's function.
    prices : array of shape (q,)
        y, the dual vector of the ball.
    adversary : Adversary
        Any C and a; the part of C that is not positive semi-definite is cut off, and what is left is made admissible.

    Returns
    -------
    Certificate
        ``upper`` is what β risks at most, plus λ‖β‖²; ``lower`` what no learner can go below.

    Notes
    -----
    Cost: two eigendecompositions of order s, one linear system of order l, l² s² operations for the integrals.
    """
    values, vectors = np.linalg.eigh(0.5 * (adversary.matrix + adversary.matrix.T))
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    fair = problem.admissible(positive, max(adversary.share, 0.0))
    _, lower = problem.best_response(fair)
    risk = problem.worst_case(beta, prices)
    upper = risk + problem.regularization * float(beta @ beta)
    rounding = problem.order * float(np.finfo(np.float64).eps) * abs(upper)
    return Certificate(
        lower=min(lower - rounding, upper),
        upper=upper + rounding,
        failure_probability=0.0,
        method="ridge regression on the adversary, extreme eigenvalue for the learner",
        n_products=0,
        minimised=True,
    )
