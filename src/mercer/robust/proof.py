"""The numbers that a robust regression keeps, and the proof of exactly these: the same for fitting and verifying."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, norm, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.certificates.certificate import Certificate
from mercer.certificates.game import certify_saddle_point, risk_bound
from mercer.certificates.strong_convexity import certify_strongly_convex, relaxed_risk
from mercer.density.gaussian_squares import GaussianSquares
from mercer.kernels import Gaussian
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.problems.enclosed_regression import PreciseRegression, coordinates
from mercer.problems.robust_regression import Adversary, RobustRegression
from mercer.robust.game import Pairs, make_precise


class Numbers(NamedTuple):
    """The learner's function, the prices and the adversary, by coefficients on the support, in the units of y."""

    dual: Array
    price: Array
    adversary: Array
    share: float

    def named(self) -> dict[str, Any]:
        """By the names of the fitted attributes."""
        names = ("dual_coef_", "price_coef_", "adversary_coef_", "sample_share_")
        return dict(zip(names, self, strict=True))


class Proof(NamedTuple):
    """What was proved of the numbers, in the units of y²."""

    certificate: Certificate
    robust_risk: float
    sample_risk: float

    def named(self) -> dict[str, Any]:
        """By the names of the fitted attributes."""
        return dict(zip(("certificate_", "robust_risk_", "sample_risk_"), self, strict=True))


def prove_relaxed(pairs: Pairs, U: Array, numbers: Numbers, *, radius: float, regularization: float) -> Proof:
    """Bounds on penalised least squares, from the function alone."""
    precise = make_precise(pairs, U)
    beta = coordinates(U, numbers.dual / pairs.size)
    certificate = certify_strongly_convex(precise, beta, radius=radius, regularization=regularization)
    alpha = precise.functions @ ball(to_numpy(beta))
    risk, _ = relaxed_risk(precise, alpha, radius)
    return _in_units(pairs, certificate, float(risk.upper()), precise, alpha)


def prove_game(
    pairs: Pairs,
    game: RobustRegression,
    precise: PreciseRegression,
    ball_: SumOfSquares,
    U: Array,
    numbers: Numbers,
) -> Proof:
    """Bounds on the value of the game, from the function, the prices and the adversary."""
    beta = coordinates(U, numbers.dual / pairs.size)
    prices = coordinates(ball_.whitening, numbers.price) / pairs.size**2
    C = coordinates(ball_.basis, coordinates(ball_.basis, numbers.adversary).T)
    certificate = certify_saddle_point(game, precise, beta, prices, Adversary(C, numbers.share))
    risk = risk_bound(game, precise, beta, prices)
    return _in_units(pairs, certificate, risk, precise, precise.functions @ ball(to_numpy(beta)))


def _in_units(pairs: Pairs, certificate: Certificate, risk: float, precise: PreciseRegression, alpha: Ball) -> Proof:
    factor = pairs.size**2  # a power of two
    certificate = replace(certificate, lower=factor * certificate.lower, upper=factor * certificate.upper)
    return Proof(certificate, factor * risk, factor * float(precise.sample_loss(alpha)[0].hi))


def described(pairs: Pairs, ball_: SumOfSquares, numbers: Numbers) -> dict[str, Any]:
    """The worst distribution's density part and its distances from the sample, by the names of the attributes."""
    B, moved = numbers.adversary, 1.0 - numbers.share
    displacement = ball_.whitening.T @ ball_.integrals.embed(B) - moved * ball_.goal
    density, distance = None, 0.0
    if bool((B != 0).any()):
        density = GaussianSquares(pairs.joint_support, B, pairs.sigma)
        distance = _exact_distance(pairs, ball_, B, moved)
    return {"distance_": norm(displacement), "adversary_": density, "mmd_": distance}


def _exact_distance(pairs: Pairs, ball_: SumOfSquares, B: Array, moved: float) -> float:
    """‖w_p - moved·w‖ without projection, w the embedding of the sample and w_p that of the density part."""
    norm = ball_.integrals.squared_norm(B)
    if norm is None:
        return float("nan")
    joint, weights = pairs.joint, pairs.weights
    sample = float(weights @ as_double(GramOperator(Gaussian(sigma=pairs.sigma), joint) @ weights))
    cross = float(weights @ ball_.integrals.embed(B, joint))
    return float(np.sqrt(max(norm - 2 * moved * cross + moved**2 * sample, 0.0)))
