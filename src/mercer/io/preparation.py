"""What is done to a table before a model sees it, so that new tables are treated as the first one was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.io.data_table import DataColumn, DataTable


@final
@dataclass(frozen=True)
class Preparation:
    """The columns that a model was fitted to, and how they were standardised.

    Attributes
    ----------
    columns : tuple of str
        Their names, in order.
    categories : tuple of str
        Those of them that hold words.
    means, scales : tuple of float, or None
        What was subtracted from each column, and what it was divided by then; None where nothing was. Categories have
        0 and 1.
    """

    columns: tuple[str, ...]
    categories: tuple[str, ...] = ()
    means: tuple[float, ...] | None = None
    scales: tuple[float, ...] | None = None

    @classmethod
    def of(cls, table: DataTable, *, scale: bool = False) -> Preparation:
        """That of a table without gaps; with ``scale``, columns of numbers get mean zero and standard deviation one."""
        words = tuple(part.name for part in table.parts if not part.holds_numbers)
        if not scale:
            return cls(tuple(table.columns), words)
        zeros = np.zeros(len(table))
        X = np.stack([part.values if part.holds_numbers else zeros for part in table.parts], axis=1)
        spreads = X.std(axis=0)  # by rows, as one standardises an array: the same numbers to the last bit
        scales = np.where(spreads > 0, spreads, 1.0)
        return cls(tuple(table.columns), words, tuple(X.mean(axis=0).tolist()), tuple(scales.tolist()))

    @property
    def is_scaled(self) -> bool:
        """Whether columns are standardised."""
        return self.scales is not None

    def table(self, table: DataTable) -> DataTable:
        """The columns of the fit out of a table, standardised as they were then."""
        chosen = table.select(self.columns)
        for part in chosen.parts:
            if part.holds_numbers == (part.name in self.categories):
                found, meant = ("numbers", "words") if part.holds_numbers else ("words", "numbers")
                raise ValueError(
                    f"The column {part.name!r} of {table.source} holds {found}, but held {meant} where the model was "
                    "fitted: correct it, or name it with --categories."
                )
        if self.means is None or self.scales is None:
            return chosen
        parts = [
            DataColumn(part.name, (part.values - mean) / scale) if part.holds_numbers else part
            for part, mean, scale in zip(chosen.parts, self.means, self.scales, strict=True)
        ]
        return DataTable(chosen.source, tuple(parts), chosen.lines, chosen.notes)

    def points(self, table: DataTable) -> Any:
        """What a model takes: an array of shape (n, d), or the table where it holds categories."""
        return self.table(table).as_points()

    def undone(self, points: Array) -> Array:
        """Points as they would stand in a file: the standardisation undone."""
        if self.means is None or self.scales is None:
            return points
        return points * np.array(self.scales) + np.array(self.means)

    def as_dict(self) -> dict[str, Any]:
        """As plain lists, for a file."""
        return {
            "columns": list(self.columns),
            "categories": list(self.categories),
            "means": None if self.means is None else list(self.means),
            "scales": None if self.scales is None else list(self.scales),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Preparation:
        """From what :meth:`as_dict` gave; refused where it is none."""
        try:
            columns, categories = tuple(map(str, given["columns"])), tuple(map(str, given["categories"]))
            means, scales = (
                None if given[name] is None else tuple(map(float, given[name])) for name in ("means", "scales")
            )
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                "What the model file says of the columns of its data cannot be read: it is damaged."
            ) from None
        lengths = {len(columns), *(len(values) for values in (means, scales) if values is not None)}
        if len(lengths) > 1 or (means is None) != (scales is None) or not set(categories) <= set(columns):
            raise ValueError("What the model file says of the columns of its data contradicts itself: it is damaged.")
        return cls(columns, categories, means, scales)
