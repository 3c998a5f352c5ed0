"""What a density is made of, from what the user said: its kernel, its support points, its reference measure."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from mercer.backends.arrays import Array, as_double, contiguous, like, namespace, to_numpy
from mercer.density.bandwidth import density_kernel
from mercer.kernels import Kernel
from mercer.kernels.checks import as_points, checked_weights, scale_free
from mercer.kernels.integrals.given_measure import checked_box, checked_measure, checked_normal
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue, Measure
from mercer.landmarks.clusters import clustered
from mercer.validation import checked_kernel, distinct_rows, fitted_chooser, resolved_kernel, whole_number

DEFAULT_SIZE = 100
_CANCELLED = 1e-10  # of the sum of the absolute weights: a smaller sum is too much of a difference to divide by


class Setting(NamedTuple):
    """What the densities of a programme are made of: p(x) = k_xᵀ B k_x with respect to a measure."""

    kernel: Kernel
    support: Array
    measure: Measure


def checked_target(weights: Any, X: Array, *, signed: bool, name: str = "sample_weight") -> Array:
    """The coefficients a of the target v = Σ a_i φ(x_i)/Σ a_i (SOS Lemma 3), negative only where that is asked for.

    Raises
    ------
    ValueError
        If they are negative unasked, or if their sum, which v is divided by, is not positive beyond rounding.
    """
    values = checked_weights(weights, X.shape[0], name, signed=True, reference=X)
    if not signed:
        if (values < 0).any():
            raise ValueError(
                f"{name} is negative at index {int(values.argmin())}: weights must not be negative, unless signed=True "
                "says that they are the coefficients of a signed target."
            )
        return checked_weights(values, X.shape[0], name, reference=X)
    scaled = scale_free(values)
    if not float(scaled.sum()) > _CANCELLED * float(abs(scaled).sum()):
        raise ValueError(
            f"{name} sums to {float(values.sum()):.3g}: the target is divided by the sum, so that a signed "
            "one needs a positive sum."
        )
    return values


def sizes(shares: Array) -> Array:
    """How much each point counts in the choice of support, kernel and reference: by the size of its weight."""
    if not (shares < 0).any():
        return shares
    magnitudes = abs(shares)
    return magnitudes / magnitudes.sum()


def choose_kernel(kernel: Any, X: Array, weights: Array, support: Array) -> Kernel:
    """The user's kernel with its parameters fixed from X; None means the Gaussian of :func:`density_kernel`."""
    if kernel is None:
        return density_kernel(X, weights, support)
    if checked_kernel(kernel).properties.positive_definite is False:
        raise ValueError(f"{kernel!r} is not positive semi-definite, so that it has no densities: choose another.")
    if X.shape[0] == 1 and not checked_kernel(kernel).is_resolved:
        raise ValueError(f"{kernel!r} depends on the distances of points, but n_samples = 1: pass a number.")
    return resolved_kernel(kernel, X, weights)


