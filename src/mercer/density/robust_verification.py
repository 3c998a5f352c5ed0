"""The certificate of a robust regression, recomputed from its functions, its kernel, its support and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.certificates import Certificate
from mercer.certificates.saddle_point import certify_saddle_point
from mercer.certificates.strong_convexity import certify_strongly_convex
from mercer.density.robust_game import (
    Pairs,
    function_basis,
    make_ball,
    make_game,
    make_pairs,
    make_precise,
    make_relaxed,
)
from mercer.density.robust_ridge import RobustKernelRidge, scaled
from mercer.problems.precise_regression import coordinates
from mercer.problems.robust_regression import Adversary
from mercer.validation import fraction, normalised, require_rows

Array = np.ndarray[Any, np.dtype[Any]]

_OUTSIDE = 1e-6  # of dual_coef_, that no learner of the game has


def verify_robust_ridge(model: RobustKernelRidge, X: Any, y: Any) -> Certificate:
    """Certify a fitted robust regression again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. ``upper`` is what the function of ``dual_coef_`` risks at most, proved by the function of
    ``price_coef_``; ``lower`` is what no learner can go below, by ridge regression on the distribution of
    ``adversary_coef_`` and ``sample_share_``, made admissible. The integrals of the loss, the ball and the embedding of
    the sample are computed anew. Of the relaxation, and at radius 0, the gradient at ``dual_coef_`` proves the bound.
    """
    check_is_fitted(model)
    if y is None:
        raise ValueError("A regression is certified on its pairs: pass y as well.")
    X, y = validate_data(model, X, y, reset=False, dtype=np.float64, order="C", y_numeric=True)
    require_rows(X, model._n_rows)
    radius, regularization = model._checked_numbers()
    weights = normalised(model.sample_weight_, X.shape[0])
    sigma = float(model.kernel_.sigma)
    pairs = make_pairs(X, np.asarray(y, np.float64), weights, model.support_, sigma, model.target_sigma_)
    U, features = function_basis(pairs, integrated=radius > 0)
    alpha = _learner(_read(model, "dual_coef_"), U) / pairs.size
    numbers = {"radius": radius, "regularization": regularization}
    if radius == 0 or model.relaxation == "rkhs":
        problem = make_relaxed(pairs, U, features, **numbers)
        certificate = certify_strongly_convex(problem.precise(), coordinates(U, alpha))
    else:
        certificate = _certified_game(model, pairs, U, features, alpha, numbers)
    return scaled(certificate, pairs.size**2)


def _read(model: RobustKernelRidge, name: str, n_axes: int = 1) -> Array:
    """Coefficients of the model, for each point of its support, or for each pair of them."""
    values = np.asarray(getattr(model, name), np.float64)
    m = model.support_.shape[0]
    if values.shape != (m,) * n_axes or not np.all(np.isfinite(values)):
        raise ValueError(
            f"The model's {name} has shape {values.shape}, or entries that are no numbers, for {m} points: it is "
            "damaged."
        )
    return values


def _learner(values: Array, U: Array) -> Array:
    """Coefficients of a function of the learner's space."""
    outside = float(np.linalg.norm(values - U @ coordinates(U, values)))
    if outside > _OUTSIDE * float(np.linalg.norm(values)):
        raise ValueError(
            f"The model's dual_coef_ lies {outside:.1e} outside the span of the learner's functions: it is damaged."
        )
    return values


def _certified_game(
    model: RobustKernelRidge, pairs: Pairs, U: Array, features: Array, alpha: Array, numbers: dict[str, float]
) -> Certificate:
    ball = make_ball(pairs, fraction(model.truncation, "truncation"))
    game = make_game(pairs, U, features, ball, sample=bool(model.keep_sample), **numbers)
    prices = coordinates(ball.whitening, _read(model, "price_coef_")) / pairs.size**2
    half = coordinates(ball.basis, _read(model, "adversary_coef_", 2))
    C = coordinates(ball.basis, half.T)
    precise = make_precise(pairs, U, ball, game)
    return certify_saddle_point(precise, alpha, prices, Adversary(C, float(model.sample_share_)))
