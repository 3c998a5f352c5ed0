"""The characters of a text file: its encoding, its compression, and lines that are too long to be a table's."""

from __future__ import annotations

import codecs
import gzip
import zlib
from pathlib import Path
from typing import BinaryIO

from mercer.io.stream import Stream

LONGEST_LINE = 100_000_000  # bytes: a million columns of numbers have less
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PIECE = 1 << 20


def read_text(source: Path | Stream, encoding: str | None, longest_line: int = LONGEST_LINE) -> str:
    """The text of a file, compressed or not. Of a line that is too long no more is read than the limit."""
    try:
        with source.open("rb") as file:
            data = _bytes(source, file, encoding, longest_line)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{source} cannot be decompressed: {error}.") from None
    found = encoding or next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    return _decoded(source, data, found)


def _bytes(source: Path | Stream, file: BinaryIO, encoding: str | None, longest_line: int) -> bytes:
    """All bytes, piece by piece, so that what is no table is refused before memory is full."""
    opened = gzip.GzipFile(fileobj=file) if source.suffix == ".gz" else file
    pieces: list[bytes] = []
    lines, begun = 1, 0  # the line under way, and how much of it the pieces before held
    while piece := opened.read(_PIECE):
        pieces.append(piece)
        wide = encoding is not None or pieces[0].startswith(tuple(_MARKS))  # where a zero may be half a letter
        if not wide and b"\0" in piece:
            raise ValueError(_no_text(source, lines + piece[: piece.find(b"\0")].count(b"\n")))
        lengths = [len(part) for part in piece.split(b"\n")]
        lengths[0] += begun
        if max(lengths) > longest_line:
            line = lines + next(k for k, length in enumerate(lengths) if length > longest_line)
            raise ValueError(
                f"Line {line} of {source} is longer than {_size(longest_line)}: if it is a row of a table and no other "
                "file, raise the limit, longest_line."
            )
        lines, begun = lines + len(lengths) - 1, lengths[-1]
    return b"".join(pieces)


def _decoded(source: Path | Stream, data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is not known to Python.") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"Line {line} of {source} is not {encoding.upper()}: save the file as UTF-8, or say its encoding, such as "
            "cp1252 for files of Windows."
        ) from None
    except UnicodeError as error:
        raise ValueError(f"{source} is not {encoding.upper()}: {error}.") from None
    if "\0" in text:
        raise ValueError(_no_text(source, text[: text.find("\0")].count("\n") + 1))
    return text


def _no_text(source: Path | Stream, line: int) -> str:
    return f"Line {line} of {source} holds bytes that are no text: its suffix may name the wrong format."


def _size(count: int) -> str:
    """Bytes in words."""
    return f"{count / 1e6:.3g} MB" if count >= 100_000 else f"{count} bytes"
