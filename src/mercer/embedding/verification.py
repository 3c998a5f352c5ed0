"""The certificate of a fitted embedding, recomputed from its coordinates, its kernel and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certificates import Certificate, certify_elliptope
from mercer.embedding.programme import Programme
from mercer.embedding.sdp import SDPEmbedding
from mercer.embedding.support import Support
from mercer.kernels import Precomputed
from mercer.linalg.random import as_generator
from mercer.operators import DiffusionOperator
from mercer.validation import checked_points

Array = np.ndarray[Any, np.dtype[Any]]
_LENGTHS = 1e-3


def verify_embedding(
    model: SDPEmbedding,
    X: Any,
    *,
    extended: bool = False,
    failure_probability: float = 1e-9,
    random_state: Any = None,
) -> Certificate:
    """Certify a fitted embedding again, believing nothing that its solver left behind.

    The kernel operator is built from ``model.kernel_`` and X, the point H from the directions of the coordinates, and
    the bounds from these two. See :func:`mercer.verify`.
    """
    check_is_fitted(model)
    rng = as_generator(random_state).spawn(1)[0]
    X = checked_points(model, X, fitting=False)
    support = Support(None, None) if extended else Support(model.landmarks_, model.sample_weight_)
    _check_rows(model, X, extended)
    points = support.points(X, model.kernel_)
    programme = Programme.of(model.kernel_, points, support.weights, rng)
    coordinates = model._extend(X) if extended else np.asarray(model.coordinates_, np.float64)
    if not extended:
        _check_lengths(coordinates, programme.operator, max(_LENGTHS, 2 * float(model.rank_tol)))
    return certify_elliptope(programme.problem, coordinates, rng=rng, failure_probability=failure_probability)


def _check_rows(model: SDPEmbedding, X: Any, extended: bool) -> None:
    if extended:
        if X.shape[0] < 2:
            raise ValueError("The extension is certified on a sample of at least two points: X has one.")
        if isinstance(model.kernel_, Precomputed) and X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel must be square to be certified, not {X.shape[0]} × {X.shape[1]}.")
        return
    rows = model.embedding_.shape[0]
    if X.shape[0] != rows:
        raise ValueError(
            f"The model was fitted to {rows} points, X has {X.shape[0]}: pass the data of the fit, or extended=True."
        )


def _check_lengths(coordinates: Array, operator: DiffusionOperator, tolerance: float) -> None:
    """Refuse coordinates whose lengths are not those that X prescribes: ‖Ξᵢ‖² = dᵢ."""
    if coordinates.shape[0] != operator.shape[0] or not np.all(np.isfinite(coordinates)):
        raise ValueError(
            f"The model has coordinates of shape {coordinates.shape} for {operator.shape[0]} points, or some of them "
            "are not finite: it is damaged."
        )
    lengths = np.sum(coordinates**2, axis=1)
    diagonal = np.asarray(operator.diagonal() / operator.weights, np.float64)
    weighted = np.abs(lengths - diagonal) * operator.weights
    if float(weighted.sum()) > tolerance * float(diagonal @ operator.weights):
        row = int(np.argmax(weighted))
        raise ValueError(
            f"The embedding cannot belong to this X: the squared length of row {row} is {lengths[row]:.6g} where X "
            f"prescribes {diagonal[row]:.6g}. Pass the data of the fit, its rows in the same order."
        )
