"""The regularisation path of the discrepancy: every solution of (3.1) as α falls from α₀ (QUAD section 6).

Between two kinks the free nodes J do not change and v_J grows by b = A_JJ⁻¹ d_J as α falls by one. The next kink is the
least fall of α at which a free weight reaches zero or its cap, or the gradient of another point reaches zero. One row
of a Cholesky factor comes or goes a kink. The papers write v_J = a - αb with a = A_JJ⁻¹ q_J (q is Sω, less what the
nodes at their caps contribute) and look for the next α; falls from the kink at hand lose no digits to that difference.

Events at the same α are taken one by one, in steps of length zero: that is principal pivoting for the linear
complementarity problem of the tie, and the least index goes first, which ends after finitely many steps (Murty).

A path is sensitive to rounding, so it is watched: A_JJ v_J = q_J - α d_J and A_JJ b = d_J are checked at every kink
from the columns themselves, and no weight and no gradient may be negative beyond rounding. Errors are mended by
refinement and by a new factor. Where that does not help the path ends, and says that precision ended it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mercer.backends import get_config
from mercer.backends.arrays import Array, copied, is_tensor, like, namespace
from mercer.backends.ordering import appended, as_indices, flatnonzero
from mercer.backends.rounding import EPS
from mercer.backends.threads import single_threaded_blas
from mercer.linalg.cholesky_update import SingularUpdateError, UpdatedCholesky
from mercer.linalg.column_cache import ColumnCache
from mercer.linalg.column_store import FreeColumns, NoRoomError
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import CAPS, RIDGE
from mercer.solvers.measure.kinks import Event, Kinks, PathEnd
from mercer.solvers.run import Goal, Limits, Method, Report, Run
from mercer.solvers.solution import Solution, Status

_TIE = 4 * EPS  # of α: kinks closer than this are one
_RESIDUAL = 1e-11  # relative, beyond which a and b are refined
_LOST = 1e-6  # relative to α: a gradient that is wrong by more ends the path
_STALLED_AFTER = 200
_CACHE_SHARE = 16  # of the memory limit, for columns of points that left; a panel of them takes as much again
_COLUMN_SHARE = 2  # of the memory limit, for the columns of the nodes


class PathLimits(NamedTuple):
    """How far to follow a path; whatever comes first."""

    alpha: float = 0.0
    kappa: float = np.inf
    n_nodes: int | None = None
    n_kinks: int | None = None


_STATUSES = {PathEnd.REQUESTED: Status.CONVERGED, PathEnd.COMPLETE: Status.CONVERGED, PathEnd.NO_ROOM: Status.SLOW}
_ENDS = {Status.INTERRUPTED: PathEnd.INTERRUPTED, Status.STOPPED: PathEnd.STOPPED}  # a budget is an end asked for


def follow(
    problem: Discrepancy,
    limits: PathLimits = PathLimits(),  # noqa: B008  (immutable)
    *,
    refactor: bool = False,
    run: Run[Any] | None = None,
) -> Solution[Kinks]:
    """Follow the path from α₀ down to the limits.

    Parameters
    ----------
    problem : Discrepancy
        The programme, with caps and ridge where it has them.
    limits : PathLimits
        The kink at or beyond a limit is the last one, so that a solution at the limit itself can be evaluated.
    refactor : bool, default=False
        Compute a new factor at every kink instead of updating: n³/3 more flops, for comparison.
    run : Run, optional
        Callbacks and history that the solve shares with others. A line of the history tells of every event, with the
        number of kinks, the objective D + αϰ, and the nodes below the kink.

    Returns
    -------
    Solution
        ``point.end`` says why the path ended in terms of the path: ``CONVERGED`` where it went as far as was asked,
        ``STALLED`` where precision ended it, ``SLOW`` where memory did.

    Notes
    -----
    Cost of a kink with n nodes: n² flops for the factor, 4 N n for the gradient, and N kernel evaluations when a point
    enters. Memory: n columns of N, within half of the memory limit; where they do not fit the path ends there.
    """
    shared = Run[Any](Goal(0.0)) if run is None else run
    most = np.iinfo(np.int64).max if limits.n_kinks is None else limits.n_kinks
    follower = PathFollower(limits, refactor)
    with single_threaded_blas():
        found = shared.phase(problem, follower, limits=Limits(max_iter=int(most)))
    return replace(found, point=follower.kinks(found.point, _ENDS.get(found.status, PathEnd.REQUESTED)))


_AT_ZERO, _FREE, _AT_CAP = 0, 1, 2
_STATE_AFTER = {
    Event.ENTERS: _FREE,
    Event.LEAVES: _AT_ZERO,
    Event.REACHES_CAP: _AT_CAP,
    Event.LEAVES_CAP: _FREE,
}


class _Segment(NamedTuple):
    """A stretch of the path below the kink at hand: where α falls by t, v_J + t b and gradient + t slope.

    ``gradient`` is A v - Sω + αd, zero on J; so is ``slope``, A b - d.
    """

    v: Array
    b: Array
    gradient: Array
    slope: Array


class _Mark(NamedTuple):
    """A place on the path: the rows and events up to it in the follower's lists, which grow as the path goes on."""

    n_rows: int
    n_events: int
    in_order: int | None
    end: PathEnd | None


