"""The journal of one run: what is finished and the state of what is under way, in a file written from time to time.

A fit is a programme that does the same whenever it is given the same. So it is taken up by running it again: what the
journal calls finished is read from it instead of being done, what was under way goes on from its state, and the
random numbers are put where they were. Nothing that an estimator does between two entries need be written.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np

from mercer.backends import get_config
from mercer.journal.anchors import Anchors
from mercer.journal.decoding import DamagedStateError, Decoder, set_state
from mercer.journal.encoding import Encoder, UnkeptStateError
from mercer.journal.file import JournalError, read, write
from mercer.journal.identity import Identity
from mercer.progress import warn_user
from mercer.whole_files import sweep

_log = logging.getLogger("mercer")
_FIRST, _PART, _MOST = 1.0, 0.25, 60.0  # seconds; a part of those spent; and no more seconds than the last
_COST = 20.0  # times what a writing takes, at least, before the next
_COPY_COST, _COPIED_BYTES = 50.0, 2**26  # the same for a copy in memory, and how large it may be


class JournalWarning(UserWarning):
    """A journal could not be written, or could not hold a state."""


class Entry:
    """One step of a run that may take long: what the journal holds of it.

    Attributes
    ----------
    result : object
        Of a step that is finished; None where it is not.
    state : object
        Of a step under way when the journal was last written; None where there is none.
    anchors : Anchors or None
        What its states refer to.
    is_written : bool
        Whether there is a journal.
    """

    is_written = False
    result: Any = None
    state: Any = None
    anchors: Anchors | None = None

    def offer(self, state: Callable[[], Any]) -> None:
        """Let the journal write the state of the step, if it is time."""

    def finish(self, result: Any) -> None:
        """Tell the result."""

    def end(self) -> None:
        """Tell that the step was broken off: nothing that follows belongs to the run."""


@final
class JournalEntry(Entry):
    """An entry of a journal that is written."""

    is_written = True

    def __init__(self, journal: Journal, name: str, anchors: Anchors) -> None:
        self._journal, self._name, self.anchors = journal, name, anchors
        self.result, self.state = journal.found(name, "result", anchors), None
        if self.result is None:
            self.state = journal.found(name, "state", anchors)

    def offer(self, state: Callable[[], Any]) -> None:
        if self._journal.is_due:
            self._journal.keep(self._name, "state", state(), self.anchors)
            self._journal.flush()
        elif self._journal.may_copy:
            self._journal.copy(self._name, state(), self.anchors)

    def finish(self, result: Any) -> None:
        self._journal.keep(self._name, "result", result, self.anchors)
        if self._journal.is_due:
            self._journal.flush()

    def end(self) -> None:
        self._journal.close()


@final
class Journal:
    """The journal of a run, in the file or folder that the configuration names.

    Parameters
    ----------
    place : path
        A file, or a folder in which each run has a file of its own.
    every : float or None
        Seconds between two writings; None lets them grow to a minute, and keeps their cost to a twentieth.
    """

    def __init__(self, place: Path, every: float | None) -> None:
        self._place, self._every = place, every
        self._path: Path | None = None
        self._identity: Identity | None = None
        self._parts: dict[str, tuple[Any, dict[str, np.ndarray[Any, Any]]]] = {}  # as written, by entry and kind
        self._counts: Counter[str] = Counter()
        self._generators: list[np.random.Generator] = []
        self._seeds: list[Any] = []
        self._cluster: Any = None
        self._division: int | None = None  # of rows on a cluster, by which sums are rounded
        self._began = self._last = time.monotonic()
        self._cost, self._copied, self._copying = 0.0, self._began, 0.0
        self._open = self._busy = self._written = self._changed = self._warned = False

    @property
    def is_identified(self) -> bool:
        """Whether it is known which run this is."""
        return self._identity is not None

    @property
    def path(self) -> Path | None:
        """The file, once it is known which run this is."""
        return self._path

    def identify(self, identity: Identity, *, opened: bool = True) -> None:
        """Say what the run is, before its first entry; a run within another is a part of that."""
        if self._identity is not None:
            return
        self._identity = identity
        if not opened:
            return
        self._path = self._place
        if self._place.is_dir():
            self._path = self._place / f"{identity.what}-{identity.digits}.journal"
        elif not self._place.resolve().parent.is_dir():
            raise FileNotFoundError(f"The folder of checkpoint={str(self._place)!r} does not exist: create it first.")
        sweep(self._path)
        if self._path.exists():
            self._read(self._path, identity)
        self._open = True
        self._cluster = get_config().cluster
        if self._cluster is not None:
            self._division = self._division or self._cluster.divided_for
            self._cluster.divide_for(self._division)

    def adopt(self, generator: np.random.Generator) -> np.random.Generator:
        """A generator of the run, which begins as it did when the run was first begun."""
        if not self._open or self._busy:
            return generator
        number = len(self._generators)
        if number < len(self._seeds):
            set_state(generator, _plain_state(self._seeds[number]))
        else:
            self._seeds.append(_plain_state(generator.bit_generator.state))
        self._generators.append(generator)
        return generator

    @contextmanager
    def entry(self, name: str, roots: Mapping[str, Any]) -> Iterator[Entry]:
        """An entry for a step; steps within it are parts of it, and have none of their own."""
        if not self._open or self._busy:
            yield Entry()
            return
        self._counts[name] += 1
        self._busy = True
        try:
            yield JournalEntry(self, f"{name} {self._counts[name]}", Anchors(roots))
        finally:
            self._busy = False

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        now = time.monotonic()
        if self._every is not None:
            return self._open and now - self._last >= self._every
        wait = min(_MOST, _FIRST + _PART * (now - self._began))
        return self._open and now - self._last >= max(wait, _COST * self._cost)

    @property
    def may_copy(self) -> bool:
        """Whether a copy of the state for Ctrl-C costs next to nothing: a fiftieth of the time, and little memory."""
        return self._open and time.monotonic() - self._copied >= _COPY_COST * self._copying

    def copy(self, name: str, state: Any, anchors: Anchors | None) -> None:
        """Remember the state of an entry, to be written if the run is interrupted."""
        began = time.monotonic()
        self.keep(name, "state", state, anchors, most=_COPIED_BYTES)
        self._copied = time.monotonic()
        self._copying = self._copied - began

    def keep(self, name: str, kind: str, value: Any, anchors: Anchors | None, most: int | None = None) -> None:
        """Remember the result or the state of an entry, and where the random numbers are.

        Given how many bytes there may be at most, the arrays of a state are copied, or the state is forgotten.
        """
        if not self._open or anchors is None:
            return
        encoder = Encoder(anchors)
        generators = [*self._generators, *anchors.of(np.random.Generator)]
        try:
            root = encoder.value(
                (value, anchors.so_far(), [_plain_state(each.bit_generator.state) for each in generators])
            )
        except UnkeptStateError as error:
            self._warn(f"{error} The run goes on, but from here on could not be taken up again.")
            self._open = False
            return
        arrays = encoder.arrays
        self._parts.pop(f"{name}/state", None)
        if most is not None and sum(array.nbytes for array in arrays.values()) > most:
            return
        if kind == "result" or most is not None:
            arrays = {each: np.array(array) for each, array in arrays.items()}
        self._changed = True
        self._parts[f"{name}/{kind}"] = ({"root": root, "objects": encoder.objects}, arrays)

    def found(self, name: str, kind: str, anchors: Anchors) -> Any:
        """The result or the state of an entry, as the file has it; random numbers go on from there."""
        if f"{name}/{kind}" not in self._parts:
            return None
        written, arrays = self._parts[f"{name}/{kind}"]
        try:
            decoder = Decoder(written["objects"], arrays.__getitem__, anchors)
            value, so_far, states = decoder.value(written["root"])
            anchors.go_on_from(so_far)
            generators = [*self._generators, *anchors.of(np.random.Generator)]
            if len(generators) != len(states):
                raise DamagedStateError("The run has other generators of random numbers.")
            for generator, state in zip(generators, states, strict=True):
                set_state(generator, state)
        except (DamagedStateError, KeyError, TypeError, ValueError) as error:
            raise JournalError(
                f"The journal {self._path} is damaged, or of another version of Mercer: delete it, or name another "
                "file."
            ) from error
        return value

    def flush(self) -> None:
        """Write all that is remembered; warn, once, where the disk does not take it."""
        if not self._open or self._path is None or self._identity is None:
            return
        began = time.monotonic()
        parts = {name: written for name, (written, _) in self._parts.items()}
        content = {"identity": list(self._identity), "seeds": self._seeds, "parts": parts, "division": self._division}
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        for name, (_, own) in self._parts.items():
            arrays |= {f"{name}/{each}": array for each, array in own.items()}
        try:
            write(self._path, content, arrays)
            self._written, self._changed = True, False
        except OSError as error:
            self._warn(
                f"The journal {self._path} cannot be written ({error.strerror or error}): the run goes on, but could "
                "not be taken up again. Free some space, or name a checkpoint that may be written."
            )
        self._last = time.monotonic()
        self._cost = self._last - began
        for name in [name for name in self._parts if name.endswith("/state")]:
            del self._parts[name]  # whose arrays the solver goes on to change

    def close(self, *, finished: bool = False) -> None:
        """End the journal: a run that is finished is written once more if it was written at all."""
        if finished and self._open and self._written:
            self.flush()
        if self._open and not finished and self._changed and time.monotonic() - self._began > _FIRST:
            self.flush()
        if self._open and not finished and self._written:
            _log.info("The same call goes on from the journal %s.", self._path)
        self._open = False
        if self._cluster is not None:
            self._cluster.divide_for(None)

    def _read(self, path: Path, identity: Identity) -> None:
        content, arrays = read(path)
        try:
            difference = identity.difference(Identity(*(str(part) for part in content["identity"])))
            seeds, parts, division = list(content["seeds"]), dict(content["parts"]), content.get("division")
        except (KeyError, TypeError, ValueError):
            raise JournalError(f"The journal {path} is damaged: delete it, or name another file.") from None
        if difference is not None:
            raise JournalError(f"The journal {path} is of {difference}: delete it, or name another file.")
        self._seeds, self._division, self._written = seeds, division, True
        for name, written in parts.items():
            own = {each.removeprefix(f"{name}/"): arrays[each] for each in arrays if each.startswith(f"{name}/")}
            self._parts[name] = (written, own)
        _log.info("Going on from the journal %s.", path)

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            warn_user(message, JournalWarning)


def _plain_state(state: Any) -> Any:
    """The state of a generator as JSON can hold it."""
    if isinstance(state, Mapping):
        return {str(key): _plain_state(each) for key, each in state.items()}
    return state.tolist() if isinstance(state, (np.ndarray, np.generic)) else state
