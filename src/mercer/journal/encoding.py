"""The state of a computation as JSON and arrays, from which the same state is made again, bit for bit.

Objects are numbered, so that what is one object stays one. An array is kept with the order of its entries in memory,
and one that looks at another's memory does so again: products of numbers that lie otherwise are rounded otherwise.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from enum import Enum
from types import MethodType, ModuleType
from typing import Any, final

import numpy as np

from mercer.backends.arrays import is_sparse_tensor, is_tensor, to_numpy
from mercer.journal.anchors import Anchors, attributes

ROOMS = ("mercer.solvers.", "mercer.linalg.", "mercer.problems.", "mercer.certificates.", "mercer.operators.")
LIBRARIES = ("numpy", "array_api_compat.numpy", "array_api_compat.torch")  # of arrays, which some objects remember
NATIVE = "biuf"  # kinds of numbers that the file has words for
BYTES = "cMmSU"  # kinds that go as their bytes


class UnkeptStateError(TypeError):
    """A state holds what no journal can."""


@final
class Encoder:
    """Values as JSON that refers to objects and arrays by number.

    Parameters
    ----------
    anchors : Anchors
        What is referred to instead of stored.

    Attributes
    ----------
    objects : list
        The objects, each in JSON.
    arrays : dict of str to array
        The memory of the arrays, not copied.
    """

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors
        self.objects: list[Any] = []
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []

    def value(self, value: Any) -> Any:
        """A number, a text or None as it is; anything else as a reference."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        way = self._anchors.way_to(value)
        if way is not None:
            return {"at": list(way)}
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.objects)
            self._alive.append(value)
            self.objects.append(None)
            self.objects[number] = self._described(value)
        return {"#": number}

    def _described(self, value: Any) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return {"is": "scalar", "of": self.value(np.asarray(value))}
        if isinstance(value, Enum):
            return {"is": "enum", "class": class_name(type(value)), "name": value.name}
        if isinstance(value, (list, tuple, set, frozenset, dict, deque, slice)):
            return self._collection(value)
        if isinstance(value, np.random.Generator):
            return {"is": "generator", "of": self.value(value.bit_generator.state)}
        if isinstance(value, MethodType):
            return {"is": "method", "name": value.__name__, "of": self.value(value.__self__)}
        if is_tensor(value) and not is_sparse_tensor(value):
            return {"is": "tensor", "of": self.value(np.array(to_numpy(value)))}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return {"is": "dtype", "of": np.dtype(value).str, "type": isinstance(value, type)}
        if isinstance(value, ModuleType) and value.__name__ in LIBRARIES:
            return {"is": "module", "name": value.__name__}
        if isinstance(value, type):
            return {"is": "class", "class": class_name(value)}
        if "_made_from" in vars(type(value)):  # it is cheaper to make again than to keep
            given = {name: getattr(value, where) for name, where in type(value)._made_from.items()}
            return {"is": "made", "class": class_name(type(value)), "of": self._named(given)}
        return {"is": "object", "class": class_name(type(value)), "state": self._named(attributes(value))}

    def _collection(self, value: Any) -> dict[str, Any]:
        if isinstance(value, slice):
            return {"is": "slice", "of": [self.value(part) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, deque):
            return {"is": "deque", "most": value.maxlen, "of": [self.value(member) for member in value]}
        if isinstance(value, dict):
            word = "ordered" if isinstance(value, OrderedDict) else "dict"
            return {"is": word, "of": [[self.value(key), self.value(each)] for key, each in value.items()]}
        members = [self.value(member) for member in value]
        if hasattr(value, "_fields"):
            return {"is": "named", "class": class_name(type(value)), "of": members}
        kind = next(each for each in (list, tuple, set, frozenset) if isinstance(value, each))
        if type(value) is not kind:
            raise UnkeptStateError(f"A journal has no word for {type(value).__name__}.")
        return {"is": kind.__name__, "of": members}

    def _named(self, state: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(each) for name, each in state.items()}

    def _array(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        kind = array.dtype.kind
        if type(array) is not np.ndarray or kind not in NATIVE + BYTES:
            raise UnkeptStateError(f"A journal has no word for {type(array).__name__} of {array.dtype}.")
        owner = _owner(array)
        if owner is not array and array.size and (owner.flags.c_contiguous or owner.flags.f_contiguous):
            return {
                "is": "view",
                "of": self.value(owner),
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "strides": list(array.strides),
                "offset": array.ctypes.data - owner.ctypes.data,
                "writeable": array.flags.writeable,
            }
        name, by_columns = f"{len(self.arrays)}", bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        turned = array.T if by_columns else array
        plain = np.ascontiguousarray(turned).reshape(turned.shape)  # which makes a row of a single number
        self.arrays[name] = plain if kind in NATIVE else np.frombuffer(plain.tobytes(), np.uint8)
        return {
            "is": "array",
            "name": name,
            "dtype": array.dtype.str,
            "shape": list(plain.shape),
            "by_columns": by_columns,
            "writeable": array.flags.writeable,
        }


def class_name(kind: type) -> str:
    """A class of the rooms whose objects a journal may hold, as module:name."""
    if not f"{kind.__module__}.".startswith(ROOMS) or "<" in kind.__qualname__:
        raise UnkeptStateError(f"A journal holds no objects of {kind.__module__}.{kind.__qualname__}.")
    return f"{kind.__module__}:{kind.__qualname__}"


def _owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array whose memory this is; itself where that is no array."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner if type(owner) is np.ndarray and owner.flags.owndata else array
