"""The certificate of a fitted density, recomputed from its factor, its kernel, its support and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certificates import Certificate, certify_spectrahedron
from mercer.density.programme import make_programme
from mercer.density.sos import SumOfSquaresDensity
from mercer.validation import checked_points, normalised, require_rows

_MASS = 1e-6


def verify_density(model: SumOfSquaresDensity, X: Any) -> Certificate:
    """Certify a fitted density again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. The integrals and the mean embedding of X are computed anew. That the density integrates
    to one is checked too, by the integrals of the squares of the model's own factor.
    """
    check_is_fitted(model)
    X = checked_points(model, X, fitting=False).astype(np.float64, copy=False)
    require_rows(X, model._n_rows)
    problem = make_programme(
        model.kernel_,
        model.support_,
        model.measure_,
        X,
        normalised(model.sample_weight_, X.shape[0]),
        regularization=model.regularization_,
        truncation=model.truncation,
    )
    factor = np.asarray(model.factor_, np.float64)
    if factor.ndim != 2 or factor.shape[0] != problem.size or not np.all(np.isfinite(factor)):
        raise ValueError(f"The model has a factor of shape {factor.shape} for {problem.size} points: it is damaged.")
    factor = factor * np.exp(0.5 * problem.integrals.log_scale)
    masses, rounding = problem.integrals.square_masses(factor)
    mass = float(np.sum(masses))
    if not abs(mass - 1.0) <= _MASS + rounding:
        raise ValueError(f"The model's density integrates to {mass:.9g} and not to one: it is damaged.")
    return certify_spectrahedron(problem, problem.coordinates(factor))
