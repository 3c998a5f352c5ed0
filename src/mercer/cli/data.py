"""The data of a fit out of a file: points, their labels and places, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.cli.options import Reading
from mercer.cli.output import joined
from mercer.cli.tables import chosen, complete, listed, numbers_of, read
from mercer.io import DataColumn, DataTable, Preparation

_UNLIKE = 100.0  # times as large a spread as another column has, beyond which a person is told
_NO_LABEL = "none"


@final
@dataclass(frozen=True, eq=False)
class FitData:
    """What a model is fitted to, or asked about.

    Attributes
    ----------
    table : DataTable
        The columns of the model as they stand in the file, without rows that lack a value.
    preparation : Preparation
        Which columns they are, and how they are standardised.
    label : DataColumn or None
        The column that colours the picture.
    file : DataTable
        All columns of the file, of the same rows.
    places : array of int
        The lines of the rows in the file, or their numbers where it has no lines, counted from one.
    whole : bool
        Whether all rows of the file are there.
    notes : list of str
        What was left out, and why.
    """

    table: DataTable
    preparation: Preparation
    label: DataColumn | None
    file: DataTable
    places: Array
    whole: bool
    notes: list[str]

    @property
    def points(self) -> Any:
        """What the model takes."""
        return self.preparation.points(self.table)

    @property
    def labels(self) -> Array | None:
        """A name for every row, or a number."""
        if self.label is None:
            return None
        values = self.label.to_list()
        if self.label.holds_numbers and len({*values}) > 1 and not all(float(value).is_integer() for value in values):
            return self.label.values
        return np.array([_name(value) for value in values])

    @property
    def source(self) -> str:
        """The name of the file."""
        return self.table.source

    def told(self) -> dict[str, Any]:
        """For machines: rows, columns and what was done to them."""
        return {
            "data": self.table.source,
            "rows": len(self.table),
            "columns": list(self.preparation.columns),
            "categories": list(self.preparation.categories),
            "standardised": self.preparation.is_scaled,
        }

    def words(self) -> str:
        """Rows and columns in a few words."""
        count = len(self.preparation.columns)
        columns = f"{count} column{'s' if count > 1 else ''} ({listed(self.preparation.columns)})"
        return f"{len(self.table)} rows, {columns}{', standardised' if self.preparation.is_scaled else ''}"

    @property
    def unit(self) -> str:
        """What the places are: lines of a text file, or rows."""
        return "row" if self.table.lines is None else "line"

    def with_places(self, columns: dict[str, Any]) -> dict[str, Any]:
        """A table to write: the label in front, and the line or row of the file where some were left out."""
        own = {} if self.whole else {self.unit: self.places}
        named = {} if self.label is None else {self.label.name: self.label.to_list()}
        return {**joined(own, named), **columns}


def fit_data(
    path: Path,
    reading: Reading,
    *,
    label: str | None,
    scale: bool,
    mixed: bool = False,
    otherwise: str = "",
    any_unit: bool = False,
) -> FitData:
    """The numbers of a file, or with ``mixed`` all its columns; ``otherwise`` says how words could be used.

    With ``any_unit`` the model sees to it that columns of different units count alike.
    """
    file = table = read(path, reading)
    notes = list(table.notes)
    if label is not None and table[label].name not in reading.columns:
        table = table.without([label])
        if not table.parts:
            raise ValueError(f"{table.source} has no column but {label!r}: nothing is left to fit.")
    meant = chosen(table, reading)
    usable = meant if mixed else numbers_of(meant, notes, otherwise)
    kept, file, places = _without_gaps(usable, file, reading, notes)
    preparation = Preparation.of(kept, scale=scale)
    notes += _cautions(kept, in_units=not (any_unit or preparation.is_scaled))
    return FitData(
        kept, preparation, None if label is None else file[label], file, places, len(kept) == len(table), notes
    )


def new_data(path: Path, reading: Reading, preparation: Preparation | None, *, label: str | None = None) -> FitData:
    """The columns that a model was fitted to, out of another file."""
    table = read(path, reading)
    notes = list(table.notes)
    if label is not None:
        table[label]  # refused here where there is none
    if preparation is None or reading.columns:
        known = preparation is not None and preparation.categories
        meant = chosen(table if label is None or label in reading.columns else table.without([label]), reading)
        usable = meant if known else numbers_of(meant, notes)
        preparation = preparation or Preparation.of(usable)
    else:
        usable = table.select(preparation.columns)
    kept, file, places = _without_gaps(usable, table, reading, notes)
    return FitData(
        kept, preparation, None if label is None else file[label], file, places, len(kept) == len(table), notes
    )


def _without_gaps(
    table: DataTable, file: DataTable, reading: Reading, notes: list[str]
) -> tuple[DataTable, DataTable, Array]:
    """The rows that have all values, all columns of these, and where they stand in the file."""
    places = np.arange(1, len(table) + 1) if table.lines is None else table.lines
    kept = complete(table, reading, notes)
    if len(kept) == len(table):
        return kept, file, places
    rows = ~np.logical_or.reduce([part.missing for part in table.parts])
    return kept, file.take(rows), places[rows]


def _cautions(table: DataTable, *, in_units: bool) -> list[str]:
    """What in the columns may mislead, units among it where they count."""
    said = [
        f"The column {part.name!r} counts the rows: if it is their number, leave it out with --without."
        for part in table.parts
        if part.counts_rows
    ]
    numbers = [part for part in table.parts if part.holds_numbers and not part.counts_rows]
    still = [part.name for part in numbers if np.ptp(part.values) == 0]
    if still:
        said.append(f"{listed(still)} {'has' if len(still) == 1 else 'have'} the same value in every row.")
    return said + _on_spreads(numbers) if in_units else said


def _on_spreads(numbers: Sequence[DataColumn]) -> list[str]:
    """Whether columns are in units that differ so much that only some of them count."""
    spreads = {part.name: float(part.values.std()) for part in numbers if np.ptp(part.values) > 0}
    if len(spreads) < 2:
        return []
    most, least = max(spreads, key=lambda name: spreads[name]), min(spreads, key=lambda name: spreads[name])
    if spreads[most] <= _UNLIKE * spreads[least]:
        return []
    times = f"{spreads[most] / spreads[least]:.2g}"
    return [f"{most} spreads {times} times as far as {least} and decides alone: --scale makes columns count alike."]


def _name(value: Any) -> str:
    if value is None or value != value:
        return _NO_LABEL
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
