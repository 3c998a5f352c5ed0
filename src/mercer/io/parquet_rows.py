"""Rows of the columns of numbers in a Parquet file, read by pyarrow a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from mercer.backends.row_source import Block, RowSource, regrouped
from mercer.io.data_table import UnknownColumnError
from mercer.io.file_state import FileState, one_line, unreadable

_BATCH = 2**16  # rows that are decoded at a time


@final
class ParquetRows(RowSource):
    """Some columns of numbers of a Parquet file; all columns must hold numbers unless some are named.

    Rows that are asked for one by one are found by reading the groups of rows that hold them.
    """

    def __init__(self, path: Path, columns: Sequence[Any] | None) -> None:
        try:
            from pyarrow import ArrowException, parquet
        except ModuleNotFoundError:
            raise ModuleNotFoundError("Parquet files need pyarrow: pip install pyarrow.") from None
        self._path, self._state = path, FileState.of(path)
        try:
            with parquet.ParquetFile(path) as file:
                schema, rows = file.schema_arrow, file.metadata.num_rows
                counts = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        except (ArrowException, OSError) as error:
            raise ValueError(f"{path} cannot be read as Parquet: {one_line(error)}.") from None
        self._columns = _chosen(path, schema, columns)
        kinds = [schema.field(name).type for name in self._columns]
        self.dtype = np.dtype(np.float32 if all(str(kind) in ("float", "halffloat") for kind in kinds) else np.float64)
        self.shape = (int(rows), len(self._columns))
        self._starts = np.cumsum([0, *counts])

    @property
    def name(self) -> str:
        return str(self._path)

    def take(self, rows: Any) -> Block:
        wanted = np.arange(self.shape[0])[rows]
        order = np.argsort(wanted, kind="stable")
        sorted_rows = wanted[order]
        out = np.empty((wanted.size, self.shape[1]), self.dtype)
        for group in np.unique(np.searchsorted(self._starts, sorted_rows, side="right") - 1):
            at = int(self._starts[group])
            for block in self._batches([int(group)]):
                lo, hi = np.searchsorted(sorted_rows, [at, at + block.shape[0]])
                out[order[lo:hi]] = block[sorted_rows[lo:hi] - at]
                at += block.shape[0]
        return out

    def blocks(self, most: int) -> Iterator[tuple[slice, Block]]:
        """Blocks of exactly so many rows, whatever the groups of the file are."""
        yield from regrouped(self._batches(None, most), most)

    def _batches(self, groups: list[int] | None, most: int = _BATCH) -> Iterator[Block]:
        from pyarrow import ArrowException, parquet

        self._state.require_same()
        options = {} if groups is None else {"row_groups": groups}
        with parquet.ParquetFile(self._path, pre_buffer=False, buffer_size=2**20) as file:
            batches = file.iter_batches(min(_BATCH, most), columns=self._columns, use_threads=False, **options)
            while True:
                try:
                    batch = next(batches, None)
                except (ArrowException, OSError) as error:
                    raise unreadable(self._path, error) from None
                if batch is None:
                    break
                yield self._values(batch)
        self._state.require_same()  # what was read meanwhile may be of either file

    def _values(self, batch: Any) -> Block:
        out = np.empty((batch.num_rows, self.shape[1]), self.dtype)
        for k, name in enumerate(self._columns):
            column = batch.column(batch.schema.get_field_index(name))
            if column.null_count or str(column.type).startswith("decimal"):
                values = [np.nan if value is None else float(value) for value in column.to_pylist()]
                out[:, k] = np.array(values, np.float64)
            else:
                out[:, k] = column.to_numpy(zero_copy_only=False)
        return out


def columns_of_numbers(path: Path) -> tuple[list[str], list[str]]:
    """The columns of a file that hold numbers, and those that do not."""
    from pyarrow import ArrowException, parquet

    try:
        schema = parquet.read_schema(path)
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {one_line(error)}.") from None
    names = [str(name) for name in schema.names if not str(name).startswith("__index_level_")]
    numbers = [name for name in names if _is_number(schema.field(name).type)]
    return numbers, [name for name in names if name not in numbers]


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _chosen(path: Path, schema: Any, columns: Sequence[Any] | None) -> list[str]:
    """The names of the columns that are meant, all of them of numbers."""
    names = [str(name) for name in schema.names]
    known = [name for name in names if not name.startswith("__index_level_")]
    if columns is not None:
        for column in columns:
            is_number = isinstance(column, int | np.integer) and not isinstance(column, bool)
            if not (0 <= column < len(known) if is_number else isinstance(column, str) and column in known):
                raise UnknownColumnError(path, str(column), known)
        known = [column if isinstance(column, str) else known[int(column)] for column in columns]
    twice = [name for name in known if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"{path} has {names.count(twice[0])} columns named {twice[0]!r}: rename them, or choose others."
        )
    words = [name for name in known if not _is_number(schema.field(name).type)]
    if words:
        kind = schema.field(words[0]).type
        raise ValueError(
            f"The column {words[0]!r} of {path} holds {kind}, and rows of points are numbers: name the columns to use "
            "by columns=."
        )
    return known
