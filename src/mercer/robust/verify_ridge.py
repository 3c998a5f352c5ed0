"""The certificate of a robust regression, recomputed from its functions, its kernel, its support and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends import config_context
from mercer.backends.arrays import Array, as_double, like, to_numpy
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate
from mercer.consistency import require_equal, require_kernel, require_meeting, require_numbers, require_spans
from mercer.robust.formulation import Coefficients, Formulation, Span, coordinates
from mercer.robust.given_again import pairs_again
from mercer.robust.pairs import Pairs, beside, make_pairs, target_width
from mercer.robust.radius import CROSS_VALIDATED, SAMPLING, is_least, sampling_radius
from mercer.robust.ridge import RobustKernelRidge
from mercer.validation import (
    are_rows_of,
    kernel_on_columns,
    normalised,
    resolved_kernel,
)

_OUTSIDE = 1e-6  # of coefficients, that no member of a span has; rounding of α = Uβ is 1e-12
_SQUARES = 1e-9
_EXHAUSTED = 1e-6  # of a section's square, unexplained by points of which there are fewer than asked for


def verify_robust_ridge(model: RobustKernelRidge, X: Any, y: Any) -> Certificate:
    """Certify a fitted robust regression again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. ``upper`` is what the function of ``dual_coef_`` risks at most, proved by the function of
    ``price_coef_``; ``lower`` is what no learner can go below, by ridge regression on the distribution of
    ``adversary_coef_`` and ``sample_share_``, made admissible. The integrals of the loss, the ball and the embedding of
    the sample are computed anew; every other number of the model must be what follows from these coefficients. Of the
    relaxation, and at radius 0, the gradient at ``dual_coef_`` proves the bound.
    """
    X, y, given = pairs_again(model, X, y)
    with config_context(dtype="float64"):
        pairs = _read_pairs(model, X, y, given)
        with one_thread_for(pairs.support.size, X):
            problem = model._formulated(pairs, _read_bases(model, pairs))
            coefficients = _read_coefficients(model, problem)
            certificate, rest = problem.certify(coefficients), problem.described(coefficients)
    why, tolerance = "its functions and the data", _SQUARES * pairs.size**2
    require_equal(model, "robust_risk_", certificate.robust_risk, why, tolerance=tolerance)
    require_equal(model, "sample_risk_", certificate.sample_risk, why, tolerance=tolerance)
    _require_description(model, rest)
    return require_meeting(model, certificate)


def _read_pairs(model: RobustKernelRidge, X: Array, y: Array, given: Array | None) -> Pairs:
    """The sample and the support, the bandwidths being what the parameters make of the data."""
    weights = normalised(given, X.shape[0], reference=X)
    require_kernel(model, resolved_kernel(kernel_on_columns(model, model.kernel), X, weights))
    require_equal(model, "target_sigma_", target_width(model.target_sigma, y, weights), "its parameters and y")
    support = like(require_numbers(model, "support_"), X)
    if support.ndim != 2 or support.shape[0] < 1 or support.shape[1] != X.shape[1] + 1:
        raise ValueError(
            f"The model's support_ has shape {tuple(support.shape)} for {X.shape[1]} features: it is damaged."
        )
    sigma, tau = float(model.kernel_.sigma), float(model.target_sigma_)
    drawn = isinstance(model.support, int | np.integer)
    stretch = sigma / tau  # y of a drawn support went there and back
    if drawn and not are_rows_of(support, beside(X, (y * stretch) / stretch)[weights > 0]):
        raise ValueError("The model's support_ has pairs that the data do not have: it is damaged, or X is another.")
    _require_radius(model, weights)
    pairs = make_pairs(X, y, given, support, sigma, tau)
    return pairs._replace(chosen=_read_chosen(model, pairs))


def _require_radius(model: RobustKernelRidge, weights: Array) -> None:
    """The radius that the parameters and the weights make; of a cross-validation, the one that its errors choose."""
    if model.radius == CROSS_VALIDATED:
        radius = float(require_numbers(model, "radius_", ()))
        if not is_least(radius, require_numbers(model, "radius_errors_")):
            raise ValueError(f"The model's radius_={radius:g} is not that of its least radius_errors_: it is damaged.")
        return
    sampled = model.radius == SAMPLING
    expected = sampling_radius(weights, float(model.confidence)) if sampled else float(model.radius)
    require_equal(model, "radius_", expected, "its parameters and weights")


def _read_chosen(model: RobustKernelRidge, pairs: Pairs) -> Array | None:
    """The rows of the support that densities are made of, None for all of them."""
    m, rows = pairs.support.size, require_numbers(model, "adversary_support_")
    most = min(m, int(model.adversary_support))
    right = rows.ndim == 1 and 1 <= rows.size <= most
    if not (right and np.all(np.isin(rows, np.arange(m))) and np.all(np.diff(rows) > 0)):
        raise ValueError(f"The model's adversary_support_ are no rows of a support of {m} pairs: it is damaged.")
    found = pairs._replace(chosen=None if rows.size == m else like(rows.astype(np.intp), pairs.support.inputs))
    if rows.size < most and found.unexplained > _EXHAUSTED:
        raise ValueError(
            f"The model's adversary_support_ has {rows.size} rows where its parameters make {most}: it is damaged."
        )
    return found.chosen


def _read_bases(model: RobustKernelRidge, pairs: Pairs) -> tuple[Array, ...]:
    bases, m = getattr(model, "_bases", ()), pairs.support.size
    rows = (m, pairs.density_size, m)
    if not isinstance(bases, tuple) or len(bases) != model._formulation.n_bases:
        raise ValueError("The model's spans are missing: it is damaged.")
    for basis, count in zip(map(to_numpy, bases), rows, strict=False):
        if np.ndim(basis) != 2 or np.shape(basis)[0] != count or not np.all(np.isfinite(basis)):
            raise ValueError(f"The model's spans are no bases of coefficients on {count} points: it is damaged.")
    return tuple(as_double(like(basis, pairs.inputs)) for basis in bases)


def _read_coefficients(model: RobustKernelRidge, problem: Formulation) -> Coefficients:
    """Coefficients within the spans, which are those of the problem, and an adversary that is one."""
    m, reference = problem.pairs.support.size, problem.functions
    dual, price = (like(require_numbers(model, name, (m,)), reference) for name in ("dual_coef_", "price_coef_"))
    adversary = like(require_numbers(model, "adversary_coef_", (problem.pairs.density_size,) * 2), reference)
    found = Coefficients(dual, price, adversary, float(require_numbers(model, "sample_share_", ())))
    for span in problem.spans():
        require_spans(span.matrix, span.basis, span.what, span.truncation)
        _require_inside(span, found.named()[span.attribute])
    problem.require_distribution(found)
    return found


def _require_inside(span: Span, values: Array) -> None:
    """Refuse coefficients outside the range of a basis with orthogonal columns."""
    outside = float(abs(values - span.basis @ coordinates(span.basis, values)).max())
    if outside > _OUTSIDE * float(abs(values).max()):
        raise ValueError(
            f"The model's {span.attribute} lies {outside:.1e} outside the span that it belongs to: it is damaged."
        )


def _require_description(model: RobustKernelRidge, rest: dict[str, Any]) -> None:
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
