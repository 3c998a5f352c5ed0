"""A model from plain data: :mod:`mercer.io.encoding` the other way round, believing nothing.

Only the classes of :mod:`mercer.io.classes` are made, from the names that they declare and values of the kinds that
they declare; nothing else that a file says is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, final

import numpy as np

from mercer.io.classes import Layout, class_named, is_enumeration, layout_of
from mercer.io.encoding import BITS, SPARSE
from mercer.io.fitting_values import fits
from mercer.io.refusals import damaged

_DEEPEST = 32  # containers inside containers
_TYPES = {  # of an array in the file, by what it was in memory
    "b1": "BOOL",
    "i1": "I8",
    "i2": "I16",
    "i4": "I32",
    "i8": "I64",
    "u1": "U8",
    "u2": "U16",
    "u4": "U32",
    "u8": "U64",
    "f2": "F16",
    "f4": "F32",
    "f8": "F64",
}

Stored = Mapping[str, tuple[str, tuple[int, ...]]]  # type and shape of the arrays of a file, by name
Read = Callable[[str], np.ndarray[Any, Any]]


@final
class Decoder:
    """Builds the parts of a file, each when it is first referred to.

    Parameters
    ----------
    parts : list
        The table of parts, as JSON has it.
    stored : mapping
        Type and shape of every array of the file.
    read : callable
        Of the name of an array, returns it.
    """

    def __init__(self, parts: Any, stored: Stored, read: Read) -> None:
        if not isinstance(parts, list):
            damaged("its table of parts is none")
        self._parts, self._stored, self._read = parts, stored, read
        self._made: dict[int, Any] = {}
        self._arrays: set[str] = set()

    def whole(self) -> Any:
        """The model: the last part, with all the others."""
        for number in range(len(self._parts)):
            self._made[number] = self._build(self._parts[number], number)
        unused = sorted(set(self._stored) - self._arrays)
        if unused:
            damaged(f"it has an array {unused[0]!r} that no part refers to")
        if not self._made:
            damaged("it has no parts")
        return self._made[len(self._parts) - 1]

    def value(self, given: Any, number: int, depth: int = 0) -> Any:
        """The value that JSON stands for in the part of this number, which may refer to earlier ones."""
        if depth > _DEEPEST:
            damaged("its values lie too deep inside one another")
        if given is None or isinstance(given, bool | int | float | str):
            return given
        if not isinstance(given, dict) or len(given) != 1:
            damaged("it has a value that is none")
        ((word, content),) = given.items()
        if word == "part":
            return self._earlier(content, number)
        if word in ("list", "tuple", "set", "frozenset", "dict"):
            return self._container(word, content, number, depth)
        return _scalar(word, content)

    def _container(self, word: str, content: Any, number: int, depth: int) -> Any:
        if not isinstance(content, list):
            damaged(f"it has a {word} that is none")
        if word == "dict":
            if not all(isinstance(pair, list) and len(pair) == 2 for pair in content):
                damaged("it has a dict that is none")
            return {self.value(key, number, depth + 1): self.value(each, number, depth + 1) for key, each in content}
        kinds: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
        return kinds[word](self.value(each, number, depth + 1) for each in content)

    def _earlier(self, content: Any, number: int) -> Any:
        if type(content) is not int or not 0 <= content < number:
            damaged("a part of it refers to none before it")
        return self._made[content]

    def _build(self, part: Any, number: int) -> Any:
        builders = {
            "array": self._array,
            "objects": self._objects,
            "sparse": self._sparse,
            "class": self._object,
            "rows": self._rows,
            "member": self._member,
            "generator": self._generator,
        }
        word = next(iter(part), None) if isinstance(part, dict) else None
        if word not in builders:
            damaged("it has a part of no known kind")
        return builders[word](part, number)

    def _array(self, part: dict[str, Any], number: int) -> Any:
        name, text, order, shape, scalar = _entries(part, "array", "dtype", "order", "shape", "scalar")
        if name not in self._stored:
            damaged(f"it has no array {name!r}")
        dtype = _dtype(text)
        shape = _shape(shape)
        laid = shape[::-1] if order == "F" else shape
        texts = dtype.kind in "US"
        size = int(np.prod(laid, dtype=object)) * dtype.itemsize
        expected = ("U8", (size,)) if texts else (_TYPES.get(dtype.str[1:], ""), laid)
        if order not in ("C", "F") or self._stored[name] != expected or (scalar is True and shape):
            damaged(f"its array {name!r} has another type or shape than is said of it")
        self._arrays.add(name)
        array = self._read(name)
        array = array.view(dtype).reshape(laid) if texts else array.astype(dtype, copy=False)
        array = array.T if order == "F" else array
        return array[()] if scalar is True else array

    def _objects(self, part: dict[str, Any], number: int) -> Any:
        values, shape = _entries(part, "objects", "shape")
        shape = _shape(shape)
        if not isinstance(values, list) or int(np.prod(shape, dtype=object)) != len(values):
            damaged("an array of objects in it has another shape than is said of it")
        out = np.empty(len(values), dtype=object)
        out[:] = [self.value(each, number) for each in values]
        return out.reshape(shape)

    def _sparse(self, part: dict[str, Any], number: int) -> Any:
        import scipy.sparse

        name, shape, *parts = _entries(part, "sparse", "shape", "data", "indices", "indptr")
        if name not in SPARSE:
            damaged("it has a sparse matrix of no known kind")
        data, indices, indptr = (self.value(each, number) for each in parts)
        if not all(isinstance(each, np.ndarray) for each in (data, indices, indptr)):
            damaged("it has a sparse matrix that is none")
        matrix = getattr(scipy.sparse, name)((data, indices, indptr), shape=_shape(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _member(self, part: dict[str, Any], number: int) -> Any:
        name, owner = _entries(part, "member", "of")
        kind: Any = class_named(owner)
        if kind is None or not is_enumeration(kind) or name not in kind.__members__:
            damaged(f"it names {owner}.{name}, which this version of Mercer does not know")
        return kind[name]

    def _generator(self, part: dict[str, Any], number: int) -> Any:
        kind, bits, state = _entries(part, "generator", "bits", "state")
        state = self.value(state, number)
        if kind not in ("Generator", "RandomState") or bits not in BITS or not isinstance(state, dict):
            damaged("it has a random generator that is none")
        made = getattr(np.random, bits)()
        if kind == "Generator":
            made.state = state
            return np.random.Generator(made)
        legacy = np.random.RandomState(made)  # the user's own, as it was given
        legacy.set_state(state)
        return legacy

    def _object(self, part: dict[str, Any], number: int) -> Any:
        name, parameters, attributes = _entries(part, "class", "parameters", "attributes")
        kind = class_named(name)
        if kind is None or is_enumeration(kind):
            damaged(f"it names the class {name!r}, which this version of Mercer does not know")
        layout = layout_of(kind)
        given = self._declared(layout, parameters, set(layout.parameters), number)
        held = self._declared(layout, attributes, set(layout.attributes), number)
        missing = sorted(layout.required - set(given)) + layout.lacking(held)
        if missing:
            damaged(f"its {name} lacks {missing[0]!r}")
        made = kind(**given) if layout.parameters else object.__new__(kind)
        vars(made).update(held) if held else None
        return made

    def _rows(self, part: dict[str, Any], number: int) -> Any:
        name, columns = _entries(part, "rows", "columns")
        kind: Any = class_named(name)
        if kind is None or not hasattr(kind, "__dataclass_fields__") or not isinstance(columns, dict):
            damaged(f"it has a table of {name!r}, which this version of Mercer does not know")
        layout = layout_of(kind)
        values = {each: _listed(self.value(given, number)) for each, given in columns.items()}
        if not set(values) <= set(layout.parameters) or len({len(each) for each in values.values()}) != 1:
            damaged(f"its table of {name} is none")
        rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        for row in rows:
            for each, value in row.items():
                if not fits(value, layout.types.get(each, Any)):
                    damaged(f"{each!r} of its {name} is of another kind than it must be")
        return tuple(kind(**row) for row in rows)

    def _declared(self, layout: Layout, values: Any, names: set[str], number: int) -> dict[str, Any]:
        """Values by name, of the names and kinds that a class declares."""
        if not isinstance(values, dict):
            damaged(f"its {layout.kind.__name__} has no named values")
        types, out = {**layout.types, **layout.attributes}, {}
        for name, given in values.items():
            if name not in names:
                damaged(f"its {layout.kind.__name__} has {name!r}, which this version of Mercer does not know")
            out[name] = self.value(given, number)
            if not fits(out[name], types.get(name, Any)):
                damaged(f"{name!r} of its {layout.kind.__name__} is of another kind than it must be")
        return out


def _listed(column: Any) -> list[Any]:
    values = column.tolist() if isinstance(column, np.ndarray) else column
    if not isinstance(values, list):
        damaged("it has a column that is none")
    return values


def _entries(part: dict[str, Any], *names: str) -> tuple[Any, ...]:
    """The entries of a part, which has just these."""
    if set(part) != set(names):
        damaged(f"a part of it has not the entries {', '.join(names)}")
    return tuple(part[name] for name in names)


def _shape(given: Any) -> tuple[int, ...]:
    if not isinstance(given, list) or len(given) > 8 or not all(type(n) is int and n >= 0 for n in given):
        damaged("it has a shape that is none")
    return tuple(given)


def _dtype(text: Any) -> np.dtype[Any]:
    """The type of an array: numbers, truth values or texts, nothing that has fields, objects or parts of its own."""
    sound = isinstance(text, str) and len(text) <= 12 and text[:1] in "<>|=" and text[1:2] in tuple("biufUS")
    if not sound or not text[2:].isdecimal():
        damaged(f"it has an array of {text!r}, which is no type that a model has")
    return np.dtype(text)


def _scalar(word: str, content: Any) -> Any:
    if not isinstance(content, str):
        damaged(f"it has a value {word!r} that is none")
    if word == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if word == "int" and content.removeprefix("-").isdecimal() and len(content) < 200:
        return int(content)
    if word == "dtype":
        return _dtype(content)
    if word == "path":
        return PurePath(content)
    damaged(f"it has a value of the kind {word!r}, which this version of Mercer does not know")
