"""From a programme to a measure: which solver, how many nodes, and what is done with them afterwards."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, copied, like
from mercer.backends.ordering import appended, as_indices, places
from mercer.problems import Discrepancy
from mercer.solvers import Status
from mercer.solvers.measure.active_set import solve_exactly, solve_on
from mercer.solvers.measure.elimination import EliminationSequence, eliminate
from mercer.solvers.measure.merging import MergeSequence, merge
from mercer.solvers.measure.regularisation_path import Kinks, Limits, PathEnd, follow
from mercer.solvers.measure.sparse_measure import ExchangeStep, SparseMeasure
from mercer.solvers.measure.swapping import improved
from mercer.solvers.measure.vertex_exchange import exchange

Reduction = Literal["eliminate", "strong", "weak"]

MORE_NODES = 2.5  # than asked for, before the others are taken out: measured, between 2 and 3 is best
_TOO_MANY = 1.6  # times what is wanted: the penalty is raised again
_LEAST_ALPHA = 1e-10  # of α₀
_BISECTIONS = 4
_NOTHING_LEFT = 1e-8  # of D(0), for D + α dᵀv: more nodes would tell noise apart
_EXCHANGE_TOL = 1e-6  # of the exchange methods, where none is given
_ROUGH = 1e-2  # tolerance of solutions from which nodes will be taken out: a finer one costs time and gains nothing
_FACTOR_SHARE = 0.25  # of the memory limit, that the factor of the nodes may take
_log = logging.getLogger("mercer")


@dataclass(frozen=True)
class Choice:
    """What the estimator was asked for, checked.

    ``alpha`` and ``kappa`` name the programme (at most one is given), ``n_nodes`` how many nodes to keep of it.
    """

    alpha: float | None
    kappa: float | None
    n_nodes: int | None
    solver: str
    reduction: Reduction | None
    max_increase: float | None
    reweight: bool
    tol: float | None
    max_iter: int | None
    callback: Any = None
    explicit: bool = False  # whether the reduction was named, so that its sequence is wanted even if it is empty

    @property
    def alone(self) -> bool:
        """Whether a number of nodes is all that was asked for."""
        return self.alpha is None and self.kappa is None


@dataclass(frozen=True)
class Selection:
    """A measure, how it was found, and what was done with it."""

    nodes: Array
    values: Array
    status: Status
    history: tuple[ExchangeStep, ...]
    kinks: Kinks | None = None
    reduction: MergeSequence | EliminationSequence | None = None


def select(problem: Discrepancy, choice: Choice) -> Selection:
    """Solve the programme, then merge or eliminate nodes, then settle the weights.

    Nodes of the whole sample, where as many are asked for as there are points, are all kept.
    """
    selection = _solved(problem, choice)
    if choice.reduction is not None:
        selection = _reduced(problem, choice, selection)
    values = solve_on(problem, selection.nodes, alpha=0.0) if choice.reweight else selection.values
    return replace(selection, nodes=selection.nodes[values > 0], values=values[values > 0])


def settled(problem: Discrepancy, choice: Choice, selection: Selection) -> Selection:
    """The same nodes with the weights that another arithmetic gives them, where weights follow from the nodes."""
    if choice.reweight:
        values = solve_on(problem, selection.nodes, alpha=0.0)
    elif choice.reduction == "eliminate":
        alpha = 0.0 if choice.alone else choice.alpha
        values = solve_on(problem, selection.nodes, alpha=alpha, kappa=choice.kappa)
    else:
        return selection
    return replace(selection, nodes=selection.nodes[values > 0], values=values[values > 0])


def _solved(problem: Discrepancy, choice: Choice) -> Selection:
    if choice.solver != "path" and choice.kappa is not None and choice.kappa >= problem.total and _is_optimal(problem):
        return Selection(places(problem.size, problem.weights), copied(problem.weights), Status.CONVERGED, ())
    if choice.solver == "path":
        return _by_path(problem, choice)
    if choice.alone:
        assert choice.n_nodes is not None
        measure = enough_nodes(problem, math.ceil(MORE_NODES * choice.n_nodes), choice)
    elif choice.solver == "auto" or choice.solver == "active-set":
        measure = _exact(problem, choice, None)
    else:
        measure = _by_exchange(problem, choice)
    return Selection(measure.nodes, measure.values, measure.status, measure.history)


def _limits(choice: Choice) -> dict[str, Any]:
    """How far the active set goes: to its exact end, unless a tolerance or a number of passes is given."""
    limits: dict[str, Any] = {} if choice.tol is None else {"gap_tol": choice.tol}
    return limits if choice.max_iter is None else {**limits, "max_passes": choice.max_iter}


def largest_active_set() -> int:
    """The number of nodes beyond which the factor of an active set, as it grows, exceeds its share of the limit."""
    return int(math.sqrt(_FACTOR_SHARE * get_config().memory_bytes / 16))


def _is_optimal(problem: Discrepancy) -> bool:
    """Whether v = ω is the solution at ϰ = dᵀω (QUAD Lemma 3.2): it is, unless caps or a ridge forbid."""
    return bool((problem.caps >= problem.weights).all()) and not bool((problem.ridge > 0).any())


def _exact(problem: Discrepancy, choice: Choice, start: tuple[Array, Array] | None) -> SparseMeasure:
    """The active set; where its factor would not fit the memory, the exchange method takes over for ϰ."""
    most = largest_active_set()
    stopped = False

    def too_large(step: ExchangeStep) -> bool:
        nonlocal stopped
        stopped = bool(choice.callback is not None and choice.callback(step))
        return stopped or step.n_nodes > most

    measure = solve_exactly(
        problem, alpha=choice.alpha, kappa=choice.kappa, start=start, callback=too_large, **_limits(choice)
    )
    if stopped or measure.status is not Status.STOPPED:
        return measure
    if choice.kappa is None:
        raise MemoryError(
            f"The solution at alpha={choice.alpha:.6g} has more than {most} nodes, whose factor exceeds the memory "
            "limit: raise alpha, raise memory_limit with mercer.config_context, or ask for a trace_fraction."
        )
    return exchange(
        problem,
        choice.kappa,
        tol=_EXCHANGE_TOL if choice.tol is None else choice.tol,
        max_iter=choice.max_iter,
        start=(measure.nodes, measure.values),
        callback=choice.callback,
    )


def _by_exchange(problem: Discrepancy, choice: Choice) -> SparseMeasure:
    """Exchanges by the rule that was asked for, then the exact solution where its factor fits."""
    if choice.kappa is None:
        raise ValueError(f"solver={choice.solver!r} solves the constrained programme: give trace_fraction, not alpha.")
    rules: dict[str, Any] = {
        "exchange": "block",
        "exchange-second-order": "second-order",
        "exchange-plain": "plain",
    }
    found = exchange(
        problem,
        choice.kappa,
        rule=rules[choice.solver],
        tol=_EXCHANGE_TOL if choice.tol is None else choice.tol,
        max_iter=choice.max_iter,
        callback=choice.callback,
    )
    fits = found.nodes.shape[0] <= largest_active_set()
    if found.status not in (Status.CONVERGED, Status.MAX_ITER, Status.STALLED) or not fits:
        return found
    start, limits = (found.nodes, found.values), _limits(replace(choice, max_iter=None))
    exact = solve_exactly(problem, kappa=choice.kappa, start=start, callback=choice.callback, **limits)
    return replace(exact, history=(*found.history, *exact.history))


def _by_path(problem: Discrepancy, choice: Choice) -> Selection:
    """Follow the path as far as needed; the last stretch, or what precision denies it, is solved exactly."""
    wanted = None
    if choice.alone:
        assert choice.n_nodes is not None
        wanted = math.ceil(MORE_NODES * choice.n_nodes)
    limits = Limits(
        alpha=choice.alpha or 0.0,
        kappa=np.inf if choice.kappa is None else choice.kappa,
        n_nodes=wanted,
        n_events=choice.max_iter,
    )
    lines: list[ExchangeStep] = []

    def note(step: ExchangeStep) -> bool:
        lines.append(step)
        return bool(choice.callback is not None and choice.callback(step))

    kinks = follow(problem, limits, callback=note)
    if wanted is not None and kinks.end is PathEnd.NO_ROOM:
        measure = enough_nodes(problem, wanted, choice)
        return Selection(measure.nodes, measure.values, measure.status, (*lines, *measure.history), kinks)
    if kinks.end.lost_precision or kinks.end is PathEnd.NO_ROOM:
        _log.warning("%s It had reached ϰ = %.9g.", kinks.end.value, kinks.kappas[-1])
    before = max(len(kinks.alphas) - 2, 0)
    nodes = appended(*kinks.sets_after(before))
    statuses = {PathEnd.INTERRUPTED: Status.INTERRUPTED, PathEnd.STOPPED: Status.STOPPED}
    status = statuses.get(kinks.end, Status.CONVERGED)
    cut_short = choice.max_iter is not None and len(kinks.alphas) >= choice.max_iter
    if wanted is not None or cut_short or status is not Status.CONVERGED:
        alpha = float(kinks.alphas[-2:].mean())
        values = solve_on(problem, nodes, alpha=alpha)
        status = Status.MAX_ITER if cut_short else status
        return Selection(nodes[values > 0], values[values > 0], status, tuple(lines), kinks)
    kappa = choice.kappa
    start_values = solve_on(problem, nodes, alpha=choice.alpha, kappa=kappa)
    start = (nodes[start_values > 0], start_values[start_values > 0])
    exact = _exact(problem, choice, start)
    return Selection(exact.nodes, exact.values, exact.status, (*lines, *exact.history), kinks)


def enough_nodes(problem: Discrepancy, wanted: int, choice: Choice) -> SparseMeasure:
    """A solution of the regularised programme with about so many nodes, found by lowering α from α₀.

    Each solution starts from the last. Where even a tiny α does not give as many nodes, the kernel does not need them:
    the solution with the most is returned.
    """
    empty = as_indices([], problem.distortion), problem.distortion[:0]
    few, many = SparseMeasure(*empty, -problem.distortion, Status.CONVERGED), None
    high, alpha, least = problem.largest_alpha, 0.5 * problem.largest_alpha, choice.n_nodes or 1
    bisections, passes = 0, 0
    while alpha > _LEAST_ALPHA * problem.largest_alpha and bisections <= _BISECTIONS:
        start = (few.nodes, few.values)
        left = {} if choice.max_iter is None else {"max_passes": choice.max_iter - passes}
        found = solve_exactly(problem, alpha=alpha, start=start, tol=_ROUGH, callback=choice.callback, **left)
        passes += len(found.history)
        _log.info("alpha %.6g: %d nodes where %d are wanted", alpha, found.nodes.shape[0], wanted)
        if found.status in (Status.INTERRUPTED, Status.STOPPED):
            return found
        if choice.max_iter is not None and passes >= choice.max_iter:
            return replace(found, status=Status.MAX_ITER)
        if found.nodes.shape[0] >= wanted:
            many, low = found, alpha
            if found.nodes.shape[0] <= _TOO_MANY * wanted:
                break
        else:
            few, high = found, alpha
            if found.history[-1].value <= _NOTHING_LEFT * problem.constant and found.nodes.shape[0] >= least:
                break
        if many is None:
            alpha /= 2
        else:
            alpha, bisections = math.sqrt(high * low), bisections + 1
    return few if many is None else many


def _reduced(problem: Discrepancy, choice: Choice, selection: Selection) -> Selection:
    """Fewer nodes: by elimination and swaps with optimal weights, or by the paper's merging."""
    least = choice.n_nodes or 1
    if selection.nodes.shape[0] <= least and choice.max_increase is None:
        return _without_steps(problem, choice, selection) if choice.explicit else selection
    if choice.reduction == "eliminate":
        return _eliminated(problem, choice, selection, least)
    assert choice.reduction is not None
    merged = merge(
        problem,
        selection.nodes,
        selection.values,
        strategy=choice.reduction,
        n_nodes=least,
        max_increase=choice.max_increase,
    )
    nodes, values = merged.at()
    return replace(selection, nodes=nodes, values=values, reduction=merged)


