"""Whether a value is of the kind that a class declares: the annotations of Mercer's classes, checked."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, final, get_args, get_origin

import numpy as np

from mercer.backends.arrays import is_tensor


@final
class Numbers:
    """What the annotation ``Array`` stands for in a model file: an array of numbers, or a sparse one."""


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is what an annotation says. One that says nothing, such as Any, lets every value pass."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in get_args(kind))
    if origin is Literal:
        return value in get_args(kind)
    if origin is not None:
        return _fits_container(value, origin, get_args(kind))
    if kind is None or kind is type(None):
        return value is None
    if kind is Any or isinstance(kind, TypeVar) or getattr(kind, "_is_protocol", False):
        return True
    return _fits_class(value, kind)


def _fits_class(value: Any, kind: type) -> bool:
    if kind is Numbers:
        return _holds_numbers(value)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    return isinstance(value, kind)


def _holds_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple):  # which people give where an array is taken
        return all(_holds_numbers(each) or _fits_class(each, float) for each in value)
    dtype = getattr(value, "dtype", None)
    return is_tensor(value) or (isinstance(dtype, np.dtype) and dtype.kind in "biuf")


def _fits_container(value: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    members: Any = value
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(fits(each, parts[0]) for each in value)
        return len(value) == len(parts) and all(map(fits, value, parts))
    if not isinstance(origin, type) or origin.__module__ not in ("builtins", "collections.abc"):
        return True
    if not isinstance(value, origin):
        return False
    if issubclass(origin, Mapping) and len(parts) == 2:
        return all(fits(key, parts[0]) and fits(each, parts[1]) for key, each in members.items())
    if issubclass(origin, Sequence | set | frozenset) and len(parts) == 1:
        return all(fits(each, parts[0]) for each in members)
    return True
