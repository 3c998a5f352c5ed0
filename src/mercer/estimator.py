"""What every estimator shares: the parameters of its kernel, scikit-learn's tags, the beginning of a fit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, ClassVar, NamedTuple, ParamSpec, Protocol, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.backends import config_context
from mercer.backends.arrays import Array, is_source, is_tensor, to_numpy
from mercer.backends.collections import ROW_BY_ROW, lazy_row_by_row, stays_lazy, takes_dask
from mercer.backends.fingerprint import DataSeen
from mercer.backends.moved import brought_back
from mercer.backends.row_source import by_blocks
from mercer.certificates import Certificate
from mercer.journal import identify, journalled
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.checks import as_generator
from mercer.kernels.names import NAMED, kernel_named
from mercer.kernels.tables import Table
from mercer.progress import make_visible
from mercer.support import Support
from mercer.validation import (
    checked_kernel,
    checked_pairs,
    checked_points,
    checked_weights,
    is_precomputed,
    kernel_on_columns,
    normalised,
    resolved_kernel,
)
from mercer.wording import OneLine

_log = logging.getLogger("mercer")
P = ParamSpec("P")
T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])


def keeps_earlier_fit(fit: Callable[P, T]) -> Callable[P, T]:
    """The same ``fit``, which leaves the model as it was where it fails, and tells its end where it is ``verbose``."""
    returned = brought_back(takes_dask(fit))

    @wraps(fit)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        attributes = vars(args[0])
        earlier, began = dict(attributes), time.perf_counter()
        try:
            with journalled():
                fitted = returned(*args, **kwargs)
        except BaseException:
            attributes.clear()
            attributes.update(earlier)
            raise
        if attributes.get("verbose"):
            _tell_end(fitted, time.perf_counter() - began)
        return fitted

    return wrapped


def row_by_row(method: Method) -> Method:
    """The same method of a fitted model, whose answer at a row depends on that row alone: a source is read by blocks.

    The answer is an array of this process, whatever X is; :func:`mercer.io.write_rows` writes it to a file instead.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_source(X):
            return method(self, X, *args, **kwargs)
        rows = self._new_points(X) if isinstance(self, KernelEstimator) else X
        width = 4 * (getattr(self, "_n_features_out", 0) + rows.shape[1])
        return by_blocks(lambda block: method(self, block, *args, **kwargs), rows, width)

    return cast(Method, wrapped)


def by_rows(method: Method) -> Method:
    """The same method, read by blocks of a source and lazy of a Dask collection: where no class sees to it itself.

    A class does for its own plain methods, see :class:`KernelEstimator`; not for those of a class beside it, nor for
    those that only some models have.
    """
    return cast(Method, stays_lazy(row_by_row(method)))


def _tell_end(model: Any, seconds: float) -> None:
    """Log how long a fit took, and what is proved of it by then."""
    proof = vars(model).get("certificate_")
    _log.info("%s fitted in %.1f s%s", type(model).__name__, seconds, "" if proof is None else f". {proof}")


@dataclass(frozen=True)
class FitInput:
    """What a fit is given, checked: the points and, of a regression, a target for each, None elsewhere."""

    points: Any
    targets: Array
    weights: Array | None  # as given, None for equal ones
    rng: np.random.Generator
    given_kernel: Any

    @cached_property
    def kernel(self) -> Kernel:
        """A copy of the user's kernel with its parameters fixed, when first asked for."""
        return resolved_kernel(self.given_kernel, self.points, self.weights)

    def kernel_on(self, support: Support) -> Kernel:
        """The kernel with its parameters fixed from X; neighbours are those among the points that carry the problem."""
        kernel = checked_kernel(self.given_kernel)
        if support.indices is None or not kernel.is_local:
            return self.kernel
        return resolved_kernel(kernel, support.points(self.points, kernel), support.weights)

    @cached_property
    def shares(self) -> Array:
        """The weights divided by their sum."""
        return normalised(self.weights, int(self.points.shape[0]), reference=self.points)


def scored(measure: Callable[..., Any], y: Any, predicted: Any, sample_weight: Any) -> float:
    """What a measure of scikit-learn says of predictions; any of these may be tensors, wherever they lie."""
    y, predicted, sample_weight = (
        to_numpy(part) if is_tensor(part) else part for part in (y, predicted, sample_weight)
    )
    return float(measure(y, predicted, sample_weight=sample_weight))


class Regressor(RegressorMixin):
    """A regressor of scikit-learn whose score takes tensors too."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions: 1 - the squared errors over those of the mean of y."""
        from sklearn.metrics import r2_score

        return scored(r2_score, y, self.predict(X), sample_weight)


class Classifier(ClassifierMixin):
    """A classifier of scikit-learn whose score takes tensors too."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The part of the rows whose class is right."""
        from sklearn.metrics import accuracy_score

        return scored(accuracy_score, y, self.predict(X), sample_weight)


