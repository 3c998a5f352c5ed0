"""Data frames with columns of several kinds as arrays of numbers: categories become codes.

Neither pandas nor polars is imported: a frame is what has ``columns`` and ``dtypes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends.arrays import Array

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

_MOST_CATEGORIES = 2**24  # whole numbers up to here are exact in single precision


def is_frame(X: Any) -> bool:
    """Whether this is a data frame: a table whose columns have names and types."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and not isinstance(X, np.ndarray)


@dataclass(frozen=True)
class Table:
    """What is remembered of a data frame: the names of its columns, and the categories of those that hold some.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    categories : dict
        For the number of each column of texts, categories or booleans, what its codes 0, 1, … stand for.
    booleans : frozenset of int
        Those of them whose codes are numbers as well.
    """

    names: tuple[str, ...]
    categories: Mapping[int, tuple[Any, ...]]
    booleans: frozenset[int]

    @classmethod
    def of(cls, *frames: Any) -> Table:
        """The columns of a data frame, or of several with the same columns; of an array, numbers without names."""
        first = frames[0]
        names = tuple(map(str, first.columns))
        for other in frames[1:]:
            if not is_frame(other) or tuple(map(str, other.columns)) != names:
                found = ", ".join(map(repr, other.columns)) if is_frame(other) else f"{type(other).__name__}"
                raise ValueError(
                    f"X has the columns {', '.join(map(repr, names))}, but Y has {found}: they must agree."
                )
        kinds = [{_kind(_column(frame, k), names[k]) for frame in frames} for k in range(len(names))]
        coded = [k for k, found in enumerate(kinds) if found != {"number"}]
        categories = {k: _categories([_column(frame, k) for frame in frames], names[k]) for k in coded}
        return cls(names, categories, frozenset(k for k in coded if "category" not in kinds[k]))

    @property
    def texts(self) -> frozenset[int]:
        """The columns whose codes are no numbers to calculate with."""
        return frozenset(self.categories) - self.booleans

    def some(self, columns: Sequence[int]) -> Table:
        """The table of some columns."""
        places = {place: k for k, place in enumerate(columns)}
        return Table(
            tuple(self.names[place] for place in columns),
            {places[place]: values for place, values in self.categories.items() if place in places},
            frozenset(places[place] for place in self.booleans if place in places),
        )

    def coded(self, frame: Any) -> Array:
        """The columns as numbers; a category that is not known gets a code that no known one has."""
        if not is_frame(frame):
            if not self.texts:
                return frame
            raise TypeError(
                f"The categories of the columns {self._named(self.texts)} are known by name: pass a data frame, not "
                f"{type(frame).__name__}."
            )
        out = np.empty((len(frame), len(self.names)))
        for k, name in enumerate(self.names):
            column = _column(frame, k)
            out[:, k] = _codes(column, self.categories[k], name) if k in self.categories else _numbers(column, name)
        return out

    def require_numbers(self, kernel: Kernel) -> None:
        """Refuse a kernel that calculates with the codes of categories."""
        wrong = sorted(kernel.read_as_numbers(len(self.names)) & self.texts)
        if not wrong:
            return
        numbers = [k for k in range(len(self.names)) if k not in self.categories]
        line = f"Categories().on({[self.names[k] for k in sorted(self.categories)]})"
        if numbers:
            line = f"Gaussian('columns').on({[self.names[k] for k in numbers]}) * {line}"
        raise ValueError(
            f"The column {self.names[wrong[0]]!r} of X holds categories, and the kernel {kernel!r} calculates with "
            f"numbers: write kernel=Mixed(), which is {line}."
        )

    def _named(self, columns: Iterable[int]) -> str:
        return ", ".join(repr(self.names[k]) for k in sorted(columns))


def _column(frame: Any, k: int) -> Any:
    """A column by its number: names may occur twice."""
    return frame.iloc[:, k] if hasattr(frame, "iloc") else frame[:, k]


def _kind(column: Any, name: str) -> str:
    """Whether a column holds numbers, booleans or categories."""
    kind = str(column.dtype).lower()
    if kind.startswith(("date", "time", "duration", "period", "interval")):
        raise ValueError(
            f"The column {name!r} of X holds dates or times ({column.dtype}): turn them into numbers first, such as "
            "days since the first."
        )
    if kind.startswith(("categor", "dictionary", "enum", "str", "utf", "large_string")):
        return "category"
    if kind != "object":
        return "boolean" if kind.startswith("bool") else "number"
    values = [value for value in column.to_list() if not _is_missing(value)]
    if all(isinstance(value, bool | np.bool_) for value in values):
        return "boolean" if values else "number"
    return "number" if all(isinstance(value, Real) for value in values) else "category"


def _is_missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _categories(columns: Sequence[Any], name: str) -> tuple[Any, ...]:
    """Those that the type of the column declares, or those that occur, in order."""
    found: dict[Any, None] = {}
    for column in columns:
        declares = str(column.dtype).lower().startswith(("category", "enum"))
        found.update(dict.fromkeys(column.dtype.categories if declares else _present(column, name)))
    if len(found) >= _MOST_CATEGORIES:
        raise ValueError(f"The column {name!r} of X has {len(found)} categories: it tells rows apart, leave it out.")
    return tuple(
        sorted(found, key=lambda value: (type(value).__name__, value if isinstance(value, str) else repr(value)))
    )


def _present(column: Any, name: str) -> list[Any]:
    values = column.to_list()
    for row, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(
                f"The column {name!r} of X has no value in row {row}: fill it first, such as with 'missing'."
            )
    return list(dict.fromkeys(values))


def _codes(column: Any, categories: tuple[Any, ...], name: str) -> Array:
    known = {value: float(code) for code, value in enumerate(categories)}
    for value in _present(column, name):
        known.setdefault(value, float(len(known)))
    return np.array([known[value] for value in column.to_list()])


def _numbers(column: Any, name: str) -> Array:
    """The numbers of a column, NaN where there is none."""
    try:
        return np.array([np.nan if _is_missing(value) else float(value) for value in column.to_list()])
    except (TypeError, ValueError):
        raise ValueError(
            f"The column {name!r} of X holds {column.dtype}, where numbers are expected: leave it out."
        ) from None
