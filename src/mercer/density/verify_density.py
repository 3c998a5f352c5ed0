"""The certificate of a fitted density, recomputed from its factor, its kernel, its support and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import config_context
from mercer.backends.arrays import like, to_numpy
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate
from mercer.consistency import require_equal, require_kernel, require_meeting, require_numbers, require_spans
from mercer.density.comparison import left_out, wide_span
from mercer.density.fitting_problem import require_memory, unit_log_scale
from mercer.density.own_sections import UNIT_KERNEL
from mercer.density.setting import Setting, checked_target, choose_kernel, choose_reference, choose_support, sizes
from mercer.density.sos import SumOfSquaresDensity
from mercer.density.squares import SquaresProblem, certify_factor
from mercer.density.verify_sections import read_sections
from mercer.kernels.checks import as_generator
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure
from mercer.problems import SquaresLikelihood
from mercer.problems.sum_of_squares import Spans
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.validation import are_rows_of, distinct_rows, normalised, require_rows

_MASS = 1e-6
_OUTSIDE = 1e-9  # of the factor's entries, for the rounding of T F
_WIDER = 1.1  # what another order of equal pivots may leave out more
_DISTANCE = 1e-9  # of the squared norms, for the rounding of a difference of them


def verify_density(model: SumOfSquaresDensity, X: Any) -> Certificate:
    """Certify a fitted density again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. The integrals and the mean embedding of X are computed again, for the densities of the
    span that the model keeps; that it is the one its truncation says is checked. So is every other number of the model:
    kernel, measure, λ and sampled support against the parameters and X; ``coefficients_``, ``eigenvalues_``, ``rank_``,
    the scale and the distances against its factor; and that the density integrates to one. What a model of tensors
    states is compared by NumPy.
    """
    check_is_fitted(model)
    model._check_parameters()
    X = model._new_points(X)
    require_rows(X, model._n_rows)
    weights = model.sample_weight_
    if weights is not None:
        weights = checked_target(weights, X, signed=bool(model.signed), name="The model's sample_weight_")
    shares = sizes(normalised(weights, X.shape[0], reference=X))
    support, sections = like(require_numbers(model, "support_"), X), read_sections(model, X)
    if sections is None:
        _require_support(model, support, X, shares)
    require_memory(model.kernel_, support, X, model.objective)
    _require_measure(model, X, shares)
    with config_context(dtype="float64"), one_thread_for(support.shape[0], X):
        own = UNIT_KERNEL if sections is not None else choose_kernel(model.kernel, X, shares, support)
        require_kernel(model, own)
        spans = Spans(*(like(basis, X) for basis in _read_spans(model, support.shape[0])))
        setting = Setting(model.kernel_, support, model.measure_)
        sample = Sample(X, weights)
        problem = model._programme(setting, sections, sample, spans, _read_probes(model, X))
        _require_wide_span(problem, sample)
        require_equal(model, "regularization_", problem.regularization, "its parameters and X")
        require_spans(problem.integrals.mass(), spans.basis, "densities", float(model.truncation))
        _require_factor(model, problem)
        _require_measured(model, problem, X)
        return require_meeting(model, certify_factor(problem, problem.coordinates(like(model._factor, X))))


def _require_measured(model: SumOfSquaresDensity, problem: SquaresProblem, X: Any) -> None:
    """Refuse a likelihood, or distances and the span that they are seen on, other than the factor's."""
    measured = model._measured(problem, X)
    if isinstance(problem, SquaresLikelihood):
        require_equal(model, "log_likelihood_", measured["log_likelihood_"], "its factor and X", tolerance=_OUTSIDE)
        return
    gram = problem.integrals.kernel(problem.integrals.points)
    require_spans(gram, problem.spans.whitening, "the projection", model.truncation)
    for name, value in measured.items():
        _require_distance(model, name, value, max(value, measured["sample_norm_"]))


def _require_support(model: SumOfSquaresDensity, support: Any, X: Any, shares: Any) -> None:
    """Points of as many features as X, which are rows of X where they were drawn from it."""
    if support.ndim != 2 or support.shape[0] < 1 or support.shape[1] != X.shape[1]:
        raise ValueError(
            f"The model's support_ has shape {tuple(support.shape)} for {X.shape[1]} features: it is damaged."
        )
    if distinct_rows(support)[0].shape[0] != support.shape[0]:
        raise ValueError("The model's support_ has equal points: it is damaged.")
    chosen = model.support
    if chosen is None or isinstance(chosen, int | np.integer):
        if not are_rows_of(support, X[shares > 0]):
            raise ValueError("The model's support_ has points that X does not have: it is damaged, or X is another.")
    elif not isinstance(chosen, str | tuple) and not hasattr(chosen, "fit"):
        require_equal(model, "support_", choose_support(chosen, X, shares, as_generator(0)), "its parameter support")


