"""From a file and the options of reading to the table that is meant, with notes on what was left out and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from mercer.cli.options import Reading
from mercer.io import DataColumn, DataTable, read_table

STANDARD_INPUT = "-"
_SHOWN = 8  # names of columns in a sentence


def read(path: Path, reading: Reading) -> DataTable:
    """The whole table of a file, or of standard input."""
    options = {} if reading.longest_line is None else {"longest_line": reading.longest_line}
    return read_table(
        sys.stdin.buffer if str(path) == STANDARD_INPUT else path,
        delimiter={"\\t": "\t", "tab": "\t"}.get(reading.delimiter or "", reading.delimiter),
        header=reading.header,
        categories=[name for given in reading.categories for name in given.split(",")],
        encoding=reading.encoding,
        array=reading.array,
        **options,
    )


def chosen(table: DataTable, reading: Reading, also: DataColumn | None = None) -> DataTable:
    """The columns that are asked for; ``also`` is one that stays although nobody names it."""
    if reading.columns:
        table = table.select(split(reading.columns, table.columns))
    if reading.without:
        table = table.without(split(reading.without, table.columns))
    if not table.parts:
        raise click.UsageError(f"No column of {table.source} is left to use.")
    return table if also is None else DataTable(table.source, (*table.parts, also), table.lines, table.notes)


def complete(table: DataTable, reading: Reading, notes: list[str]) -> DataTable:
    """The table without gaps; rows that are left out are told."""
    try:
        kept = table.complete(drop=reading.missing == "drop")
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip('.')} with --missing drop.") from None
    if not len(kept):
        raise ValueError(f"Every row of {table.source} lacks a value: no row is left.")
    if len(kept) < len(table):
        notes.append(
            f"{len(table) - len(kept)} of {len(table)} rows of {table.source} lack a value and are left out; where "
            "values are missing for a reason, that reason is left out too."
        )
    return kept


def numbers_of(table: DataTable, notes: list[str], otherwise: str = "") -> DataTable:
    """The columns of numbers; those of words are left out and named, with what can be done ``otherwise``."""
    words = [part.name for part in table.parts if not part.holds_numbers]
    if len(words) == len(table.parts):
        raise ValueError(f"{table.source} has no column of numbers: {listed(words)} hold words.")
    if words:
        hold = "holds words and is" if len(words) == 1 else "hold words and are"
        notes.append(f"{listed(words)} {hold} left out{f'; {otherwise}' if otherwise else ''}.")
    return table.without(words)


def split(given: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names given one by one or with commas between them; a name with a comma in it is found whole."""
    return [name for text in given for name in ([text] if text in known else text.split(","))]


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """Names in a sentence, the first of them."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
