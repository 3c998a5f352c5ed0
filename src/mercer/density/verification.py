"""The certificate of a fitted density, recomputed from its factor, its kernel, its support and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import config_context
from mercer.backends.threads import blas_for
from mercer.certificates import Certificate, certify_spectrahedron
from mercer.density.consistency import require_equal, require_kernel, require_meeting, require_numbers
from mercer.density.footprint import require_memory
from mercer.density.programme import make_programme
from mercer.density.reference import choose_reference
from mercer.density.sos import SumOfSquaresDensity
from mercer.density.support import choose_support
from mercer.kernels import Laplacian
from mercer.kernels.measures import Box, GaussianMeasure
from mercer.linalg.random import as_generator
from mercer.problems import SumOfSquares
from mercer.problems.sum_of_squares import Spans
from mercer.validation import checked_weights, distinct_rows, normalised, require_rows

Array = np.ndarray[Any, np.dtype[Any]]

_MASS = 1e-6
_OUTSIDE = 1e-9  # of the factor's entries, for the rounding of T F
_DISTANCE = 1e-9  # of the squared norms, for the rounding of a difference of them
_EPS = float(np.finfo(np.float64).eps)
_SPANNED = 4.0  # times the eigenvalue at which a span is cut, that may lie outside of it


def verify_density(model: SumOfSquaresDensity, X: Any) -> Certificate:
    """Certify a fitted density again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. The integrals and the mean embedding of X are computed anew, for the densities of the
    span that the model keeps; that it is the one its truncation says is checked. So is every other number of the model:
    kernel, measure, λ and sampled support against the parameters and X; ``coefficients_``, ``eigenvalues_``, ``rank_``,
    the scale and the distances against its factor; and that the density integrates to one.
    """
    check_is_fitted(model)
    options = model._checked_options()
    X = model._checked_rows(X, fitting=False)
    require_rows(X, model._n_rows)
    weights = model.sample_weight_
    weights = None if weights is None else checked_weights(weights, X.shape[0], "The model's sample_weight_")
    shares = normalised(weights, X.shape[0])
    support = require_numbers(model, "support_")
    _require_support(model, support, X, shares)
    require_memory(support.shape[0], X.shape[0], X.shape[1], not isinstance(model.kernel_, Laplacian))
    _require_measure(model, X, shares)
    with config_context(dtype="float64"), blas_for(support.shape[0]):
        require_kernel(model, model._resolved_kernel(X, shares, support))
        spans = _read_spans(model, support.shape[0])
        problem = make_programme(model.kernel_, support, model.measure_, X, weights, spans=spans, **options)
        require_equal(model, "regularization_", problem.regularization, "its parameters and X")
        gram = np.asarray(problem.integrals.kernel(support), np.float64)
        require_spans(problem.integrals.mass(), spans.basis, "densities", options["truncation"])
        require_spans(gram, spans.whitening, "the projection", options["truncation"])
        _require_factor(model, problem)
        distances = model._measured(problem, X)
        for name, value in distances.items():
            _require_distance(model, name, value, max(value, distances["sample_norm_"]))
        return require_meeting(model, certify_spectrahedron(problem, problem.coordinates(model._factor)))


def _require_support(model: SumOfSquaresDensity, support: Array, X: Array, shares: Array) -> None:
    """Points of as many features as X, which are rows of X where they were drawn from it."""
    if support.ndim != 2 or support.shape[0] < 1 or support.shape[1] != X.shape[1]:
        raise ValueError(f"The model's support_ has shape {support.shape} for {X.shape[1]} features: it is damaged.")
    if distinct_rows(support)[0].size != support.shape[0]:
        raise ValueError("The model's support_ has equal points: it is damaged.")
    chosen = model.support
    if chosen is None or isinstance(chosen, int | np.integer):
        first, _ = distinct_rows(X[shares > 0])
        both = np.concatenate([X[shares > 0][first], support])
        if distinct_rows(both)[0].size != first.size:
            raise ValueError("The model's support_ has points that X does not have: it is damaged, or X is another.")
    elif not isinstance(chosen, str | tuple) and not hasattr(chosen, "fit"):
        require_equal(model, "support_", choose_support(chosen, X, shares, as_generator(0)), "its parameter support")


def _require_measure(model: SumOfSquaresDensity, X: Array, shares: Array) -> None:
    expected, found = choose_reference(model.reference, model.box, X, shares), model.measure_
    same = type(found) is type(expected)
    if isinstance(found, Box) and isinstance(expected, Box):
        same = np.array_equal(found.lower, expected.lower) and np.array_equal(found.upper, expected.upper)
    if isinstance(found, GaussianMeasure) and isinstance(expected, GaussianMeasure):
        size = expected.std + float(np.max(np.abs(expected.mean)))
        same = bool(np.all(np.abs(found.mean - expected.mean) <= _OUTSIDE * size))
        same = same and abs(found.std - expected.std) <= _OUTSIDE * expected.std
    if not same:
        raise ValueError(
            f"The model's measure_ is {found!r} where its parameters and X make {expected!r}: it is damaged, or X is "
            "not the data of the fit."
        )


def _read_spans(model: SumOfSquaresDensity, m: int) -> Spans:
    spans = getattr(model, "_spans", None)
    if not isinstance(spans, tuple) or len(spans) != 2:
        raise ValueError("The model's spans are missing: it is damaged.")
    bases = [np.asarray(span, np.float64) for span in spans]
    if any(b.ndim != 2 or b.shape[0] != m or not 1 <= b.shape[1] <= m or not np.all(np.isfinite(b)) for b in bases):
        raise ValueError(f"The model's spans are no bases of coefficients on {m} points: it is damaged.")
    return Spans(*bases)


def require_spans(matrix: Array, basis: Array, name: str, truncation: float) -> None:
    """Refuse a span that leaves out more of a positive semi-definite matrix than eigenvectors below the truncation."""
    image = matrix @ basis
    try:
        outside = matrix - image @ np.linalg.solve(basis.T @ image, image.T)
    except np.linalg.LinAlgError:
        outside = np.full_like(matrix, np.inf)
    largest = float(np.linalg.norm(matrix, 2))
    allowed = (_SPANNED * truncation + 1e4 * matrix.shape[0] * _EPS) * largest
    if not float(np.linalg.norm(outside)) <= np.sqrt(matrix.shape[0]) * allowed:
        raise ValueError(f"The model's span of {name} leaves out more than its truncation says: it is damaged.")


def _require_factor(model: SumOfSquaresDensity, problem: SumOfSquares) -> None:
    """Refuse a factor outside the span or without mass one, and what else is not made of it."""
    rank = require_numbers(model, "rank_", ())
    factor = require_numbers(model, "_factor", (problem.size, int(rank)))
    require_equal(model, "log_scale_", problem.integrals.log_scale, "its kernel and measure", tolerance=_OUTSIDE)
    masses, rounding = problem.integrals.square_masses(factor)
    mass = float(np.sum(masses))
    if not abs(mass - 1.0) <= _MASS + rounding:
        raise ValueError(f"The model's density integrates to {mass:.9g} and not to one: it is damaged.")
    inside = problem.basis @ problem.coordinates(factor)
    if np.max(np.abs(factor - inside)) > _OUTSIDE * float(np.max(np.abs(factor))):
        raise ValueError("The model's factor lies outside the span of its densities: it is damaged.")
    own = factor * np.exp(-0.5 * problem.integrals.log_scale)
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
