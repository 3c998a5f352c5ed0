"""One file of texts and arrays: safetensors, with a digest of every byte, written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from mercer.io.refusals import ModelFileError, damaged
from mercer.journal.file import save_arrays
from mercer.whole_files import asked_for

FORMAT = 1  # the newest that is read, and the one that is written
MOST_TEXT = 2**25  # bytes of JSON in a file: a few times this is what reading it can take in memory
_DIGITS = 64
_DIGEST = re.compile(rb'"mercer\.digest":"([0-9a-f]{64})"')
_NO_DIGEST = "0" * _DIGITS
_CHUNK = 2**20
_LENGTH = 8  # bytes that say how long the JSON of safetensors is


class Content(NamedTuple):
    """An open file: its texts by name, type and shape of its arrays, and what reads one of them."""

    texts: Mapping[str, str]
    stored: Mapping[str, tuple[str, tuple[int, ...]]]
    handle: Any
    size: int

    def read(self, name: str) -> np.ndarray[Any, Any]:
        """One array, which is in memory from now on."""
        array: np.ndarray[Any, Any] = self.handle.get_tensor(name)
        return array


def write(path: str | os.PathLike[str], texts: Mapping[str, str], arrays: Mapping[str, Any]) -> None:
    """Write texts and arrays into one file: at any moment it is what it was before, or all of this."""
    target = _target(path)
    metadata = {**{f"mercer.{name}": text for name, text in texts.items()}, "mercer.digest": _NO_DIGEST}
    with asked_for(target) as temporary:
        save_arrays(temporary, arrays, metadata)
        with temporary.open("r+b") as file:
            place, digest = _place_and_digest(file)
            file.seek(place)
            file.write(digest.encode())


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Content]:
    """The content of a file, if it is one that :func:`write` made and no byte of it has changed since."""
    from safetensors import SafetensorError, safe_open

    source = Path(path)
    before = _checked_bytes(source)
    try:
        handle = safe_open(source, framework="np")
    except SafetensorError:
        damaged("it is no safetensors file")
    with handle:
        texts = {name.removeprefix("mercer."): text for name, text in (handle.metadata() or {}).items()}
        parts = {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118  it is no dict
        stored = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
        if _identity(source) != before:
            damaged("it was changed while it was read: load it again")
        yield Content(texts, stored, handle, before[2])


def _checked_bytes(source: Path) -> tuple[int, int, int, int]:
    """Check the format and the digest of a file; return what tells it from another of the same name."""
    if not source.exists():
        raise FileNotFoundError(f"There is no file {source}.")
    if not source.is_file():
        damaged("it is no file")
    with source.open("rb") as file:
        identity = _identity(file.fileno())
        _check_format(file)
        place, digest = _place_and_digest(file)
        file.seek(place)
        if file.read(_DIGITS) != digest.encode():
            damaged("it is damaged: its digest is not that of its bytes")
    return identity


def _check_format(file: BinaryIO) -> None:
    found = re.findall(rb'"mercer\.format":"(\d{1,9})"', _head(file))
    if len(found) != 1:
        damaged("it is no model file")
    version = int(found[0])
    if version > FORMAT:
        damaged(f"it has format {version}, and this version of Mercer reads up to {FORMAT}: update Mercer to load it")
    if version < 1:
        damaged("it has no format that ever was")


def _head(file: BinaryIO) -> bytes:
    """The JSON of safetensors."""
    file.seek(0)
    count = int.from_bytes(file.read(_LENGTH), "little")
    left = os.fstat(file.fileno()).st_size - _LENGTH
    if left < 2:
        damaged("it is no model file")
    if count > left:
        damaged("it is cut off, or no model file")
    if count > 2 * MOST_TEXT:
        damaged("its header is larger than that of any model")
    return file.read(count)


def _place_and_digest(file: BinaryIO) -> tuple[int, str]:
    """Where the digest of a file stands, and what it must be: that of all bytes, with zeros in its place."""
    head = _head(file)
    found = list(_DIGEST.finditer(head))
    if len(found) != 1:
        damaged("it has not one digest")
    place = _LENGTH + found[0].start(1)
    whole = hashlib.blake2b(digest_size=_DIGITS // 2)
    file.seek(0)
    whole.update(file.read(place) + _NO_DIGEST.encode())
    file.seek(place + _DIGITS)
    while chunk := file.read(_CHUNK):
        whole.update(chunk)
    return place, whole.hexdigest()


def _identity(source: Path | int) -> tuple[int, int, int, int]:
    found = os.stat(source)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _target(path: str | os.PathLike[str]) -> Path:
    """The file that is to be written, links followed."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder of {str(path)!r} does not exist: create it first.")
    if target.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file in it.")
    if target.exists() and not target.is_file():
        raise OSError(f"{str(path)!r} is no file that can be replaced: name another.")
    return target


__all__ = ["FORMAT", "MOST_TEXT", "Content", "ModelFileError", "opened", "write"]
