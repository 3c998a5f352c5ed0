"""How far a run is: on a terminal a bar with the phase, the certified gap and the time left, in a pipe plain lines.

All of it goes to standard error, and nothing of it is seen with ``--quiet``.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from mercer.progress import TimeLeft
from mercer.solvers import Iteration
from mercer.wording import time_in_words

_SECONDS_BETWEEN = 2.0  # lines in a pipe
_WIDE = 160  # columns of a terminal that take a bar, what is fitted, and all that is known of it, in a line
_NEARLY = 0.99  # done, where a small residual is still to be proved


class Meter(Protocol):
    """Where progress is shown."""

    def show(self, fraction: float | None = None, words: str = "", phase: str | None = None) -> None:
        """Say how much is done, None where nobody knows, with a few words, and what is under way."""

    def say(self, sentence: str) -> None:
        """Say something that stays."""


@contextmanager
def meter(description: str, *, shown: bool = True) -> Iterator[Meter]:
    """A bar where a person watches a terminal, lines elsewhere, nothing where it is not to be shown."""
    console = Console(stderr=True)
    if not shown:
        yield _Nothing()
    elif console.is_terminal:
        with _bar(console) as progress:
            yield _Bar(progress, description)
    else:
        yield _Lines(description)


@contextmanager
def residual_bar(description: str, target: float, *, shown: bool = True) -> Iterator[Callable[[Iteration], None]]:
    """Show how many decades of the residual are done, and what is proved; yields a callback for the solver."""
    with meter(description, shown=shown) as on, _phases_of_the_log(on), _answered_interrupt(on):
        yield _Decades(on, target)


@contextmanager
def clock(description: str, *, expected: float | None = None, shown: bool = True) -> Iterator[None]:
    """Show what is under way and for how long, beside the seconds that it is expected to take, if that is known."""
    ended = threading.Event()
    with meter(description, shown=shown) as on, _phases_of_the_log(on):
        watch = threading.Thread(target=_tick, args=(on, expected, ended), daemon=True)
        if expected is not None:
            watch.start()
        try:
            yield
        finally:
            ended.set()


def _tick(on: Meter, expected: float | None, ended: threading.Event) -> None:
    """Say every few seconds how many have passed."""
    began, usual = time.monotonic(), "" if expected is None else f" of about {expected:.0f} s"
    while not ended.wait(_SECONDS_BETWEEN):
        spent = time.monotonic() - began
        fraction = min(spent / expected, _NEARLY) if expected else None
        on.show(fraction, f"{spent:.0f}{usual}")


@contextmanager
def fraction_bar(description: str, *, shown: bool = True) -> Iterator[Callable[[float], None]]:
    """Show the fraction done; yields a function that takes it."""
    with meter(description, shown=shown) as on:
        yield lambda fraction: on.show(fraction)


@final
class _Decades:
    """A callback that makes a fraction of the lines of a solver: of the decades that its residual or gap must fall."""

    def __init__(self, on: Meter, target: float) -> None:
        self._on, self._target = on, target
        self._most, self._level = 0.0, 0

    def __call__(self, line: Iteration) -> None:
        left = line.row_residual if line.row_residual is not None else line.relative_gap
        if line.number == 0:  # another level begins
            self._most, self._level = 0.0, self._level + 1
        if left is not None:
            decades = -math.log10(min(1.0, max(left, self._target)))
            self._most = max(self._most, min(decades / -math.log10(self._target), _NEARLY))
        level = f"level {self._level}" if self._level > 1 else ""
        residual = "" if line.row_residual is None else f"residual {line.row_residual:.0e}"
        gap = (
            ""
            if line.relative_gap is None
            else f"{'certified gap' if line.phase == 'climb' else 'gap'} {line.relative_gap:.0e}"
        )
        self._on.show(self._most, ", ".join(filter(None, (level, f"step {line.number}", residual, gap))))


@final
class _Nothing:
    def show(self, fraction: float | None = None, words: str = "", phase: str | None = None) -> None:
        pass

    def say(self, sentence: str) -> None:
        pass


def _bar(console: Console) -> Progress:
    """The bar; on a narrow terminal the phase without it, and words that go on below rather than be cut."""
    words = TextColumn("{task.fields[words]}", table_column=Column(no_wrap=False))
    room: tuple[ProgressColumn, ...] = (BarColumn(bar_width=20), words, TimeElapsedColumn())
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *(room if console.width >= _WIDE else (words,)))
    return Progress(*columns, TextColumn("{task.fields[left]}"), console=console, transient=True)


@final
class _Bar:
    """A bar of rich."""

    def __init__(self, progress: Progress, description: str) -> None:
        self._progress, self._description = progress, description
        self._task = progress.add_task(description, total=None, words="", left="")
        self._left = _TimeLeft()

    def show(self, fraction: float | None = None, words: str = "", phase: str | None = None) -> None:
        changes: dict[str, Any] = {"left": self._left.words(fraction)}
        if words:
            changes["words"] = words
        if phase:
            wide = self._progress.console.width >= _WIDE
            changes["description"] = f"{self._description}: {phase}" if wide else phase
        if fraction is not None:
            changes |= {"completed": fraction, "total": 1.0}
        self._progress.update(self._task, **changes)

    def say(self, sentence: str) -> None:
        self._progress.console.print(sentence)


@final
class _Lines:
    """Lines of text, the first at once and others every few seconds."""

    def __init__(self, description: str) -> None:
        self._description, self._phase = description, ""
        self._last = time.monotonic()
        self._left = _TimeLeft()
        click.echo(f"{description} …", err=True)

    def show(self, fraction: float | None = None, words: str = "", phase: str | None = None) -> None:
        left, now = self._left.words(fraction), time.monotonic()
        self._phase = phase or self._phase
        if now - self._last < _SECONDS_BETWEEN:
            return
        self._last = now
        done = "" if fraction is None else f"{fraction:.0%}"
        said = ", ".join(filter(None, (self._phase, done, words, left)))
        click.echo(f"{self._description}: {said}", err=True)

    def say(self, sentence: str) -> None:
        click.echo(sentence, err=True)


@final
class _TimeLeft:
    """The time left, if the rest goes on as what is done did."""

    def __init__(self) -> None:
        self._left = TimeLeft()

    def words(self, fraction: float | None) -> str:
        if fraction is None:
            return ""
        seconds = self._left.seconds(fraction)
        if not 0.05 <= fraction < 1:
            return ""
        return f"about {time_in_words(round(seconds))} left"


@contextmanager
def _answered_interrupt(on: Meter) -> Iterator[None]:
    """Say on Ctrl-C what happens now: what was found so far is still proved, which may take long; another ends that."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        with suppress(RuntimeError):  # in the middle of another line
            on.say("Interrupted: what was found so far is still proved; Ctrl-C again leaves at once.")
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _phases_of_the_log(on: Meter) -> Iterator[None]:
    """Show the phases that the records of a fit's log name, where its progress is shown."""
    log, handler = logging.getLogger("mercer"), _PhaseHandler(on)
    before, passes = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = passes


@final
class _PhaseHandler(logging.Handler):
    """Takes the names of phases out of the log; its other lines come through callbacks."""

    def __init__(self, on: Meter) -> None:
        super().__init__()
        self._on = on

    def emit(self, record: logging.LogRecord) -> None:
        phase = getattr(record, "phase", None)
        if phase is not None:
            self._on.show(phase=phase)