class PathFollower(Method[Discrepancy, _Mark]):
    """The state of a path at a kink; a step goes to the next event."""

    name = "regularisation path"
    phase = "path"
    handles = frozenset({CAPS, RIDGE})
    asked_afterwards = ("_rows", "_events", "_target")

    def __init__(self, limits: PathLimits, refactor: bool = False) -> None:
        self._limits, self._refactor = limits, refactor

    def start(self, problem: Discrepancy, point: Any) -> Report[_Mark]:
        """The kink at α₀, where the first point enters."""
        self._problem = problem
        sample, xp = problem.distortion, namespace(problem.distortion)
        self._state = xp.zeros_like(sample, dtype=xp.int8)  # all at zero
        self._target = copied(sample)  # q: Sω less the share of the nodes at their caps
        self._factor = UpdatedCholesky(n_sides=2, reference=sample)
        limit = get_config().memory_bytes
        self._cache = ColumnCache(problem.columns, problem.size, limit // _CACHE_SHARE, reference=sample)
        self._columns = FreeColumns(problem.size, limit // _COLUMN_SHARE, reference=sample)
        self._capped = as_indices([], sample)
        self._alpha = problem.largest_alpha
        self._rows: list[tuple[float, float, float]] = []
        self._events: list[tuple[int, int, int]] = []
        self._in_order: int | None = None
        self._idle = 0
        return self._moved(self._first_event)

    def step(self, problem: Discrepancy, most: int) -> Report[_Mark]:
        """Fall to the next event, which is at another kink unless events coincide."""
        return self._moved(self._next_event)

    def _moved(self, move: Callable[[], PathEnd | None]) -> Report[_Mark]:
        """Where a move leads, and why the path ends there, if it does."""
        before = len(self._rows)
        try:
            end = move()
        except SingularUpdateError:
            end = PathEnd.SINGULAR
        except NoRoomError:
            end = PathEnd.NO_ROOM
        alpha, kappa, value = self._rows[-1]
        mark = _Mark(len(self._rows), len(self._events), self._in_order, end)
        status = None if end is None else _STATUSES.get(end, Status.STALLED)
        return Report(mark, value + alpha * kappa, size=self._n_nodes, steps=mark.n_rows - before, status=status)

    def kinks(self, mark: _Mark, end: PathEnd) -> Kinks:
        """The path up to a mark, with this reason to end if it has none of its own."""
        rows = np.array(self._rows[: mark.n_rows])
        kinks, points, kinds = np.array(self._events[: mark.n_events], dtype=np.intp).reshape(-1, 3).T
        change = (kinds == Event.ENTERS).astype(int) - (kinds == Event.LEAVES)
        n_nodes = np.cumsum(np.bincount(kinks, change, mark.n_rows)).astype(int)
        alphas, kappas, values, counts = (like(column, self._target) for column in (*rows.T.copy(), n_nodes))
        in_order = mark.n_rows if mark.in_order is None else mark.in_order
        return Kinks(alphas, kappas, values, counts, kinks, points, kinds.astype(np.int8), mark.end or end, in_order)

    def _first_event(self) -> PathEnd | None:
        problem = self._problem
        self._rows.append((self._alpha, 0.0, problem.constant))
        return self._changed(int((problem.distortion / problem.penalty).argmax()), Event.ENTERS)

    def _next_event(self) -> PathEnd | None:
        segment = self._segment()
        if segment is None:
            return PathEnd.INACCURATE
        fall, point, kind = self._next(segment)
        if fall >= self._alpha:
            self._fall(self._alpha, segment)
            return PathEnd.COMPLETE
        self._idle = self._idle + 1 if fall <= _TIE * self._alpha else 0
        if self._idle and self._in_order is None:
            self._in_order = len(self._rows)
        if self._idle > _STALLED_AFTER:
            return PathEnd.STALLED
        self._fall(fall, segment)
        return self._changed(point, kind)

    def _changed(self, point: int, kind: Event) -> PathEnd | None:
        """Let a point change its state, and say whether the path has gone as far as was asked."""
        self._apply(point, kind)
        alpha, kappa, _ = self._rows[-1]
        far = alpha <= self._limits.alpha or kappa >= self._limits.kappa
        many = self._limits.n_nodes is not None and self._n_nodes >= self._limits.n_nodes
        return PathEnd.REQUESTED if far or many else None

    @property
    def _nodes(self) -> Array:
        return self._columns.nodes

    @property
    def _n_nodes(self) -> int:
        return int(self._nodes.shape[0] + self._capped.shape[0])

    def _fall(self, fall: float, segment: _Segment) -> None:
        """Move to the end of a segment; a kink at the same α as the last one is the same kink."""
        if fall <= _TIE * self._alpha:
            return
        self._alpha -= fall
        nodes, values = self._nodes, segment.v + fall * segment.b
        if self._capped.shape[0]:
            nodes = appended(nodes, self._capped)
            values = appended(values, self._problem.caps[self._capped])
        gradient = segment.gradient + fall * segment.slope - self._alpha * self._problem.penalty
        kappa = self._problem.trace(nodes, values)
        self._rows.append((self._alpha, kappa, self._problem.value(nodes, values, gradient)))

    def _apply(self, point: int, kind: Event) -> None:
        """Let a point change its state; the factor follows."""
        if kind in (Event.LEAVES, Event.REACHES_CAP):
            place = int(flatnonzero(self._nodes == point)[0])
            self._columns.remove(place)
            self._factor.remove(place)
        if kind in (Event.REACHES_CAP, Event.LEAVES_CAP):
            released = kind is Event.LEAVES_CAP
            change = self._problem.caps[point] * self._cache.get(point)
            self._target += change if released else -change
            left = self._capped[self._capped != point]
            self._capped = left if released else appended(left, as_indices([point], left))
            self._factor.set_sides(self._sides(self._nodes))
        if kind in (Event.ENTERS, Event.LEAVES_CAP):
            column = self._cache.get(point)
            self._factor.append(column[self._nodes], column[point], self._sides(point))
            self._columns.append(point, column)
        self._state[point] = _STATE_AFTER[kind]
        self._events.append((len(self._rows) - 1, point, int(kind)))

    def _sides(self, points: Any) -> Array:
        return namespace(self._target).stack([self._target[points], self._problem.penalty[points]])

    def _segment(self) -> _Segment | None:
        """The weights and gradients below this kink; None where rounding leaves too few of their digits."""
        if self._refactor:
            self._renew()
        segment = self._solved()
        for mend in (self._refined, self._renewed, self._refined):
            if self._error(segment) <= _RESIDUAL:
                return segment
            segment = mend(segment)
        return segment if self._error(segment) <= _LOST else None

    def _solved(self) -> _Segment:
        a, b = self._factor.solve_sides()
        return self._with_gradient(a - self._alpha * b, b)

    def _with_gradient(self, v: Array, b: Array) -> _Segment:
        gradient, slope = self._columns.combine(v, b)
        gradient += self._alpha * self._problem.penalty - self._target
        slope -= self._problem.penalty
        return _Segment(v, b, gradient, slope)

    def _error(self, segment: _Segment) -> float:
        """How far gradient and slope are from zero on J, relative to α d and d."""
        nodes = self._nodes
        error = abs(segment.gradient[nodes]) / self._alpha + abs(segment.slope[nodes])
        return float((error / self._problem.penalty[nodes]).max()) if nodes.shape[0] else 0.0

    def _refined(self, segment: _Segment) -> _Segment:
        """One step of iterative refinement."""
        error = namespace(segment.v).stack([segment.gradient[self._nodes], segment.slope[self._nodes]])
        change_v, change_b = self._factor.solve(error)
        return self._with_gradient(segment.v - change_v, segment.b - change_b)

    def _renewed(self, segment: _Segment) -> _Segment:
        self._renew()
        return self._solved()

    def _renew(self) -> None:
        self._factor.refactor(self._columns.square(), self._sides(self._nodes))

    def _next(self, segment: _Segment) -> tuple[float, int, Event]:
        """The least fall of α at which something happens, to the point of least index."""
        where = self._nodes, self._state, self._problem.caps, _TIE * self._alpha
        found = _next_on_tensors(segment, *where) if is_tensor(segment.v) else _next_kink(*segment, *where)
        fall, point, kind = found
        return fall, point, Event(kind)


def _next_on_tensors(segment: _Segment, nodes: Array, state: Array, caps: Array, tie: float) -> tuple[float, int, int]:
    """As :func:`_next_kink`: of the falls that tie with the least, that of the least index."""
    v, b, gradient, slope = segment
    xp = namespace(v)
    room = caps[nodes] - v
    bound = xp.where(b < 0, v / -b, xp.where((b > 0) & xp.isfinite(room), room / b, np.inf))
    moves = ((state == _AT_ZERO) & (slope < 0)) | ((state == _AT_CAP) & (slope > 0))
    falls = xp.where(moves, gradient / -slope, np.inf)
    falls[nodes] = bound
    falls = xp.clip(falls, min=0.0)
    least = float(falls.min())
    if least == np.inf:
        return least, -1, 0
    point = int(flatnonzero(falls <= least + tie)[0])
    if int(state[point]) != _FREE:
        return float(falls[point]), point, 0 if int(state[point]) == _AT_ZERO else 3
    return float(falls[point]), point, 1 if bool(b[nodes == point] < 0) else 2


@njit(cache=True, nogil=True)
def _next_kink(
    v: Any, b: Any, gradient: Any, slope: Any, nodes: Any, state: Any, caps: Any, tie: float
) -> tuple[float, int, int]:
    """QUAD (6.3), (6.4) and their counterparts at the caps, as falls of α."""
    least, least_point, least_kind = np.inf, -1, 0
    for k in range(nodes.size + state.size):
        if k < nodes.size:
            point = nodes[k]
            if b[k] < 0:
                fall, kind = v[k] / -b[k], 1
            elif b[k] > 0 and caps[point] < np.inf:
                fall, kind = (caps[point] - v[k]) / b[k], 2
            else:
                continue
        else:
            point = k - nodes.size
            if (state[point] == 0 and slope[point] < 0) or (state[point] == 2 and slope[point] > 0):
                fall, kind = gradient[point] / -slope[point], 0 if state[point] == 0 else 3
            else:
                continue
        fall = max(fall, 0.0)
        if fall < least - tie or (fall < least + tie and point < least_point):
            least, least_point, least_kind = fall, point, kind
    return least, least_point, least_kind
