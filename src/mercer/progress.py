"""What a person sees of a long run: the log, warnings, a bar for one long product, and how long phases took."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

_log = logging.getLogger("mercer")
_WIDTH = 30
_LOG_EVERY = 0.1
_PASSED = ("mercer", "sklearn", "functools")  # packages whose lines are not the user's


def make_visible() -> None:
    """Send the log to standard error where nobody has set up logging."""
    if not _log.hasHandlers():
        _log.addHandler(logging.StreamHandler())
        _log.setLevel(logging.INFO)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the package, itself or through scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@final
class TimeLeft:
    """The seconds left of a run, if the rest goes on as what was done since the first fraction that was told.

    A run that was taken up from a journal begins in its middle, and what an earlier process did says nothing of the
    pace of this one. The clock is the monotonic one: no change of the time of day moves it, and where the system lets
    it, it stands still while the machine sleeps.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first: tuple[float, float] | None = None
        self._last = 0.0

    def seconds(self, fraction: float) -> float:
        """Given the fraction done; infinite where nothing is."""
        now = time.monotonic()
        if fraction < self._last:  # it begins anew
            self._began, self._first = now, None
        self._last = fraction
        since, done = (self._began, 0.0) if self._first is None else self._first
        if self._first is None:
            self._first = now, fraction
        elif fraction <= done:
            since, done = self._began, 0.0
        return (now - since) / (fraction - done) * (1 - fraction) if fraction > done else float("inf")


@contextmanager
def progress_bar(description: str, *, shown: bool = True) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the fraction done: a bar on a terminal, or lines of the log."""
    time_left = TimeLeft()
    logged = 0.0

    def show(fraction: float) -> None:
        nonlocal logged
        if not shown:
            return
        left = time_left.seconds(fraction)
        if sys.stderr.isatty():
            bar = ("█" * round(_WIDTH * fraction)).ljust(_WIDTH, "·")
            sys.stderr.write(f"\r{description} {bar} {fraction:4.0%}, {left:.0f} s left ")
            sys.stderr.flush()
        elif fraction >= logged + _LOG_EVERY:
            logged = fraction
            _log.info("%s: %.0f %%, %.0f s left", description, 100 * fraction, left)

    try:
        yield show
    finally:
        if shown and sys.stderr.isatty():
            sys.stderr.write("\n")


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
        self._since = self._began = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def begin(self, name: str, *, shown: bool = True) -> str:
        """End the phase under way and begin another, logged unless it is not to be; returns the one that ended.

        The record of the log has the name as its ``phase``, for those who show phases in another way.
        """
        now, ended = time.perf_counter(), self._name
        self.seconds[ended] = self.seconds.get(ended, 0.0) + now - self._since
        self._name, self._since = name, now
        if shown and self._shown:
            _log.info("%s …, after %.1f s", name, now - self._began, extra={"phase": name})
        return ended
