"""What is there before a step begins: a journal names these objects by the way to them, and does not store them.

The data, the operators and the problem are made again when a fit is taken up, by the same code from the same data. So
an array that a solver shares with them is written as a way such as problem → discrepancy → distortion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MethodType
from typing import Any, final

import numpy as np

from mercer.backends.arrays import is_tensor

Way = tuple[str | int, ...]  # the name of a root, then attributes and places
_OWN = "mercer."
_OF_A_METHOD = "__self__"
_MOST_MEMBERS = 10_000  # of a list: longer ones hold numbers


class UnknownWayError(LookupError):
    """There is nothing at the end of a way."""


@final
class Anchors:
    """All arrays and objects that can be reached from some roots, by the shortest way to each.

    Parameters
    ----------
    roots : mapping of str to object
        Where to begin. What belongs to other packages is named, but not looked into.
    """

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self._roots = dict(roots)
        self._ways: dict[int, Way] = {}
        self._objects: dict[Way, Any] = {}  # which keeps them alive, so that no identity is given twice
        self._walk()

    def way_to(self, value: Any) -> Way | None:
        """The way to an object, None where it is none of these."""
        return self._ways.get(id(value))

    def at(self, way: Way) -> Any:
        """What a way leads to; what is computed when first asked for is computed."""
        if way in self._objects:
            return self._objects[way]
        if any(isinstance(step, str) and step.startswith("__") and step != _OF_A_METHOD for step in way):
            raise UnknownWayError(f"{way} leads out of what is calculated with.")
        try:
            found = self._roots[str(way[0])]
            for step in way[1:]:
                found = getattr(found, step) if isinstance(step, str) else found[step]
        except (AttributeError, KeyError, IndexError, TypeError):
            raise UnknownWayError(f"There is nothing at {way}.") from None
        return found

    def of(self, kind: type | tuple[type, ...]) -> list[Any]:
        """All objects of a class, in an order that is the same whenever the same code made them."""
        return [value for value in self._objects.values() if isinstance(value, kind)]

    def so_far(self) -> tuple[Any, ...]:
        """What those objects say that change as a run goes on: problems that count, matrices that come to be stored."""
        return tuple(value.so_far() for value in self._changing())

    def go_on_from(self, told: tuple[Any, ...]) -> None:
        """Let them be as they were."""
        for value, state in zip(self._changing(), told, strict=True):
            value.go_on_from(state)

    def _changing(self) -> list[Any]:
        return [value for value in self._objects.values() if hasattr(type(value), "go_on_from")]

    def _walk(self) -> None:
        waiting: list[tuple[Way, Any]] = [((name,), root) for name, root in self._roots.items()]
        looked_into: set[int] = set()
        for way, value in waiting:  # breadth first: it grows meanwhile
            if id(value) in looked_into:
                continue
            looked_into.add(id(value))
            if _is_named(value):
                self._ways[id(value)], self._objects[way] = way, value
            waiting += [((*way, step), member) for step, member in _members(value)]


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots too."""
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def _is_named(value: Any) -> bool:
    """Whether a journal may refer to an object by its way: no numbers and texts, and nothing that grows in place."""
    return not isinstance(value, (type(None), bool, int, float, str, bytes, tuple, list, dict, set, frozenset, type))


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, MethodType):
        yield _OF_A_METHOD, value.__self__
    elif isinstance(value, (list, tuple)):
        if len(value) <= _MOST_MEMBERS:
            yield from ((place, member) for place, member in enumerate(value) if not isinstance(member, (int, float)))
    elif type(value).__module__.startswith(_OWN) and not isinstance(value, (np.ndarray, type)) and not is_tensor(value):
        yield from attributes(value).items()
