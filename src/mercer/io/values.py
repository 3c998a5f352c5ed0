"""Texts as numbers, categories or missing values, a column at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mercer.io.data_table import Values

_MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null"})
_MISSING_NUMBERS = _MISSING | {"none", "?", "-", "."}  # names of categories, but no numbers


def as_number(text: str, *, decimal_comma: bool = False) -> float | None:
    """The number that a text stands for, or None; ``decimal_comma`` reads 1,5 as well."""
    if decimal_comma and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    if "_" in text:  # which Python reads as a number
        return None
    try:
        return float(text)
    except ValueError:
        return None


def parsed(texts: Sequence[str], as_categories: bool, *, decimal_comma: bool = False) -> Values | str:
    """The values of a column; or, where it can be no column, the first text that is in the way.

    Numbers where all texts are numbers or missing; categories where at most half of those that are not missing are
    numbers, or where that is asked for. Between the two lies a column of numbers with slips in it.
    """
    if as_categories:
        return _categories(texts)
    found = [as_number(text, decimal_comma=decimal_comma) for text in texts]
    words = [text for text, number in zip(texts, found, strict=True) if number is None]
    slips = [text for text in words if text.strip().lower() not in _MISSING_NUMBERS]
    if slips and len(slips) >= sum(number is not None for number in found):
        return _categories(texts)
    infinite = [text for text, number in zip(texts, found, strict=True) if number is not None and math.isinf(number)]
    if slips or infinite:
        return (slips or infinite)[0]
    return np.array([math.nan if number is None else number for number in found])


def _categories(texts: Sequence[str]) -> Values:
    names = [text.strip() for text in texts]
    values = np.empty(len(names), dtype=object)
    values[:] = [None if name.lower() in _MISSING else name for name in names]
    return values
