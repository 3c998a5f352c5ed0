"""Checks that every estimator shares: its parameters, its kernel, points, targets and weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from mercer.backends import config_context, get_config
from mercer.backends.arrays import (
    Array,
    as_double,
    cast,
    distinct_rows,
    dtype_name,
    is_source,
    is_sparse_tensor,
    is_tensor,
    like,
    namespace,
    to_numpy,
)
from mercer.backends.fingerprint import DataSeen
from mercer.backends.moved import on_device
from mercer.kernels import Gaussian, Kernel, Precomputed
from mercer.kernels.bandwidth import some_points
from mercer.kernels.checks import (
    as_points,
    as_sparse_tensor,
    checked_weights,
    fraction,
    positive_number,
    refuse_sparse_tensor,
    same_library,
    scale_free,
    whole_number,
)
from mercer.kernels.names import kernel_named
from mercer.kernels.tables import Table, is_frame
from mercer.progress import warn_user

__all__ = [
    "at_least",
    "checked_kernel",
    "checked_pairs",
    "checked_points",
    "checked_weights",
    "declared",
    "distinct_rows",
    "fitted_chooser",
    "fraction",
    "function_of",
    "is_precomputed",
    "kernel_on_columns",
    "non_negative",
    "normalised",
    "of_labels",
    "one_of",
    "optional",
    "positive_number",
    "refuse_words",
    "require_points",
    "require_rows",
    "resolved_kernel",
    "scale_free",
    "true_or_false",
    "two_samples",
    "weighted_sample",
    "whole_number",
    "warn_if_not",
]


Check = Callable[[Any, str], Any]  # of the value and the name of a parameter


def declared(**checks: Check) -> Mapping[str, Check]:
    """The checks of an estimator's parameters, by name."""
    return checks


def at_least(least: int) -> Check:
    """The check of a whole number of at least ``least``."""
    return lambda value, name: whole_number(value, name, least)


def non_negative(value: Any, name: str) -> float:
    """A finite real number of at least zero."""
    return positive_number(value, name, zero=True)


def optional(check: Check) -> Check:
    """The check of a parameter that may be None."""
    return lambda value, name: None if value is None else check(value, name)


def one_of(*allowed: Any) -> Check:
    """The check of a parameter with a few values."""

    def check(value: Any, name: str) -> None:
        if value not in allowed:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}.")

    return check


def true_or_false(value: Any, name: str) -> None:
    """Refuse what is no truth value."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} must be True or False.")


def function_of(argument: str, error: type[Exception] = TypeError) -> Check:
    """The check of a function that may be left out."""

    def check(value: Any, name: str) -> None:
        if value is not None and not callable(value):
            raise error(f"{name}={value!r} must be a function of {argument}, or None.")

    return check


def checked_kernel(kernel: Any) -> Kernel:
    """The user's kernel, the one of that name, or the Gaussian with the median bandwidth."""
    if kernel is None:
        return Gaussian()
    if isinstance(kernel, str):
        return kernel_named(kernel)
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"kernel={kernel.__name__} is a class: it must be a kernel, {kernel.__name__}().")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel={kernel!r} must be a kernel of mercer.kernels, such as Gaussian(sigma=1.0), or None.")
    return kernel


