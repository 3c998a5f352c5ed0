"""Whether a file is still the one that was opened, and what is wrong where it cannot be read."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple, final

_COST = 20.0  # times what a look at a folder takes, before the next


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

    def require_same(self, *, at_last: bool = False) -> None:
        """Refuse to read on in a file that has become another one; ``at_last`` is for those that cost more."""
        if FileState.of(self.path) != self:
            raise _changed(self.path)


@final
class FolderState:
    """How many files a folder holds, their sizes, and the time of the last change among them.

    Parameters
    ----------
    path : Path
        The folder, which may hold as many files as an array has chunks: it is looked at now and then.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._since, self._cost = path, -float("inf"), 0.0
        self._seen = self._look()

    def require_same(self, *, at_last: bool = False) -> None:
        """Refuse to read on in a folder that has changed, as far as is known; ``at_last`` it is looked at for sure."""
        if (at_last or time.monotonic() - self._since >= _COST * self._cost) and self._look() != self._seen:
            raise _changed(self._path)

    def _look(self) -> tuple[int, int, int]:
        began = time.monotonic()
        if not self._path.is_dir():
            raise FileNotFoundError(f"{self._path} is no longer there: its rows cannot be read.")
        count, size, changed = 0, 0, 0
        for folder, _, names in os.walk(self._path):
            for name in names:
                try:
                    found = os.stat(os.path.join(folder, name))
                except FileNotFoundError:
                    raise _changed(self._path) from None
                count, size, changed = count + 1, size + found.st_size, max(changed, found.st_mtime_ns)
        self._since = time.monotonic()
        self._cost = self._since - began
        return count, size, changed


def _changed(path: Path) -> ValueError:
    return ValueError(f"{path} was changed after it was opened: open it again, and fit again.")


def unreadable(path: Path, error: Exception) -> ValueError:
    """What is said of a file that could be opened, and then not read."""
    return ValueError(f"{path} cannot be read to its end, it is damaged or cut off ({one_line(error)}).")


def one_line(error: Exception) -> str:
    """The first line of what a library says."""
    return (str(error).strip() or type(error).__name__).split("\n")[0].rstrip(" .,")
