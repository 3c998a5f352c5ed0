"""How large a model is once every reference between its parts is followed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_REFERENCES = 1_000_000  # of a model written out: far more than any has, and still read in a second or two


def references_followed(parts: list[Any]) -> int:
    """The most references that the writing out of one part meets; parts that refer to others twice double at each step.

    A file of forty kernels, each the sum of the one before with itself, has few bytes, and its ``repr`` would have 2⁴⁰.
    """
    met: list[int] = []
    for part in parts:
        found = (number for number in _references(part) if type(number) is int and 0 <= number < len(met))
        met.append(sum(1 + met[number] for number in found))
    return max(met, default=0)


def _references(part: Any) -> Iterator[Any]:
    """The numbers of the parts that a part refers to, as often as it does."""
    left = [part]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if len(value) == 1 and "part" in value:
                yield value["part"]
            left += value.values()
        elif isinstance(value, list):
            left += value
