"""A state from JSON and arrays. No code of the file is run, and only objects of the rooms that calculate are made."""

from __future__ import annotations

import importlib
import math
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MethodType
from typing import Any, final

import numpy as np

from mercer.backends.arrays import is_tensor, like
from mercer.journal.anchors import Anchors, UnknownWayError
from mercer.journal.encoding import BYTES, LIBRARIES, NATIVE, ROOMS

_CLASS = re.compile(r"(mercer(?:\.[a-z][a-z0-9_]*)+):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_PLAIN = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class DamagedStateError(ValueError):
    """JSON and arrays are not those of a state."""


@final
class Decoder:
    """The values that an :class:`mercer.journal.encoding.Encoder` wrote down.

    Parameters
    ----------
    objects : sequence
        The objects in JSON.
    read : callable
        Given its name, an array of the file.
    anchors : Anchors
        What is referred to.
    """

    def __init__(self, objects: Sequence[Any], read: Callable[[str], Any], anchors: Anchors) -> None:
        self._objects, self._read, self._anchors = objects, read, anchors
        self._made: dict[int, Any] = {}
        self._making: set[int] = set()
        self._reference = next((each for each in anchors.of(object) if is_tensor(each)), None)

    def value(self, written: Any) -> Any:
        """The value; refuses what no state can be."""
        if not isinstance(written, dict):
            return written
        try:
            if "at" in written:
                return self._anchors.at(tuple(written["at"]))
            return self._object(int(written["#"]))
        except (KeyError, IndexError, TypeError, AttributeError, RecursionError, UnknownWayError) as error:
            raise DamagedStateError(str(error)) from None

    def _object(self, number: int) -> Any:
        if number in self._made:
            return self._made[number]
        if number in self._making or number < 0:
            raise DamagedStateError("An object holds itself.")
        self._making.add(number)
        found = self._made[number] = self._from(number, self._objects[number])
        return found

    def _from(self, number: int, written: Mapping[str, Any]) -> Any:
        kind = written["is"]
        if kind == "object":
            return self._instance(number, written)
        if kind == "list":
            found: list[Any] = []
            self._made[number] = found
            found += [self.value(each) for each in written["of"]]
            return found
        if kind == "made":
            return self._made_again(written)
        if kind in ("dict", "ordered"):
            return self._dict(number, written["of"], dict if kind == "dict" else OrderedDict)
        if kind in _PLAIN:
            return _PLAIN[kind](self.value(each) for each in written["of"])
        return getattr(self, f"_{kind}" if kind in _OTHERS else "_unknown")(written)

    def _instance(self, number: int, written: Mapping[str, Any]) -> Any:
        cls = _class(written["class"])
        if issubclass(cls, (Enum, tuple, type, BaseException)):
            raise DamagedStateError(f"{cls.__name__} has no attributes.")
        found = self._made[number] = object.__new__(cls)
        for name, each in written["state"].items():
            if name.startswith("__"):
                raise DamagedStateError(f"{name} is no attribute.")
            value = self.value(each)
            if hasattr(found, "__dict__"):
                vars(found)[name] = value
            else:
                object.__setattr__(found, name, value)
        return found

    def _made_again(self, written: Mapping[str, Any]) -> Any:
        cls = _class(written["class"])
        if set(written["of"]) != set(vars(cls).get("_made_from", ())) or not written["of"]:
            raise DamagedStateError(f"{cls.__name__} is not made from these.")
        return cls(**{name: self.value(each) for name, each in written["of"].items()})

    def _dict(self, number: int, pairs: Sequence[Any], kind: type[dict[Any, Any]]) -> dict[Any, Any]:
        found = kind()
        self._made[number] = found
        found.update({self.value(key): self.value(each) for key, each in pairs})
        return found

    def _scalar(self, written: Mapping[str, Any]) -> Any:
        return self.value(written["of"])[()]

    def _enum(self, written: Mapping[str, Any]) -> Any:
        cls = _class(written["class"])
        if not issubclass(cls, Enum):
            raise DamagedStateError(f"{cls.__name__} has no members.")
        return cls[written["name"]]

    def _named(self, written: Mapping[str, Any]) -> Any:
        cls = _class(written["class"])
        members = [self.value(each) for each in written["of"]]
        if not issubclass(cls, tuple) or len(members) != len(getattr(cls, "_fields", ())):
            raise DamagedStateError(f"{cls.__name__} has other fields.")
        return tuple.__new__(cls, members)

    def _module(self, written: Mapping[str, Any]) -> Any:
        if written["name"] not in LIBRARIES:
            raise DamagedStateError(f"{written['name']!r} is no library of arrays.")
        return importlib.import_module(written["name"])

    def _class(self, written: Mapping[str, Any]) -> Any:
        return _class(written["class"])

    def _deque(self, written: Mapping[str, Any]) -> deque[Any]:
        return deque((self.value(each) for each in written["of"]), written["most"])

    def _dtype(self, written: Mapping[str, Any]) -> Any:
        found = _dtype(written["of"])
        return found.type if written["type"] else found

    def _slice(self, written: Mapping[str, Any]) -> slice:
        return slice(*(self.value(each) for each in written["of"]))

    def _generator(self, written: Mapping[str, Any]) -> np.random.Generator:
        return generator_of(self.value(written["of"]))

    def _method(self, written: Mapping[str, Any]) -> Any:
        name, owner = str(written["name"]), self.value(written["of"])
        found = getattr(owner, name)
        if name.startswith("__") or not isinstance(found, MethodType) or found.__self__ is not owner:
            raise DamagedStateError(f"{name} is no method.")
        return found

    def _tensor(self, written: Mapping[str, Any]) -> Any:
        if self._reference is None:
            raise DamagedStateError("The state has tensors, and the data has none.")
        return like(self.value(written["of"]), self._reference)

    def _array(self, written: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        dtype, shape = _dtype(written["dtype"]), _shape(written["shape"])
        stored = np.asarray(self._read(str(written["name"])))
        stored = stored if dtype.kind in NATIVE else stored.reshape(-1).view(dtype)
        if stored.dtype != dtype or stored.size != math.prod(shape):
            raise DamagedStateError("An array is not what the state says.")
        stored = stored.reshape(shape)
        found = np.array(stored.T, order="F") if written["by_columns"] else np.array(stored, order="C")
        found.flags.writeable = bool(written["writeable"])
        return found

    def _view(self, written: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        owner = self.value(written["of"])
        if not isinstance(owner, np.ndarray):
            raise DamagedStateError("A view is of no array.")
        memory = owner if owner.flags.c_contiguous else owner.T
        dtype, shape, strides = _dtype(written["dtype"]), _shape(written["shape"]), tuple(written["strides"])
        try:  # which checks that it lies within
            found: np.ndarray[Any, Any] = np.ndarray(shape, dtype, memory, int(written["offset"]), strides)
        except (ValueError, TypeError) as error:
            raise DamagedStateError(str(error)) from None
        if not written["writeable"]:
            found.flags.writeable = False
        return found

    def _unknown(self, written: Mapping[str, Any]) -> Any:
        raise DamagedStateError(f"There is no {written['is']!r}.")


_OTHERS = {"array", "view", "scalar", "tensor", "dtype", "generator", "method", "class", "module", "enum", "named"}
_OTHERS |= {"slice", "deque"}


def generator_of(state: Any) -> np.random.Generator:
    """A generator of random numbers in a state."""
    kinds = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
    known = {kind.__name__: kind for kind in kinds}
    generator = np.random.Generator(known[state["bit_generator"]](0))
    set_state(generator, state)
    return generator


def set_state(generator: np.random.Generator, state: Any) -> None:
    """Put a generator into a state."""
    try:
        generator.bit_generator.state = state
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise DamagedStateError(f"The state of the random numbers is none: {error}") from None


def _class(name: str) -> Any:
    match = _CLASS.fullmatch(name)
    if match is None or not f"{match[1]}.".startswith(ROOMS):
        raise DamagedStateError(f"{name!r} is no class of a state.")
    try:
        found: Any = importlib.import_module(match[1])  # a module of ours
        for part in match[2].split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise DamagedStateError(f"There is no {name!r}.") from None
    if not isinstance(found, type) or found.__module__ != match[1]:
        raise DamagedStateError(f"{name!r} is no class.")
    return found


def _dtype(name: str) -> np.dtype[Any]:
    try:
        found = np.dtype(name)
    except TypeError:
        raise DamagedStateError(f"{name!r} is no type of numbers.") from None
    if found.kind not in NATIVE + BYTES:
        raise DamagedStateError(f"{name!r} is no type of numbers.")
    return found


def _shape(lengths: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(int(length) for length in lengths)
    if any(length < 0 for length in shape):
        raise DamagedStateError("A length is negative.")
    return shape
