"""Vertex exchange: weight moves from point to point until no move pays (QUAD 7.1).

    minimise D(v) + ½ Σ ρᵢ vᵢ²   subject to   dᵀv = ϰ, 0 ≤ v ≤ c

The loop knows the *mass* uᵢ = dᵢvᵢ of a point (ϰ times the paper's ṽᵢ) and its *price* gᵢ/dᵢ, g = A v - Sω. Masses sum
to ϰ. Moving mass σ from j to i changes the objective by σ(priceᵢ - priceⱼ) + ½σ²(Aᵢᵢ/dᵢ² + Aⱼⱼ/dⱼ² - 2Aᵢⱼ/(dᵢdⱼ)), so
weight goes from expensive points to cheap ones. (The paper's δ = e_j* - e_i* has its sign the wrong way round.)

The steps themselves are in :mod:`mercer.solvers.measure.exchange_steps`. No matrix is stored but a bounded number of
columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, copied, namespace
from mercer.backends.ordering import as_indices
from mercer.backends.threads import single_threaded_blas
from mercer.linalg.column_cache import ColumnCache
from mercer.problems import Discrepancy, SparseMeasure, TraceProblem
from mercer.problems.discrepancy import CAPS, CONSTRAINT, RIDGE
from mercer.solvers.measure.exchange_steps import BlockStep, ExchangeState, PairStep, Step, settle
from mercer.solvers.run import Goal, Limits, Method, Report, Run
from mercer.solvers.solution import Solution, Status

Rule = Literal["block", "second-order", "plain"]

_MOST_STEPS = {"block": 1_000, "second-order": 1_000_000, "plain": 1_000_000}
_TOL = 1e-6
_LONGEST_PAUSE = 1_000  # steps between two lines of the history


def exchange(
    problem: TraceProblem,
    start: SparseMeasure | tuple[Array, Array] | None = None,
    *,
    rule: Rule = "block",
    tol: float | None = None,
    max_iter: int | None = None,
    cache: ColumnCache | None = None,
    run: Run[SparseMeasure] | None = None,
) -> Solution[SparseMeasure]:
    """Minimise the discrepancy under dᵀv = ϰ by exchanges of weight between points.

    Parameters
    ----------
    problem : TraceProblem
        The constrained programme, with its caps and its ridge.
    start : SparseMeasure or (nodes, values), optional
        A first measure, for instance the solution for another ϰ: it is scaled to dᵀv = ϰ within the caps. By default
        all weight is on the points that are cheapest at v = 0.
    rule : {"block", "second-order", "plain"}
        ``"plain"`` is the paper's: from the most expensive node to the cheapest point. ``"second-order"`` takes the
        node from which the move to the cheapest point promises most, as LIBSVM does. ``"block"`` collects the nodes and
        a choice of cheap points, makes many exchanges among these, and then brings the prices of all points up to date
        at once.
    tol : float, optional
        The run ends when the Frank-Wolfe bound is at most this part of the value of v; 1e-6 if left out.
    max_iter : int, optional
        Steps at most: 1 000 by default for ``"block"``, 1 000 000 single exchanges otherwise.
    cache : ColumnCache, optional
        Columns of this problem's A, kept from an earlier run or of another size than a quarter of the memory limit.
        The matrix of a block takes at most an eighth of it besides, or 8 MB.
    run : Run, optional
        Callbacks and history that the solve shares with others; its goal is replaced by ``tol``.

    Returns
    -------
    Solution
        A measure with dᵀv = ϰ to rounding. Where the run converged or spent its steps the gradient is computed anew
        from v; else it is that of the last line of the history. ``STALLED`` where the tolerance is out of reach in
        double precision.

    Notes
    -----
    A single exchange costs 2 N operations for the gradient and N to find the points, besides columns that are not in
    the cache. A step of blocks costs N for each of the m points of its block, and m for each exchange inside it: as
    many exchanges as there are points in the sample cost as much as the update they share.

    The bound is Σ uₖ (priceₖ - price_i*)₊ with i* the cheapest point that has room under its cap. Without caps it is
    ε = (v - e_i*)ᵀg of QUAD 7.1. Before convergence is claimed it is computed again from a fresh gradient.
    """
    goal = Goal(_TOL if tol is None else tol)
    method = VertexExchange(rule, goal.tol, cache)
    shared = Run(goal) if run is None else replace(run, goal=goal)
    limits = Limits(max_iter=_MOST_STEPS[rule] if max_iter is None else max_iter)
    with single_threaded_blas():  # vectors of length N wake its threads and wait for them longer than they work
        return shared.phase(problem, method, start, limits)


class VertexExchange(Method[TraceProblem, SparseMeasure]):
    """Exchanges by one rule; single ones are too small to report each."""

    name = "vertex exchange"
    phase = "exchange"
    handles = frozenset({CAPS, RIDGE, CONSTRAINT})

    def __init__(self, rule: Rule = "block", tol: float = _TOL, cache: ColumnCache | None = None) -> None:
        if rule not in _MOST_STEPS:
            raise ValueError(f"rule={rule!r} must be one of {', '.join(map(repr, _MOST_STEPS))}.")
        self._rule, self._tol, self._cache = rule, tol, cache
        self._longest = 1 if rule == "block" else _LONGEST_PAUSE

    def start(self, problem: TraceProblem, point: Any) -> Report[SparseMeasure]:
        """The measure given, scaled, or the cheapest points at v = 0."""
        base, kappa = problem.discrepancy, problem.kappa
        assert kappa is not None
        cache = self._cache
        if cache is None:
            cache = ColumnCache(base.columns, base.size, get_config().memory_bytes // 4, reference=base.distortion)
        self._state = ExchangeState(base, kappa, cache)
        self._step: Step = PairStep(second_order=self._rule == "second-order")
        if self._rule == "block":
            self._step = BlockStep(max_bytes=cache.max_bytes // 8)
        self._number = 0
        self._state.put(_first_mass(base, kappa, point))
        self._state.refresh()
        return self._report(0)

    def step(self, problem: TraceProblem, most: int) -> Report[SparseMeasure]:
        """Some exchanges, a tenth of those made so far at most; the last of a budget ends on a fresh gradient."""
        made, wanted = 0, min(self._longest, 1 + self._number // 10, most)
        status = None
        while status is None and made < wanted and not (made and self._is_converged()):
            status = self._made()
            made += status is None
        self._number += made
        if (made == most or status is not None) and not self._state.fresh:
            self._state.refresh()
        return self._report(made, status)

    def _made(self) -> Status | None:
        """Make one step; STALLED where nothing is left to gain, on a gradient computed anew."""
        if self._step.make(self._state):
            return None
        self._state.refresh()  # drift may hide what is left to gain
        return None if self._step.make(self._state) else Status.STALLED

    def _is_converged(self) -> bool:
        """Whether the bound meets the tolerance, on a gradient that is not the sum of updates."""
        state = self._state
        if state.gap > self._tol * state.value:
            return False
        if not state.fresh:
            state.refresh()
        return state.gap <= self._tol * state.value

    def _report(self, steps: int, status: Status | None = None) -> Report[SparseMeasure]:
        state, value = self._state, self._state.exact_value()
        if not state.fresh and state.gap <= self._tol * value:  # no claim rests on a gradient that may have drifted
            state.refresh()
            value = state.value
        measure = SparseMeasure(state.nodes, state.values, copied(state.gradient))
        return Report(measure, value, state.gap, size=int(state.nodes.shape[0]), steps=steps, status=status)


def _first_mass(problem: Discrepancy, kappa: float, start: Any) -> Array:
    """The start of the user, scaled, or the cheapest points at v = 0 filled up in order."""
    gain = problem.distortion / problem.penalty
    mass = namespace(gain).zeros_like(gain)
    if start is not None:
        nodes, values = (start.nodes, start.values) if isinstance(start, SparseMeasure) else start
        nodes, values = as_indices(nodes, gain), as_double(values)
        if nodes.shape != values.shape or (values < 0).any() or not values.sum() > 0:
            raise ValueError("start must be nodes and as many values, none negative and not all zero.")
        mass[nodes] = values * problem.penalty[nodes]
        mass = settle(mass, problem.caps * problem.penalty, kappa)
        if mass.sum() >= kappa * (1 - 1e-12):
            return mass
        gain[nodes] += gain.max() + 1.0  # the caps of these nodes do not hold it all: they are filled up first
    nodes, values = problem.filled(gain, kappa)
    mass[nodes] = values * problem.penalty[nodes]
    return mass
