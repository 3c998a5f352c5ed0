"""The certificate of kernel principal components, recomputed from their vectors, their kernel and the data alone.

All else that a person can read off the model or embed with follows from these: it is computed again, and a model that
says otherwise is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, cast, dtype_name, like, to_numpy
from mercer.backends.rounding import TINY
from mercer.backends.threads import one_thread_for, single_threaded_blas
from mercer.certificates import Certificate
from mercer.certificates.eigenvalues import certify_leading, enclose_leading, residual_bounds, starts_for
from mercer.consistency import require_equal, require_meeting, require_numbers, same_points
from mercer.embedding.degeneracy import widened
from mercer.embedding.kernel_pca import KernelPCA, in_double_precision
from mercer.embedding.principal_functions import PrincipalFunctions
from mercer.embedding.principal_pairs import NegativePart, PrincipalPairs
from mercer.estimator import Recheck
from mercer.kernels import Kernel
from mercer.kernels.checks import as_generator
from mercer.operators import CenteredOperator, GramOperator
from mercer.support import Support, stored_support
from mercer.validation import require_rows

_WHY = "eigenvectors_, the kernel and X"
_DIGITS = {"float64": 1e-7, "float32": 1e-3}  # to which parts of the largest entry readings agree
_SMALLER = 0.5  # of the bound that is found again, which a stored one may be


def verify_kernel_pca(model: KernelPCA, X: Any, recheck: Recheck) -> Certificate:
    """Certify fitted components again, believing nothing that their solver left behind. See :func:`mercer.verify`."""
    check_is_fitted(model)
    if not isinstance(model.kernel_, Kernel):
        raise ValueError("The model's kernel_ is no kernel: it is damaged.")
    X = model._new_points(X)
    require_rows(X, int(model.embedding_.shape[0]))
    support = stored_support(model, X)
    points = support.points(X, model.kernel_)
    with one_thread_for(points.shape[0], points), single_threaded_blas():
        operator = CenteredOperator(GramOperator(model.kernel_, points), weights=support.scaled)
        exact = in_double_precision(operator, points, support.scaled)
        pairs = _stored_pairs(model, exact, support)
        _check_eigenvalues(model, exact, pairs, support)
        _check_functions(model, X, points, support, operator, pairs)
        rng = as_generator(recheck.random_state).spawn(1)[0]
        rounding, starts = exact.rounding(), starts_for(exact, rng, recheck.failure_probability)
        proved = enclose_leading(exact, rounding, pairs.vectors, starts)
        certificate = certify_leading(exact, rounding, pairs.vectors, proved, support.unit**2)
    _check_bounds(model, proved.lower, proved.upper, support)
    return certificate if model.certificate_ is None else require_meeting(model, certificate)


def _stored_pairs(model: KernelPCA, exact: CenteredOperator, support: Support) -> PrincipalPairs:
    """The eigenvectors of the model, where X lies, with the eigenvalues that they have before a lift."""
    m, count = exact.shape[0], int(model.n_components)
    vectors, values = require_numbers(model, "eigenvectors_", (m, count)), require_numbers(model, "eigenvalues_")
    rank = int(np.count_nonzero(np.any(vectors != 0, axis=0)))
    if values.shape != (count,) or not rank or np.any(vectors[:, rank:]) or np.any(values[rank:]):
        raise ValueError("The model's eigenvalues_ and eigenvectors_ do not belong together: it is damaged.")
    kept = vectors[:, :rank]
    off = float(np.abs(kept.T @ kept - np.eye(rank)).max())
    if off > _digits(model):
        raise ValueError(f"The model's eigenvectors_ miss orthonormality by {off:.1e}: it is damaged.")
    lift = float(require_numbers(model, "lift_", ()))
    if lift < 0 or (lift > 0 and model.indefinite != "lift"):
        raise ValueError(f"The model's lift_ is {lift:g} with indefinite={model.indefinite!r}: it is damaged.")
    plain = (values[:rank] - lift) / support.unit**2
    stored = [like(part, exact.reference) for part in (plain, kept)]
    return PrincipalPairs(stored[0], stored[1], NegativePart(), stored[1][:, :0])


def _check_eigenvalues(model: KernelPCA, exact: CenteredOperator, pairs: PrincipalPairs, support: Support) -> None:
    """Refuse eigenvalues that the vectors do not have, and error bounds that are too small for them."""
    unit, rank, count = support.unit**2, pairs.values.shape[0], int(model.n_components)
    found = to_numpy((pairs.vectors * (exact @ pairs.vectors)).sum(axis=0)) * unit + float(model.lift_)
    found = np.concatenate([found, np.zeros(count - rank)])
    largest = float(np.abs(found).max())
    require_equal(model, "eigenvalues_", found, _WHY, tolerance=_digits(model) * largest)
    again = unit * to_numpy(residual_bounds(exact, exact.rounding(), pairs.values, pairs.vectors))
    stored = require_numbers(model, "residual_bounds_", (count,))
    if np.any(stored[:rank] < _SMALLER * again):
        raise ValueError("The model's residual_bounds_ are below the residuals of its eigenpairs: it is damaged.")
    weight = float(exact.shape[0] if support.weights is None else support.weights.sum())
    require_equal(model, "explained_variance_", to_numpy(model.eigenvalues_) / weight, "eigenvalues_")
    ratios = require_numbers(model, "explained_variance_ratio_", (count,))
    everything = unit * float(to_numpy(exact.diagonal()).sum())
    parts = model.negative_share_ == 0 and model.lift_ == 0  # of a trace that is known here
    if parts and not np.allclose(ratios * everything, to_numpy(model.eigenvalues_), rtol=1e-6, atol=TINY):
        raise ValueError("The model's explained_variance_ratio_ is not what the trace gives: it is damaged.")


def _check_functions(
    model: KernelPCA, X: Any, points: Any, support: Support, operator: CenteredOperator, pairs: PrincipalPairs
) -> None:
    """Refuse an ``embedding_``, and functions of new points, that are not those of the eigenpairs."""
    stored, expected = model._functions, PrincipalFunctions.of(points, support, operator, pairs)
    if not same_points(stored.points, points):
        raise ValueError("The points that the model extends from are not those of X: it is damaged.")
    for name in ("coefficients", "offset", "at_points"):
        entries = getattr(expected, name)
        size = float(abs(entries).max())
        if name == "offset":  # a mean, subtracted from values of the functions: it may be all rounding of these
            size = max(size, float(abs(expected.at_points).max()))
        require_equal(stored, name, entries, _WHY, tolerance=_digits(model) * size)
    at = expected.at_points if support.indices is None else expected(X)
    rank, count = pairs.values.shape[0], int(model.n_components)
    lengths = cast(like(np.sqrt(to_numpy(model.eigenvalues_)[:rank]) / support.unit, at), at.dtype)
    embedded = widened(at * lengths, count)
    require_equal(model, "embedding_", embedded, _WHY, tolerance=_digits(model) * float(abs(embedded).max()))
    require_equal(model, "_lengths", lengths, _WHY, tolerance=_digits(model) * float(lengths.max()))


def _check_bounds(model: KernelPCA, lower: Array, upper: Array, support: Support) -> None:
    """Refuse stored bounds of eigenvalues that exclude those that were proved again."""
    if model.eigenvalue_bounds_ is None:
        return
    rank, unit = int(lower.shape[0]), support.unit**2
    stored = require_numbers(model, "eigenvalue_bounds_", (rank, 2)) - float(model.lift_)
    if np.any(stored[:, 0] > unit * to_numpy(upper)) or np.any(unit * to_numpy(lower) > stored[:, 1]):
        raise ValueError("The model's eigenvalue_bounds_ exclude what was proved again: it is damaged.")


def _digits(model: KernelPCA) -> float:
    return _DIGITS[dtype_name(model.embedding_.dtype)]
