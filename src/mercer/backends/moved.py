"""NumPy users' arrays to the device of the configuration, and what came of them back.

A fit moves its points once, by :func:`on_device`, and works with tensors from then on; :func:`in_memory` makes NumPy
arrays of what it leaves behind. What has no fit, a kernel between two sets of points, a test or a model that answers,
multiplies by a :class:`MovedMatrix`: points and columns go over, products come back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from enum import Enum
from functools import wraps
from typing import Any, ParamSpec, TypeVar, final

import numpy as np

from mercer.backends.arrays import dtype_name, is_sparse_tensor, is_tensor, like, to_numpy
from mercer.backends.config import config_context
from mercer.backends.device import memory_error, torch_device
from mercer.backends.entries import Side
from mercer.backends.forms import Form
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import EntryError

_OURS = "mercer."
P = ParamSpec("P")
T = TypeVar("T")


def moves(arguments: Iterable[Any]) -> bool:
    """Whether a call with these arguments goes to a device for a user of NumPy: none of them is a tensor."""
    return torch_device() is not None and not any(map(is_tensor, arguments))


def on_device(array: Any) -> Any:
    """An array, or a sparse matrix of SciPy, as a tensor where the configuration says; a tensor stays where it is."""
    device = torch_device()
    if device is None or is_tensor(array):
        return array
    if hasattr(array, "toarray"):
        from mercer.backends.torch.stored import csr_tensor

        return csr_tensor(array.tocsr(), device)
    import torch

    return like(array, torch.empty(0, device=device))


def in_memory(value: Any) -> Any:
    """A value with NumPy arrays and SciPy's matrices in place of all tensors that it, or an object of ours, holds.

    What holds none is returned itself; what does is copied as far as a tensor is below it, so that nothing that a user
    keeps elsewhere changes.
    """
    return _Mover().moved(value)


@final
class _Mover:
    """Copies of objects, each made once, whoever refers to it."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[Any, Any]] = {}  # by identity, with the object, so that it is not used again

    def moved(self, value: Any) -> Any:
        if is_tensor(value):
            return self._once(value, _array)
        if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
            return np.dtype(dtype_name(value))
        if isinstance(value, dict):
            return self._once(value, self._dict)
        if isinstance(value, list | tuple):
            return self._once(value, self._sequence)
        if type(value).__module__.startswith(_OURS) and _has_attributes(value):
            return self._once(value, self._object)
        return value

    def _once(self, value: Any, make: Any) -> Any:
        if id(value) not in self._done:
            self._done[id(value)] = value, value  # what refers to itself stays
            self._done[id(value)] = value, make(value)
        return self._done[id(value)][1]

    def _dict(self, value: dict[Any, Any]) -> Any:
        parts = {key: self.moved(each) for key, each in value.items()}
        return parts if any(parts[key] is not value[key] for key in value) else value

    def _sequence(self, value: Any) -> Any:
        parts = [self.moved(each) for each in value]
        if all(part is each for part, each in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)

    def _object(self, value: Any) -> Any:
        """A copy with other attributes; what says what it is made from is made again, with products of processors."""
        made_from = vars(type(value)).get("_made_from", {})
        given = {name: getattr(value, where) for name, where in made_from.items()}
        again, attributes = self._dict(given), vars(value)
        parts = self._dict(attributes) if again is given else {}
        if parts is attributes:
            return value
        if made_from:
            with config_context(device="cpu"):
                return type(value)(**again)
        twin = copy.copy(value)
        vars(twin).update(parts)
        return twin


def _has_attributes(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type | Enum)


def _array(tensor: Any) -> Any:
    if not is_sparse_tensor(tensor):
        return np.array(to_numpy(tensor))
    from scipy.sparse import csr_array

    rows = tensor.to_sparse_csr()
    parts = (to_numpy(part) for part in (rows.values(), rows.col_indices(), rows.crow_indices()))
    return csr_array(tuple(parts), shape=tuple(tensor.shape))


