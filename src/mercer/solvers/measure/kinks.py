"""A regularisation path by its kinks: what happened at each, and why the path ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from mercer.backends.arrays import Array, like
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


@dataclass(frozen=True)
class Track:
    """The path so far. The lists grow as the path goes on, so it says how much of them belongs to it."""

    rows: list[tuple[float, float, float]]  # α, ϰ and D at each kink
    events: list[tuple[int, int, int]]  # kink, point and kind
    n_rows: int
    n_events: int
    in_order: int | None
    reference: Array
    end: PathEnd | None

    def kinks(self, end: PathEnd) -> Kinks:
        """The path with its own reason to end, or with this one if it has none."""
        alphas, kappas, values = (np.array(column) for column in zip(*self.rows[: self.n_rows], strict=True))
        kinks, points, kinds = np.array(self.events[: self.n_events], dtype=np.intp).reshape(-1, 3).T
        change = (kinds == Event.ENTERS).astype(int) - (kinds == Event.LEAVES)
        n_nodes = np.cumsum(np.bincount(kinks, change, self.n_rows)).astype(int)
        return Kinks(
            alphas=like(alphas, self.reference),
            kappas=like(kappas, self.reference),
            values=like(values, self.reference),
            n_nodes=like(n_nodes, self.reference),
            event_kinks=kinks,
            event_points=points,
            event_kinds=kinds.astype(np.int8),
            end=self.end or end,
            n_in_order=self.n_rows if self.in_order is None else self.in_order,
        )
