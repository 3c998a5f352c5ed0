"""From a programme to a measure: which solver, how many nodes, and what is done with them afterwards."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, copied, like
from mercer.backends.ordering import appended, as_indices, lexicographic_order, places
from mercer.problems import Discrepancy, SparseMeasure, TraceProblem
from mercer.problems.discrepancy import CAPS
from mercer.quadrature.request import Choice, is_its_own_best
from mercer.solvers.measure.active_set import solve_exactly, solve_on
from mercer.solvers.measure.elimination import Elimination, EliminationSequence
from mercer.solvers.measure.kinks import Kinks, PathEnd
from mercer.solvers.measure.merging import MergeSequence, Merging
from mercer.solvers.measure.pursuit import Pursuit
from mercer.solvers.measure.regularisation_path import PathLimits, follow
from mercer.solvers.measure.swapping import Swapping
from mercer.solvers.measure.vertex_exchange import Rule, exchange
from mercer.solvers.run import Goal, Limits, Run
from mercer.solvers.solution import Iteration, Solution, Status

_TOO_MANY = 1.6  # times what is wanted: the penalty is raised again
_LEAST_ALPHA = 1e-10  # of α₀
_BISECTIONS = 4
_NOTHING_LEFT = 1e-8  # of D(0), for D + α dᵀv: more nodes would tell noise apart
_ROUGH = 1e-2  # tolerance of solutions from which nodes will be taken out: a finer one costs time and gains nothing
_FACTOR_SHARE = 0.25  # of the memory limit, that the factor of the nodes may take
_SWEEPS = 1  # twice: measured, further ones gain a tenth of D at most and take as long again
_MORE = 1.0  # times what is wanted, that pursuit finds beyond it, and no more than so many
_MOST_MORE = 100
_DIGITS = 8  # of weights that are compared: the others are rounding
_RULES: dict[str, Rule] = {"exchange": "block", "exchange-second-order": "second-order", "exchange-plain": "plain"}
_CUT = (Status.STOPPED, Status.INTERRUPTED)
_log = logging.getLogger("mercer")


@dataclass(frozen=True)
class Selection:
    """A measure, how it was found, and what was done with it.

    ``gradient`` is that of the measure, where it is known; ``settled`` says that the weights solve the programme of
    :meth:`Choice.level_of` on the nodes.
    """

    nodes: Array
    values: Array
    status: Status = Status.CONVERGED
    gradient: Array | None = None
    kinks: Kinks | None = None
    reduction: MergeSequence | EliminationSequence | None = None
    settled: bool = False
    history: tuple[Iteration, ...] = ()

    @classmethod
    def of(cls, found: Solution[SparseMeasure], kinks: Kinks | None = None) -> Selection:
        """What a solver found."""
        return cls(found.point.nodes, found.point.values, found.status, found.point.gradient, kinks)

    def on(self, nodes: Array, values: Array, **changes: Any) -> Selection:
        """Another measure, without the nodes that have no weight."""
        kept = values > 0
        return replace(self, nodes=nodes[kept], values=values[kept], gradient=None, **changes)


def select(problem: Discrepancy, choice: Choice, start: Array | None = None) -> Selection:
    """Solve the programme, then merge or eliminate nodes, then settle the weights.

    ``start`` are the nodes of a pursuit that was made already. Nodes of the whole sample, where as many are asked for
    as there are points, are all kept.
    """
    search = _Search(problem, choice, start)
    selection = search.solved()
    if choice.reduction is not None:
        selection = search.reduced(selection)
    if choice.reweight and not selection.settled:
        selection = selection.on(selection.nodes, solve_on(problem.regularised(0.0), selection.nodes))
    return replace(selection, history=tuple(search.run.history))


def settled(problem: Discrepancy, choice: Choice, selection: Selection) -> Selection:
    """The same nodes with the weights that another arithmetic gives them, where weights follow from the nodes."""
    if not choice.reweight and choice.reduction != "eliminate":
        return selection
    return selection.on(selection.nodes, solve_on(choice.level_of(problem), selection.nodes))


def largest_active_set() -> int:
    """The number of nodes beyond which the factor of an active set, as it grows, exceeds its share of the limit."""
    return int(math.sqrt(_FACTOR_SHARE * get_config().memory_bytes / 16))


def beyond(wanted: int) -> int:
    """The nodes from which some are taken out, where the best of so many are wanted."""
    return wanted + min(math.ceil(_MORE * wanted), _MOST_MORE)


class _Search:
    """One problem, one choice, and the run that all solvers on the way to the measure share."""

    def __init__(self, problem: Discrepancy, choice: Choice, start: Array | None = None) -> None:
        self._problem, self._choice, self._start = problem, choice, start
        callbacks = () if choice.callback is None else (choice.callback,)
        self.run: Run[Any] = Run(Goal(0.0), callbacks=callbacks, shown=choice.shown)
        self._lines_before = 0  # the search for a penalty

    @property
    def _level(self) -> TraceProblem:
        """The programme asked for."""
        return self._problem.at(alpha=self._choice.alpha, kappa=self._choice.kappa)

    def solved(self) -> Selection:
        """The solution of the programme, by the solver asked for."""
        problem, choice = self._problem, self._choice
        if choice.solver == "path":
            return self._by_path()
        if choice.alone:
            return self._pursued() if self._may_pursue else Selection.of(self._enough_nodes())
        if choice.kappa is not None and choice.kappa >= problem.total and is_its_own_best(problem):
            return Selection(places(problem.size, problem.weights), copied(problem.weights))
        return Selection.of(self._by_exchange() if choice.solver in _RULES else self._exact(None))

    def _exact(self, start: Any) -> Solution[SparseMeasure]:
        """The active set; where its factor would not fit the memory, the exchange method takes over for ϰ."""
        choice, most = self._choice, largest_active_set()
        found = solve_exactly(
            self._level, start, gap_tol=choice.tol, max_nodes=most, max_passes=choice.max_iter, run=self.run
        )
        if found.status is not Status.SLOW:
            return found
        if choice.kappa is None:
            raise MemoryError(
                f"The solution at alpha={choice.alpha:.6g} has more than {most} nodes, whose factor exceeds the memory "
                "limit: raise alpha, raise memory_limit with mercer.config_context, or ask for a trace_fraction."
            )
        return self._exchanged("block", found.point)

    def _exchanged(self, rule: Rule, start: SparseMeasure | None) -> Solution[SparseMeasure]:
        choice = self._choice
        return exchange(self._level, start, rule=rule, tol=choice.tol, max_iter=choice.max_iter, run=self.run)

    def _by_exchange(self) -> Solution[SparseMeasure]:
        """Exchanges by the rule that was asked for, then the exact solution where its factor fits."""
        found = self._exchanged(_RULES[self._choice.solver], None)
        if found.status in _CUT or found.point.nodes.shape[0] > largest_active_set():
            return found
        return solve_exactly(self._level, found.point, gap_tol=self._choice.tol, run=self.run)

    def _by_path(self) -> Selection:
        """Follow the path as far as needed; the last stretch, or what precision denies it, is solved exactly."""
        problem, choice = self._problem, self._choice
        wanted = choice.nodes_wanted if choice.alone else None
        limits = PathLimits(choice.alpha or 0.0, choice.kappa or np.inf, wanted, choice.max_iter)
        found = follow(problem, limits, run=replace(self.run, shown=False))  # a line a kink would flood the log
        kinks = found.point
        if wanted is not None and kinks.end is PathEnd.NO_ROOM:
            return Selection.of(self._enough_nodes(), kinks)
        if kinks.end.lost_precision or kinks.end is PathEnd.NO_ROOM:
            _log.warning("%s It had reached ϰ = %.9g.", kinks.end.value, kinks.kappas[-1])
        nodes = appended(*kinks.sets_after(max(len(kinks.alphas) - 2, 0)))
        cut = (*_CUT, Status.MAX_ITER)
        if wanted is not None or found.status in cut:
            values = solve_on(problem.regularised(float(kinks.alphas[-2:].mean())), nodes)
            status = found.status if found.status in cut else Status.CONVERGED
            return Selection(nodes[values > 0], values[values > 0], status, kinks=kinks)
        values = solve_on(self._level, nodes)
        return Selection.of(self._exact((nodes[values > 0], values[values > 0])), kinks)

    @property
    def _may_pursue(self) -> bool:
        """Whether nodes are looked for one by one: where weights have caps they depend on one another too much."""
        choice = self._choice
        return choice.solver == "auto" and choice.reduction == "eliminate" and CAPS not in self._problem.needs

    def _pursued(self) -> Selection:
        """Somewhat more nodes than wanted, each where it does most beside those before it.

        Where rounding leaves fewer than are wanted, or gives fewer of them weight, the penalised programme finds more.
        """
        problem, wanted = self._problem, self._choice.n_nodes
        assert wanted is not None
        limits = Limits(max_iter=self._choice.max_iter or problem.size)
        if self._start is None:
            found = self.run.phase(problem, Pursuit(min(beyond(wanted), problem.size)), None, limits)
        else:
            found = Solution(self._start, Status.CONVERGED)
        nodes = found.point
        if self._choice.shown:
            _log.info("pursuit: %d nodes where %d are wanted", nodes.shape[0], wanted)
        values = solve_on(problem.regularised(0.0), nodes)
        if found.status is Status.CONVERGED and int((values > 0).sum()) < min(wanted, problem.size):
            return Selection.of(self._enough_nodes())
        return Selection(nodes, values, found.status).on(nodes, values, settled=True)

    def _enough_nodes(self) -> Solution[SparseMeasure]:
        """A solution of the regularised programme with about so many nodes, found by lowering α from α₀.

        Each solution starts from the last. Where even a tiny α does not give as many nodes, the kernel does not need
        them: the solution with the most is returned.
        """
        problem, choice, wanted = self._problem, self._choice, self._choice.nodes_wanted
        empty = SparseMeasure(as_indices([], problem.distortion), problem.distortion[:0], -problem.distortion)
        few, many = Solution(empty, Status.CONVERGED), None
        high, alpha, bisections = problem.largest_alpha, 0.5 * problem.largest_alpha, 0
        self._lines_before = len(self.run.history)
        while alpha > _LEAST_ALPHA * problem.largest_alpha and bisections <= _BISECTIONS:
            found = self._solved_roughly(alpha, few.point)
            count = int(found.point.nodes.shape[0])
            if choice.shown:
                _log.info("alpha %.6g: %d nodes where %d are wanted", alpha, count, wanted)
            if found.status in _CUT or self._passes_left == 0:
                return found if found.status in _CUT else found.ended(Status.MAX_ITER)
            if count >= wanted:
                many, low = found, alpha
                if count <= _TOO_MANY * wanted:
                    break
            else:
                few, high = found, alpha
                nothing_left = found.history[-1].objective <= _NOTHING_LEFT * problem.constant
                if nothing_left and count >= (choice.n_nodes or 1):
                    break
            if many is None:
                alpha /= 2
            else:
                alpha, bisections = math.sqrt(high * low), bisections + 1
        return few if many is None else many

    @property
    def _passes_left(self) -> int | None:
        """What is left of the passes over the sample, of which every line of the history tells one."""
        most = self._choice.max_iter
        return None if most is None else max(0, most + self._lines_before - len(self.run.history))

    def _solved_roughly(self, alpha: float, start: SparseMeasure) -> Solution[SparseMeasure]:
        level = self._problem.regularised(alpha)
        return solve_exactly(level, start, tol=_ROUGH, max_passes=self._passes_left, run=self.run)

    def reduced(self, selection: Selection) -> Selection:
        """Fewer nodes: by elimination and swaps with optimal weights, or by the paper's merging."""
        choice, least = self._choice, self._choice.n_nodes or 1
        if selection.status in _CUT:
            self.run = replace(self.run, callbacks=())  # who asked to stop is not asked again
        if selection.nodes.shape[0] <= least and choice.max_increase is None:
            return self._without_steps(selection) if choice.explicit else selection
        if choice.reduction == "eliminate":
            return self._eliminated(selection, least)
        assert choice.reduction is not None
        method = Merging(choice.reduction, least, choice.max_increase)
        start = (selection.nodes, selection.values, selection.gradient)
        found = self.run.phase(self._problem, method, start, Limits(max_iter=self._problem.size))
        return _after(selection, found).on(*found.point.at(), reduction=found.point)

    def _without_steps(self, selection: Selection) -> Selection:
        """The measure as it is, and a sequence in which nothing was taken out."""
        problem, nodes, none = self._problem, selection.nodes, as_indices([], selection.nodes)
        value = problem.value(nodes, selection.values, selection.gradient)
        values = like(np.array([value]), problem.distortion)
        if self._choice.reduction == "eliminate":
            return replace(selection, reduction=EliminationSequence(nodes, none, values))
        penalty = problem.penalty[nodes]
        sequence = MergeSequence(nodes, selection.values, penalty, none, none, values, exhausted=False)
        return replace(selection, reduction=sequence)

    def _eliminated(self, selection: Selection, least: int) -> Selection:
        """Elimination, then swaps where nothing but the number of nodes was asked for, then the weights."""
        problem, choice = self._problem, self._choice
        increase, level = choice.max_increase if choice.alone else None, choice.level_of(problem)
        method = Elimination(least, increase, alpha=level.alpha or 0.0, kappa=level.kappa, weighted=selection.settled)
        found = self.run.phase(problem, method, selection.nodes, Limits(max_iter=problem.size))
        selection = replace(_after(selection, found), reduction=found.point)
        if choice.alone:
            return self._swapped(selection, found.point, more=found.status not in _CUT)
        if choice.max_increase is None:
            return self._stage(selection, found.point, int(found.point.removed.shape[0]))
        return self._last_below(selection, found.point)

    def _swapped(self, selection: Selection, sequence: EliminationSequence, *, more: bool) -> Selection:
        """The nodes left after swaps, unless their best non-negative weights turn out worse than without."""
        problem, nodes = self._problem, sequence.left(int(sequence.removed.shape[0]))

        def on(chosen: Array, status: Status) -> Selection:
            return selection.on(chosen, solve_on(problem.regularised(0.0), chosen), settled=True, status=status)

        if not more:
            return on(nodes, selection.status)
        found = self.run.phase(problem, Swapping(), nodes, Limits(max_iter=_SWEEPS))
        status = _after(selection, found).status
        if bool((found.point == nodes).all()):
            return on(nodes, status)
        after = on(found.point, status)
        if _explained(problem, after) > problem.constant - float(sequence.values[-1]):
            return after  # better than the nodes before even with weights of any sign
        before = on(nodes, status)
        return before if _explained(problem, after) <= _explained(problem, before) else after

    def _stage(self, selection: Selection, sequence: EliminationSequence, stage: int) -> Selection:
        """The measure of the programme on the nodes left at a stage."""
        nodes = sequence.left(stage)
        return selection.on(nodes, solve_on(self._level, nodes))

    def _last_below(self, selection: Selection, sequence: EliminationSequence) -> Selection:
        """The last stage at which D of the programme is below a ceiling: it grows with every node that goes."""
        problem, increase = self._problem, self._choice.max_increase
        assert increase is not None
        ceiling = (1 + increase) * problem.value(selection.nodes, selection.values, selection.gradient)
        best, below, above = None, 0, int(sequence.removed.shape[0]) + 1
        while above - below > 1:
            middle = (below + above) // 2
            stage = self._stage(selection, sequence, middle)
            if problem.value(stage.nodes, stage.values) <= ceiling:
                best, below = stage, middle
            else:
                above = middle
        return best or self._stage(selection, sequence, 0)


def _after(selection: Selection, found: Solution[Any]) -> Selection:
    """The selection, cut short where the phase was that came after its solver."""
    return replace(selection, status=found.status) if found.status in _CUT else selection


def _explained(problem: Discrepancy, measure: Selection) -> float:
    """What D(0) exceeds D by: m² kernel evaluations, where D with all its digits takes N·m."""
    nodes, values = measure.nodes, measure.values
    return float(values @ (problem.distortion[nodes] - 0.5 * (problem.block(nodes, nodes) @ values)))


def heaviest_first(weights: Array, points: Array | None) -> Array:
    """The order of falling weights, by coordinates where they agree: the same whatever the order of the rows.

    Points without coordinates stay in the order of the rows where their weights agree.
    """
    rounded = like(np.array([_rounded(float(weight)) for weight in weights]), weights)
    keys = () if points is None else tuple(points.T)[::-1]
    return lexicographic_order((*keys, -rounded))


def _rounded(weight: float) -> float:
    """A positive number to eight digits."""
    return round(weight, _DIGITS - 1 - math.floor(math.log10(weight)))