def choose_support(support: Any, X: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Read ``support`` as :class:`mercer.SumOfSquaresDensity` documents it, as distinct points of shape (m, d).

    They are of the library of X. Random draws, k-means and the numbers that another estimator chose are NumPy's.
    """
    xp = namespace(X)
    present = xp.nonzero(weights > 0)[0]
    first, place = distinct_rows(X[present])
    rows, masses = present[first], xp.bincount(place, weights=weights[present])
    if support is None:
        support = DEFAULT_SIZE
    if isinstance(support, str):
        support = (support, DEFAULT_SIZE)
    if isinstance(support, Integral) and not isinstance(support, bool):
        points = X[_sampled(rows, masses, whole_number(support, "support", 1), rng)]
    elif isinstance(support, tuple):
        points = _centres(support, X[rows], masses, rng)
    elif hasattr(support, "fit") or hasattr(support, "indices_"):
        points = _chosen_by(support, X, weights)
    else:
        points = _given(support, X)
    return contiguous(as_double(points[distinct_rows(points)[0]]))


def _sampled(rows: Array, masses: Array, count: int, rng: np.random.Generator) -> Array:
    """So many distinct rows, drawn by their weights without repetition; all where there are no more."""
    if count >= rows.shape[0]:
        return rows
    chances = to_numpy(masses / masses.sum())
    return rows[like(np.sort(rng.choice(chances.size, count, replace=False, p=chances)), rows)]


def _centres(support: tuple[Any, ...], X: Array, masses: Array, rng: np.random.Generator) -> Array:
    """Centres of k-means on the distinct points."""
    if len(support) != 2 or support[0] != "kmeans":
        raise ValueError(f"support={support!r} must be 'kmeans' or ('kmeans', number of centres).")
    count = whole_number(support[1], "the number of k-means centres", 1)
    if count >= X.shape[0]:
        return X
    model = KMeans(count, n_init=1, random_state=int(rng.integers(2**31)))
    return like(clustered(model, to_numpy(X), to_numpy(masses))[0], X)


def _chosen_by(estimator: Any, X: Array, weights: Array) -> Array:
    """The rows an estimator such as QuadratureSparsifier has in ``indices_``, fitted here if it was not before."""
    estimator = fitted_chooser(estimator, "support", X, None if bool((weights == weights[0]).all()) else weights)
    rows = to_numpy(estimator.indices_)
    if rows.ndim != 1 or rows.size == 0 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"support={estimator!r} has indices_ that are no list of row numbers, or an empty one.")
    if rows.min() < 0 or rows.max() >= X.shape[0]:
        raise ValueError(f"support={estimator!r} chose rows that X, of {X.shape[0]} rows, does not have: fit it to X.")
    return X[like(rows, X)]


def _given(support: Any, X: Array) -> Array:
    points, d = like(as_points(support, "support"), X), X.shape[1]
    if points.shape[0] == 0 or points.shape[1] != d:
        raise ValueError(f"support has shape {tuple(points.shape)}: it must be points with {d} features, at least one.")
    return points


def choose_reference(reference: Any, box: Any, X: Array, weights: Array) -> Measure:
    """Read ``reference`` and ``box`` as :class:`mercer.SumOfSquaresDensity` documents them.

    Corners and means are arrays of the library of X.

    Raises
    ------
    ValueError
        If they are not what is documented, or if a point lies outside the box.
    """
    if box is not None:
        if not _named(reference, "lebesgue") and not isinstance(reference, Lebesgue):
            raise ValueError(f"box goes with reference='lebesgue', not with {reference!r}: leave one of them out.")
        return _around(checked_box(box, X), X[weights > 0])
    if _named(reference, "lebesgue"):
        return Lebesgue()
    given = checked_measure(reference, X, "reference")
    if given is not None:
        return _around(given, X[weights > 0]) if isinstance(given, Box) else given
    if _named(reference, "gaussian"):
        mean = weights @ X
        apart = X - mean
        unit = float(abs(apart[weights > 0]).max())  # whose square may underflow
        spread = unit * float(np.sqrt(float((weights @ (apart / unit) ** 2).mean()))) if unit > 0 else 0.0
        if spread == 0:
            raise ValueError(
                f"All points are equal (n_samples = {X.shape[0]}), so reference='gaussian' has no width: give a pair "
                "(mean, std)."
            )
        return GaussianMeasure(mean, spread)
    if isinstance(reference, tuple) and len(reference) == 2:
        return checked_normal(*reference, X, "reference")
    raise ValueError(
        f"reference={reference!r} must be 'lebesgue', 'gaussian', a pair (mean, std) or (mean, covariance) of a normal "
        "law, or a Box, a GaussianMeasure or a DiscreteMeasure."
    )


def _named(reference: Any, name: str) -> bool:
    return isinstance(reference, str) and reference == name


def _around(box: Box, X: Array) -> Box:
    outside = ~box.holds(X)
    if outside.any():
        first = ", ".join(f"{float(value):.4g}" for value in X[outside][0][:5])
        raise ValueError(
            f"{int(outside.sum())} of {X.shape[0]} points lie outside the box, the first at ({first}): no density "
            "on the box stands for them. Enlarge the box or remove them."
        )
    return box
