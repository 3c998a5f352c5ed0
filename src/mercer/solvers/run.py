"""The one driver: iteration, budgets, Ctrl-C, history, callbacks, progress and the certificate. Methods supply steps.

A method moves a point and reports where it is; the driver decides whether to go on. It ends when two things hold at
once: the residual is below its tolerance, and the gap is proved. One alone does not do: a small gap can hide an error
in the rows of a point, and a point with residual zero may be a saddle. The residual is free, so it is asked first; a
certificate is computed when it passes. A method whose steps prove a gap themselves reports it, and is taken at its
word only for stopping: the certificate is always recomputed from the point.

A solve may have several phases, each with a method of its own: they share a :class:`Run`, so that steps, seconds and
columns are counted on, and callbacks see one history.
"""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from mercer.journal import Entry, entry
from mercer.problems.problem import Problem, ProductBudgetError
from mercer.solvers.journalling import of_kind, progress_of, take_up, taken_up, tell
from mercer.solvers.solution import Iteration, Point, Proof, Solution, Status

Callback = Callable[[Iteration], Any]
Certify = Callable[[Point], Proof]  # how far a point can be from the optimum, proved from the problem alone
AnyProblem = TypeVar("AnyProblem", bound=Problem, contravariant=True)

_ASK_AGAIN = 0.25  # after a certificate that failed, the residual must fall below this part of its value first
_TRAPPED = 100.0  # near an optimum a proved gap is of the order of the residual, or of its square; at a saddle it stays
_STATIONARY = 1e-5
_OWN_STATE = ("_number", "_seconds", "_first", "_ask_below", "_best", "_most_merit", "_proof")  # of a phase
_log = logging.getLogger("mercer")


@dataclass(frozen=True, eq=False)
class Report(Generic[Point]):
    """Where a method has got to.

    Attributes
    ----------
    point : object
        What a run would return if it ended here.
    objective : float
        Its value.
    gap : float or None
        How far it can be from the optimum, where the step itself tells.
    residual : float or None
        How far the point is from a fixed point of the method; None where the gap alone decides.
    size : int
        Columns of a factor, nodes of a measure.
    merit : float
        Of all points the one with most is returned, the later of two that differ by no more than ``noise``.
    noise : float
        What rounding does to the merit.
    certificate : Certificate or None
        Of the point, where the method proves its points itself.
    steps : int or None
        Taken since the last report; None means none for the first report and one for any other.
    status : Status or None
        Why the method cannot go on, if that is so.
    """

    point: Point
    objective: float
    gap: float | None = None
    residual: float | None = None
    size: int = 0
    merit: float = 0.0
    noise: float = 0.0
    certificate: Any = None
    steps: int | None = None
    status: Status | None = None


class Method(ABC, Generic[AnyProblem, Point]):
    """A rule that turns a point into a better one.

    Attributes
    ----------
    name : str
        As a person knows it, for messages.
    phase : str
        What the lines of the history say that the solver is at.
    handles : frozenset of str
        Which of the needs that a problem states (:attr:`mercer.problems.problem.Problem.needs`) it can meet.
    asked_afterwards : tuple of str
        Attributes that are read when its phase is over: a journal keeps them with the result.
    """

    name: ClassVar[str]
    phase: ClassVar[str] = "climb"
    handles: ClassVar[frozenset[str]] = frozenset()
    asked_afterwards: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def start(self, problem: AnyProblem, point: Any) -> Report[Point]:
        """Report the first point, given where to start; None where the method knows best."""

    @abstractmethod
    def step(self, problem: AnyProblem, most: int) -> Report[Point] | None:
        """Take one step, or up to ``most`` of them where single ones are too small to report; None where none moves."""

    def require_fit(self, problem: AnyProblem) -> None:
        """Refuse a problem that needs what the method cannot do, before any work is done."""
        refuse_misfit(problem, self.name, self.handles)


def refuse_misfit(problem: Problem, name: str, handles: frozenset[str]) -> None:
    """Refuse a problem that needs more than a method of this name handles."""
    missing = problem.needs - handles
    if missing:
        raise ValueError(
            f"The method {name!r} cannot solve this problem, which has {' and '.join(sorted(missing))}: choose another "
            "solver."
        )


@dataclass(frozen=True)
class Goal:
    """Where a run ends.

    Attributes
    ----------
    tol : float
        The proved gap, relative to the objective.
    absolute : float
        A gap that is no larger than this will do as well.
    residual_tol : float
        The residual, for methods that report one.
    max_iter : int
        Steps at most.
    max_products : int or None
        Columns of the problem's operator at most, counted from the first the problem ever saw; those of certificates
        that are asked for on the way count too.
    """

    tol: float
    absolute: float = 0.0
    residual_tol: float = math.inf
    max_iter: int = 1000
    max_products: int | None = None

    def is_met(self, gap: float, objective: float) -> bool:
        """Whether a gap is small enough."""
        return gap <= max(self.absolute, self.tol * abs(objective))


