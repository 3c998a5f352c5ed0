"""The certificate of a sparse measure, recomputed from its nodes and weights, its kernel and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certificates import Certificate, certify_measure
from mercer.quadrature.sample import make_problem, make_sample
from mercer.quadrature.sparsifier import QuadratureSparsifier
from mercer.validation import checked_points, checked_weights, require_rows

_ROUNDING = 1e-9


def verify_quadrature(model: QuadratureSparsifier, X: Any) -> Certificate:
    """Certify a fitted sparsifier again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. Sω is computed anew: one product with the squared kernel.
    """
    check_is_fitted(model)
    X = checked_points(model, X, fitting=False)
    require_rows(X, model._n_rows)
    sample = make_sample(X, model.kernel_, model.sample_weight_, model.penalty)
    places = np.searchsorted(sample.rows, model.indices_)
    if np.any(places >= sample.rows.size) or not np.array_equal(sample.rows[places], model.indices_):
        raise ValueError("The model has nodes that X does not: pass the data of the fit, its rows in the same order.")
    weights = checked_weights(model.weights_, model.indices_.size, "the weights of the model")
    problem = make_problem(X, model.kernel_, sample, max_weight=model.max_weight, ridge=model.ridge)
    if np.any(weights > problem.caps[places] * (1 + _ROUNDING)):
        raise ValueError("The model has a weight above max_weight: it is damaged.")
    programme = model._programme._replace(
        kappa=None if model._programme.kappa is None else float(problem.penalty[places] @ weights)
    )
    return certify_measure(problem, places, weights, **programme._asdict())
