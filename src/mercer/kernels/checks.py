"""Checks of input, each with one sentence that says what is wrong and what to do."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.backends.arrays import (
    Array,
    cast,
    contiguous,
    copied,
    dtype_name,
    is_source,
    is_sparse_tensor,
    is_tensor,
    like,
    namespace,
)
from mercer.backends.ordering import as_indices
from mercer.backends.rounding import times_power_of_two
from mercer.backends.row_source import FiniteRows
from mercer.journal import adopted

COMPLEX_MATRIX = "Complex data not supported: a precomputed kernel must be real."
INFINITE_MATRIX = "A precomputed kernel must be finite: remove NaN and infinity first."


def as_points(X: Any, name: str = "X") -> Array:
    """A two-dimensional, finite float32 or float64 array with rows as points; a tensor stays one, where it lies.

    Rows of a source stay there, and are looked at as they are read.
    """
    if is_source(X):
        require_columns(X, name)
        return FiniteRows(X, np.float32 if X.dtype == np.float32 else np.float64)
    array = _as_tensor(X, name) if is_tensor(X) else _as_numpy(X, name)
    if array.ndim != 2:
        hint = "Reshape a single feature with .reshape(-1, 1)." if array.ndim == 1 else "Rows are points."
        raise ValueError(f"{name} must be 2-dimensional, not {array.ndim}-dimensional. {hint}")
    require_columns(array, name)
    xp = namespace(array)
    if array.dtype != xp.float32:
        array = cast(array, xp.float64)
    finite = xp.isfinite(array)
    if not finite.all():
        row, col = first_place(~finite)
        raise ValueError(f"{name} has {float(array[row, col])} in row {row}, column {col}: remove or impute it first.")
    return contiguous(array)


def _as_numpy(X: Any, name: str) -> Array:
    """The entries as a NumPy array of real numbers, of any shape."""
    if hasattr(X, "toarray"):
        raise TypeError(f"{name} is a sparse matrix: pass a dense array, or sparse affinities with Precomputed().")
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError(f"{name} must be a table of numbers whose rows are equally long.") from None
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be real.")
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers, not {array.dtype}: {error}.") from None
    return array


def _as_tensor(X: Any, name: str) -> Any:
    """The tensor itself, outside of any graph of gradients, if it is dense and real."""
    refuse_sparse_tensor(X, name)
    if X.is_complex():
        raise ValueError(f"Complex data not supported: {name} must be real.")
    return X.detach()


def refuse_sparse_tensor(X: Any, name: str) -> None:
    """Refuse a tensor that holds only some of its entries where points are wanted."""
    if is_sparse_tensor(X):
        raise TypeError(f"{name} is a sparse tensor: pass a dense one, or sparse affinities with Precomputed().")


def as_sparse_tensor(X: Any, name: str = "X") -> Any:
    """Sparse affinities as a CSR tensor, each entry once, in finite float32 or float64, from any sparse layout."""
    import torch

    if X.ndim != 2:
        raise ValueError(f"{name} must be 2-dimensional, not {X.ndim}-dimensional. Rows are points.")
    require_columns(X, name)
    if X.is_complex():
        raise ValueError(COMPLEX_MATRIX)
    with warnings.catch_warnings():  # torch calls the layout a beta
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        matrix = X.detach().to_sparse_coo().coalesce().to_sparse_csr()
    if matrix.dtype != torch.float32:
        matrix = matrix.to(dtype=torch.float64)
    if not matrix.values().isfinite().all():
        raise ValueError(INFINITE_MATRIX)
    return matrix


def same_library(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both sets of points as they are, or, where just one of them is a tensor, the other brought to where it lies."""
    if is_tensor(X) == is_tensor(Y):
        return X, (Y.to(device=X.device) if is_tensor(Y) else Y)
    if hasattr(X, "toarray") or hasattr(Y, "toarray"):
        raise TypeError("A sparse matrix of SciPy and a tensor do not meet: pass X and Y of one library.")
    return (X, like(as_points(Y, "Y"), X)) if is_tensor(X) else (like(as_points(X), Y), Y)


