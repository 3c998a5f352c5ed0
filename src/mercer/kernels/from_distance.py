"""A kernel from any distance: a metric of scikit-learn's, or a function of two points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from mercer.backends import forms, profiles
from mercer.backends.arrays import Array, cast, like, namespace
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import EntryError
from mercer.kernels.base import Kernel
from mercer.kernels.centre import check_n_center, distinct_points
from mercer.kernels.distance_kernel import Centre, DistanceKernel
from mercer.kernels.properties import Properties, of_finite_rank

_EUCLIDEAN = ("euclidean", "l2")
_NOT_EUCLIDEAN = ("manhattan", "cityblock", "l1", "chebyshev", "hamming")  # four points of a square show it
_ONE_LESS = ("cosine", "correlation")  # one less an inner product of directions
_LEARNED = {"seuclidean": "V", "mahalanobis": "VI"}  # what scikit-learn would take from each block anew
_OTHERS = ("braycurtis", "canberra", "chebyshev", "correlation", "hamming", "minkowski", "sqeuclidean")
_BOOLEAN = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalmichener", "sokalsneath", "yule")


@final
class FromDistance(DistanceKernel):
    """-½d(x, y)², centred on the training points: the kernel of a distance, whose kernel PCA is classical scaling.

    k(x, y) = -½ (d²(x, y) - Σⱼwⱼd²(x, xⱼ) - Σⱼwⱼd²(xⱼ, y) + ΣᵢΣⱼwᵢwⱼd²(xᵢ, xⱼ)), on the training points the matrix
    -½HDH of the survey's (51). It is positive semi-definite just where d is the distance of points of a Hilbert space
    (Schoenberg 1935): for the Euclidean distance, of which this is the centred linear kernel, and not for most others.

    Parameters
    ----------
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's ``pairwise_distances``, or a function of two points that returns their distance. For
        a matrix D of distances that you have, give -D²/2 to ``KernelPCA(Precomputed())``, which centres it.
    metric_params : dict or None, default=None
        Further arguments of the metric, as ``{"p": 3}``.
    n_center : int or None, default=200
        The most training points that the mean is taken over: all of them up to that many, evenly spread ones beyond,
        None for always all. The Euclidean distance takes all.

    Notes
    -----
    A point is compared with ``n_center`` training points once, for its mean; memory is that of a tile. Every method
    that centres, as kernel PCA does, is the same whatever the kernel is centred on, which is why a few will do.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import FromDistance
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> FromDistance("manhattan").resolve(X)(X)
    array([[ 0.75,  0.25,  0.25, -1.25],
           [ 0.25,  0.75, -1.25,  0.25],
           [ 0.25, -1.25,  0.75,  0.25],
           [-1.25,  0.25,  0.25,  0.75]])
    """

    def __init__(
        self,
        metric: str | Callable[[Any, Any], float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_center: int | None = 200,
    ) -> None:
        self.metric = metric
        self.metric_params = metric_params
        self.n_center = n_center

    @property
    def properties(self) -> Properties:
        """Positive semi-definite for the Euclidean distance; of most others nothing is known."""
        if self._is_euclidean:
            return of_finite_rank(
                bounded=False, stationary=False, positive=False, positive_definite=True, continuous=True
            )
        return Properties(positive_definite=False if self.metric in _NOT_EUCLIDEAN else None)

    def _check_parameters(self) -> None:
        check_n_center(self.n_center)
        if self.metric_params is not None and not isinstance(self.metric_params, dict):
            raise ValueError(f"metric_params={self.metric_params!r} must be a dict of the metric's arguments, or None.")
        if callable(self.metric):
            return
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed' is no metric of points: pass -D**2/2 of a matrix D of distances to "
                "KernelPCA(Precomputed()), which centres it."
            )
        from sklearn.metrics.pairwise import distance_metrics

        known = {*distance_metrics(), *_BOOLEAN, *_LEARNED, *_OTHERS} - {"precomputed", "nan_euclidean"}
        if self.metric not in known:
            names = ", ".join(sorted(known))
            raise ValueError(f"metric={self.metric!r} must be a function of two points, or one of {names}.")
        if self.metric in _EUCLIDEAN and self.metric_params:
            raise ValueError(f"metric={self.metric!r} takes no metric_params.")
        needed = _LEARNED.get(self.metric)
        if needed is not None and needed not in (self.metric_params or {}):
            raise ValueError(
                f"metric={self.metric!r} would be another one on every block of points: fix it by "
                f"metric_params={{{needed!r}: …}}."
            )

    @property
    def _is_euclidean(self) -> bool:
        return isinstance(self.metric, str) and self.metric in _EUCLIDEAN

    def _square_roundings(self, sides: list[Array]) -> EntryError:
        """Sums of f terms that are not negative; one less a number near one; what a function returns is exact."""
        if not isinstance(self.metric, str):
            return EntryError(1.0)
        terms = sides[0].shape[1] + 8.0
        return EntryError(1.0, 0.0, 8.0 * terms) if self.metric in _ONE_LESS else EntryError(4.0 * terms)

    def _cost(self, n_features: int) -> float:
        return 10.0 * n_features if isinstance(self.metric, str) else 10_000.0

    def _squares(self, rows: Array, cols: Array) -> Array:
        from sklearn.metrics import pairwise_distances  # which costs a second to load

        from mercer.backends.cpu.neighbours import squared_distances

        if self.metric in _BOOLEAN:
            rows, cols = rows != 0, cols != 0
        if self.metric == "sqeuclidean":
            return np.square(squared_distances(rows, cols, "euclidean"))
        values = pairwise_distances(rows, cols, metric=self.metric, **(self.metric_params or {}))
        with np.errstate(over="ignore"):  # what is not finite is named by the callers
            return np.square(np.asarray(values, np.float64))

    def _learned(self, X: Any, sample_weight: Any) -> Centre:
        if not self._is_euclidean:
            return super()._learned(X, sample_weight)
        points, weights = distinct_points(X, sample_weight)
        return Centre((weights @ points.astype(np.float64))[None], np.ones(1), 0.0)

    def _form(self, n_features: int) -> forms.Form:
        return forms.Pairing("dot", profiles.Identity()) if self._is_euclidean else super()._form(n_features)

    def _points(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Of the Euclidean distance, points with their mean removed; else with u as their last column."""
        if not self._is_euclidean:
            return super()._points(X, Y)
        self._require_features((X, Y))
        sides, mean = (X,) if Y is None else (X, Y), like(self._sample.positions, X)
        dtype = namespace(X).result_type(*(side.dtype for side in sides))
        centred = [cast(side - mean, dtype) for side in sides]
        return centred[0], centred[1] if len(centred) > 1 else None

    def matrix(self, X: Any, Y: Any = None, *, dtype: Any = None) -> KernelMatrix:
        """The kernel matrix."""
        return Kernel.matrix(self, X, Y, dtype=dtype) if self._is_euclidean else super().matrix(X, Y, dtype=dtype)
