"""Columns of a page: numbers, categories or texts, one value a row, with a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy

_FEW = 12  # different whole numbers in a column, up to which they are rather names of classes
_MANY_FEATURES = 16  # columns of a plain array, up to which they are worth showing
MOST_COLOURS = 56  # classes that the page tells apart by a colour and a mark
_MOST_WORDS = 1000  # different texts, up to which a column is one of categories


@final
@dataclass(frozen=True, eq=False)
class Column:
    """One column of the page.

    Attributes
    ----------
    name : str
        What the menus call it.
    kind : str
        ``"number"``, ``"category"`` or ``"text"``.
    values : array of shape (n,)
        Numbers, NaN where there is none; of categories their numbers in ``words``, -1 where there is none; of texts
        the texts, empty where there is none.
    words : tuple of str
        The names of the categories in order; of more than 56 the most frequent first.
    """

    name: str
    kind: str
    values: Array
    words: tuple[str, ...] = ()


def read_columns(table: Any, n: int, label: str | None = None) -> list[Column]:
    """The columns of a data frame, a table or a mapping of names to values; one of them may hold classes."""
    if not (isinstance(table, Mapping) or hasattr(table, "columns")):
        raise TypeError(
            f"table must be a data frame or a mapping of names to columns, not {type(table).__name__}: pass one, or "
            "leave it out."
        )
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    return [read_column(str(name), _values_of(table, name), n, classes=str(name) == label) for name in names]


def read_column(name: str, values: Any, n: int, *, classes: bool = False) -> Column:
    """A column of the values of n rows; with ``classes`` whole numbers are names up to 56 of them."""
    values = np.asarray(to_numpy(values) if hasattr(values, "device") else values)
    if values.ndim != 1:
        raise ValueError(f"The column {name!r} has the shape {values.shape}: one value a row is needed.")
    if values.shape[0] != n:
        raise ValueError(f"The column {name!r} has {values.shape[0]} values, but there are {n} rows.")
    numbers = _as_numbers(values)
    if numbers is None or values.dtype.kind == "b":
        return _of_texts(name, _as_texts(values))
    if _are_names(numbers, classes):
        return _of_texts(name, [None if np.isnan(v) else str(int(v)) for v in numbers.tolist()])
    return Column(name, "number", numbers)


def features_of(X: Any, n: int, label: str | None = None) -> list[Column]:
    """The columns of the points themselves: those of a data frame, or of an array that has not many."""
    if hasattr(X, "columns"):
        return read_columns(X, n, label)
    if getattr(X, "ndim", 0) != 2 or X.shape[1] > _MANY_FEATURES or not isinstance(X, np.ndarray):
        return []
    return [Column(f"feature {j}", "number", X[:, j].astype(np.float64)) for j in range(X.shape[1])]


def _values_of(table: Any, name: Any) -> Any:
    column = table[name]
    if len(getattr(column, "shape", (0,))) == 2:
        raise ValueError(f"The name {str(name)!r} is that of more than one column: rename one of them.")
    if hasattr(column, "to_numpy"):
        return column.to_numpy()
    return getattr(column, "values", column)


def _as_numbers(values: Array) -> Array | None:
    """As float64, NaN where a value is missing; None if they are no numbers."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if values.dtype.kind != "O":
        return None
    listed = [np.nan if _is_missing(value) else value for value in values.tolist()]
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in listed):
        return None
    return np.array(listed, dtype=np.float64)


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas writes for a missing value or time: the only ones not equal to themselves."""
    if value is None:
        return True
    same = value == value
    return not (isinstance(same, (bool, np.bool_)) and bool(same))


def _are_names(numbers: Array, classes: bool) -> bool:
    """Whether whole numbers are rather names of classes: few of them, each for more than one row."""
    known = numbers[~np.isnan(numbers)]
    if not known.size or np.any(known != np.round(known)) or np.abs(known).max() > 2**53:
        return False
    count = np.unique(known).size
    return count <= (MOST_COLOURS if classes else _FEW) and 2 * count < known.size


def _as_texts(values: Array) -> list[str | None]:
    return [None if _is_missing(value) else str(value) for value in values.tolist()]


def _of_texts(name: str, texts: list[str | None]) -> Column:
    """A column of categories where texts repeat, of texts where they do not."""
    counts: dict[str, int] = {}
    for text in texts:
        if text is not None:
            counts[text] = counts.get(text, 0) + 1
    if len(counts) > _MOST_WORDS and 4 * len(counts) > len(texts):
        return Column(name, "text", np.array(["" if text is None else text for text in texts], dtype=object))
    if len(counts) <= MOST_COLOURS:
        words = sorted(counts, key=_in_order)
    else:
        words = sorted(counts, key=lambda word: (-counts[word], word))  # colours go to the most frequent
    place = {word: i for i, word in enumerate(words)}
    numbers = np.array([-1 if text is None else place[text] for text in texts], dtype=np.int32)
    return Column(name, "category", numbers, tuple(words))


def _in_order(word: str) -> tuple[bool, float, str]:
    """Numbers by their size, before words."""
    try:
        return (False, float(word), word)
    except ValueError:
        return (True, 0.0, word)
