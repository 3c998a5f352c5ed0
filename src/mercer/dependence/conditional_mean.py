"""Conditional mean embeddings: the law of y given x as a vector of the Hilbert space of a kernel of y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, final, overload

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from mercer.backends.arrays import Array, as_double, is_tensor, like, namespace, to_numpy
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.dependence.mean_embedding import MeanEmbedding
from mercer.dependence.ridge_features import Features, Ridge
from mercer.estimator import FitInput, KernelEstimator, Regressor, keeps_earlier_fit
from mercer.kernels import Gaussian, Kernel, Precomputed
from mercer.kernels.integrals import GaussianMixture
from mercer.kernels.tables import Table, is_frame
from mercer.linalg import greedy_cholesky
from mercer.operators import GramOperator
from mercer.progress import Phases, warn_user
from mercer.validation import (
    at_least,
    checked_kernel,
    declared,
    positive_number,
    refuse_words,
    require_points,
    resolved_kernel,
    true_or_false,
)

_LEFT_OUT = 1e-10  # of the trace of the kernel matrix of y, where its factor may end
_NEGLIGIBLE = 1e-3  # of the penalty: what the factor of the kernel matrix of x may leave out
_BANDWIDTHS = (1.0, 0.5, 0.25, 0.125)  # tried of a kernel left out, in units of the median
_GRID = 10.0 ** np.arange(-7.0, 1.01, 0.5)  # penalties tried, in units of the mean of k(x, x)
_TARGET_RANK = 300  # of the factor of the kernel matrix of y, by which penalties are compared


def _penalty(value: Any, name: str) -> None:
    if isinstance(value, str):
        if value != "loo":
            raise ValueError(f'{name} must be a positive number or "loo", not {value!r}.')
        return
    positive_number(value, name)


class ConditionalMeanEmbedding(Regressor, KernelEstimator):
    """The law of y given x from pairs (xᵢ, yᵢ): weights βᵢ(x) with E[f(y) | x] ≈ Σ βᵢ(x) f(yᵢ) for every f at once.

    The embedding is the function x ↦ μ(x) = Σ βᵢ(x) l(yᵢ, ·) that minimises the mean of ‖l(yᵢ, ·) - μ(xᵢ)‖² plus λ
    times its squared norm (Grünewälder et al. 2012), which is kernel ridge regression of l(y, ·) on x:
    β(x) = (K + nλI)⁻¹ k(x) without an intercept, and with one the same for centred features, so that the weights sum to
    one and far from the data μ(x) is the embedding of all y.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        Of x; None means ``Gaussian("median")`` with a given λ, and otherwise one of it and its half, fourth and eighth.
    y_kernel : Kernel or str, default=None
        Of y; None means ``Gaussian("median")``. It decides which differences between laws count.
    regularization : float or "loo", default="loo"
        λ > 0, or the one of a grid with the least leave-one-out error in the space of ``y_kernel``, which finds the
        bandwidth of a kernel left out, too.
    fit_intercept : bool, default=True
        Whether the mean of all l(yᵢ, ·) is fitted without penalty.
    max_rank : int, default=1000
        Columns at most of the factor of the kernel matrix of x. It ends earlier where it leaves out a thousandth of
        λ n of the trace; where it must leave out more, a warning says so.
    verbose : bool, default=False
        Log the phases and the time to the logger ``mercer``.

    Attributes
    ----------
    regularization_ : float
        λ.
    loo_error_ : float
        The mean of ‖l(yᵢ, ·) - μ₋ᵢ(xᵢ)‖² with row i left out, for the λ taken.
    loo_path_ : array of shape (number of penalties, 2)
        Every λ tried and its error; one row where λ was given.
    targets_, target_errors_ : arrays of shapes (n, p) and (n,)
        yᵢ as rows, and ‖l(yᵢ, ·) - μ₋ᵢ(xᵢ)‖.
    features_ : array of shape (n, r)
        Of the training points, after centring: orthogonal, with ``spectrum_`` of shape (r,) their weighted squares.
    centres_, projection_, offset_ : arrays
        Features of a point are k(x, centres) projection - offset.
    sample_weight_ : array of shape (n,) or None
        As given.
    kernel_, y_kernel_ : Kernel
        With their parameters fixed.

    Notes
    -----
    Cost: n r kernel evaluations and n r² flops; the search for λ n r q flops for each of 17, q ≤ 300 being the rank of
    the kernel matrix of y. Memory: n r. The user guide says what the error bars mean.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ConditionalMeanEmbedding
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, size=(400, 1))
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=400)
    >>> model = ConditionalMeanEmbedding().fit(x, y)
    >>> mean, error = model.predict([[1.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 4 * error[0])
    True
    >>> share = model.expectation(lambda y: y[:, 0] > 0, [[-1.0], [1.0]])
    >>> share.round(1) + 0.0
    array([0., 1.])
    """

    regularization_: float
    loo_error_: float
    loo_path_: Array
    targets_: Array
    target_errors_: Array
    features_: Array
    spectrum_: Array
    centres_: Array
    projection_: Array
    offset_: Array
    sample_weight_: Array | None
    kernel_: Kernel
    y_kernel_: Kernel
    _target_table: Table | None
    _shares: Array
    _one_target: bool
    _numeric: bool
    _always_double = True
    _checks = declared(
        regularization=_penalty, fit_intercept=true_or_false, max_rank=at_least(1), verbose=true_or_false
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        y_kernel: Any = None,
        regularization: Any = "loo",
        fit_intercept: bool = True,
        max_rank: int = 1000,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.y_kernel = y_kernel
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.max_rank = max_rank
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the conditional law of y from pairs.

        Parameters
        ----------
        X : array of shape (n, d)
            Points; of a precomputed kernel its matrix.
        y : array of shape (n,) or (n, p), or data frame
            Targets: numbers, or whatever ``y_kernel`` compares.
        sample_weight : array of shape (n,), optional
            Weights of the pairs. For a given λ, a pair of weight two counts as the same pair twice.
        """
        if y is None:
            raise ValueError("ConditionalMeanEmbedding requires y to be passed, but the target y is None.")
        data = self._begin_fit(X, sample_weight=sample_weight)
        self.sample_weight_, self._shares = data.weights, as_double(data.shares)
        self._read_targets(y, data)
        phases = Phases("reading the pairs", shown=bool(self.verbose))
        phases.begin("factoring the kernel matrix of y")
        gram = GramOperator(self.y_kernel_, self.targets_)
        low = greedy_cholesky(gram, min(_TARGET_RANK, gram.shape[0]), tolerance=_LEFT_OUT)
        phases.begin("trying penalties and bandwidths")
        tried = (self._tried(kernel, data, as_double(low.factor)) for kernel in self._candidates(data))
        best = min(tried, key=lambda one: one.error)
        # What the factor of the kernel matrix of y leaves out of l(yᵢ, ·) counts as not predicted at all.
        squares = best.ridge.left_out_squares(as_double(low.factor), best.penalty) + as_double(low.residual_diagonal)
        self.target_errors_ = namespace(squares).sqrt(squares)
        self._store(best)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _candidates(self, data: FitInput) -> list[Kernel]:
        """The kernel that was given, or Gaussians of several bandwidths."""
        if self.kernel is not None or self.regularization != "loo" or not isinstance(data.kernel, Gaussian):
            return [data.kernel]
        return [Gaussian(sigma=part * data.kernel.sigma) for part in _BANDWIDTHS]

    def _tried(self, kernel: Kernel, data: FitInput, targets: Array) -> _Tried:
        """The penalty with the least leave-one-out error, of those that are tried."""
        gram = GramOperator(kernel, data.points)
        unit = float(namespace(self._shares).sum(self._shares * as_double(gram.kernel_diagonal())))
        if not unit > 0:
            raise ValueError(f"{kernel!r} vanishes on every point: choose another kernel.")
        grid = _GRID * unit if self.regularization == "loo" else np.array([float(self.regularization)])
        features = Features.of(gram, self._shares, self.fit_intercept, self.max_rank, _NEGLIGIBLE * grid.min() / unit)
        ridge = Ridge(features.values, features.spectrum, self._shares, self.fit_intercept)
        errors = np.array([float(self._shares @ ridge.left_out_squares(targets, penalty)) for penalty in grid])
        return _Tried(kernel, features, ridge, grid, errors)

    def _store(self, best: _Tried) -> None:
        self.kernel_, self.regularization_, self.loo_error_ = best.kernel, best.penalty, best.error
        self.loo_path_ = np.column_stack([best.penalties, best.errors])
        self.features_, self.spectrum_ = best.features.values, best.features.spectrum
        self.centres_, self.projection_ = best.features.centres, best.features.projection
        self.offset_ = best.features.offset
        left_out = best.features.left_out
        if left_out > 2 * _NEGLIGIBLE * best.penalty:
            warn_user(
                f"The factor of rank {self.features_.shape[1]} leaves out {left_out:.1e} of the mean of k(x, x), more "
                f"than a thousandth of the penalty {best.penalty:.1e}: raise max_rank.",
            )

    def _read_targets(self, y: Any, data: FitInput) -> None:
        """The targets as rows of numbers, and their kernel."""
        kernel = Gaussian() if self.y_kernel is None else checked_kernel(self.y_kernel)
        require_points(kernel, "A conditional mean embedding evaluates y_kernel between targets")
        self._target_table = Table.of(y) if is_frame(y) else None
        if self._target_table is not None:
            kernel, y, _ = kernel.read(y)
        self._numeric = self._target_table is None or not self._target_table.texts
        refuse_words(y, "y")
        values = check_array(
            to_numpy(y) if is_tensor(y) else y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self
        )
        self._one_target = values.ndim == 1
        values = values.reshape(values.shape[0], -1)
        check_consistent_length(to_numpy(data.points) if is_tensor(data.points) else data.points, values)
        self.targets_ = like(values, data.points) if is_tensor(data.points) else values
        self.y_kernel_ = resolved_kernel(kernel, self.targets_, data.weights)

    def weights(self, X: Any) -> Array:
        """βᵢ(x) for every row x of X, of shape (m, n). They may be negative."""
        X = self._new_points(X)
        return self._ridge.weights(self._features(X), self.regularization_)

    @property
    def _ridge(self) -> Ridge:
        return Ridge(self.features_, self.spectrum_, self._shares, self.fit_intercept)

    def _features(self, X: Any) -> Array:
        if isinstance(self.kernel_, Precomputed):
            columns = as_double(X[:, self.centres_])
            return columns @ self.projection_ - self.offset_
        return as_double(GramOperator(self.kernel_, X, self.centres_) @ self.projection_) - self.offset_

    def embedding(self, x: Any) -> MeanEmbedding:
        """μ(x) at one point: an embedding of the training targets with the weights β(x)."""
        rows = self.weights(x)
        if rows.shape[0] != 1:
            raise ValueError(f"embedding takes one point, not {rows.shape[0]}: ask for one row at a time.")
        return MeanEmbedding._made(self.y_kernel_, [GaussianMixture(rows[0], self.targets_, 0.0)], self._target_table)

    def embedding_error(self, X: Any) -> Array:
        """The standard error of μ(x) in the norm of its space, for every row x of X."""
        return self._spread(self._new_points(X), self.target_errors_[:, None] ** 2)[:, 0]

    @overload
    def expectation(self, function: Any, X: Any, *, return_std: Literal[False] = ...) -> Array: ...

    @overload
    def expectation(self, function: Any, X: Any, *, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def expectation(self, function: Any, X: Any, *, return_std: bool = False) -> Array | tuple[Array, Array]:
        """E[f(y) | x] for every row x of X, and on demand its standard error.

        Parameters
        ----------
        function : callable or array of shape (n,) or (n, q)
            f, called once with all training targets as rows; or its values there.
        X : array of shape (m, d)
            Where.
        return_std : bool, default=False
            Also return the standard errors: the root of Σ βᵢ(x)² eᵢ², eᵢ the leave-one-out error of f(yᵢ). They count
            chance alone, not what smoothing changes.
        """
        return self._expected(self._values_of(function), self._new_points(X), return_std)

    def _expected(self, values: Array, points: Any, return_std: bool) -> Any:
        ridge = self._ridge
        columns = values[:, None] if values.ndim == 1 else values
        means = ridge.predicted(self._features(points), columns, self.regularization_)
        means = means[:, 0] if values.ndim == 1 else means
        if not return_std:
            return means
        spread = self._spread(points, ridge.left_out(columns, self.regularization_) ** 2)
        return means, spread[:, 0] if values.ndim == 1 else spread

    def _values_of(self, function: Any) -> Array:
        targets = to_numpy(self.targets_)
        values = np.asarray(to_numpy(function(targets.copy()) if callable(function) else function), np.float64)
        if values.ndim not in (1, 2) or values.shape[0] != targets.shape[0]:
            raise ValueError(
                f"function gives values of shape {values.shape} for {targets.shape[0]} targets: one each is needed."
            )
        if not np.isfinite(values).all():
            raise ValueError("function has a NaN or an infinity at a training target.")
        return like(values, self.targets_)

    def _spread(self, X: Any, squares: Array) -> Array:
        """√Σ βᵢ(x)² eᵢ², some points at a time; eᵢ² in columns."""
        ridge, xp = self._ridge, namespace(squares)
        features = self._features(X)
        chunks = row_chunks(features.shape[0], panel_rows(squares.shape[0]))
        return xp.concat(
            [xp.sqrt(ridge.weights(features[rows], self.regularization_) ** 2 @ squares) for rows in chunks]
        )

    @overload
    def predict(self, X: Any, return_std: Literal[False] = ...) -> Array: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The mean of y given x for every row x of X, and on demand its standard error."""
        points = self._new_points(X)
        if not self._numeric:
            raise ValueError("y has categories, which have no mean: ask for expectation(lambda y: y[:, 0] == code, X).")
        values = self.targets_[:, 0] if self._one_target else self.targets_
        return self._expected(values, points, return_std)


@final
@dataclass(frozen=True)
class _Tried:
    """A kernel, and the leave-one-out errors of the penalties tried with it."""

    kernel: Kernel
    features: Features
    ridge: Ridge
    penalties: Array
    errors: Array

    @property
    def error(self) -> float:
        """The least of them."""
        return float(self.errors.min())

    @property
    def penalty(self) -> float:
        """Where it is; of equal ones the largest, which smooths most."""
        return float(self.penalties[np.flatnonzero(self.errors == self.errors.min())[-1]])
