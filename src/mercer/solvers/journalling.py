"""What a journal holds of a phase of a run: the state of its method, its history, and the columns that were counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mercer.journal import Entry
from mercer.problems.problem import Problem
from mercer.solvers.solution import Iteration, Solution, Status

if TYPE_CHECKING:
    from mercer.solvers.run import Method

_BROKEN_OFF = (Status.INTERRUPTED, Status.STOPPED)


def progress_of(kept: Entry, history: list[Iteration], method: Method[Any, Any]) -> dict[str, Any]:
    """What a phase under way has changed, beside its own attributes."""
    return {
        "method": dict(vars(method)),
        "history": list(history),
        "columns": [each.n_columns for each in _counting(kept)],
    }


def tell(kept: Entry, solution: Solution[Any], history: list[Iteration], method: Method[Any, Any]) -> None:
    """Let the journal keep the result of a phase, and all that is read of its method later on."""
    if solution.status in _BROKEN_OFF:
        kept.end()
        return
    progress = progress_of(kept, history, method)
    progress["method"] = {name: progress["method"][name] for name in method.asked_afterwards}
    kept.finish({"solution": solution, **progress})


def take_up(told: Mapping[str, Any], history: list[Iteration], method: Method[Any, Any], kept: Entry) -> None:
    """Put history, method and counts where they were."""
    history[:] = told["history"]
    vars(method).update(told["method"])
    for problem, columns in zip(_counting(kept), told["columns"], strict=True):
        problem.n_columns = columns


def taken_up(told: Mapping[str, Any], history: list[Iteration], method: Method[Any, Any], kept: Entry) -> Solution[Any]:
    """The result of a phase that is finished, as :func:`tell` told it."""
    take_up(told, history, method, kept)
    solution: Solution[Any] = told["solution"]
    return solution


def _counting(kept: Entry) -> list[Problem]:
    """The problems of a phase that count columns themselves."""
    if kept.anchors is None:
        return []
    found = kept.anchors.of(Problem)
    return [each for each in found if not isinstance(getattr(type(each), "n_columns", None), property)]