def brought_back(fit: Callable[P, T]) -> Callable[P, T]:
    """The same ``fit`` of a model; where NumPy arrays went to a device for it, all that it leaves is NumPy's again.

    A card that is full is a MemoryError of one sentence.
    """

    @wraps(fit)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        moved = moves((*args, *kwargs.values()))
        try:
            fitted = fit(*args, **kwargs)
        except Exception as error:
            full = memory_error(error, _row_count(args[1] if len(args) > 1 else kwargs.get("X")))
            if full is None:
                raise
            raise full from None
        if not moved:
            return fitted
        model: Any = args[0]
        given = model.get_params(deep=False)
        vars(model).update(in_memory({name: value for name, value in vars(model).items() if name not in given}))
        if hasattr(model, "_fitted_like"):
            model._fitted_like = None
        return fitted if fitted is model else in_memory(fitted)

    return wrapped


def _row_count(X: Any) -> Any:
    """The rows of what a fit was given, whatever that was; None where it has none."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X) if isinstance(X, list | tuple) else None
    return shape[0] if len(shape) else None


@final
class MovedMatrix(KernelMatrix):
    """The matrix of a form on NumPy arrays, which lies on the device and gives NumPy arrays.

    Parameters
    ----------
    matrix : KernelMatrix
        Of the same points on the device.
    """

    def __init__(self, matrix: KernelMatrix) -> None:
        self._there = matrix
        self.shape, self.symmetric, self.n_features = matrix.shape, matrix.symmetric, matrix.n_features
        self.dtype = np.dtype(str(matrix.dtype).rpartition(".")[2])

    def multiply(self, v: Any, *, transpose: bool = False) -> Any:
        return to_numpy(self._there.multiply(on_device(np.asarray(v)), transpose=transpose))

    def row_sums(self, *, transpose: bool = False) -> Any:
        return to_numpy(self._there.row_sums(transpose=transpose))

    def dense(self) -> Any:
        return to_numpy(self._there.dense())

    def block(self, rows: Any, cols: Any) -> Any:
        return to_numpy(self._there.block(rows, cols))

    def log_block(self, rows: Any, cols: Any) -> Any:
        return to_numpy(self._there.log_block(rows, cols))

    def diagonal(self, side: Side = "rows") -> Any:
        return to_numpy(self._there.diagonal(side))

    def scaled_product(self, v: Any) -> tuple[Any, Any]:
        scale, product = self._there.scaled_product(on_device(np.asarray(v)))
        return to_numpy(scale), to_numpy(product)

    def absolute_product(self, v: Any) -> Any:
        return to_numpy(self._there.absolute_product(on_device(np.asarray(v))))

    @property
    def nonnegative(self) -> bool:
        return self._there.nonnegative

    @property
    def entry_error(self) -> EntryError:
        return self._there.entry_error

    @property
    def summation_depth(self) -> int:
        return self._there.summation_depth

    @property
    def row_entries(self) -> float:
        return self._there.row_entries

    @property
    def is_stored(self) -> bool:
        return self._there.is_stored

    def worth_storing(self, allowed: int) -> bool:
        return self._there.worth_storing(allowed)

    def stored(self) -> KernelMatrix:
        stored = self._there.stored()
        return self if stored is self._there else MovedMatrix(stored)


def moved_matrix(form: Form, rows: Any, cols: Any, dtype: Any) -> KernelMatrix | None:
    """The matrix of dense NumPy points on the device of the configuration; None where they are left to NumPy."""
    if torch_device() is None or hasattr(rows, "toarray"):
        return None
    import torch

    from mercer.backends.torch import torch_matrix

    precision = None if dtype is None else getattr(torch, np.dtype(dtype).name)
    return MovedMatrix(torch_matrix(form, on_device(rows), None if cols is None else on_device(cols), dtype=precision))
