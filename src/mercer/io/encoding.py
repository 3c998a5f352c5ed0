"""A model as plain data: JSON that refers to arrays, and the arrays.

JSON has None, truth values, finite numbers and texts. All else is an object with one word that says what it is:
``{"tuple": […]}``, ``{"list": […]}``, ``{"dict": [[key, value], …]}``, ``{"set": […]}``,
``{"frozenset": […]}``, ``{"float": "nan"}``, ``{"int": "…"}``, ``{"dtype": "<f8"}``, ``{"path": "…"}``,
or ``{"part": k}``, the k-th entry of the table of parts. A part stands once, whoever refers to it, and refers only to
earlier ones:

``{"array": name, "dtype": "<f8", "order": "C", "scalar": false}``
    An array of the file. Texts are kept as code points, and other byte orders are noted.
``{"objects": […], "shape": […]}``
    An array of Python objects, such as names of columns.
``{"sparse": "csr_array", "shape": […], "data": …, "indices": …, "indptr": …}``
    A sparse matrix.
``{"class": name, "parameters": {…}, "attributes": {…}}``
    An object of a class of :mod:`mercer.io.classes`.
``{"rows": name, "columns": {…}}``
    A tuple of records of one class, field by field: the history of a solver.
``{"member": name, "of": class}``
    One of a list of named values.
``{"generator": name, "bits": name, "state": …}``
    A generator of random numbers, where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePath
from typing import Any, final

import numpy as np

from mercer.backends.arrays import dtype_name, is_sparse_tensor, is_tensor
from mercer.io.classes import Layout, is_enumeration, layout_of, name_of
from mercer.io.fitting_values import fits
from mercer.io.refusals import UnsavableError

SPARSE = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")
BITS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_ROWS = 8  # records, from which on a tuple of them is kept by columns
EXACT = 2**53  # whole numbers up to here are the same in every reader of JSON
_CONTAINERS: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_NO_CODE = (
    "a model file holds no code: set it to None before saving if predictions do not need it, or use joblib, whose "
    "files run code when they are loaded"
)


@final
class Encoder:
    """Turns values into JSON, one after the other, and collects the parts and arrays that they refer to."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._known: dict[int, tuple[int, Any]] = {}  # by identity, with the object, so that it is not used again

    def value(self, value: Any, where: str) -> Any:
        """JSON of a value; ``where`` is how a person would reach it, for messages."""
        if value is None or isinstance(value, bool | str):
            return str(value) if isinstance(value, str) else value
        if type(value) is int:
            return value if abs(value) <= EXACT else {"int": str(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is tuple and len(value) >= _ROWS and _is_table(value):
            return self._part(value, where)
        if type(value) in _CONTAINERS:
            return {
                _CONTAINERS[type(value)]: [self.value(each, f"{where}[{k}]") for k, each in enumerate(_listed(value))]
            }
        if isinstance(value, Mapping) and name_of(type(value)) is None:
            return {"dict": [[self.value(key, where), self.value(value[key], f"{where}[{key!r}]")] for key in value]}
        if isinstance(value, np.dtype) or type(value).__name__ == "dtype":  # of NumPy or torch
            return {"dtype": np.dtype(dtype_name(value)).str}
        if isinstance(value, PurePath):
            return {"path": str(value)}
        return self._part(value, where)

    def _part(self, value: Any, where: str) -> dict[str, int]:
        """A reference to a part, which is made where there is none of this very object yet."""
        if id(value) not in self._known:
            made = self._made(value, where)
            self.parts.append(made)
            self._known[id(value)] = len(self.parts) - 1, value
        return {"part": self._known[id(value)][0]}

    def _made(self, value: Any, where: str) -> dict[str, Any]:
        if is_tensor(value):
            return self._tensor(value, where)
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, where)
        if type(value).__name__ in SPARSE and type(value).__module__.startswith("scipy.sparse"):
            parts = {name: self.value(getattr(value, name), where) for name in ("data", "indices", "indptr")}
            return {"sparse": type(value).__name__, "shape": list(map(int, value.shape)), **parts}
        if type(value) is tuple:
            return self._rows(value, where)
        if isinstance(value, np.random.Generator | np.random.RandomState):
            return self._generator(value, where)
        return self._object(value, where)

    def _array(self, value: Any, where: str) -> dict[str, Any]:
        array = np.asarray(value)
        if array.dtype == object:
            values = [self.value(each, where) for each in array.reshape(-1).tolist()]
            return {"objects": values, "shape": list(array.shape)}
        if array.dtype.kind not in "biufUS" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
            raise UnsavableError(f"{where} is an array of {array.dtype}, which a model file cannot hold: use float64.")
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        name = str(len(self.arrays))
        self.arrays[name] = _plain(array.T if fortran else array)
        layout = {"dtype": array.dtype.str, "order": "F" if fortran else "C", "shape": list(array.shape)}
        return {"array": name, **layout, "scalar": isinstance(value, np.generic)}

    def _tensor(self, value: Any, where: str) -> dict[str, Any]:
        """A tensor as the NumPy array, or SciPy's sparse matrix, of the same numbers."""
        value = value.detach().cpu()
        if not is_sparse_tensor(value):
            return self._array(value.numpy(), where)
        from scipy.sparse import coo_array

        entries = value.to_sparse_coo().coalesce()
        places = tuple(part.numpy() for part in entries.indices())
        return self._made(coo_array((entries.values().numpy(), places), shape=tuple(value.shape)).tocsr(), where)

    def _rows(self, value: tuple[Any, ...], where: str) -> dict[str, Any]:
        """Records of one class by columns, those of one type as arrays."""
        kind: Any = type(value[0])
        columns = {name: [getattr(each, name) for each in value] for name in layout_of(kind).parameters}
        stored = {name: self.value(_column(values), f"{where}[…].{name}") for name, values in columns.items()}
        return {"rows": kind.__name__, "columns": stored}

    def _generator(self, value: Any, where: str) -> dict[str, Any]:
        legacy = isinstance(value, np.random.RandomState)
        state = value.get_state(legacy=False) if legacy else value.bit_generator.state
        if state["bit_generator"] not in BITS:
            raise UnsavableError(f"{where} draws from {state['bit_generator']}, which is no generator of NumPy's own.")
        kind = "RandomState" if legacy else "Generator"
        return {"generator": kind, "bits": state["bit_generator"], "state": self.value(state, where)}

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        kind: Any = type(value)
        name = name_of(kind)
        if name is None:
            raise UnsavableError(_not_ours(value, where))
        if is_enumeration(kind):
            return {"member": value.name, "of": name}
        layout = layout_of(kind)
        given = {each: self._declared(layout, value, held_as, where) for each, held_as in layout.parameters.items()}
        held = [] if not layout.attributes else [each for each in _state(value) if each not in layout.parameters]
        for each in held:
            if each not in layout.attributes:
                raise UnsavableError(
                    f"{where} has the attribute {each!r}, which is no part of a {name}: delete it before saving."
                )
        if lacking := layout.lacking(held):
            raise UnsavableError(f"{where} lacks {lacking[0]!r}, which every fitted {name} has: fit it again.")
        attributes = {each: self._declared(layout, value, each, where) for each in held}
        return {"class": name, "parameters": given, "attributes": attributes}

    def _declared(self, layout: Layout, owner: Any, name: str, where: str) -> Any:
        value, kind = getattr(owner, name), {**layout.types, **layout.attributes}.get(name, Any)
        if not fits(value, kind):
            raise UnsavableError(
                f"{where}.{name} is a {type(value).__name__}, which no {layout.kind.__name__} can use: see its "
                "documentation, or fit the model again."
            )
        return self.value(value, f"{where}.{name}")


def _listed(value: Any) -> list[Any]:
    """The members of a container, those of a set in an order that does not depend on the run."""
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)


