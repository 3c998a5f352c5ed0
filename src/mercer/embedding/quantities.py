"""Numbers that PSD17 speaks of, from a fitted model: how steep it is, and the sum of distances that it minimises."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import as_double, distinct_rows, like, namespace, to_numpy
from mercer.backends.chunks import row_chunks, rows_within
from mercer.embedding.sdp import SDPEmbedding
from mercer.kernels import Precomputed
from mercer.linalg.tall import inner_product, row_lengths
from mercer.operators import DiffusionOperator, GramOperator
from mercer.support import stored_support
from mercer.validation import checked_points, require_rows

_ENTRIES = 2**21  # distances that are held at once


def lipschitz_constant(model: SDPEmbedding, X: Any) -> float:
    """The Lipschitz constant of a fitted embedding on some points (PSD17 Remark 3).

    L = max ‖Ξ(x) - Ξ(y)‖/‖x - y‖ over the pairs of distinct rows of X, in all dimensions and with the lengths of the
    programme. The learned kernel has b(x, z) - b(y, z) ≤ L √b(z, z) ‖x - y‖ on these points: kernels of a common L are
    equicontinuous, for which Remark 3 has an optimum that is continuous. Between the points nothing is said: near
    points where the extension has no direction it may be as steep as one likes.

    Parameters
    ----------
    model : SDPEmbedding
        Fitted, to points and not to a kernel matrix.
    X : array of shape (m, d)
        At least two distinct points.

    Notes
    -----
    Cost: the extension to X, and m² distances.
    """
    check_is_fitted(model)
    if isinstance(model.kernel_, Precomputed):
        raise ValueError("A Lipschitz constant needs distances between points: fit the model to points.")
    points = to_numpy(model._new_points(X)).astype(np.float64)
    points = points[distinct_rows(points)[0]]
    if points.shape[0] < 2:
        raise ValueError("All points of X are equal: a Lipschitz constant needs two distinct ones.")
    coordinates = to_numpy(model._extend(points)).astype(np.float64)
    steepest = 0.0
    for rows in row_chunks(points.shape[0], rows_within(_ENTRIES, points.shape[0])):
        apart = cdist(points[rows], points)
        np.fill_diagonal(apart[:, rows.start :], np.inf)
        steepest = max(steepest, float((cdist(coordinates[rows], coordinates) / apart).max()))
    return steepest


def distance_objective(model: SDPEmbedding, X: Any) -> float:
    """Σ wᵢwⱼ ā(xᵢ, xⱼ) ‖Ξᵢ - Ξⱼ‖², which the first level of an embedding minimises (PSD17 section 1).

    With D² the squared distances of B, Σ wᵢwⱼ ĀD² = 2 Σᵢ wᵢ(Āw)ᵢBᵢᵢ - 2⟨Ā, B⟩: the diagonal of B is prescribed, so
    that least distances are the largest ⟨Ā, B⟩. Points of positive ā are drawn together, those of negative ā driven
    apart; Σⱼ wⱼ ā(x, xⱼ) √m(xⱼ) = 0, so that there are both. Where B may be shorter than prescribed the two are not the
    same objective, and the programme is that of ⟨Ā, B⟩.

    Parameters
    ----------
    model : SDPEmbedding
        Fitted.
    X : array of shape (n, d)
        The data of the fit.

    Notes
    -----
    Cost: a pass of row sums and a product with as many columns as the first level has dimensions, and one more.
    """
    check_is_fitted(model)
    X = checked_points(model, X, fitting=False)
    require_rows(X, model.embedding_.shape[0])
    support = stored_support(model, X)
    operator = DiffusionOperator(GramOperator(model.kernel_, support.points(X, model.kernel_), weights=support.scaled))
    coordinates = as_double(like(model.coordinates_, operator.reference)) * support.unit
    root = namespace(coordinates).sqrt(as_double(operator.weights))
    weighed = root[:, None] * coordinates
    each = root * as_double(operator @ root)  # wᵢ(Āw)ᵢ
    return 2 * (float(each @ row_lengths(coordinates) ** 2) - inner_product(weighed, as_double(operator @ weighed)))
