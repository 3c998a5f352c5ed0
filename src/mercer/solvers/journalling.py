"""What a journal holds of a phase of a run: the state of its method and its history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mercer.journal import Entry, JournalError
from mercer.solvers.solution import Iteration, Solution, Status

if TYPE_CHECKING:
    from mercer.solvers.run import Method

_BROKEN_OFF = (Status.INTERRUPTED, Status.STOPPED)


def progress_of(history: list[Iteration], method: Method[Any, Any]) -> dict[str, Any]:
    """What a phase under way has changed, beside its own attributes."""
    return {"method": dict(vars(method)), "history": list(history)}


def tell(kept: Entry, solution: Solution[Any], history: list[Iteration], method: Method[Any, Any]) -> None:
    """Let the journal keep the result of a phase, and all that is read of its method later on."""
    if solution.status in _BROKEN_OFF:
        kept.end()
        return
    progress = progress_of(history, method)
    progress["method"] = {name: progress["method"][name] for name in method.asked_afterwards}
    kept.finish({"solution": solution, **progress})


def take_up(told: Mapping[str, Any], history: list[Iteration], method: Method[Any, Any]) -> None:
    """Put history and method where they were."""
    state, lines = of_kind(told, "method", dict), of_kind(told, "history", list)
    if not all(isinstance(line, Iteration) for line in lines) or not all(isinstance(name, str) for name in state):
        raise _damaged()
    history[:] = lines
    vars(method).update(state)


def taken_up(told: Mapping[str, Any], history: list[Iteration], method: Method[Any, Any]) -> Solution[Any]:
    """The result of a phase that is finished, as :func:`tell` told it."""
    take_up(told, history, method)
    solution: Solution[Any] = of_kind(told, "solution", Solution)
    return solution


def of_kind(told: Any, name: str, kind: type) -> Any:
    """A part of what a journal told, refused where it is none: a file can be altered."""
    if not isinstance(told, dict) or not isinstance(told.get(name), kind) or name not in told:
        raise _damaged()
    return told[name]


def _damaged() -> JournalError:
    return JournalError("The journal of this run is damaged: delete it, or name another file.")
