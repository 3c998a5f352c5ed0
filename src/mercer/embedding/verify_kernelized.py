"""The certificate of a fitted kernelised embedding, recomputed from its coordinates, its kernel and the data alone.

All else that a person can read off the model or predict with follows from these: it is computed again, and a model that
says otherwise is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, to_numpy
from mercer.certificates import EmbeddingCertificate
from mercer.certificates.kernelized import KernelizedProof
from mercer.consistency import require_equal, require_numbers, same_points
from mercer.embedding.degeneracy import widened
from mercer.embedding.kernelized import KernelizedSDPEmbedding, extended_rows, training_rows
from mercer.embedding.kernelized_problem import pose, prescribed_at, proved, without_any_copies
from mercer.estimator import Recheck
from mercer.kernels import Kernel
from mercer.problems.kernelized import KernelizedProgramme
from mercer.support import Support, stored_support
from mercer.validation import require_points, require_rows

_LENGTHS = 1e-9  # of squared row lengths beside d
_SOLVED = 1e-7  # of K times the coefficients beside the coordinates


def verify_kernelized(model: KernelizedSDPEmbedding, X: Any, recheck: Recheck) -> EmbeddingCertificate:
    """Certify a fitted embedding again, believing nothing that its solver left behind. See :func:`mercer.verify`."""
    check_is_fitted(model)
    _check_parts(model)
    X = model._new_points(X)
    if recheck.extended:
        return _extension(model, X)
    require_rows(X, int(model.embedding_.shape[0]))
    support = stored_support(model, X)
    programme = _posed(model, X, support)
    coordinates = _stored_coordinates(model, programme)
    _check_readings(model, programme, coordinates)
    _check_extension(model, X, support, programme, coordinates)
    multipliers = require_numbers(model, "multipliers_", (programme.size,))
    certificate = proved(programme, model.kernel_).certificate(coordinates, multipliers)
    claimed = model.certificate_
    if claimed is not None and not (claimed.lower <= certificate.upper and certificate.lower <= claimed.upper):
        raise ValueError(
            f"certificate_ says that the optimum lies between {claimed.lower:.9g} and {claimed.upper:.9g}, and it lies "
            f"between {certificate.lower:.9g} and {certificate.upper:.9g}: the model is damaged."
        )
    return certificate


def _extension(model: KernelizedSDPEmbedding, X: Any) -> EmbeddingCertificate:
    """The extended coordinates of the different rows of X, brought to length, as a solution of their own programme."""
    require_points(model.kernel_, "The extension of a kernel matrix has no values on another sample")
    carriers = without_any_copies(Support(None, None), X, model.kernel_)
    points = carriers.support.points(X, model.kernel_)
    if callable(model.diagonal) or model.diagonal is None:
        prescribed = prescribed_at(model.diagonal, X, points, carriers.support)
    else:
        raise ValueError("diagonal is an array for the data of the fit: an extension is certified with a function.")
    programme = pose(model.kernel_, X, carriers.support, prescribed, model.regularization_, float(model.nugget))
    proof: KernelizedProof = proved(programme, model.kernel_)
    return proof.certificate(to_numpy(extended_rows(model, points)), None)


def _check_parts(model: KernelizedSDPEmbedding) -> None:
    names = ("kernel_", "coordinates_", "coefficients_", "embedding_", "landmarks_", "sample_weight_", "certificate_")
    for name in (*names, "regularization_", "_points", "_n_features_out"):
        if not hasattr(model, name):
            raise ValueError(f"The model has no {name}: it is damaged.")
    if not isinstance(model.kernel_, Kernel):
        raise ValueError("The model's kernel_ is no kernel: it is damaged.")


def _posed(model: KernelizedSDPEmbedding, X: Any, support: Support) -> KernelizedProgramme:
    points = support.points(X, model.kernel_)
    prescribed = prescribed_at(model.diagonal, X, points, support)
    strength = float(require_numbers(model, "regularization_", ()))
    programme = pose(model.kernel_, X, support, prescribed, model.regularization, float(model.nugget))
    if not abs(programme.regularization - strength) <= _LENGTHS * programme.regularization:
        raise ValueError(
            f"The model's regularization_ is {strength:.9g} where its parameters, its kernel and X make "
            f"{programme.regularization:.9g}: it is damaged."
        )
    return programme


def _stored_coordinates(model: KernelizedSDPEmbedding, programme: KernelizedProgramme) -> Array:
    """The coordinates; those whose lengths are not what X prescribes are refused."""
    coordinates = require_numbers(model, "coordinates_")
    if coordinates.ndim != 2 or coordinates.shape[0] != programme.size or not coordinates.shape[1]:
        raise ValueError(
            f"The model's coordinates_ has shape {coordinates.shape} for {programme.size} points: it is damaged."
        )
    lengths, d = np.sum(coordinates**2, axis=1), programme.prescribed
    off = np.abs(lengths - d) / d
    if float(off.max()) > _LENGTHS:
        row = int(off.argmax())
        raise ValueError(
            f"The embedding cannot belong to this X: the squared length of row {row} is {lengths[row]:.6g} where X "
            f"prescribes {d[row]:.6g}. Pass the data of the fit, its rows in the same order."
        )
    return coordinates


def _check_readings(model: KernelizedSDPEmbedding, programme: KernelizedProgramme, coordinates: Array) -> None:
    """Refuse what the model says of its solution and the solution does not."""
    moments = coordinates.T @ (programme.shares[:, None] * coordinates)
    require_equal(model, "eigenvalues_", np.diagonal(moments) / np.trace(moments), "coordinates_", tolerance=1e-9)
    require_equal(model, "diagonal_", programme.prescribed, "the kernel and X")
    require_equal(model, "rank_", coordinates.shape[1], "coordinates_")
    require_equal(model, "alignment_", programme.alignment(coordinates), "coordinates_, the kernel and X")
    trace = programme.trace(coordinates)
    require_equal(model, "trace_", trace, "coordinates_, the kernel and X", tolerance=_SOLVED * trace)


def _check_extension(
    model: KernelizedSDPEmbedding, X: Any, support: Support, programme: KernelizedProgramme, coordinates: Array
) -> None:
    """Refuse an ``embedding_`` and an extension to new points that are not those of the coordinates."""
    stored, points = model._points, support.points(X, model.kernel_)
    if not same_points(stored, points):
        raise ValueError("The points that the model extends from are not those of X: it is damaged.")
    coefficients = require_numbers(model, "coefficients_", coordinates.shape)
    off = float(np.max(np.abs(programme.matrix @ coefficients - coordinates)))
    if off > _SOLVED * float(np.sqrt(programme.prescribed.max())) + 2 * programme.product_rounding(coefficients):
        raise ValueError(f"The model's coefficients_ miss coordinates_ by {off:.1e}: it is damaged.")
    wanted = coordinates.shape[1] if model.n_components is None else int(model.n_components)
    if model._n_features_out != wanted:
        raise ValueError(f"The model's transform gives {model._n_features_out} columns, not {wanted}: it is damaged.")
    place = without_any_copies(Support(None, None), X, model.kernel_).place if _covers(model, X) else None
    rows = widened(training_rows(model, X, place)[:, :wanted], wanted)
    require_equal(model, "embedding_", rows, "coordinates_, the kernel and X", tolerance=_SOLVED)


def _covers(model: KernelizedSDPEmbedding, X: Any) -> bool:
    """Whether every row of X is one of the points that the programme was solved on, in the order of a fit to all."""
    if model.landmarks_ is None:
        return True
    if model.landmarks is not None:
        return False
    every = without_any_copies(Support(None, None), X, model.kernel_).support.indices
    return every is not None and np.array_equal(to_numpy(every), to_numpy(model.landmarks_))
