"""Whether a file is still the one that was opened."""

from __future__ import annotations

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