@dataclass(frozen=True)
class Limits:
    """What ends one phase of a run before its goal is met.

    Attributes
    ----------
    max_iter : int or None
        Steps of this phase at most; what is left of the run's if None.
    max_columns : int or None
        Columns that the problem has seen, after which the status is ``CRAWLING``.
    is_slow : callable or None
        Given the residuals of this phase so far, says whether the method falls behind: the status is then ``SLOW``.
    """

    max_iter: int | None = None
    max_columns: int | None = None
    is_slow: Callable[[Sequence[float]], bool] | None = None


NO_LIMITS = Limits()  # the run's goal alone ends the phase


@dataclass
class Run(Generic[Point]):
    """What the phases of one solve share.

    Attributes
    ----------
    goal : Goal
        Where to end.
    certify : callable or None
        Proves the gap of a point. Without it the residual, or the gap that a method reports, decides alone.
    callbacks : tuple of callables
        Each receives every :class:`Iteration`; one that returns True ends the run.
    save : callable or None
        Given the best point so far and the history after every report: the place to keep it.
    shown : bool
        Whether the lines of the history go to the logger ``mercer``.
    history : list of Iteration
        The lines so far.
    columns_before : int
        Columns of an earlier run that this one goes on from.
    """

    goal: Goal
    certify: Certify[Point] | None = None
    callbacks: tuple[Callback, ...] = ()
    save: Callable[[Point, Sequence[Iteration]], Any] | None = None
    shown: bool = False
    history: list[Iteration] = field(default_factory=list)
    columns_before: int = 0

    def after(self, history: Sequence[Iteration]) -> Run[Point]:
        """The same after an earlier run: steps, seconds and columns are counted on from its history."""
        return replace(self, history=list(history), columns_before=history[-1].n_columns if history else 0)

    @property
    def steps_left(self) -> int:
        """What is left of the steps allowed."""
        return max(0, self.goal.max_iter - (self.history[-1].number if self.history else 0))

    def phase(
        self,
        problem: Any,
        method: Method[Any, Point],
        point: Any = None,
        limits: Limits = NO_LIMITS,
    ) -> Solution[Point]:
        """Run one method from a point until the goal is met or a limit reached.

        Returns
        -------
        Solution
            The point that met the goal; else the best one. On Ctrl-C too, with the status ``INTERRUPTED``.
        """
        method.require_fit(problem)
        phase = _Phase(self, problem, method, limits)
        with entry("phase", problem=problem, point=point, method=method, certify=self.certify) as kept:
            if kept.result is not None:
                return taken_up(kept.result, self.history, method)
            solution = phase.solved(point, kept)
            tell(kept, solution, self.history, method)
            return solution


