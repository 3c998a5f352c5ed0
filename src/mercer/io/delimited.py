"""Text files of values between delimiters: comma, semicolon, tab, bar or spaces."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mercer.io.data_table import DataColumn, DataTable, UnknownColumnError
from mercer.io.stream import Stream
from mercer.io.text import LONGEST_LINE, read_text
from mercer.io.values import as_number, parsed

_DELIMITERS = "\t;|,"  # in this order: decimal commas stand between semicolons
_SAMPLE = 65536  # characters by which the delimiter is found out
_HEADER_ROWS = 200  # rows below the first one that say whether it is a header
_COMMENTS = re.compile(r"(?:#[^\r\n]*(?:\r\n|\r|\n))*")
_QUOTED = re.compile('"[^"]*"')


@dataclass(frozen=True)
class Layout:
    """How a text file is to be read; None where that is found out."""

    delimiter: str | None
    header: bool | None
    categories: frozenset[str]


def read_delimited(
    path: Path | Stream, layout: Layout, encoding: str | None = None, longest_line: int = LONGEST_LINE
) -> DataTable:
    """The table of a text file."""
    text = read_text(path, encoding, longest_line)
    delimiter = layout.delimiter or _found_delimiter(text[_end_of_comments(text) :] or text)
    if len(delimiter) != 1:
        raise ValueError(f"delimiter={delimiter!r} must be one character.")
    text, passed = _without_comments(text, delimiter)
    rows, lines = _rows(path, text, delimiter)
    first, names = _header(path, rows, layout.header, decimal_comma=delimiter == ";")
    rows, lines = rows[first:], lines[first:]
    if not rows:
        raise ValueError(f"{path} has the names of columns and no rows below them.")
    _require_equal_lengths(path, rows, lines, len(names))
    unknown = sorted(layout.categories - set(names))
    if unknown:
        raise UnknownColumnError(path, unknown[0], names)
    parts = []
    for name, texts in zip(names, zip(*rows, strict=True), strict=True):
        values = parsed(texts, name in layout.categories, decimal_comma=delimiter == ";")
        if isinstance(values, str):
            raise ValueError(_place(path, lines, texts, name, values))
        parts.append(DataColumn(name, values))
    notes = _on_comments(path, passed) + _on_names(path, layout, first)
    return _tidied(DataTable(str(path), tuple(parts), np.array(lines), notes))


def _end_of_comments(text: str) -> int:
    """Where the first line stands that does not begin with #."""
    return _COMMENTS.match(text).end()  # type: ignore[union-attr]  # it matches nothing too


def _without_comments(text: str, delimiter: str) -> tuple[str, int]:
    """The text with its first lines left empty where they begin with # and are no row, and how many those are.

    The names of the columns may begin so too: such a line has as many values as the first one without #.
    """
    end = _end_of_comments(text)
    if end == 0:
        return text, 0
    head, rest = text[:end].splitlines(keepends=True), text[end:]
    below = next(io.StringIO(rest), "")
    count = len(head) - (head[-1].count(delimiter) == below.count(delimiter))
    return "\n" * count + "".join(head[count:]) + rest, count


def _found_delimiter(text: str) -> str:
    """The first delimiter that stands equally often in all lines; spaces, where only they separate numbers."""
    sample = _QUOTED.sub("q", text[:_SAMPLE]).splitlines()
    whole = sample if len(text) <= _SAMPLE else sample[:-1]
    lines = [line.strip(" ") for line in whole if line.strip()] or [""]
    for delimiter in _DELIMITERS:
        counts = {line.count(delimiter) for line in lines}
        if len(counts) == 1 and counts != {0}:
            return delimiter
    most = max(_DELIMITERS, key=lambda delimiter: sum(line.count(delimiter) for line in lines))
    if any(most in line for line in lines):
        return most
    spaced = len({len(line.split()) for line in lines}) == 1 and len(lines[0].split()) > 1
    return " " if spaced and all(as_number(word) is not None for word in lines[-1].split()) else ","


