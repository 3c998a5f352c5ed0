"""A regularisation path by its kinks: what happened at each, and why the path ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.ordering import as_indices


class PathEnd(Enum):
    """Why a path ended; the value says it to a person."""

    REQUESTED = "The path was followed as far as was asked."
    COMPLETE = "The path reached α = 0."
    SINGULAR = (
        "Precision ended the path: the next node depends on the nodes at hand to working precision, so that their "
        "weights are no longer determined."
    )
    INACCURATE = (
        "Precision ended the path: the optimality conditions no longer hold to the accuracy that finding the next kink "
        "takes."
    )
    STALLED = "Precision ended the path: events at one α did not come to an end."
    INTERRUPTED = "The path was interrupted: the kinks found so far are exact."
    NO_ROOM = (
        "Memory ended the path: the columns of more nodes than these exceed the limit. Raise memory_limit with "
        "mercer.config_context to follow it further."
    )
    STOPPED = "A callback ended the path: the kinks found so far are exact."

    @property
    def lost_precision(self) -> bool:
        """Whether rounding is the reason."""
        return self in (PathEnd.SINGULAR, PathEnd.INACCURATE, PathEnd.STALLED)


class Event(IntEnum):
    """What happens to a point at a kink."""

    ENTERS = 0
    LEAVES = 1
    REACHES_CAP = 2
    LEAVES_CAP = 3


@dataclass(frozen=True)
class Kinks:
    """The path by its kinks, α falling.

    Attributes
    ----------
    alphas, kappas, values : arrays of shape (p,)
        α, ϰ = dᵀv and D(v) (with the ridge where there is one) at each kink.
    n_nodes : array of shape (p,)
        Positive weights just below each kink.
    event_kinks, event_points, event_kinds : arrays of shape (e,)
        Which point did what (:class:`Event`) at which kink; e = p unless events coincide. A record that the host keeps:
        NumPy arrays whatever the library of the problem.
    end : PathEnd
        Why the path ended.
    n_in_order : int
        Kinks before the first event that came, by rounding, before its turn or together with another.
    """

    alphas: Array
    kappas: Array
    values: Array
    n_nodes: Array
    event_kinks: Array
    event_points: Array
    event_kinds: Array
    end: PathEnd
    n_in_order: int

    def sets_after(self, kink: int) -> tuple[Array, Array]:
        """The free nodes and the nodes at their caps just below a kink."""
        last = int(np.searchsorted(self.event_kinks, kink, side="right"))
        state: dict[int, Event] = {}
        for point, kind in zip(self.event_points[:last].tolist(), self.event_kinds[:last].tolist(), strict=True):
            state[point] = Event(kind)
        free = [i for i, kind in state.items() if kind in (Event.ENTERS, Event.LEAVES_CAP)]
        capped = [i for i, kind in state.items() if kind is Event.REACHES_CAP]
        return as_indices(sorted(free), self.alphas), as_indices(sorted(capped), self.alphas)
