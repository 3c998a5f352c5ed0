"""Runs and their journal: which is that of the run under way, and what a fit or a function tells it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mercer.backends import get_config
from mercer.journal.identity import Identity
from mercer.journal.journal import Entry, Journal

P = ParamSpec("P")
T = TypeVar("T")

_current: ContextVar[Journal | None] = ContextVar("mercer_journal", default=None)


@contextmanager
def journalled() -> Iterator[Journal | None]:
    """A journal for what runs in the block, where the configuration asks for one; a block within another shares its."""
    config, outer = get_config(), _current.get()
    if config.checkpoint is None or outer is not None:
        yield outer
        return
    journal = Journal(Path(config.checkpoint), config.checkpoint_every)
    token = _current.set(journal)
    try:
        yield journal
    except BaseException:
        journal.close()
        raise
    else:
        journal.close(finished=True)
    finally:
        _current.reset(token)


@contextmanager
def without_journal() -> Iterator[None]:
    """A block whose runs have no journal, whatever the configuration says."""
    journal = Journal(Path(), None)
    journal.close()
    journal.identify(Identity("nothing", "", "", ""), opened=False)
    token = _current.set(journal)
    try:
        yield
    finally:
        _current.reset(token)


def identify(what: str, parameters: Mapping[str, Any], *data: Any) -> None:
    """Tell the journal of this run, if there is one, what the run is."""
    journal = _current.get()
    if journal is not None and not journal.is_identified:
        journal.identify(Identity.of(what, parameters, *data))


def resumable(function: Callable[P, T]) -> Callable[P, T]:
    """The same function as a run with a journal of its own; what can be passed by place is its data."""
    signature = inspect.signature(function)
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    by_place = [each.name for each in signature.parameters.values() if each.kind in kinds]

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with journalled() as journal:
            if journal is not None:
                given = signature.bind(*args, **kwargs)
                given.apply_defaults()
                data = [given.arguments.pop(name) for name in by_place]
                identify(function.__name__, given.arguments, *data)
            return function(*args, **kwargs)

    return wrapped


def adopted(generator: np.random.Generator) -> np.random.Generator:
    """A generator that goes on where the journal says, if there is one."""
    journal = _current.get()
    return generator if journal is None else journal.adopt(generator)


@contextmanager
def entry(name: str, **roots: Any) -> Iterator[Entry]:
    """An entry of the journal of this run; one that holds nothing and keeps nothing where there is no journal."""
    journal = _current.get()
    if journal is None:
        yield Entry()
        return
    with journal.entry(name, roots) as found:
        yield found


def remembered(name: str, compute: Callable[[], T], **roots: Any) -> T:
    """The result of a computation, from the journal of this run where that has it."""
    with entry(name, **roots) as kept:
        if kept.result is not None:
            return kept.result[0]
        result = compute()
        kept.finish((result,))
        return result
