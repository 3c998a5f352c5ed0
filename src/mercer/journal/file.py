"""The file of a journal: safetensors with JSON and a digest of all of it, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1
_MOST_TEXT = 2**26  # bytes of JSON


class JournalError(ValueError):
    """A journal cannot be used: it is damaged, or of another run."""


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Yield the name of a file that takes the place of the target when the block ends, for good and at once.

    Where the block fails nothing is changed. A file that a killed process left half written is none of the target's,
    and goes when the same process number or a later writer meets it.
    """
    temporary = target.parent / f".{target.name}-{os.getpid()}-{secrets.token_hex(4)}.part"
    try:
        temporary.open("xb").close()
        mode = stat.S_IMODE((target if target.exists() else temporary).stat().st_mode)
        yield temporary
        os.chmod(temporary, mode)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def sweep(target: Path) -> None:
    """Delete what writers of this file left half written and do not live any more."""
    for left in target.parent.glob(f".{target.name}-*.part"):
        number = left.name.removeprefix(f".{target.name}-").partition("-")[0]
        if number.isdigit() and int(number) != os.getpid() and not _lives(int(number)):
            left.unlink(missing_ok=True)


def write(target: Path, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write what JSON can hold, and contiguous arrays."""
    from safetensors.numpy import save_file

    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > _MOST_TEXT:
        raise OSError("its text is larger than a journal may have")
    metadata = {
        "mercer.journal": str(FORMAT),
        "content": text,
        "digest": _digest(text, arrays),
    }
    with written_whole(target) as temporary:
        save_file(dict(arrays), temporary, metadata=metadata)


def read(source: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The content and the arrays, if it is what :func:`write` made and no byte of it has changed since."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(source, framework="np") as file:
            metadata = file.metadata() or {}
            if "mercer.journal" not in metadata:
                raise JournalError(f"{source} is no journal of a run: delete it, or name another file.")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dict
    except PermissionError:
        raise JournalError(f"The journal {source} may not be read: allow it, or name another file.") from None
    except (SafetensorError, OSError):
        raise JournalError(
            f"{source} is no journal of a run, or is cut off: delete it, or name another file."
        ) from None
    if metadata["mercer.journal"] != str(FORMAT):
        raise JournalError(
            f"The journal {source} is of another version of Mercer: delete it, name another file, or go on with that "
            "version."
        )
    text = metadata.get("content", "")
    if metadata.get("digest") != _digest(text, arrays):
        raise JournalError(f"The journal {source} is damaged: delete it, or name another file.")
    content: dict[str, Any] = json.loads(text)
    return content, arrays


def _digest(text: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> str:
    whole = hashlib.blake2b(text.encode(), digest_size=32)
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(f"{name} {array.dtype.str} {array.shape}".encode())
        whole.update(array.reshape(-1).view(np.uint8).data)
    return whole.hexdigest()


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power failure, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