def _is_table(value: tuple[Any, ...]) -> bool:
    """Whether all members are records of one of our classes whose fields are numbers, texts or nothing."""
    kind: Any = type(value[0])
    if (
        not hasattr(kind, "__dataclass_fields__")
        or name_of(kind) is None
        or any(type(each) is not kind for each in value)
    ):
        return False
    plain = (type(None), bool, int, float, str)
    return all(type(getattr(each, name)) in plain for each in value for name in layout_of(kind).parameters)


def _column(values: list[Any]) -> Any:
    """The values of a column, as an array where they are floats all, or whole numbers."""
    types = set(map(type, values))
    if types == {float} or (types == {int} and all(abs(each) <= EXACT for each in values)):
        return np.array(values, np.float64 if types == {float} else np.int64)
    return values


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array as one that every reader of safetensors knows: in C order, little-endian, texts as their bytes."""
    array = np.ascontiguousarray(array).reshape(array.shape)  # which makes one dimension of none
    if array.dtype.kind in "US":
        return array.reshape(-1).view(np.uint8)
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _state(value: Any) -> list[str]:
    """The names of what an object holds, but for what it leaves out or makes again when asked."""
    kind: Any = type(value)
    layout = layout_of(kind)
    for name in layout.attributes:
        getattr(value, name, None)  # a proof, or what else is made when it is asked for, goes into the file
    state = vars(value)
    made = {name for name in state if name not in layout.attributes and _is_cached(kind, name)}
    return [name for name in state if name not in layout.unsaved and name not in made]


def _is_cached(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)


def _not_ours(value: Any, where: str) -> str:
    kind = type(value)
    if callable(value) and not isinstance(value, type) and not hasattr(value, "get_params"):
        return f"{where} is a function of yours ({getattr(value, '__name__', kind.__name__)}), and {_NO_CODE}."
    named = f"{where} is a {kind.__module__}.{kind.__qualname__}, which is none of the classes that a model file holds"
    return f"{named}: take another, or use joblib, whose files run code when they are loaded."
