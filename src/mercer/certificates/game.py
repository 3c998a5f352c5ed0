"""How far a robust regression can be from the best one: two bounds on the value of the game, every rounding counted.

Nothing is believed of the solver but the learner's f with the prices g, which bound the value from above,

    max_μ ∫ (f - y)² dμ ≤ max(λ, R̂(f) - ⟨g, v⟩) + ⟨g, v⟩ + ε‖g‖

for every λ with λ TᵀWT ≽ Tᵀ(∫ ((f - y)² - g) k_z k_zᵀ)T, and the adversary's distribution, which bounds it from below
by a ridge regression: with h half the gradient of the learner's objective at any β, no β' has less than its value there
minus ‖h‖²/(λ λ_min(Uᵀ k U)). All integrals are balls with proved radii, see
:mod:`mercer.problems.robust_regression_enclosures`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.certificates.certificate import RegressionCertificate
from mercer.certificates.enclosures import inverse_form, least_ratio
from mercer.problems.robust_regression import Adversary, RobustRegression, SaddlePoint
from mercer.problems.robust_regression_enclosures import RegressionEnclosures

_SHRINKINGS = 60
_MARGIN = 2.0**-46
_CORRECTIONS = 2  # of the learner's answer: the first from zero, the second of its rounding


class _Density(NamedTuple):
    """A distribution a μ̂ + ‖Lᵀk_z‖² of mass one, by balls."""

    factor: Ball
    share: Ball
    scale: Ball  # of the squares


def certify_saddle_point(
    game: RobustRegression, enclosed: RegressionEnclosures, point: SaddlePoint
) -> RegressionCertificate:
    """Bound min max of the robust regression from both sides.

    Parameters
    ----------
    game : RobustRegression
        ε, λ, the anchor, and double-precision guesses; no part of the proof.
    enclosed : RegressionEnclosures
        The integrals with proved errors.
    point : SaddlePoint
        The learner's function in the basis U, its prices y, the coordinates of g in the basis Ω, and any C and a: the
        part of C that is not positive semi-definite is cut off, and what is left is made admissible.

    Returns
    -------
    RegressionCertificate
        ``upper`` is what f risks at most, plus λ‖f‖²; ``lower`` what no learner can go below.

    Notes
    -----
    Cost: four losses of m⁴ operations each. The proof is NumPy's, which a solution of tensors is brought to once.
    """
    alpha = enclosed.functions @ ball(to_numpy(point.beta))
    risk = risk_bound(game, enclosed, point.beta, point.prices)
    penalty = enclosed.squared_norm(alpha) * game.regularization
    lower = response_bound(game, enclosed, point.adversary)
    total = float((Ball(risk) + penalty).upper())
    if not np.isfinite(total):
        raise ArithmeticError(
            "The robust regression is too ill-conditioned for any proof: raise truncation, or bring X and y to a scale "
            "near one."
        )
    return RegressionCertificate(
        lower=max(lower, 0.0),
        upper=total,
        failure_probability=0.0,
        method="ridge regression on the adversary, extreme eigenvalue for the learner",
        n_products=0,
        minimised=True,
        robust_risk=risk,
        sample_risk=float(enclosed.sample_loss(alpha)[0].hi),
    )


def risk_bound(game: RobustRegression, enclosed: RegressionEnclosures, beta: Array, prices: Array) -> float:
    """A number that ∫ (f - y)² dμ does not exceed for any admissible μ; infinity where none is found."""
    alpha, c = enclosed.functions @ ball(to_numpy(beta)), enclosed.whitening @ ball(to_numpy(prices))
    slack = enclosed.in_basis(enclosed.losses.loss_matrix(alpha) - enclosed.losses.weighted_mass(c))
    top = -least_ratio(-slack, enclosed.constraint)
    paid = (c * enclosed.target).sum()
    if game.keeps_sample:
        top = max(top, float((enclosed.sample_loss(alpha)[0] - paid).upper()))
    if not np.isfinite(top):
        return np.inf
    cost = (c * (enclosed.gram @ c)).sum().root() * game.radius
    return float((Ball(top) + paid + cost).upper())


def response_bound(game: RobustRegression, enclosed: RegressionEnclosures, adversary: Adversary) -> float:
    """A number that no learner's objective is below, against a distribution near to this one; or minus infinity."""
    density = _admissible(game, enclosed, adversary)
    if density is None:
        return -np.inf
    form = enclosed.losses.loss_form((density.factor @ density.factor.T) * density.scale)
    least = game.regularization * least_ratio(enclosed.function_gram)
    if not least > 0:
        return -np.inf
    hessian = _guessed_hessian(game, enclosed, density, form[0])
    beta = np.zeros(hessian.shape[0])
    for _ in range(_CORRECTIONS):
        _, slope = _objective(enclosed, density, form, beta, game.regularization)
        try:
            beta = beta - np.linalg.solve(hessian, slope.hi)
        except np.linalg.LinAlgError:
            break
    value, slope = _objective(enclosed, density, form, beta, game.regularization)
    half = slope.magnitude()
    return float(value.widened(float(half @ half) / least * (1 + _MARGIN)).lower())


