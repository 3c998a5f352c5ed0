"""The certificate of a robust regression, recomputed from its functions, its kernel, its support and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import config_context
from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate
from mercer.consistency import require_equal, require_kernel, require_meeting, require_numbers, require_spans
from mercer.kernels import Gaussian
from mercer.operators import GramOperator
from mercer.problems.enclosed_regression import coordinates
from mercer.problems.sum_of_squares import Spans
from mercer.robust.game import Pairs, beside, make_ball, make_game, make_pairs, make_precise
from mercer.robust.proof import Numbers, Proof, described, prove_game, prove_relaxed
from mercer.robust.ridge import WHOLE, RobustKernelRidge
from mercer.validation import checked_weights, distinct_rows, normalised, require_rows, resolved_kernel

_OUTSIDE = 1e-6  # of coefficients, that no member of a span has; rounding of α = Uβ is 1e-12
_MASS = 1e-6
_SQUARES = 1e-9


def verify_robust_ridge(model: RobustKernelRidge, X: Any, y: Any) -> Certificate:
    """Certify a fitted robust regression again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. ``upper`` is what the function of ``dual_coef_`` risks at most, proved by the function of
    ``price_coef_``; ``lower`` is what no learner can go below, by ridge regression on the distribution of
    ``adversary_coef_`` and ``sample_share_``, made admissible. The integrals of the loss, the ball and the embedding of
    the sample are computed anew; every other number of the model must be what follows from these coefficients. Of the
    relaxation, and at radius 0, the gradient at ``dual_coef_`` proves the bound.
    """
    check_is_fitted(model)
    if y is None:
        raise ValueError("A regression is certified on its pairs: pass y as well.")
    model._check_parameters()
    radius, regularization = float(model.radius), float(model.regularization)
    X, y = model._checked_data(X, y, fitting=False)
    require_rows(X, model._n_rows)
    given = model.sample_weight_
    given = None if given is None else checked_weights(given, X.shape[0], "The model's sample_weight_", reference=X)
    with config_context(dtype="float64"):
        pairs = _read_pairs(model, X, y, given)
        with one_thread_for(pairs.support_inputs.shape[0], X):
            U = _read_functions(model, pairs, integrated=radius > 0)
            numbers = Numbers(*_read_numbers(model, pairs, U))
            options = {"radius": radius, "regularization": regularization}
            relaxed = radius == 0 or model.relaxation == "rkhs"
            proof, rest = (_relaxed if relaxed else _game)(model, pairs, U, numbers, options)
    for name in ("robust_risk_", "sample_risk_"):
        require_equal(
            model, name, proof.named()[name], "its functions and the data", tolerance=_SQUARES * pairs.size**2
        )
    _require_description(model, rest, numbers)
    return require_meeting(model, proof.certificate)


def _read_pairs(model: RobustKernelRidge, X: Array, y: Array, given: Array | None) -> Pairs:
    """The sample and the support, the bandwidths being what the parameters make of the data."""
    weights = normalised(given, X.shape[0], reference=X)
    require_kernel(model, resolved_kernel(model.kernel, X, weights))
    require_equal(model, "target_sigma_", model._resolved_target_sigma(y, weights), "its parameters and y")
    support = like(require_numbers(model, "support_"), X)
    if support.ndim != 2 or support.shape[0] < 1 or support.shape[1] != X.shape[1] + 1:
        raise ValueError(
            f"The model's support_ has shape {tuple(support.shape)} for {X.shape[1]} features: it is damaged."
        )
    sigma, tau = float(model.kernel_.sigma), float(model.target_sigma_)
    if isinstance(model.support, int | np.integer):
        _require_rows_of(support, X, y, weights, sigma / tau)
    return make_pairs(X, y, given, support, sigma, tau)


def _require_rows_of(support: Array, X: Array, y: Array, weights: Array, stretch: float) -> None:
    """Refuse a support that was drawn from the sample and is not in it, y as it was stretched and back."""
    present = beside(X, (y * stretch) / stretch)[weights > 0]
    distinct = distinct_rows(present)[0]
    both = namespace(X).concat([present[distinct], support])
    if distinct_rows(both)[0].shape[0] != distinct.shape[0]:
        raise ValueError("The model's support_ has pairs that the data do not have: it is damaged, or X is another.")


def _read_functions(model: RobustKernelRidge, pairs: Pairs, *, integrated: bool) -> Array:
    bases, m = getattr(model, "_bases", ()), pairs.support_inputs.shape[0]
    if not isinstance(bases, tuple) or len(bases) not in (1, 3):
        raise ValueError("The model's spans are missing: it is damaged.")
    for basis in map(to_numpy, bases):
        if np.ndim(basis) != 2 or np.shape(basis)[0] != m or not np.all(np.isfinite(basis)):
            raise ValueError(f"The model's spans are no bases of coefficients on {m} points: it is damaged.")
    U = as_double(like(bases[0], pairs.inputs))
    gram = Gaussian(sigma=pairs.sigma)(pairs.support_inputs)
    require_spans(gram, U, "functions", 1e-9 if integrated else 1e-13)
    return U


def _read_numbers(model: RobustKernelRidge, pairs: Pairs, U: Array) -> tuple[Array, Array, Array, float]:
    m = pairs.support_inputs.shape[0]
    dual, price = (like(require_numbers(model, name, (m,)), U) for name in ("dual_coef_", "price_coef_"))
    adversary = like(require_numbers(model, "adversary_coef_", (m, m)), U)
    _require_inside("dual_coef_", dual, U)
    return dual, price, adversary, float(require_numbers(model, "sample_share_", ()))


def _require_inside(name: str, values: Array, basis: Array) -> None:
    """Refuse coefficients outside the range of a basis with orthogonal columns."""
    outside = float(abs(values - basis @ coordinates(basis, values)).max())
    if outside > _OUTSIDE * float(abs(values).max()):
        raise ValueError(f"The model's {name} lies {outside:.1e} outside the span that it belongs to: it is damaged.")


def _relaxed(
    model: RobustKernelRidge, pairs: Pairs, U: Array, numbers: Numbers, options: dict[str, float]
) -> tuple[Proof, dict[str, Any]]:
    if bool((numbers.price != 0).any()) or bool((numbers.adversary != 0).any()) or numbers.share != 1.0:
        raise ValueError("The model has prices or an adversary where there are none in its problem: it is damaged.")
    return prove_relaxed(pairs, U, numbers, **options), {"distance_": 0.0, "mmd_": 0.0, "adversary_": None}


def _game(
    model: RobustKernelRidge, pairs: Pairs, U: Array, numbers: Numbers, options: dict[str, float]
) -> tuple[Proof, dict[str, Any]]:
    if len(model._bases) != 3:
        raise ValueError("The model's spans are missing: it is damaged.")
    spans = Spans(*(as_double(like(basis, U)) for basis in model._bases[1:]))
    ball = make_ball(pairs, float(model.truncation), spans)
    gram = Gaussian(sigma=pairs.sigma)(pairs.joint_support)
    require_spans(ball.integrals.mass(), ball.basis, "densities", float(model.truncation))
    require_spans(gram, ball.whitening, "prices", float(model.truncation))
    _require_inside("price_coef_", numbers.price, ball.whitening)
    _require_inside("adversary_coef_", numbers.adversary, ball.basis)
    mass = numbers.share + float((numbers.adversary * ball.integrals.mass()).sum())
    if not (0 <= numbers.share <= 1 and abs(mass - 1) <= _MASS):
        raise ValueError(f"The model's adversary has the mass {mass:.9g} with sample_share_, not one: it is damaged.")
    features = as_double(GramOperator(Gaussian(sigma=pairs.sigma), pairs.inputs, pairs.support_inputs) @ U)
    options = {**options, "radius": min(options["radius"], WHOLE)}
    game = make_game(pairs, U, features, ball, sample=bool(model.keep_sample), **options)
    proof = prove_game(pairs, game, make_precise(pairs, U, ball), ball, U, numbers)
    return proof, described(pairs, ball, numbers)


def _require_description(model: RobustKernelRidge, rest: dict[str, Any], numbers: Numbers) -> None:
    for name in ("distance_", "mmd_"):
        stored, value = float(getattr(model, name)), rest[name]
        same = np.isnan(stored) and np.isnan(value)
        if not same and not (stored >= 0 and abs(stored**2 - value**2) <= _SQUARES * (1 + value**2)):
            raise ValueError(
                f"The model's {name} is {stored:.9g} where its adversary and the data make {value:.9g}: it is damaged."
            )
    found, expected = model.adversary_, rest["adversary_"]
    same = (found is None) == (expected is None)
    if same and expected is not None:
        same = all(
            np.allclose(to_numpy(getattr(found, name, np.nan)), to_numpy(getattr(expected, name)), rtol=1e-9, atol=0.0)
            for name in ("points", "sigma", "mixture", "_coefficients", "lower", "upper", "_log_scale")
        )
    if not same:
        raise ValueError("The model's adversary_ is not the density of adversary_coef_: it is damaged.")