def _require_measure(model: SumOfSquaresDensity, X: Any, shares: Any) -> None:
    expected, found = choose_reference(model.reference, model.box, X, shares), model.measure_
    same = type(found) is type(expected)
    if isinstance(found, Box) and isinstance(expected, Box):
        same = _equal(found.lower, expected.lower) and _equal(found.upper, expected.upper)
    if isinstance(found, GaussianMeasure) and isinstance(expected, GaussianMeasure):
        same = _near(found, expected)
    if isinstance(found, DiscreteMeasure) and isinstance(expected, DiscreteMeasure):
        same = _equal(found.points, expected.points) and _equal(found.weights, expected.weights)
    if not same:
        raise ValueError(
            f"The model's measure_ is {found!r} where its parameters and X make {expected!r}: it is damaged, or X is "
            "not the data of the fit."
        )


def _near(found: GaussianMeasure, expected: GaussianMeasure) -> bool:
    """Whether two normal laws are one but for rounding."""
    if (found.covariance is None) != (expected.covariance is None):
        return False
    mean, width = to_numpy(expected.mean), float(to_numpy(expected.deviations()).max())
    same = bool(np.all(np.abs(to_numpy(found.mean) - mean) <= _OUTSIDE * (width + float(np.max(np.abs(mean))))))
    if found.covariance is not None:
        return same and _equal(found.covariance, expected.covariance)
    return same and bool(np.all(np.abs(to_numpy(found.deviations()) - width) <= _OUTSIDE * width))


def _equal(one: Any, other: Any) -> bool:
    return np.array_equal(to_numpy(one), to_numpy(other))


def _read_probes(model: SumOfSquaresDensity, X: Any) -> Any:
    """The points of the wide span that the model's objective is projected on, if it is."""
    if getattr(model, "_probes", None) is None:
        return None
    points = like(require_numbers(model, "_probes"), X)
    if points.ndim != 2 or points.shape[0] < 1 or points.shape[1] != X.shape[1]:
        raise ValueError(f"The model's probes have shape {tuple(points.shape)}: it is damaged.")
    return points


def _require_wide_span(problem: SquaresProblem, sample: Sample) -> None:
    """Refuse a span of the objective that sees less than the one that its parameters and X make."""
    points = problem.probe_points
    if points is None or isinstance(problem, SquaresLikelihood):
        return
    own, allowed = (left_out(problem.integrals, sample, at) for at in (points, wide_span(problem.integrals, sample)))
    if not own <= _WIDER * allowed + _OUTSIDE:
        raise ValueError("The model's objective sees less than its parameters and X say: it is damaged.")


def _read_spans(model: SumOfSquaresDensity, m: int) -> Spans:
    spans = getattr(model, "_spans", None)
    if not isinstance(spans, tuple) or len(spans) != 2:
        raise ValueError("The model's spans are missing: it is damaged.")
    bases = [np.asarray(to_numpy(span), np.float64) for span in spans]
    least = 0 if model.objective == "likelihood" else 1
    sizes_of = zip(bases, (1, least), strict=True)
    if any(
        b.ndim != 2 or b.shape[0] != m or not few <= b.shape[1] <= m or not np.all(np.isfinite(b))
        for b, few in sizes_of
    ):
        raise ValueError(f"The model's spans are no bases of coefficients on {m} points: it is damaged.")
    return Spans(*bases)


def _require_factor(model: SumOfSquaresDensity, problem: SquaresProblem) -> None:
    """Refuse a factor outside the span or without mass one, and what else is not made of it."""
    rank = require_numbers(model, "rank_", ())
    factor = like(require_numbers(model, "_factor", (problem.size, int(rank))), problem.basis)
    require_equal(model, "log_scale_", problem.integrals.log_scale, "its kernel and measure", tolerance=_OUTSIDE)
    masses, rounding = problem.integrals.square_masses(factor)
    mass = float(masses.sum())
    if not abs(mass - 1.0) <= _MASS + rounding:
        raise ValueError(f"The model's density integrates to {mass:.9g} and not to one: it is damaged.")
    inside = problem.basis @ problem.coordinates(factor)
    if float(abs(factor - inside).max()) > _OUTSIDE * float(abs(factor).max()):
        raise ValueError("The model's factor lies outside the span of its densities: it is damaged.")
    own = factor * float(np.exp(-0.5 * unit_log_scale(problem)))
    require_equal(model, "factor_", own, "the factor that densities are computed from")
    require_equal(model, "coefficients_", own @ own.T, "its factor")
    require_equal(model, "eigenvalues_", masses / mass, "its factor", tolerance=_MASS + rounding)
    error = problem.integrals.error + rounding
    require_equal(model, "integration_error_", error, "its integrals", tolerance=error + _OUTSIDE)


def _require_distance(model: SumOfSquaresDensity, name: str, value: float, largest: float) -> None:
    """Refuse a distance whose square is another, to the rounding of a difference of squared norms."""
    stored = float(require_numbers(model, name, ()))
    if stored < 0 or abs(stored**2 - value**2) > _DISTANCE * (largest**2 + value**2):
        raise ValueError(
            f"The model's {name} is {stored:.9g} where its factor and X make {value:.9g}: it is damaged, or X is not "
            "the data of the fit."
        )