def _objective(
    enclosed: RegressionEnclosures, density: _Density, form: tuple[Ball, Ball, Ball], beta: Array, strength: float
) -> tuple[Ball, Ball]:
    """The learner's objective against a distribution, and half its gradient in β."""
    H, r, constant = form
    alpha = enclosed.functions @ ball(beta)
    image, kept = H @ alpha, enclosed.losses.input_gram @ alpha
    value = (alpha * (image - r.scaled(1))).sum() + constant + (alpha * kept).sum() * strength
    slope = image - r + kept * strength
    if np.any(density.share.hi):
        loss, pull = enclosed.sample_loss(alpha)
        value, slope = value + density.share * loss, slope + pull * density.share
    return value, enclosed.functions.T @ slope


def _guessed_hessian(game: RobustRegression, enclosed: RegressionEnclosures, density: _Density, H: Ball) -> Array:
    inner = (enclosed.functions.T @ (H @ enclosed.functions)).hi
    inner = (
        inner
        + float(density.share.hi) * to_numpy(game.sample.curvature)
        + game.regularization * enclosed.function_gram.hi
    )
    return np.asarray((inner + inner.T) / 2)


def _admissible(game: RobustRegression, enclosed: RegressionEnclosures, adversary: Adversary) -> _Density | None:
    """A distribution that is proved to lie in the ball, drawn towards the anchor as far as need be."""
    fair = game.admissible(adversary)
    anchor = _factor(to_numpy(game.anchor.matrix))
    F, share, part = _factor(to_numpy(fair.matrix)), float(fair.share), 1.0
    for _ in range(_SHRINKINGS):
        mixed = np.hstack([np.sqrt(part) * F, np.sqrt(1 - part) * anchor])
        density = _normalised(enclosed, mixed, part * share + (1 - part) * float(game.anchor.share))
        if density is not None:
            away = _distance(enclosed, density)
            if away <= game.radius:
                return density
            if np.isfinite(away):
                part *= min(game.radius / away, 1.0) * (1 - _MARGIN)
                continue
        part = 0.0 if part < _MARGIN else part / 2
    return None


def _normalised(enclosed: RegressionEnclosures, factor: Array, share: float) -> _Density | None:
    L = enclosed.basis @ ball(factor) if factor.shape[1] else Ball(np.zeros((enclosed.basis.shape[0], 1)))
    scale = ((L * (enclosed.mass @ L)).sum() + share).inverse()
    return _Density(L, scale * share, scale) if np.isfinite(float(scale.radius)) else None


def _distance(enclosed: RegressionEnclosures, density: _Density) -> float:
    """No less than the projected distance from the sample; zero for the sample itself."""
    if not np.any(density.factor.hi):
        return 0.0
    moved = enclosed.losses.embed(density.factor) * density.scale - enclosed.target * (1.0 - density.share)
    _, squared = inverse_form(enclosed.projected_gram, enclosed.whitening.T @ moved)
    return float(np.nextafter(np.sqrt(max(float(squared.upper()), 0.0)), np.inf))


def _factor(matrix: Array) -> Array:
    """F with C = F Fᵀ, without columns that vanish."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    kept = values > 0
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
