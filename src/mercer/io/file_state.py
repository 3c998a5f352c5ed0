"""Whether a file is still the one that was opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    """Size and time of the last change of a file."""

    path: Path
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """As it is now."""
        try:
            found = path.stat()
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} is no longer there: its rows cannot be read.") from None
        return cls(path, found.st_size, found.st_mtime_ns)

    def require_same(self) -> None:
        """Refuse to read on in a file that has become another one."""
        if FileState.of(self.path) != self:
            raise ValueError(f"{self.path} was changed after it was opened: open it again, and fit again.")


class FolderState(NamedTuple):
    """How many files a folder holds, all folders inside it too, their size and the time of the last change."""

    path: Path
    files: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FolderState:
        """As it is now. Cost: a call of the system for every file."""
        found = [os.stat(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
        changed = max((each.st_mtime_ns for each in found), default=0)
        return cls(path, len(found), sum(each.st_size for each in found), changed)

    def require_same(self) -> None:
        """Refuse to go on where a file was changed, added or taken away."""
        if FolderState.of(self.path) != self:
            raise ValueError(f"{self.path} was changed after it was opened: open it again, and fit again.")
