"""How long each phase of a fit took."""

from __future__ import annotations

import time
from typing import final

from mercer.embedding.log import log_phase


@final
class Phases:
    """The seconds of every phase, one of which is under way at a time.

    Parameters
    ----------
    first : str
        What begins now.
    shown : bool, default=False
        Whether a phase that begins is logged.

    Attributes
    ----------
    seconds : dict of str to float
        What the phases that ended took, in the order in which they first ended.
    """

    def __init__(self, first: str, *, shown: bool = False) -> None:
        self._name, self._shown = first, shown
        self._since = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def begin(self, name: str, *, shown: bool = True) -> str:
        """End the phase under way and begin another, logged unless it is not to be; returns the one that ended."""
        now, ended = time.perf_counter(), self._name
        self.seconds[ended] = self.seconds.get(ended, 0.0) + now - self._since
        self._name, self._since = name, now
        if shown and self._shown:
            log_phase(name)
        return ended