class Recheck(NamedTuple):
    """How a certificate is to be computed again, see :func:`mercer.verify`."""

    extended: bool
    failure_probability: float
    random_state: Any

    def refuse_extension(self, model: str) -> None:
        """Refuse to certify the extension of a model that is no embedding."""
        if self.extended:
            raise ValueError(f"extended=True certifies the extension of an embedding: {model} has none.")


class Certified(Protocol):
    """A model that proves its certificate again from its fitted attributes and the data."""

    def _recertify(self, X: Any, y: Any, recheck: Recheck) -> Certificate: ...


class KernelEstimator(OneLine, BaseEstimator):
    """An estimator with a kernel, which may be None or a name: the parameters of what that stands for can be reached.

    ``kernel`` itself stays as it was given, so that copies and ``get_params(deep=False)`` are as scikit-learn wants
    them. The parameters of the kernel that it stands for are listed beside it as ``kernel__sigma`` and the like, and
    the first of them to be set puts a new kernel object in its place: a grid search finds the bandwidth of an estimator
    without arguments.

    A subclass says in ``_default_kernel`` what None stands for, declares what its parameters may be in ``_checks``,
    begins ``fit`` with :meth:`_begin_fit` and every method for new points with :meth:`_new_points`; its ``fit`` is
    decorated by :func:`keeps_earlier_fit`. One that certifies its solution is :class:`Certified`.
    """

    kernel: Any
    kernel_: Kernel
    n_features_in_: int
    _data_seen: DataSeen
    _table: Table | None  # what a data frame's columns hold
    _fitted_like: Any = None  # an empty tensor where the fit was on one; a model file holds arrays
    _unsaved: ClassVar[frozenset[str]] = frozenset({"_fitted_like"})  # what a model file leaves out
    _checks: ClassVar[Mapping[str, Callable[[Any, str], Any]]] = {}  # called with the value and the name
    _always_double: ClassVar[bool] = False  # whether points are double, whatever the configuration says
    _has_targets: ClassVar[bool] = False
    _fits_blocks: ClassVar[bool] = False  # whether a fit takes rows that come a block at a time

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ROW_BY_ROW:
            if callable(method := vars(cls).get(name)):
                setattr(cls, name, row_by_row(method))
        lazy_row_by_row(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; if deep, also those of the kernel that None or a name stands for."""
        params: dict[str, Any] = super().get_params(deep=deep)
        meant = self._meant_kernel(self.kernel) if deep else None
        if meant is not None:
            params.update({f"kernel__{name}": value for name, value in meant.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name and return self; ``kernel__sigma`` reaches the kernel that None or a name means."""
        inner = {key: params[key] for key in params if key.startswith("kernel__")}
        meant = self._meant_kernel(params.get("kernel", self.kernel)) if inner else None
        if meant is not None:
            meant.set_params(**{key.removeprefix("kernel__"): value for key, value in inner.items()})
            params = {key: value for key, value in params.items() if key not in inner} | {"kernel": meant}
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.sparse = is_precomputed(self.kernel)
        return tags

    @staticmethod
    def _default_kernel() -> Kernel:
        """What a kernel left out stands for."""
        return Gaussian()

    def _meant_kernel(self, kernel: Any) -> Kernel | None:
        """A new kernel where None or a known name was given; None where an object speaks for itself."""
        if kernel is None:
            return self._default_kernel()
        return kernel_named(kernel) if isinstance(kernel, str) and kernel in NAMED else None

    def _check_parameters(self) -> None:
        """Refuse parameters that are none; a subclass adds what concerns several of them."""
        for name, check in self._checks.items():
            check(getattr(self, name), name)

    def _begin_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, least: int = 2) -> FitInput:
        """Check all that a fit to ``least`` points or more is given, and make its log visible if that is asked for."""
        self._check_parameters()
        if getattr(self, "verbose", False):
            make_visible()
        points, targets = self._checked_data(X, y, fitting=True, least=least)
        weights = sample_weight
        if weights is not None:
            weights = self._checked_sample_weight(weights, points)
        kernel = kernel_on_columns(self, self._default_kernel() if self.kernel is None else self.kernel)
        identify(type(self).__name__, self.get_params(deep=False), points, targets, weights)
        return FitInput(points, targets, weights, as_generator(getattr(self, "random_state", None)), kernel)

    def _checked_sample_weight(self, weights: Any, points: Any) -> Array:
        """Weights of the points, none negative; a subclass may allow others."""
        return checked_weights(weights, points.shape[0], "sample_weight", reference=points)

    def _new_points(self, X: Any) -> Any:
        """Points given to a fitted model, in the library and on the device of the fit."""
        check_is_fitted(self)
        with self._arithmetic():
            return checked_points(self, X, fitting=False)

    def _checked_data(self, X: Any, y: Any, *, fitting: bool, least: int = 2) -> tuple[Any, Array]:
        """The points, and of a regression their targets."""
        with self._arithmetic():
            if self._has_targets:
                return checked_pairs(self, X, y, fitting=fitting)
            return checked_points(self, X, fitting=fitting, least=least), None

    def _arithmetic(self) -> AbstractContextManager[Any]:
        return config_context(dtype="float64") if self._always_double else nullcontext()
