"""A kernel method of any linear estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from mercer.backends.arrays import Array, is_tensor, to_numpy
from mercer.backends.rounding import UNIT, gamma
from mercer.estimator import KernelEstimator, by_rows, keeps_earlier_fit
from mercer.kernelization.features import KernelFeatures, sample_features

_FITS = ("fit", "fit_transform", "fit_predict")
_ANSWERS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score")


def _can(method: str) -> Callable[[Any], bool]:
    """Whether the linear estimator has a method; scikit-learn's own words where it has not."""

    def check(self: Kernelized) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class Kernelized(MetaEstimatorMixin, KernelEstimator):
    """Make a kernel method of a linear estimator (RKHS section 8, (104)).

    The estimator is fitted to coordinates f(x) of the points in the space of the kernel, ⟨f(x), f(y)⟩ = k(x, y): ridge
    regression becomes kernel ridge regression, PCA kernel PCA, k-means kernel k-means, and so on. On all points that is
    exact to rounding; through landmarks I, ⟨f(x), f(y)⟩ = k(x, I) K_II⁺ k(I, y) (Nyström). See
    :doc:`/user_guide/kernelization` for what stands behind it, and for estimators that it does not fit.

    Parameters
    ----------
    estimator : estimator of scikit-learn
        Linear, with an answer that does not change if its features are rotated: ``Ridge``, ``LogisticRegression``,
        ``LinearSVC``, ``LinearDiscriminantAnalysis``, ``KMeans``, ``PCA``, ``CCA``, ``PLSRegression(scale=False)``. A
        copy of it is fitted.
    kernel : Kernel or str, default=None
        A positive semi-definite kernel; None means ``Gaussian(sigma="median")``.
    landmarks : int, array of int, estimator or None, default=None
        The rows of X that features are made from: so many, drawn by what the earlier ones leave of the kernel, the rows
        themselves, or what chooses them, as :class:`mercer.Landmarks`. None means all.
    random_state : None, int or generator, default=None
        For landmarks that are drawn, and for the estimator where its own is None.

    Attributes
    ----------
    estimator_ : estimator
        The fitted copy of the estimator; its coefficients belong to the features.
    trace_left_out_ : float
        Σ wᵢ (k(xᵢ, xᵢ) - ‖f(xᵢ)‖²) over the training points, raised by what rounding can have done: zero but for that
        on all points. It bounds what landmarks lose, see Notes.
    trace_ : float
        Σ wᵢ k(xᵢ, xᵢ), of which that is a part.
    indices_ : array of int of shape (r,)
        The rows of X that the features are made from: landmarks without those that depend on others to rounding.
    kernel_ : Kernel
        The kernel with its parameters fixed.
    classes_, labels_ : array
        Those of ``estimator_``, where it has them.
    n_features_in_, feature_names_in_ : int, array of str
        Columns of X, and their names if it was a data frame.

    Notes
    -----
    With t = ``trace_left_out_``, the objective of ridge regression through landmarks is at most 1 + t/α times the least
    on all points; a clustering costs at most t more in the kernel's space than k-means sees; no eigenvalue of PCA's
    scatter matrix is more than t below that of kernel PCA.

    Cost: n r kernel evaluations and n r² flops for r features, beside what the estimator takes; memory: n r numbers, in
    the precision of the configuration. A new point costs r kernel evaluations and r² flops.

    Examples
    --------
    >>> from mercer import Gaussian, Kernelized
    >>> from mercer.datasets import two_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = two_moons()
    >>> Kernelized(LogisticRegression(C=100), Gaussian(sigma=0.5)).fit(X, y).score(X, y)
    1.0
    """

    estimator_: Any
    trace_left_out_: float
    trace_: float
    indices_: Array
    _features: KernelFeatures

    def __init__(self, estimator: Any, kernel: Any = None, *, landmarks: Any = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.kernel = kernel
        self.landmarks = landmarks
        self.random_state = random_state

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, **params: Any) -> Kernelized:
        """Fit the estimator to the features of X; y and params, such as ``sample_weight``, are handed on to it."""
        self._fit_by("fit", X, y, params)
        return self

    @available_if(_can("transform"))
    @keeps_earlier_fit
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and return what the estimator makes of the training points."""
        return _with_index_of(X, self._fit_by("fit_transform", X, y, params))

    @available_if(_can("fit_predict"))
    @keeps_earlier_fit
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and return the labels of the training points."""
        return self._fit_by("fit_predict", X, y, params)

    @available_if(_can("predict"))
    @by_rows
    def predict(self, X: Any, **params: Any) -> Any:
        """What the estimator predicts for points X."""
        return self._ask("predict", X, params)

    @available_if(_can("predict_proba"))
    @by_rows
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Probabilities of the classes, in the order of ``classes_``."""
        return self._ask("predict_proba", X, params)

    @available_if(_can("predict_log_proba"))
    @by_rows
    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Logarithms of the probabilities of the classes."""
        return self._ask("predict_log_proba", X, params)

    @available_if(_can("decision_function"))
    @by_rows
    def decision_function(self, X: Any, **params: Any) -> Any:
        """The value of the linear function in the kernel's space."""
        return self._ask("decision_function", X, params)

    @available_if(_can("score_samples"))
    @by_rows
    def score_samples(self, X: Any) -> Any:
        """The score that the estimator gives to each point."""
        return self._ask("score_samples", X, {})

    @available_if(_can("transform"))
    @by_rows
    def transform(self, X: Any, **params: Any) -> Any:
        """What the estimator makes of the features of X."""
        return _with_index_of(X, self._ask("transform", X, params))

    @available_if(_can("score"))
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """The estimator's own score on X and y."""
        value: float = self._ask("score", X, params, y)
        return value

    @available_if(_can("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the columns that ``transform`` gives, as the estimator calls them."""
        check_is_fitted(self)
        return self.estimator_.get_feature_names_out()

    @available_if(_can("set_output"))
    def set_output(self, *, transform: Any = None) -> Kernelized:
        """Let ``transform`` give data frames: ``"pandas"``, ``"polars"`` or ``"default"``."""
        for each in (self.estimator, getattr(self, "estimator_", None)):
            if each is not None:
                each.set_output(transform=transform)
        return self

    @property
    def classes_(self) -> Any:
        """The classes of a classifier."""
        return self.estimator_.classes_

    @property
    def labels_(self) -> Any:
        """The clusters of the training points."""
        return self.estimator_.labels_

    def get_metadata_routing(self) -> MetadataRouter:
        """Every method hands its metadata on to the same method of the estimator."""
        mapping = MethodMapping()
        for method in (*_FITS, *_ANSWERS):
            mapping = mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not hasattr(self.estimator, "__sklearn_tags__"):
            return tags
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags", "transformer_tags"):
            setattr(tags, name, getattr(inner, name))
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64"]  # the arithmetic is that of the configuration
        tags.non_deterministic = inner.non_deterministic
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.estimator, type) or not isinstance(self.estimator, BaseEstimator):
            raise TypeError(f"estimator={self.estimator!r} must be an estimator of scikit-learn, such as Ridge().")

    def _fit_by(self, method: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
        """Fit features and estimator, and return what this method of the estimator gives."""
        self._check_parameters()
        params = self._routed(method, {name: _as_numpy(value) for name, value in params.items()})
        weights = params.get("sample_weight")
        if weights is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(f"{type(self.estimator).__name__} takes no sample_weight: leave it out.")
        given = self._begin_fit(X, sample_weight=weights)
        y = _as_numpy(y)
        if y is not None:
            check_consistent_length(given.points, y)
        self.kernel_ = given.kernel
        made = sample_features(self.kernel_, given.points, self.landmarks, given.weights, given.rng)
        self._features, self.indices_ = made.map, made.map.nodes
        self.trace_, left_out = (_total(part, given.weights) for part in (made.diagonal, made.left_out))
        self.trace_left_out_ = left_out * (1 + gamma(made.left_out.shape[0] + 2, UNIT))  # no sum comes out below itself
        self.estimator_ = clone(self.estimator)
        if self.random_state is not None:
            _seed(self.estimator_, given.rng)
        return _answer_of_fit(self.estimator_, method, to_numpy(made.values), y, params)

    def _ask(self, method: str, X: Any, params: dict[str, Any], *targets: Any) -> Any:
        params = self._routed(method, params)
        values = self._features_of(X)
        return getattr(self.estimator_, method)(values, *map(_as_numpy, targets), **params)

    def _features_of(self, X: Any) -> Array:
        """The features of new points, as a NumPy array."""
        X = self._new_points(X)
        self._features.require_memory(X)
        return to_numpy(self._features.transform(X))

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The metadata for a method of the estimator: all that was given, unless scikit-learn is to route it."""
        if not params or not sklearn.get_config()["enable_metadata_routing"]:
            return params
        routed: dict[str, Any] = process_routing(self, method, **params).estimator[method]
        return routed


def _answer_of_fit(estimator: Any, method: str, values: Array, y: Any, params: dict[str, Any]) -> Any:
    """Fit by a method of the estimator, or by ``fit`` and then ``transform`` where it has no ``fit_transform``."""
    if hasattr(estimator, method):
        return getattr(estimator, method)(values, y, **params)
    return estimator.fit(values, y, **params).transform(values)


def _as_numpy(value: Any) -> Any:
    """A tensor as what scikit-learn takes; anything else as it is."""
    return to_numpy(value) if is_tensor(value) else value


def _seed(estimator: Any, rng: np.random.Generator) -> None:
    """Set every random state of the estimator that was left open."""
    for name, value in sorted(estimator.get_params().items()):
        if value is None and name.rpartition("__")[2] == "random_state":
            estimator.set_params(**{name: int(rng.integers(2**31))})


def _total(values: Array, weights: Array | None) -> float:
    return float(values.sum() if weights is None else values @ weights)


def _with_index_of(X: Any, table: Any) -> Any:
    """A pandas table with the index of the one it was made from."""
    if hasattr(table, "iloc") and hasattr(X, "iloc"):
        table.index = X.index
    return table