def _without_steps(problem: Discrepancy, choice: Choice, selection: Selection) -> Selection:
    """The measure as it is, and a sequence in which nothing was taken out."""
    nodes, none = selection.nodes, as_indices([], selection.nodes)
    values = like(np.array([problem.value(nodes, selection.values)]), problem.distortion)
    if choice.reduction == "eliminate":
        return replace(selection, reduction=EliminationSequence(nodes, none, values))
    penalty = problem.penalty[nodes]
    sequence = MergeSequence(nodes, selection.values, penalty, none, none, values, exhausted=False)
    return replace(selection, reduction=sequence)


def _eliminated(problem: Discrepancy, choice: Choice, selection: Selection, least: int) -> Selection:
    """Elimination, then swaps where nothing but the number of nodes was asked for, then the weights."""
    limit = choice.max_increase if choice.alone else None
    sequence = eliminate(problem, selection.nodes, n_nodes=least, max_increase=limit)
    stage = int(sequence.removed.shape[0])
    if choice.alone:
        nodes = improved(problem, sequence.left(stage))
        return replace(selection, nodes=nodes, values=solve_on(problem, nodes, alpha=0.0), reduction=sequence)
    if choice.max_increase is not None:
        ceiling = (1 + choice.max_increase) * problem.value(selection.nodes, selection.values)
        stage = _last_stage_below(problem, choice, sequence, ceiling)
    nodes, values = _stage(problem, choice, sequence, stage)
    return replace(selection, nodes=nodes, values=values, reduction=sequence)


def _stage(problem: Discrepancy, choice: Choice, sequence: EliminationSequence, stage: int) -> tuple[Array, Array]:
    """The measure of the programme on the nodes left at a stage."""
    nodes = sequence.left(stage)
    values = solve_on(problem, nodes, alpha=choice.alpha, kappa=choice.kappa)
    return nodes[values > 0], values[values > 0]


def _last_stage_below(problem: Discrepancy, choice: Choice, sequence: EliminationSequence, ceiling: float) -> int:
    """The last stage at which D of the programme is below a ceiling: it grows with every node that goes."""
    below, above = 0, int(sequence.removed.shape[0]) + 1
    while above - below > 1:
        middle = (below + above) // 2
        fits = problem.value(*_stage(problem, choice, sequence, middle)) <= ceiling
        below, above = (middle, above) if fits else (below, middle)
    return below
