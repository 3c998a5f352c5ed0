"""The file of a journal: safetensors with JSON and a digest of all of it, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mercer.whole_files import written_whole

FORMAT = 1
_MOST_TEXT = 2**26  # bytes of JSON


class JournalError(ValueError):
    """A journal cannot be used: it is damaged, or of another run."""


def write(target: Path, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write what JSON can hold, and contiguous arrays."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > _MOST_TEXT:
        raise OSError("its text is larger than a journal may have")
    metadata = {
        "mercer.journal": str(FORMAT),
        "content": text,
        "digest": _digest(text, arrays),
    }
    with written_whole(target) as temporary:
        save_arrays(temporary, arrays, metadata)


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]) -> None:
    """Write a file of safetensors, whose complaints about the disk become those of the system."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(dict(arrays), path, metadata=dict(metadata))
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from None


def read(source: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The content and the arrays, if it is what :func:`write` made and no byte of it has changed since."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(source, framework="np") as file:
            metadata = file.metadata() or {}
            if "mercer.journal" not in metadata:
                raise JournalError(f"{source} is no journal of a run: name another file.")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dict
    except PermissionError:
        raise JournalError(f"The journal {source} may not be read: allow it, or name another file.") from None
    except (SafetensorError, OSError):
        raise JournalError(f"{source} is no journal of a run, or one that is cut off: name another file.") from None
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
