"""The certificate of a fitted embedding, recomputed from its coordinates, its kernel and the data alone.

All else that a person can read off the model or predict with follows from these three: it is computed anew, in the
code that ``fit`` uses, and a model that says otherwise is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import get_config
from mercer.certificates import Certificate, certify_elliptope
from mercer.embedding.extension import Extension, embedded_rows
from mercer.embedding.programme import Programme
from mercer.embedding.sdp import SDPEmbedding
from mercer.embedding.support import Support
from mercer.kernels import Kernel, Precomputed
from mercer.linalg.random import as_generator
from mercer.operators import DiffusionOperator
from mercer.validation import checked_points, checked_weights

Array = np.ndarray[Any, np.dtype[Any]]
_CLOSE = {"float64": 1e-9, "float32": 1e-3}  # two computations of one thing, in the same arithmetic
_PARTS = (
    "kernel_",
    "embedding_",
    "coordinates_",
    "rank_",
    "eigenvalues_",
    "diagonal_",
    "stationary_",
    "landmarks_",
    "sample_weight_",
    "_extension",
    "_n_features_out",
)
_EXTENDED = 1e-6  # directions of new points, where averages that nearly vanish are divided by their length


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
    _check_parts(model)
    rng = as_generator(random_state).spawn(1)[0]
    X = checked_points(model, X, fitting=False)
    _check_rows(model, X, extended)
    support = Support(None, None) if extended else _stored_support(model, X.shape[0])
    points = support.points(X, model.kernel_)
    programme = Programme.of(model.kernel_, points, support.scaled, rng)
    if extended:
        coordinates = model._extend(X)
    else:
        coordinates = _stored_coordinates(model, programme.operator, support)
        _check_readings(model, programme.operator, support, coordinates)
        _check_extension(model, X, points, programme.operator, support, coordinates)
    certificate = certify_elliptope(
        programme.proof,
        coordinates,
        rng=rng,
        failure_probability=failure_probability,
        multipliers=None if extended else _stored_multipliers(model, X.shape[0]),
    )
    if not extended:
        _check_claims(getattr(model, "certificate_", None), certificate)
    return certificate


def _check_parts(model: SDPEmbedding) -> None:
    """Refuse a model that lacks a part of what a fit leaves."""
    for name in _PARTS:
        if not hasattr(model, name):
            raise _damaged(f"it has no {name}")
    if not isinstance(model.kernel_, Kernel):
        raise _damaged("kernel_ is no kernel")
    if not isinstance(model._extension, Extension):
        raise _damaged("it has no extension to new points")


def _check_rows(model: SDPEmbedding, X: Any, extended: bool) -> None:
    if extended:
        if X.shape[0] < 2:
            raise ValueError("The extension is certified on a sample of at least two points: X has one.")
        if isinstance(model.kernel_, Precomputed) and X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel must be square to be certified, not {X.shape[0]} × {X.shape[1]}.")
        return
    rows = np.shape(model.embedding_)[0]
    if X.shape[0] != rows:
        raise ValueError(
            f"The model was fitted to {rows} points, X has {X.shape[0]}: pass the data of the fit, or extended=True."
        )


def _stored_support(model: SDPEmbedding, n: int) -> Support:
    """The rows and weights that the model states, checked as those of a user are."""
    indices, weights = model.landmarks_, model.sample_weight_
    if indices is not None:
        indices = np.asarray(indices)
        sound = indices.ndim == 1 and indices.dtype.kind in "iu" and indices.size >= 2
        if not sound or indices.min() < 0 or indices.max() >= n or np.unique(indices).size != indices.size:
            raise _damaged(f"landmarks_ does not name different rows of {n}")
    if weights is not None:
        weights = checked_weights(weights, n if indices is None else indices.size, "sample_weight_ of the model")
        if not np.all(weights > 0):
            raise _damaged("sample_weight_ is not positive")
    return Support(indices, weights)


def _stored_coordinates(model: SDPEmbedding, operator: DiffusionOperator, support: Support) -> Array:
    """The coordinates in the scaled weights; those whose lengths are not what X prescribes, ‖Ξᵢ‖² = dᵢ, are refused."""
    stored = np.asarray(model.coordinates_)
    if stored.ndim != 2 or stored.shape[0] != operator.shape[0] or not np.all(np.isfinite(stored)):
        raise ValueError(
            f"The model has coordinates of shape {stored.shape} for {operator.shape[0]} points, or some of them "
            "are not finite: it is damaged."
        )
    coordinates = np.asarray(stored, np.float64) * support.unit
    lengths = np.sum(coordinates**2, axis=1)
    diagonal = np.asarray(operator.diagonal() / operator.weights, np.float64)
    staying = np.max(np.asarray(operator.gram.diagonal() / operator.degrees, np.float64))
    if np.max(np.abs(lengths - diagonal)) > _tolerance(model) * staying:
        row = int(np.argmax(np.abs(lengths - diagonal)))
        raise ValueError(
            f"The embedding cannot belong to this X: the squared length of row {row} is {lengths[row]:.6g} where X "
            f"prescribes {diagonal[row]:.6g}. Pass the data of the fit, its rows in the same order."
        )
    return coordinates


def _stored_multipliers(model: SDPEmbedding, n: int) -> Array | None:
    """Dual variables that the solver left: a suggestion, of which the proof believes nothing but that it is one."""
    stored = getattr(model, "multipliers_", None)
    if stored is None:
        return None
    values = np.asarray(stored, np.float64)
    rows = n if model.landmarks_ is None else np.size(model.landmarks_)
    if values.shape != (rows,) or not np.all(np.isfinite(values)):
        raise _damaged(f"multipliers_ is not {rows} finite numbers")
    return values


def _check_readings(model: SDPEmbedding, operator: DiffusionOperator, support: Support, coordinates: Array) -> None:
    """Refuse a diagonal, a stationary distribution, a rank or a spectrum that X and the coordinates do not have."""
    close = _tolerance(model)
    rank = coordinates.shape[1]
    if model.rank_ != rank:
        raise _damaged(f"rank_={model.rank_!r}, but coordinates_ has {rank} columns")
    _require("diagonal_", model.diagonal_, support.lengths(operator.diagonal() / operator.weights, 2), close)
    _require("stationary_", model.stationary_, operator.stationary**2, close)
    weighted = np.sqrt(np.asarray(operator.weights, np.float64))[:, None] * coordinates
    moments = weighted.T @ weighted
    if np.shape(model.eigenvalues_) != (rank,):
        raise _damaged(f"eigenvalues_ has shape {np.shape(model.eigenvalues_)} for a rank of {rank}")
    spectrum = np.diag(np.asarray(model.eigenvalues_, np.float64))
    _require("eigenvalues_", spectrum, moments / np.trace(moments), close)
    if np.any(np.diff(model.eigenvalues_) > close):
        raise _damaged("eigenvalues_ does not fall")


def _check_extension(
    model: SDPEmbedding, X: Any, points: Any, operator: DiffusionOperator, support: Support, coordinates: Array
) -> None:
    """Refuse an ``embedding_`` and an extension to new points that are not those of the coordinates."""
    stored, close = model._extension, _tolerance(model)
    anew = Extension.of(model.kernel_, points, support, operator, coordinates)
    if repr(stored.kernel) != repr(model.kernel_):
        raise _damaged(f"it extends by {stored.kernel!r}, but kernel_ is {model.kernel_!r}")
    if not _same_points(stored.points, points):
        raise _damaged("the points that it extends from are not those of X")
    for name, ours, theirs in zip(("landmarks_", "sample_weight_"), stored.support, support, strict=True):
        if not np.array_equal(np.asarray(ours), np.asarray(theirs)):
            raise _damaged(f"it extends by others than {name}")
    _require("the weights of the extension", stored.weights, anew.weights, close)
    _require("the slopes of the extension", stored.slopes, anew.slopes, close)
    _require("the volume of the extension", np.exp(stored.log_volume - anew.log_volume), 1.0, close)
    if anew.log_longest != stored.log_longest:
        _require("the cap of the extension", np.exp(stored.log_longest - anew.log_longest), 1.0, close)
    rows = embedded_rows(np.asarray(model.coordinates_), anew, X, capped=model.radius == "capped")
    wanted = rows.shape[1] if model.n_components is None else model.n_components
    kept = rows[:, :wanted]
    expected = np.pad(kept, ((0, 0), (0, wanted - kept.shape[1])))
    if model._n_features_out != wanted:
        raise _damaged(f"transform gives {model._n_features_out} columns where {wanted} were asked for")
    _require("embedding_", model.embedding_, expected, close if support.indices is None else max(close, _EXTENDED))


def _check_claims(claimed: Certificate | None, certificate: Certificate) -> None:
    """Refuse a model whose own bounds on the optimum exclude those found here."""
    if claimed is not None and not (claimed.lower <= certificate.upper and certificate.lower <= claimed.upper):
        raise _damaged(
            f"certificate_ says that the optimum lies between {claimed.lower:.9g} and {claimed.upper:.9g}, and it lies "
            f"between {certificate.lower:.9g} and {certificate.upper:.9g}"
        )


def _same_points(stored: Any, points: Any) -> bool:
    """Whether two sets of points, dense or sparse, are equal in the coarser of their arithmetics."""
    if stored.shape != points.shape or hasattr(stored, "toarray") != hasattr(points, "toarray"):
        return False
    if hasattr(stored, "toarray"):
        return bool(abs(stored - points).max() <= np.finfo(np.float32).eps * abs(points).max())
    coarser = min(stored.dtype, points.dtype, key=lambda dtype: dtype.itemsize)
    return np.array_equal(stored.astype(coarser, copy=False), points.astype(coarser, copy=False))


def _tolerance(model: SDPEmbedding) -> float:
    """How close two computations of one thing are in the coarser of the fit's and the present arithmetic."""
    return max(_CLOSE[get_config().dtype], _CLOSE.get(str(getattr(model._extension.points, "dtype", "")), 0.0))


def _require(name: str, stored: Any, expected: Any, close: float) -> None:
    """Refuse an attribute that is further from what it must be than a part of its largest entry."""
    values, expected = np.asarray(stored, np.float64), np.asarray(expected, np.float64)
    if values.shape != expected.shape:
        raise _damaged(f"{name} has shape {values.shape} instead of {expected.shape}")
    size = float(np.max(np.abs(expected), initial=0.0))
    if not np.all(np.abs(values - expected) <= close * size):  # a NaN is not close
        raise _damaged(f"{name} is not what the coordinates, the kernel and X give")


def _damaged(what: str) -> ValueError:
    return ValueError(f"The model is damaged, or of other data: {what}. Fit it again.")