class _Phase(Generic[Point]):
    """One method at work: its best point, and when it ends."""

    def __init__(self, run: Run[Point], problem: Any, method: Method[Any, Point], limits: Limits) -> None:
        self._run, self._problem, self._method, self._limits = run, problem, method, limits
        self._began = time.perf_counter()
        self._number, self._seconds = (run.history[-1].number, run.history[-1].seconds) if run.history else (0, 0.0)
        self._first = len(run.history)
        self._ask_below = math.inf
        self._best: Report[Point] | None = None
        self._most_merit = -math.inf
        self._proof: tuple[Report[Point], Proof] | None = None

    def solved(self, point: Any, kept: Entry) -> Solution[Point]:
        """Run until done, within the budget of products, from where the journal has it or from a point."""
        goal = self._run.goal
        allowed = [most for most in (self._limits.max_columns, goal.max_products) if most is not None]
        most = min(allowed, default=None)
        try:
            with self._problem.within(most):
                status = self._until_done(point, kept)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except ProductBudgetError:
            status = Status.MAX_PRODUCTS if most == goal.max_products else Status.CRAWLING
        return self._solution(status, point)

    def _until_done(self, point: Any, kept: Entry) -> Status:
        left = self._run.steps_left if self._limits.max_iter is None else self._limits.max_iter
        report: Report[Point] | None
        if kept.state is None:
            report, taken = self._method.start(self._problem, point), 0
        else:
            left = self._restored(kept)
            report, taken = self._method.step(self._problem, left), 1
        while report is not None:
            taken = taken if report.steps is None else report.steps
            left, self._number = left - taken, self._number + taken
            status = self._judged(report)
            if status is not None:
                return status
            if left <= 0:
                return Status.MAX_ITER
            kept.offer(partial(self._state, left))
            report = self._method.step(self._problem, left)
            taken = 1
        return Status.STALLED

    def _state(self, left: int) -> dict[str, Any]:
        """All that the next step depends on, and what has been said so far."""
        own = {name: getattr(self, name) for name in _OWN_STATE}
        own["_seconds"] += time.perf_counter() - self._began
        return {"left": left, "phase": own, **progress_of(self._run.history, self._method)}

    def _restored(self, kept: Entry) -> int:
        """Go on from what :meth:`_state` told; the steps that are left."""
        own = of_kind(kept.state, "phase", dict)
        vars(self).update({name: of_kind(own, name, object) for name in _OWN_STATE})
        take_up(kept.state, self._run.history, self._method)
        left: int = of_kind(kept.state, "left", int)
        return left

    def _judged(self, report: Report[Point]) -> Status | None:
        """Write the report down, ask for a proof where one is due, and say why to end here, if at all."""
        proof = self._asked(report)
        self._keep(report)
        if self._written(report, report.gap if proof is None else proof.gap_beyond_rounding * abs(report.objective)):
            return Status.STOPPED
        if self._is_met(report, proof):
            self._best = report
            return Status.CONVERGED
        if proof is not None and self._is_trapped(report, proof):
            self._best = report
            return Status.TRAPPED
        return Status.SLOW if self._is_slow() else report.status

    def _asked(self, report: Report[Point]) -> Proof | None:
        """A certificate, where the residual has passed its tolerance and fallen by a good part since the last one."""
        residual, certify = report.residual, self._run.certify
        if residual is None or certify is None or report.gap is not None:
            return None
        if residual > self._run.goal.residual_tol or residual >= self._ask_below:
            return None
        self._ask_below = _ASK_AGAIN * residual
        self._proof = report, certify(report.point)
        return self._proof[1]

    def _is_met(self, report: Report[Point], proof: Proof | None) -> bool:
        goal = self._run.goal
        if report.residual is not None and report.residual > goal.residual_tol:
            return False
        if report.gap is not None:
            return goal.is_met(report.gap, report.objective)
        if proof is not None:
            return proof.gap_beyond_rounding <= goal.tol
        return report.residual is not None and self._run.certify is None

    def _is_trapped(self, report: Report[Point], proof: Proof) -> bool:
        assert report.residual is not None
        return report.residual <= _STATIONARY and proof.gap_beyond_rounding > _TRAPPED * report.residual

    def _is_slow(self) -> bool:
        if self._limits.is_slow is None:
            return False
        residuals = [line.row_residual for line in self._run.history[self._first :]]
        return self._limits.is_slow([residual for residual in residuals if residual is not None])

    def _keep(self, report: Report[Point]) -> None:
        if self._best is None or report.merit >= self._most_merit - report.noise:
            self._best = report
            self._most_merit = max(report.merit, self._most_merit)

    def _written(self, report: Report[Point], gap: float | None) -> bool:
        run = self._run
        assert self._best is not None
        line = Iteration(
            number=self._number,
            objective=report.objective,
            seconds=self._seconds + time.perf_counter() - self._began,
            gap=gap,
            row_residual=report.residual,
            n_columns=run.columns_before + self._problem.n_columns,
            size=report.size,
            phase=self._method.phase,
        )
        run.history.append(line)
        if run.save is not None:
            run.save(self._best.point, run.history)
        if run.shown:
            _log.info("%s", line)
        answers = [callback(line) for callback in run.callbacks]  # all of them are told
        return any(answers)

    def _solution(self, status: Status, point: Any) -> Solution[Point]:
        if self._best is None:  # nothing was reported yet: the first point is the best so far, whatever the budget
            self._best = self._method.start(self._problem, point)
            self._written(self._best, self._best.gap)
        return Solution(self._best.point, status, tuple(self._run.history), self._certificate(self._best))

    def _certificate(self, best: Report[Point]) -> Any:
        """That of the best point: made on the way, by the method itself, or here where the method claims a gap."""
        if self._proof is not None and self._proof[0] is best:
            return self._proof[1]
        if best.certificate is None and best.gap is not None and self._run.certify is not None:
            return self._run.certify(best.point)
        return best.certificate


def solve(problem: Any, method: Method[Any, Point], point: Any = None, *, goal: Goal, **shared: Any) -> Solution[Point]:
    """Solve a problem by one method alone; the other arguments are those of :class:`Run`."""
    return Run(goal, **shared).phase(problem, method, point)
