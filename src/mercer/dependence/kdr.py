"""Kernel dimension reduction: the directions of x that hold all it says of y."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from mercer.backends.arrays import Array, distinct_rows, is_tensor, to_numpy
from mercer.backends.collections import takes_dask
from mercer.backends.fingerprint import DataSeen
from mercer.dependence.coordinates import learn_coordinates
from mercer.dependence.kdr_dimension import DimensionTest, LeftoverTest
from mercer.dependence.kdr_search import Found, Sample, Search, SearchOptions
from mercer.dependence.landmark_regression import LandmarkRegression, Targets
from mercer.dependence.response import Response, learn_response
from mercer.estimator import by_rows, keeps_earlier_fit
from mercer.journal import identify
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.checks import as_generator
from mercer.linalg.eigen import deterministic_signs
from mercer.progress import make_visible, warn_user
from mercer.solvers.run import Callback
from mercer.solvers.solution import Iteration, Status
from mercer.support import choose_support
from mercer.validation import (
    at_least,
    checked_kernel,
    checked_weights,
    declared,
    fraction,
    function_of,
    normalised,
    one_of,
    positive_number,
    resolved_kernel,
    true_or_false,
    whole_number,
)
from mercer.wording import OneLine

_LANDMARKS = 200
_NEARLY = 100.0  # times tol: where a run stands still at rounding, a gradient that is small enough


def _number_or_test(value: Any, name: str) -> None:
    if isinstance(value, str):
        if value != "test":
            raise ValueError(f"{name}={value!r} must be a whole number of at least 1, or 'test'.")
        return
    whole_number(value, name, 1)


class KernelDimensionReduction(OneLine, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Find the directions U of x that hold all it says of y: Y independent of X given UᵀX (RKHS (122), (123)).

    U minimises Tr[G_Y (G_XU + nεI)⁻¹] over UᵀU = I, G being centred kernel matrices of y and of the projected points
    (Fukumizu, Bach, Jordan 2009): what a kernel regression on UᵀX leaves unexplained, not only of y's mean but of its
    whole law. No shape of the dependence and no law of x is assumed.

    Parameters
    ----------
    n_components : int or "test", default=2
        Columns of U; ``"test"`` takes one more until a test of what is left finds nothing.
    x_kernel : Kernel, default=None
        Of projected points: a Gaussian or Matérn kernel with ν > 1; None means ``Gaussian("median")``.
    y_kernel : Kernel, default=None
        Of y; None means Gaussian for numbers, a bandwidth for each column, and ``Categories()`` for classes: texts,
        booleans, categories of a data frame, and whole numbers with at most 20 different values.
    regularization : float, default=1e-3
        ε.
    scaling : {"columns", "whiten", None}, default="columns"
        What is done to x first: every column to variance one, all directions to variance one, or nothing. Sufficiency
        does not depend on it, but UᵀU = I is meant in these coordinates.
    method : {"kdr", "gkdr"}, default="kdr"
        ``"gkdr"`` stops at the start: the leading eigenvectors of the mean outer product of the gradients of the
        regression on all of x (Fukumizu and Leng 2014). Much quicker, less accurate.
    landmarks : int, array of int, estimator or None, default=None
        Rows through which kernel matrices are approximated; None means all that are different up to 200 of them, and
        200 beyond. :class:`mercer.Landmarks` says what else.
    n_restarts : int, default=3
        Random starts beside that of gradients; the best counts.
    level, n_resamples : float and int, default=0.05 and 499
        Of ``n_components="test"``: the level of each test, and the draws that its statistic is compared with.
    tol, max_iter : float and int, default=1e-5 and 200
        The norm of the gradient of the unexplained share at which a run ends, and its steps at most.
    callback : callable or None, default=None
        Called with every :class:`mercer.solvers.Iteration`; True ends the run.
    verbose : bool, default=False
        Show the steps in the log.
    random_state : None, int or generator, default=None
        Of the starts and landmarks.

    Attributes
    ----------
    components_ : array of shape (n_components, d)
        ``transform(X) = (X - mean_) @ components_.T``; sorted by how much y changes along each.
    subspace_ : array of shape (d, n_components)
        An orthonormal basis of the same directions of x as it was given.
    unexplained_ : float
        The objective as a share of what there is, between 0 and 1.
    objective_ : float
        Tr[G_Y (G_XU + nεI)⁻¹] itself.
    gradient_eigenvalues_ : array of shape (d,)
        Of the start by gradients: a gap after the m-th speaks for m directions.
    x_kernel_, y_kernel_ : Kernel
        With their parameters fixed.
    landmarks_ : array of int
        The rows.
    dimension_tests_ : tuple of DimensionTest
        Of ``n_components="test"``: (number of directions, statistic, p-value) of each, empty otherwise.
    history_, n_iter_, status_ : tuple, int and Status
        Of the best run.

    Notes
    -----
    Cost of a step: n k kernel evaluations and n k² flops for k landmarks. The minimum is local: the best of
    ``n_restarts + 1`` runs. Starts are compared on at most 2 000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelDimensionReduction
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> y = np.abs(X[:, 0] + X[:, 1]) + 0.1 * rng.standard_normal(300)
    >>> model = KernelDimensionReduction(n_components=1, random_state=0).fit(X, y)
    >>> model.subspace_.T.round(1) + 0.0
    array([[0.7, 0.7, 0. , 0. , 0. ]])
    """

    components_: Array
    subspace_: Array
    unexplained_: float
    objective_: float
    gradient_eigenvalues_: Array
    x_kernel_: Kernel
    y_kernel_: Kernel
    landmarks_: Array
    dimension_tests_: tuple[DimensionTest, ...]
    mean_: Array
    history_: tuple[Iteration, ...]
    n_iter_: int
    status_: Status
    _response: Response
    _regression: LandmarkRegression
    _n_features_out: int
    _data_seen: DataSeen
    n_features_in_: int
    _checks = declared(
        n_components=_number_or_test,
        regularization=positive_number,
        scaling=one_of("columns", "whiten", None),
        method=one_of("kdr", "gkdr"),
        n_restarts=at_least(0),
        level=fraction,
        n_resamples=at_least(19),
        tol=positive_number,
        max_iter=at_least(1),
        callback=function_of("an Iteration"),
        verbose=true_or_false,
    )

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        x_kernel: Any = None,
        y_kernel: Any = None,
        regularization: float = 1e-3,
        scaling: str | None = "columns",
        method: str = "kdr",
        landmarks: Any = None,
        n_restarts: int = 3,
        level: float = 0.05,
        n_resamples: int = 499,
        tol: float = 1e-5,
        max_iter: int = 200,
        callback: Callback | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.x_kernel = x_kernel
        self.y_kernel = y_kernel
        self.regularization = regularization
        self.scaling = scaling
        self.method = method
        self.landmarks = landmarks
        self.n_restarts = n_restarts
        self.level = level
        self.n_resamples = n_resamples
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDimensionReduction:
        """Find the directions of X, n × d, that explain y: a vector, a column for each output, or a data frame."""
        for name, check in self._checks.items():
            check(getattr(self, name), name)
        if self.verbose:
            make_visible()
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is named
            X, y, shares = self._checked_sample(X, y, sample_weight)
            coordinates = learn_coordinates(X, shares, self.scaling)
        points = coordinates.of(X)
        self._require_directions(points)
        identify(type(self).__name__, self.get_params(deep=False), X, y, shares)
        rng = as_generator(self.random_state)
        self.dimension_tests_ = ()
        self._response, features = learn_response(y, self.y_kernel, shares, rng)
        self.landmarks_ = self._chosen_landmarks(points, shares, rng)
        sample = Sample(points, points[self.landmarks_], Targets(features, shares))
        search = Search(sample, self._options(), rng)
        tested = self.n_components == "test"
        found = self._tested(search, rng) if tested else self._find(search, int(self.n_components))
        self._store(found, sample, coordinates.back(found.directions))
        self.mean_, self.gradient_eigenvalues_ = coordinates.mean, search.gradient_eigenvalues
        return self

    def _find(self, search: Search, count: int) -> Found:
        return search.by_gradients(count) if self.method == "gkdr" else search.by_descent(count)

    def _tested(self, search: Search, rng: np.random.Generator) -> Found:
        """As few directions as leave nothing that a test finds; one at least."""
        sample = search.sample
        test = LeftoverTest(sample, float(self.regularization), int(self.n_resamples), rng)
        tests, found = [test(None)], self._find(search, 1)
        if tests[0].pvalue > self.level:
            warn_user(
                f"There is no sign that y depends on X (p = {tests[0].pvalue:.2g}): the one direction that is kept may "
                "mean nothing. Raise n_resamples or level, or set n_components."
            )
        else:
            tests.append(test(found))
        while tests[-1].pvalue <= self.level and found.directions.shape[1] < sample.points.shape[1]:
            found = self._find(search, found.directions.shape[1] + 1)
            tests.append(test(found))
        self.dimension_tests_ = tuple(tests)
        return found

    @by_rows
    def transform(self, X: Any) -> Array:
        """The coordinates of points along the directions, n × n_components."""
        check_is_fitted(self)
        X = validate_data(self, to_numpy(X) if is_tensor(X) else X, reset=False, dtype=np.float64)
        projected: Array = (X - self.mean_) @ self.components_.T
        return projected

    @takes_dask
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y's features that the regression on the directions explains; at most one.

        Of new data it says how many directions, which kernel and which ε serve best: it goes into a grid search.
        """
        Z = self.transform(X)
        check_consistent_length(Z, y)
        shares = normalised(self._checked_weights(sample_weight, Z.shape[0]), Z.shape[0])
        features = self._response(y)
        left, all_of_it = features - self._regression(Z), features - shares @ features
        spread = float(shares @ np.sum(all_of_it**2, axis=1))
        if spread == 0:
            raise ValueError("y is the same in every row: there is nothing to explain.")
        return 1.0 - float(shares @ np.sum(left**2, axis=1)) / spread

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _checked_sample(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Any, Array]:
        """Points of positive weight, their values of y, and their shares of the weight."""
        X, y = (to_numpy(part) if is_tensor(part) else part for part in (X, y))
        if y is None:
            raise ValueError(
                "KernelDimensionReduction requires y to be passed, but the target y is None: it looks for the "
                "directions of X that explain y."
            )
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=3)
        self._data_seen = DataSeen.of(X)
        check_consistent_length(X, y)
        weights = self._checked_weights(sample_weight, X.shape[0])
        if weights is not None and not (weights > 0).all():
            kept = np.flatnonzero(weights > 0)
            X, weights = X[kept], weights[kept]
            y = y.iloc[kept] if hasattr(y, "iloc") else (y[kept] if hasattr(y, "shape") else np.asarray(y)[kept])
        return X, y, normalised(weights, X.shape[0])

    @staticmethod
    def _checked_weights(sample_weight: Any, n: int) -> Array | None:
        return None if sample_weight is None else np.asarray(checked_weights(sample_weight, n, "sample_weight"))

    def _require_directions(self, points: Array) -> None:
        if not points.size or not (points != points[:1]).any():
            raise ValueError("All rows of X are equal: they say nothing of y.")
        if self.n_components != "test" and int(self.n_components) > points.shape[1]:
            raise ValueError(
                f"n_components={self.n_components} directions were asked for, but X, of "
                f"n_features={self.n_features_in_}, varies in {points.shape[1]}."
            )

    def _chosen_landmarks(self, points: Array, shares: Array, rng: np.random.Generator) -> Array:
        landmarks = self.landmarks
        if landmarks is None:
            distinct = np.asarray(distinct_rows(points)[0])
            if distinct.size <= _LANDMARKS:
                return distinct
            landmarks = _LANDMARKS
        kernel = resolved_kernel(Gaussian(), points, shares)
        indices = choose_support(landmarks, shares, points, kernel, rng, strategy="rpcholesky").indices
        return np.asarray(indices)

    def _options(self) -> SearchOptions:
        return SearchOptions(
            checked_kernel(self.x_kernel),
            float(self.regularization),
            int(self.n_restarts),
            float(self.tol),
            int(self.max_iter),
            () if self.callback is None else (self.callback,),
            bool(self.verbose),
        )

    def _store(self, found: Found, sample: Sample, directions: Array) -> None:
        """Keep what was found, with signs of the directions that do not depend on the run."""
        solution, signs = found.solution, deterministic_signs(directions)
        directions = directions * signs
        regression = replace(found.regression, nodes=found.regression.nodes * signs)
        self.components_ = np.ascontiguousarray(directions.T)
        self.subspace_ = np.linalg.qr(directions)[0]
        self.subspace_ = self.subspace_ * np.sign(np.sum(self.subspace_ * directions, axis=0))
        self.unexplained_ = regression.loss / sample.targets.variance
        self.objective_ = regression.loss / float(self.regularization)
        self.x_kernel_, self.y_kernel_ = regression.kernel, self._response.kernel
        self.history_, self.n_iter_, self.status_ = solution.history, solution.n_iter, solution.status
        self._regression, self._n_features_out = regression, directions.shape[1]
        residual = solution.history[-1].row_residual if solution.history else None
        stuck = self.status_ is Status.STALLED and residual is not None and residual > _NEARLY * self.tol
        if self.status_ is Status.MAX_ITER or stuck:
            warn_user(
                f"The gradient is still {residual:.1e} after {self.n_iter_} steps: raise max_iter, or tol.",
                ConvergenceWarning,
            )
