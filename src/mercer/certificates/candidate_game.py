"""How far a robust machine on candidates can be from the best one: two bounds on the game's value, rounding counted.

Nothing is believed of the solver. The learner's f with the prices g bounds the value from above, by the largest loss
that is left of a candidate after its price; the adversary's weights μ with slopes p bound it from below, by the
tangents of the losses: see :mod:`mercer.problems.candidate_game`. The upper bound holds for all weights of the
candidates within ε of the sample in the maximum mean discrepancy, the lower one for all functions of the Hilbert space.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball
from mercer.certificates.certificate import RegressionCertificate
from mercer.problems.candidate_enclosures import CandidateEnclosures
from mercer.problems.sum_of_squares_enclosures import exact_shares

_MARGIN = 2.0**-46


class Strategy(NamedTuple):
    """The coefficients that a model keeps: of f on the distinct inputs, of g on the candidates, and μ and p of them."""

    dual: Array
    price: Array
    weights: Array
    slopes: Array


def certify_candidate_game(
    enclosed: CandidateEnclosures, strategy: Strategy, *, radius: float, regularization: float
) -> RegressionCertificate:
    """Bound the value of the game from both sides.

    Parameters
    ----------
    enclosed : CandidateEnclosures
        Kernel matrices, losses and weights with proved errors.
    strategy : Strategy
        Weights that lie outside the ball are drawn to the sample as far as need be.
    radius, regularization : float
        ε ≥ 0 and λ > 0.

    Returns
    -------
    RegressionCertificate
        ``upper`` is what f risks at most, plus λ‖f‖²; ``lower`` what no learner can go below.
    """
    sample = (enclosed.shares * enclosed.losses(strategy.dual)).sum()
    risk = risk_bound(enclosed, strategy, radius)
    upper = float((Ball(risk) + enclosed.squared_norm(strategy.dual) * regularization).upper())
    if not np.isfinite(upper):
        raise ArithmeticError("The problem is too ill-conditioned for any proof: bring X and y to a scale near one.")
    return RegressionCertificate(
        lower=max(response_bound(enclosed, strategy, radius, regularization), 0.0),
        upper=upper,
        failure_probability=0.0,
        method="tangents of the losses for the adversary, prices for the learner",
        n_products=0,
        minimised=True,
        robust_risk=risk,
        sample_risk=float(sample.hi),
    )


def risk_bound(enclosed: CandidateEnclosures, strategy: Strategy, radius: float) -> float:
    """A number that no mean loss of a distribution of the ball exceeds."""
    if radius == 0:
        return float((enclosed.shares * enclosed.losses(strategy.dual)).sum().upper())
    g, norm = enclosed.priced(strategy.price)
    level = priced_level(enclosed, strategy)
    return float((Ball(level) + (enclosed.shares * g).sum() + norm * radius).upper())


def priced_level(enclosed: CandidateEnclosures, strategy: Strategy) -> float:
    """A number that no candidate's loss, less its price, exceeds."""
    g, _ = enclosed.priced(strategy.price)
    return float(np.max((enclosed.losses(strategy.dual) - g).upper()))


def response_bound(enclosed: CandidateEnclosures, strategy: Strategy, radius: float, regularization: float) -> float:
    """A number that no learner's objective is below, against a distribution of the ball; or minus infinity."""
    weights = _admissible(enclosed, strategy.weights, radius)
    bound = float(enclosed.tangent_bound(weights, strategy.slopes, regularization).lower())
    return bound if enclosed.are_admissible(strategy.slopes) and not np.isnan(bound) else -np.inf


def _admissible(enclosed: CandidateEnclosures, weights: Array, radius: float) -> Ball:
    """Weights of mass one that are proved to lie in the ball; those of the sample where none are found."""
    if radius == 0 or not (np.all(weights >= 0) and np.any(weights > 0) and np.all(np.isfinite(weights))):
        return enclosed.shares
    given, part = exact_shares(weights, weights.size), 1.0
    away = float(np.sqrt(max(float(enclosed.squared_distance(given).upper()), 0.0))) * (1 + _MARGIN)
    if away > radius:
        part = radius / away * (1 - _MARGIN) if np.isfinite(away) else 0.0
    return enclosed.shares + (given - enclosed.shares) * part
