"""Parquet files, read by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mercer.io.data_table import DataColumn, DataTable, UnknownColumnError, Values
from mercer.io.stream import Stream


def read_parquet(path: Path | Stream, categories: frozenset[str]) -> DataTable:
    """The columns of a Parquet file: numbers, and texts, booleans, days or times as categories."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Parquet files need pyarrow: pip install pyarrow.") from None
    try:
        with path.open("rb") as file:
            found = parquet.ParquetFile(file).read()
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None
    names = [str(name) for name in found.column_names]
    unknown = sorted(categories - set(names))
    if unknown:
        raise UnknownColumnError(path, unknown[0], names)
    if not found.num_rows or not names:
        raise ValueError(f"{path} has no rows of values.")
    kept = [(name, column) for name, column in zip(names, found.columns, strict=True) if not _is_index(name)]
    parts = (DataColumn(name, _values(path, name, column, name in categories)) for name, column in kept)
    return DataTable(str(path), tuple(parts))


def _is_index(name: str) -> bool:
    """Whether pandas wrote the names of its rows here."""
    return name.startswith("__index_level_")


def _values(path: Path | Stream, name: str, column: Any, as_categories: bool) -> Values:
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, values = column.type, column.to_pylist()
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    words = types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_temporal(kind)
    if as_categories or words:  # days and times as well, which are words in text files too
        out = np.empty(len(values), dtype=object)
        out[:] = [None if value is None else str(value) for value in values]
        return out
    if not numeric and not types.is_null(kind):
        raise ValueError(f"The column {name!r} of {path} holds {kind}: numbers, texts, booleans and times are read.")
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise ValueError(f"Row {row + 1} of {path} has {numbers[row]} in the column {name!r}: no finite number.")
    return numbers