def is_precomputed(kernel: Any) -> bool:
    """Whether the rows of X are rows of a kernel matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def checked_points(estimator: BaseEstimator, X: Any, *, fitting: bool, least: int = 2) -> Any:
    """Validate X as scikit-learn does, in the arithmetic of the configuration; a fit takes ``least`` rows or more.

    A tensor stays a tensor, where it lies. Points given to a model after its fit are brought to the library and the
    device of the fit.
    """
    precomputed = is_precomputed(estimator.kernel)
    if is_source(X):
        return _checked_source(estimator, X, fitting=fitting, least=least)
    if not fitting:
        X = _as_in_the_fit(estimator, X)
    table, X = _read_table(estimator, X, fitting=fitting)
    given, dtype = X, get_config().dtype
    params = {
        "reset": fitting,
        "accept_sparse": "csr" if precomputed else False,
        "dtype": np.dtype(dtype),
        "order": "C",
        "ensure_min_samples": least if fitting else 1,
    }
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is named by scikit-learn
        if is_tensor(X):
            X = _validated_tensor(estimator, X, params)
        elif table is not None and table.texts:
            own = {name: value for name, value in params.items() if name != "reset"}
            X = check_array(X, estimator=estimator, input_name="X", **own)
        else:
            X = validate_data(estimator, X, **params)
    if fitting:
        estimator._table, estimator._data_seen = table, DataSeen.of(X)
        X = on_device(X)
        estimator._fitted_like = like(np.empty(0), X) if is_tensor(X) else None
    if dtype == "float32" and not precomputed:
        _refuse_vanished(given, X)
    if fitting and precomputed and X.shape[0] != X.shape[1]:
        raise ValueError(f"A precomputed kernel must be square, not {X.shape[0]} × {X.shape[1]}.")
    return X


def _checked_source(estimator: BaseEstimator, X: Any, *, fitting: bool, least: int) -> Any:
    """Rows that come a block at a time, in the arithmetic of the configuration; numbers are looked at as they are read.

    A fit reads all of them once for what the model remembers of its data.
    """
    if is_precomputed(estimator.kernel) or (fitting and not getattr(estimator, "_fits_blocks", False)):
        X.refuse_whole()
    if fitting and getattr(estimator, "landmarks", X) is None:
        X.refuse_without_landmarks()  # before a pass over them
    if fitting and X.shape[0] < least:
        raise ValueError(f"{X.name} has {X.shape[0]} rows, and a fit needs at least {least}.")
    validate_data(estimator, X, reset=fitting, skip_check_array=True)
    rows = as_points(X).astype(np.dtype(get_config().dtype))
    if fitting:
        estimator._fitted_like, estimator._table, estimator._data_seen = None, None, DataSeen.of(rows)
    return rows


def checked_pairs(estimator: BaseEstimator, X: Any, y: Any, *, fitting: bool) -> tuple[Any, Any]:
    """Points and a target for each of them, in double precision, as scikit-learn validates them.

    Tensors stay tensors; a model fitted to tensors is given tensors, and one fitted to NumPy arrays these. Targets that
    cannot be used are refused by scikit-learn's own sentence.
    """
    options: dict[str, Any] = {"dtype": np.float64, "order": "C", "y_numeric": True}
    refuse_words(y, "y")
    tensors = is_tensor(X) if fitting else getattr(estimator, "_fitted_like", None) is not None
    if not tensors:
        estimator._fitted_like = None
        least = 2 if fitting else 1
        table, points = _read_table(estimator, to_numpy(X) if is_tensor(X) else X, fitting=fitting)
        estimator._table = table
        plain = points, to_numpy(y) if is_tensor(y) else y
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is named by scikit-learn
            if table is not None and table.texts:
                X, y = check_X_y(*plain, estimator=estimator, ensure_min_samples=least, **options)
            else:
                X, y = validate_data(estimator, *plain, reset=fitting, ensure_min_samples=least, **options)
        y = np.asarray(y, np.float64)
        if fitting:
            estimator._data_seen = DataSeen.of(X)
            X, y = on_device(X), on_device(y)
            estimator._fitted_like = like(np.empty(0), X) if is_tensor(X) else None
        return X, y
    with config_context(dtype="float64"):
        X = checked_points(estimator, X, fitting=fitting)
    if is_tensor(y) and tuple(y.shape) == (X.shape[0],) and not y.is_complex() and bool(y.isfinite().all()):
        return X, like(y.detach(), X, dtype=X.dtype)
    _, y = validate_data(estimator, to_numpy(X), to_numpy(y) if is_tensor(y) else y, reset=False, **options)
    return X, like(y, X, dtype=X.dtype)


def refuse_words(y: Any, name: str) -> None:
    """Refuse targets that are words, which no regression can predict."""
    values = np.empty(0) if y is None or is_tensor(y) or is_frame(y) else np.asarray(y)
    if values.dtype.kind not in "USO":
        return
    for row, value in enumerate(values.ravel()):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                raise ValueError(f"{name} has {str(value)!r} in row {row}, which is no number: pass numbers.") from None


def of_labels(check: Callable[..., Any], y: Any) -> Any:
    """What scikit-learn says of labels, which it compares with whole numbers, however large they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return check(to_numpy(y) if is_tensor(y) else y)


def _read_table(estimator: BaseEstimator, X: Any, *, fitting: bool) -> tuple[Table | None, Any]:
    """What is known of the columns of a data frame, and X; categories are coded, as they were in the fit.

    A frame without categories, and anything else, is left to scikit-learn.
    """
    table = (Table.of(X) if is_frame(X) else None) if fitting else getattr(estimator, "_table", None)
    if table is None or not table.texts:
        return table, X
    validate_data(estimator, X, reset=fitting, skip_check_array=True)  # the names of the columns
    if fitting:
        meant = getattr(estimator, "_default_kernel", Gaussian)() if estimator.kernel is None else estimator.kernel
        table.require_numbers(checked_kernel(meant).bound(table))
    return table, table.coded(X)


def kernel_on_columns(estimator: BaseEstimator, kernel: Any) -> Any:
    """A kernel on the columns of the data frame that an estimator was fitted to, which it may name."""
    table = getattr(estimator, "_table", None)
    if table is None or not isinstance(kernel, Kernel | str):
        return kernel
    return checked_kernel(kernel).bound(table)


def _as_in_the_fit(estimator: BaseEstimator, X: Any) -> Any:
    """The points in the library of the fit; a model that does not say which it was is one of NumPy's."""
    reference = getattr(estimator, "_fitted_like", None)
    if reference is None:
        return to_numpy(X) if is_tensor(X) and not is_sparse_tensor(X) else X
    return same_library(X, reference)[0].to(device=reference.device)