def _rows(path: Path | Stream, text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """The rows that hold a value, and the lines they end in; spreadsheets leave rows of delimiters alone behind."""
    rows, lines = [], []
    reader = csv.reader(_lines(text, delimiter), delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if any(value.strip() for value in row):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        if "unexpected end" in str(error):
            line = lines[-1] + 1 if lines else 1
            raise ValueError(f"A quotation mark that opens in or after line {line} of {path} is not closed.") from None
        raise ValueError(f"Line {reader.line_num} of {path} cannot be read: {error}.") from None
    if not rows:
        raise ValueError(f"{path} is empty.")
    return rows, lines


def _lines(text: str, delimiter: str) -> Iterator[str]:
    """The lines with their ends; without spaces around them where spaces separate values."""
    for line in io.StringIO(text, newline=""):
        yield line.strip(" \r\n") + "\n" if delimiter == " " else line


def _header(
    path: Path | Stream, rows: list[list[str]], given: bool | None, *, decimal_comma: bool
) -> tuple[int, list[str]]:
    """How many rows the header takes, and the names of the columns."""
    if not (_looks_like_header(rows, decimal_comma=decimal_comma) if given is None else given):
        return 0, [str(k + 1) for k in range(len(rows[0]))]
    names = [name.strip() for name in rows[0]]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise ValueError(f"{path} has two columns named {twice[0]!r}: give one of them another name.")
    return 1, [name or f"column {k + 1}" for k, name in enumerate(names)]


def _looks_like_header(rows: list[list[str]], *, decimal_comma: bool) -> bool:
    """Whether a text stands above numbers, or there are no numbers."""

    def is_number(text: str) -> bool:
        return as_number(text, decimal_comma=decimal_comma) is not None

    below = list(zip(*rows[1:_HEADER_ROWS], strict=False))
    if not below:
        return not any(map(is_number, rows[0]))
    numeric = [k for k, column in enumerate(below) if sum(map(is_number, column)) > len(column) / 2]
    above = [rows[0][k].strip() for k in numeric if k < len(rows[0])]
    return not numeric or any(text and not is_number(text) for text in above)


def _require_equal_lengths(path: Path | Stream, rows: list[list[str]], lines: list[int], width: int) -> None:
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise ValueError(
                f"Line {line} of {path} has {len(row)} values, but the first line has {width}: a value is missing, or "
                "one that holds the delimiter needs quotation marks."
            )


def _place(path: Path | Stream, lines: list[int], texts: tuple[str, ...], name: str, wrong: str) -> str:
    """The sentence on the first value that spoils a column of numbers."""
    line = lines[texts.index(wrong)]
    number = as_number(wrong.strip())
    if number is not None:
        return f"Line {line} of {path} has {wrong.strip()!r} in the column {name!r}, which is no finite number."
    return (
        f"Line {line} of {path} has {wrong.strip()!r} in the column {name!r}, where most values are numbers: correct "
        "it, leave it empty, or read the column as categories."
    )


def _on_comments(path: Path | Stream, count: int) -> tuple[str, ...]:
    """That lines were passed over, where some were."""
    lines = "The first line" if count == 1 else f"The first {count} lines"
    return (f"{lines} of {path}, which begin{'s' if count == 1 else ''} with #, are passed over.",) if count else ()


def _on_names(path: Path | Stream, layout: Layout, first: int) -> tuple[str, ...]:
    """What was decided of the first line, where somebody may think otherwise."""
    if first or layout.header is not None:
        return ()
    return (f"The first line of {path} is read as values, not as the names of the columns.",)


def _tidied(table: DataTable) -> DataTable:
    """Leave out a first column without a name that counts the rows, and a last one that is empty."""
    parts, notes = list(table.parts), list(table.notes)
    if len(parts) > 1 and parts[-1].name == f"column {len(parts)}" and parts[-1].missing.all():
        parts.pop()
    if len(parts) > 1 and parts[0].name == "column 1" and parts[0].counts_rows:
        parts.pop(0)
        notes.append(f"The first column of {table.source} has no name and counts the rows: it is left out.")
    return DataTable(table.source, tuple(parts), table.lines, tuple(notes))
