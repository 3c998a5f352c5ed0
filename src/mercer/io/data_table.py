"""A table of named columns, of numbers or of categories, that remembers the lines of the file it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array

Values = Array  # of float64, NaN where there is none, or of objects: texts, None where there is none
_SHOWN = 12  # names of columns in a message
_MOST_LEFT_OUT = 2.0  # numbers for every row of a column that counts rows: up to half of them were left out


@final
class UnknownColumnError(ValueError):
    """A column is asked for that a table does not have."""

    def __init__(self, source: object, name: str, known: Sequence[str]) -> None:
        shown = ", ".join(map(repr, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else "")
        super().__init__(f"{source} has no column {name!r}; it has {shown}.")


@final
@dataclass(frozen=True, eq=False)
class DataColumn:
    """One column: its name and its values."""

    name: str
    values: Values

    @property
    def holds_numbers(self) -> bool:
        """Whether its values are numbers; otherwise they are the names of categories."""
        return bool(self.values.dtype.kind == "f")

    @property
    def dtype(self) -> str:
        """``"float64"`` or ``"str"``, the word by which the kernels tell numbers from categories."""
        return "float64" if self.holds_numbers else "str"

    @property
    def missing(self) -> Array:
        """In which rows there is no value."""
        if self.holds_numbers:
            return np.isnan(self.values)
        return np.array([value is None for value in self.values], dtype=bool)

    @property
    def counts_rows(self) -> bool:
        """Whether it holds k, k + 1, k + 2, …, some of them left out: a number that tells nothing but a row's place."""
        if not self.holds_numbers or len(self.values) <= 2:
            return False
        steps = np.diff(self.values)
        return bool(np.all(steps >= 1) and np.all(steps == np.round(steps)) and steps.mean() <= _MOST_LEFT_OUT)

    def to_list(self) -> list[Any]:
        """The values, None where there is no name of a category."""
        return list(self.values.tolist())


@final
@dataclass(frozen=True, eq=False)
class DataTable:
    """Columns of equal length. Kernels, tests and estimators take it as they take a data frame.

    Attributes
    ----------
    source : str
        The file, for messages.
    parts : tuple of DataColumn
        The columns.
    lines : array of int or None
        The line of the file that each row ends in, counted from one; None where the file has no lines.
    notes : tuple of str
        What a person should know of how the file was read, a sentence each.
    """

    source: str
    parts: tuple[DataColumn, ...]
    lines: Array | None = None
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names."""
        return [part.name for part in self.parts]

    @property
    def dtypes(self) -> list[str]:
        """``"float64"`` for each column of numbers, ``"str"`` for one of categories."""
        return [part.dtype for part in self.parts]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.parts)

    def __len__(self) -> int:
        return len(self.parts[0].values) if self.parts else 0

    def __getitem__(self, key: str | tuple[slice, int]) -> DataColumn:
        """A column: ``table["height"]``, or by its number as ``table[:, 0]``."""
        if isinstance(key, str) and key not in self.columns:
            raise UnknownColumnError(self.source, key, self.columns)
        return self.parts[self.columns.index(key) if isinstance(key, str) else key[1]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        categories = [part.name for part in self.parts if not part.holds_numbers]
        if categories:
            raise ValueError(
                f"The column {categories[0]!r} of {self.source} holds categories: leave it out, or use a kernel that "
                "takes them, such as Mixed()."
            )
        return np.stack([part.values for part in self.parts], axis=1).astype(dtype or np.float64)

    def select(self, names: Sequence[str]) -> DataTable:
        """The table of some columns. ``"X"`` stands for all of ``X[0]``, ``X[1]``, … that came from one array."""
        kept = tuple(part for name in names for part in self._named(name))
        return DataTable(self.source, kept, self.lines, self.notes)

    def without(self, names: Iterable[str]) -> DataTable:
        """The table without some columns."""
        gone = {part.name for name in names for part in self._named(name)}
        kept = tuple(part for part in self.parts if part.name not in gone)
        return DataTable(self.source, kept, self.lines, self.notes)

    def take(self, rows: Array) -> DataTable:
        """Some rows, by their numbers or by a mask."""
        kept = tuple(DataColumn(part.name, part.values[rows]) for part in self.parts)
        return DataTable(self.source, kept, None if self.lines is None else self.lines[rows], self.notes)

    def as_points(self) -> Any:
        """An array of shape (n, d) where all columns hold numbers; otherwise the table itself."""
        return np.asarray(self) if all(part.holds_numbers for part in self.parts) else self

    def complete(self, *, drop: bool = False) -> DataTable:
        """The table, if no value is missing; with ``drop``, the rows that have all their values."""
        missing = [part.missing for part in self.parts]
        rows = np.logical_or.reduce(missing) if missing else np.zeros(0, dtype=bool)
        if not rows.any():
            return self
        if drop:
            return self.take(~rows)
        first = int(np.argmax(rows))
        name = next(part.name for part, gaps in zip(self.parts, missing, strict=True) if gaps[first])
        raise ValueError(
            f"{self.place(first)} has no value in the column {name!r}, and {int(rows.sum())} of {len(self)} rows lack "
            "one: fill them in, leave the column out, or leave those rows out."
        )

    def place(self, row: int) -> str:
        """Where a row is found, for messages."""
        where = f"Row {row + 1}" if self.lines is None else f"Line {int(self.lines[row])}"
        return f"{where} of {self.source}"

    def _named(self, name: str) -> list[DataColumn]:
        """A column by its name, or those of one array."""
        found = [part for part in self.parts if part.name == name]
        found = found or [part for part in self.parts if part.name.startswith(f"{name}[") and part.name[-1] == "]"]
        if not found:
            raise UnknownColumnError(self.source, name, self.columns)
        return found
