"""A file that keeps the best iterate of a fit while it runs, so that Ctrl-C loses nothing."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import final

from mercer.cli.saying import beside


@final
class KeptIterate:
    """Where the best iterate is kept: where the person said, or in a temporary folder until it is needed.

    Parameters
    ----------
    given : path or None
        The file that was asked for.
    data : path
        The file of the data, after which the other is named.
    """

    def __init__(self, given: Path | None, data: Path) -> None:
        self._given, self._data = given, data
        self._folder = None if given is not None else tempfile.mkdtemp(prefix="mercer-")

    @property
    def path(self) -> Path:
        """Where the fit writes it."""
        return Path(self._folder or ".", "iterate.npz") if self._given is None else self._given

    def kept(self) -> Path | None:
        """Bring it to the current folder, if there is one; called where a fit was interrupted."""
        if self._given is not None:
            return self._given if self._given.exists() else None
        if not self.path.exists():
            return None
        target = self._free_name()
        shutil.move(self.path, target)
        return target

    def close(self) -> None:
        """Delete what is temporary."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _free_name(self) -> Path:
        number, target = 1, beside(self._data, ".checkpoint.npz")
        while target.exists():
            number += 1
            target = beside(self._data, f".checkpoint{number}.npz")
        return target