def as_sides(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both sets of points, of as many features; no second one where Y is None or X itself."""
    if Y is None or Y is X:
        return as_points(X), None
    X, Y = same_library(X, Y)
    X, Y = as_points(X), as_points(Y, "Y")
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features and Y has {Y.shape[1]}: they must agree.")
    return X, Y


def first_place(mask: Any) -> tuple[int, ...]:
    """The indices of the first entry of a mask, row by row, that is true."""
    return tuple(int(axis[0]) for axis in namespace(mask).nonzero(mask))


def require_columns(array: Any, name: str) -> None:
    """Refuse points without coordinates; no points at all are fine, their block is empty."""
    if array.shape[1] == 0:
        raise ValueError(f"{name} has no columns: a point needs at least one feature.")


def positive_number(value: Any, name: str, *, zero: bool = False) -> float:
    """A finite real number above zero (or at least zero)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name}={value!r} must be {'at least 0' if zero else 'greater than 0'}.")
    return float(value)


def whole_number(value: Any, name: str, least: int) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")
    return int(value)


def fraction(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name}={value!r} must lie strictly between 0 and 1.")
    return float(value)


def checked_weights(
    weights: Any, n: int, name: str, *, signed: bool = False, may_vanish: bool = False, reference: Any = None
) -> Array:
    """Weights as finite non-negative float64, one for each of n points; a single number is the weight of all.

    Signed weights may be negative, and zero everywhere; ``may_vanish`` lets them be zero everywhere, where there are
    other points. Weights are an array of the library of ``reference``, such as the points they belong to, where it is
    given, and of their own otherwise.
    """
    values = _as_real(weights, name)
    if reference is not None:
        values = like(values, reference)
    xp = namespace(values)
    values = copied(cast(values, xp.float64))
    if values.ndim == 0:
        values = values + xp.zeros(n, dtype=xp.float64, device=values.device)
    if tuple(values.shape) != (n,):
        raise ValueError(f"{name} has shape {tuple(values.shape)}: it must have one entry for each of the {n} points.")
    finite = xp.isfinite(values)
    if not finite.all():
        raise ValueError(f"{name} has a NaN or an infinity at index {first_place(~finite)[0]}.")
    if signed:
        return values
    if (values < 0).any():
        raise ValueError(f"{name} is negative at index {int(xp.argmin(values))}: weights must not be negative.")
    if not may_vanish and not (values > 0).any():
        raise ValueError(f"{name} is zero everywhere: at least one weight must be positive.")
    return values


def _as_real(weights: Any, name: str) -> Any:
    """Numbers as an array of their own library, if they are real."""
    if is_tensor(weights):
        if not weights.is_complex():
            return weights.detach()
        raise ValueError(f"{name} must be real numbers, not of type {weights.dtype}.")
    values = np.asarray(weights)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, not of type {values.dtype}.")
    return values


def checked_nodes(nodes: Any, size: int, reference: Any = None) -> Array:
    """Distinct row numbers among ``size`` rows, in the library of another array."""
    chosen = like(nodes, reference)
    whole = dtype_name(chosen.dtype).startswith(("int", "uint"))
    if chosen.ndim != 1 or chosen.shape[0] == 0 or not whole:
        raise ValueError("nodes must be row numbers: a non-empty one-dimensional array of whole numbers.")
    if int(chosen.min()) < 0 or int(chosen.max()) >= size:
        raise ValueError(f"nodes must lie between 0 and {size - 1}.")
    if namespace(chosen).unique_values(chosen).shape[0] != chosen.shape[0]:
        raise ValueError("nodes names a row twice: give it once, with the sum of its values.")
    return as_indices(chosen, chosen)


def in_one_unit(*weights: Any) -> tuple[Any, ...]:
    """The same weights in units of two to a power, the largest between a half and one, and that power.

    No digit changes but of what underflows, and no sum and no square of them overflows.
    """
    largest = max((float(abs(each).max()) for each in weights if each.shape[0]), default=0.0)
    power = math.frexp(largest)[1]
    return *(times_power_of_two(each, -power) for each in weights), power


def scale_free(weights: Any) -> Any:
    """Weights in one unit: what depends on their ratios alone is the same, bit for bit, in any other."""
    return in_one_unit(weights)[0]


def as_generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """A NumPy generator from None, a seed, a Generator or a legacy RandomState (from which a seed is drawn)."""
    if isinstance(random_state, np.random.RandomState):
        return adopted(np.random.default_rng(random_state.randint(2**31, size=4)))
    try:
        return adopted(np.random.default_rng(random_state))
    except (TypeError, ValueError):
        allowed = "None, a whole number ≥ 0 or a random generator"
        raise ValueError(f"{name}={random_state!r} must be {allowed}.") from None