def _validated_tensor(estimator: BaseEstimator, X: Any, params: dict[str, Any]) -> Any:
    """A tensor in the arithmetic asked for. A dense one that cannot be used is refused by scikit-learn's sentence."""
    if is_sparse_tensor(X) and params["accept_sparse"]:
        points = as_sparse_tensor(X).to(dtype=getattr(namespace(X), params["dtype"].name))
        return validate_data(estimator, points, reset=params["reset"], skip_check_array=True)
    refuse_sparse_tensor(X, "X")
    X = X.detach()
    sound = X.ndim == 2 and X.shape[0] >= params["ensure_min_samples"] and X.shape[1] > 0 and not X.is_complex()
    points = X.to(dtype=getattr(namespace(X), params["dtype"].name)).contiguous() if sound else X
    if not sound or not points.isfinite().all():
        validate_data(estimator, to_numpy(X), **params)
    return validate_data(estimator, points, reset=params["reset"], skip_check_array=True)


def _refuse_vanished(given: Any, X: Array) -> None:
    """Refuse points that single precision makes zero, or leaves no digits of."""
    xp = namespace(X)
    largest, arithmetic = float(xp.max(xp.abs(X))), np.finfo(np.float32)
    if largest >= float(arithmetic.tiny) / float(arithmetic.eps):
        return
    if as_double(given).any() if is_tensor(given) else np.any(np.asarray(given, np.float64)):
        raise ValueError(f"The entries of X are too small for {dtype_name(X.dtype)}: multiply X by a constant.")


def resolved_kernel(kernel: Any, X: Any, sample_weight: Array | None = None) -> Kernel:
    """A copy of the user's kernel with its parameters fixed from X, whose rows may have weights."""
    copy: Kernel = clone(checked_kernel(kernel))
    if is_source(X) and not copy.is_resolved:
        if copy.is_local:
            X.refuse_whole()
        X, sample_weight = some_points(X, sample_weight)
    return copy if isinstance(copy, Precomputed) else copy.resolve(X, sample_weight)


def normalised(weights: Array | None, n: int, *, reference: Any = None) -> Array:
    """Weights that sum to one, equal ones if none are given; the same, bit for bit, whatever unit they come in.

    Equal ones are an array of the library of ``reference``, NumPy's if there is none.
    """
    if weights is None:
        equal = np.full(n, 1.0 / n)
        return equal if reference is None else like(equal, reference)
    scaled = scale_free(weights)
    return scaled / scaled.sum()


def require_rows(X: Any, count: int) -> None:
    """Refuse data of another number of rows than the fit had."""
    if X.shape[0] != count:
        raise ValueError(f"The model was fitted to {count} points, X has {X.shape[0]}: pass the data of the fit.")


def require_points(kernel: Any, why: str) -> None:
    """Refuse a precomputed kernel where the kernel is evaluated between points of one's own."""
    if isinstance(checked_kernel(kernel), Precomputed):
        raise ValueError(f"{why}: pass points, not Precomputed().")


def warn_if_not(needed: str, kernel: Kernel, consequence: str, name: str = "kernel") -> None:
    """Warn of a kernel that is known to lack a property that a method needs; of one that may have it, say nothing."""
    if getattr(kernel.properties, needed) is False:
        warn_user(f"{kernel!r} is not {needed}: {consequence} Pass {name}=Gaussian(), which is.")


def fitted_chooser(estimator: Any, name: str, X: Any, sample_weight: Array | None) -> Any:
    """An estimator that says in ``indices_`` which rows of X it chose: itself if fitted, or a copy fitted here."""
    if hasattr(estimator, "fit"):
        try:
            check_is_fitted(estimator)
        except NotFittedError:
            estimator = clone(estimator).fit(X, **({} if sample_weight is None else {"sample_weight": sample_weight}))
    if not hasattr(estimator, "indices_"):
        raise TypeError(f"{name}={estimator!r} has no attribute indices_ after fit: it chooses no rows.")
    return estimator


def two_samples(X: Any, Y: Any, x_weights: Any, y_weights: Any) -> tuple[Array, Array, Array, Array]:
    """The points of two samples in the arithmetic of the configuration, and their weights, 1/n and 1/m if left out.

    If either sample is a tensor, both become tensors, on the device of the first that is one.
    """
    X, Y = same_library(X, Y)
    X, of_X = weighted_sample(X, x_weights, "X", "x_weights")
    Y, of_Y = weighted_sample(Y, y_weights, "Y", "y_weights")
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features and Y has {Y.shape[1]}: they must agree.")
    return X, Y, of_X, of_Y


def weighted_sample(X: Any, weights: Any, name: str, weights_name: str, *, signed: bool = False) -> tuple[Array, Array]:
    """The points of a sample of at least one, and their weights; 1/n if left out."""
    X = as_points(X, name)
    X = cast(X, getattr(namespace(X), get_config().dtype))
    n = X.shape[0]
    if not n:
        raise ValueError(f"{name} has no rows: a sample needs at least one point.")
    given = 1 / n if weights is None else weights
    return X, checked_weights(given, n, weights_name, signed=signed, reference=X)


def are_rows_of(points: Array, X: Array) -> bool:
    """Whether every point is a row of X."""
    rows = X[distinct_rows(X)[0]]
    return bool(distinct_rows(namespace(X).concat([rows, points]))[0].shape[0] == rows.shape[0])
