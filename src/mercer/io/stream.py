"""A stream of bytes, such as standard input, that readers take as they take a path."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, final

_KINDS = {b"\x93NUMPY": ".npy", b"PK": ".npz", b"PAR1": ".parquet", b"\x89HDF": ".h5ad", b"\x1f\x8b": ".gz"}
_MARK = 8  # bytes that tell the format


@final
class Stream:
    """What a stream holds; its first bytes tell the format, and where they tell none it is text, read as it comes.

    Parameters
    ----------
    file : binary file
        Open, and read once.
    name : str, default="standard input"
        For messages.
    """

    def __init__(self, file: BinaryIO, name: str = "standard input") -> None:
        self._file, self._head, self.name = file, file.read(_MARK), name
        self.suffix = next((kind for mark, kind in _KINDS.items() if self._head.startswith(mark)), ".csv")

    def __str__(self) -> str:
        return self.name

    def open(self, mode: str = "rb") -> BinaryIO:
        """The bytes from the beginning, once; all of them in memory where a reader moves about in its file."""
        if self.suffix in (".csv", ".gz"):
            return io.BufferedReader(_Joined(self._head, self._file))
        return io.BytesIO(self._head + self._file.read())


@final
class _Joined(io.RawIOBase):
    """The bytes that were read to know the format, and the rest of the stream behind them."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._rest = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)
