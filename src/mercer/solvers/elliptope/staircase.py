"""The solver that ``"auto"`` means: cheap products first, few columns, second order last, more rank only where needed.

1. *Stand-in.* Where a low-rank stand-in J̃ ≼ J is given, solve with it alone, from many columns: this finds the rank.
2. *Few columns.* Principal directions that carry next to nothing are dropped, so that a product costs the rank found.
3. *Lower models* (:mod:`mercer.solvers.elliptope.minorise`), one exact product a step, while each of them pays;
   without a stand-in, accelerated power steps.
4. *Second order.* Where these crawl, what keeps them is a rank that is too high: superfluous columns fade like 1/t. So
   only the dominant directions are kept, and the trust region converges there quadratically.
5. *Staircase.* A point that no longer moves but is not certified is a saddle of the next rank up: a column is added
   along the direction in which the dual slack is most negative, and the climb goes on (Boumal 2015).
6. *Where it no longer pays.* Nearly isolated points make the optimum flat, and a climb wanders there. Up to some
   thousand rows the interior-point method (:mod:`mercer.solvers.elliptope.interior_point`) then solves the programme
   whole, in a bounded number of dense steps: its dual proves the bound, its matrix shows the dimensions of the
   solution, and the trust region takes the point to the boundary. For more rows the climb goes on while the certified
   gap falls by half for every thousand columns, and ends with its best iterate otherwise. When to hand over is counted
   in columns, never in seconds, so that a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, like, namespace
from mercer.linalg.tall import first_axis
from mercer.operators import LinearMap
from mercer.problems import Elliptope, ProductBudgetError
from mercer.problems.elliptope import bytes_needed
from mercer.solvers.elliptope.boundary import extreme_rank, leading_columns, point_near
from mercer.solvers.elliptope.escape import raised
from mercer.solvers.elliptope.interior_point import STEPS, InteriorPoint, PrimalDual
from mercer.solvers.elliptope.method import ElliptopeMethod, Iterate, evaluated
from mercer.solvers.elliptope.minorise import Minorise
from mercer.solvers.elliptope.power import AcceleratedPower
from mercer.solvers.elliptope.trust_region import TrustRegion
from mercer.solvers.run import NO_LIMITS, Goal, Limits, Run, solve
from mercer.solvers.solution import Solution, Status

_ROUGH_RANK_TOL = 1e-3  # of the trace: directions below are dropped early; the staircase brings back a true one
_ROUGH_RESIDUAL, _ROUGH_STEPS = 1e-3, 300
_STAND_IN_RESIDUAL, _STAND_IN_STEPS, _STAND_IN_COLUMNS = 1e-5, 30, 10_000
_MOST_RAISES = 20
_DENSE_UP_TO = 2000  # rows up to which "auto" may end in the interior-point method
_CLIMB, _LEAST_CLIMB = 2, 2000  # columns a row, and at least, before the climb hands over to it
_SPARSE = 20.0  # times as many columns, at most, where a product meets few of the entries of a row
_SLICE, _PAYS = 1000, 0.5  # of more rows: columns after which the gap is asked for, and to what part it must fall
_SHARP = 1e-11  # the relative gap to which the interior-point method goes: so near, its face is nearly the solution
_ENOUGH = 1e-9  # the gap from which on it may end sooner, where rounding holds it up
_NOISE = 1e-7  # of the trace: what an interior point has outside its face
_DOMINANT, _DOUBTFUL = 0.1, 1.0  # directions with less of the trace than the first, or than the second times the
# residual, are left to the staircase once first-order steps crawl
_SHOWN, _FEW_ENTRIES = (
    1e-2,
    1 / 8,
)  # the residual from which on a climb on a matrix that is mostly zero keeps few columns
_TURN = 0.1
_USERS_OWN = (Status.INTERRUPTED, Status.STOPPED, Status.MAX_ITER)


@dataclass(frozen=True)
class Pace:
    """A method is slow when in some steps the residual has not fallen to a part of what it was."""

    steps: int
    part: float
    below: float = np.inf  # and only a residual below this counts: before, the climb is still finding its way

    def is_slow(self, residuals: Sequence[float]) -> bool:
        """Whether the method that left these residuals behind is slow."""
        if len(residuals) <= self.steps or min(residuals) > self.below:
            return False
        return min(residuals[-self.steps :]) > self.part * min(residuals[: -self.steps])


_LOWER_MODEL_PACE = Pace(steps=5, part=0.5)
_POWER_PACE = Pace(steps=100, part=0.2, below=1e-2)
_SPARSE_PACE = Pace(steps=200, part=0.5, below=1e-2)  # a step of second order costs hundreds of these


def _directions_show(residuals: Sequence[float]) -> bool:
    """Whether superfluous columns have faded so far that those of the solution stand out."""
    return residuals[-1] < _SHOWN


@dataclass
class Climb:
    """The phases of one solve.

    Attributes
    ----------
    problem : Elliptope
        What to maximise.
    run : Run
        Goal, budgets, certificate and history, which the phases share.
    rank_tol : float
        Eigenvalues of B below this fraction of its trace are not dimensions of the solution.
    rng : numpy.random.Generator
        Escape directions.
    announce : callable
        Given the name of a phase when it begins.
    n_stand_in_columns : int
        Columns a stand-in was applied to.
    multipliers : array of shape (n,) or None
        The dual variables of the interior-point method, where it ran: a hint for certificates, J ≼ Diag(y).
    """

    problem: Elliptope
    run: Run[Iterate]
    rank_tol: float
    rng: np.random.Generator
    announce: Callable[[str], Any] = lambda phase: None
    n_stand_in_columns: int = 0
    multipliers: Array | None = None
    _gap: float = field(default=np.inf, repr=False)
    _best: tuple[float, Iterate] | None = field(default=None, repr=False)

    def by(self, method: Callable[[], ElliptopeMethod], H: Array) -> Solution[Iterate]:
        """Solve with one method, then once more at the rank that was found."""
        self.announce("climbing")
        return self._at_its_rank(self._phase(method(), H), method)

    def automatic(self, H: Array, stand_in: LinearMap | None, *, rough: bool = True) -> Solution[Iterate]:
        """Solve by the stages above, from a first point H with unit rows; a good one needs no ``rough`` solve."""
        solution = self._climbed(H, stand_in, rough)
        if solution.status not in (Status.TRAPPED, Status.STALLED, Status.CRAWLING):
            return solution
        if self._dense:
            spent, most = self.problem.n_columns + self.problem.size, self.run.goal.max_products
            within = most is None or spent <= most
            return self.interior(solution.point.H) if within else solution.ended(Status.MAX_PRODUCTS)
        return solution if solution.status is Status.STALLED else self._best_of(solution).ended(Status.CRAWLING)

    @cached_property
    def _dense(self) -> bool:
        """Whether the interior-point method may end this climb."""
        n = int(self.problem.active.sum())
        return n <= _DENSE_UP_TO and bytes_needed(n) <= get_config().memory_bytes

    def _climbed(self, H: Array, stand_in: LinearMap | None, rough: bool) -> Solution[Iterate]:
        """Stages one to five, for as long as they pay."""
        solution = self._first_order(H, stand_in, rough)
        if solution.status is Status.SLOW or (solution.status is Status.CRAWLING and not self._dense):
            solution = self._while_it_pays(self._narrowed(solution.point.H, self._cut(solution)))
        gap = np.inf
        for _ in range(_MOST_RAISES):
            if solution.status is not Status.TRAPPED and (self._dense or solution.status is not Status.CRAWLING):
                break
            if not self._dense:
                if self._gap > _PAYS * gap:
                    return solution.ended(Status.CRAWLING)
                gap = self._gap
            try:
                with self.problem.within(self.run.goal.max_products):
                    H = raised(self.problem, solution.point, self.rng)
            except KeyboardInterrupt:
                return solution.ended(Status.INTERRUPTED)
            except ProductBudgetError:
                return solution.ended(Status.MAX_PRODUCTS)
            solution = self._while_it_pays(H)
        return self._at_its_rank(solution, TrustRegion)

    def _first_order(self, H: Array, stand_in: LinearMap | None, rough: bool) -> Solution[Iterate]:
        """Lower models where there is a stand-in, after a solve with it alone; accelerated power steps otherwise."""
        if stand_in is None:
            self.announce("climbing by power steps")
            return self._by_power_steps(H)
        if rough:
            self.announce("solving with the stand-in")
            H, interrupted = self._on_stand_in(stand_in, H)
            if interrupted:
                return self._phase(AcceleratedPower(), H, Limits(max_iter=0)).ended(Status.INTERRUPTED)
        self.announce("climbing by lower models")
        lower_models = Minorise(stand_in)
        solution = self._phase(lower_models, H, Limits(None, self._climb_columns, _LOWER_MODEL_PACE.is_slow))
        self.n_stand_in_columns += lower_models.n_stand_in_columns
        return solution

    def _by_power_steps(self, H: Array) -> Solution[Iterate]:
        """Accelerated power steps; of a sparse matrix, where all columns cost, with few as soon as these are known."""
        if self.problem.row_entries > _FEW_ENTRIES * self.problem.size:
            return self._phase(AcceleratedPower(), H, Limits(None, self._climb_columns, _POWER_PACE.is_slow))
        solution = self._phase(AcceleratedPower(), H, Limits(None, self._climb_columns, _directions_show))
        if solution.status is not Status.SLOW:
            return solution
        narrow = self._narrowed(solution.point.H, self._cut(solution))
        return self._phase(AcceleratedPower(), narrow, Limits(None, self._climb_columns, _SPARSE_PACE.is_slow))

    @staticmethod
    def _cut(solution: Solution[Iterate]) -> float:
        """The part of the trace below which a direction is left to the staircase."""
        return min(_DOMINANT, _DOUBTFUL * (solution.history[-1].row_residual or 0.0))

    @property
    def _climb_columns(self) -> int:
        """Columns of the problem after which a climb has had its share."""
        return self._cheap_columns(max(_CLIMB * self.problem.size, _LEAST_CLIMB))

    def _cheap_columns(self, count: int) -> int:
        """How many columns take the time of so many of a matrix without zeros, within limits."""
        return int(count * min(self.problem.size / max(self.problem.row_entries, 1.0), _SPARSE))

    def _while_it_pays(self, H: Array) -> Solution[Iterate]:
        """The trust region: up to the climb's share of columns, or in slices for as long as the certified gap falls."""
        self.announce("climbing by trust regions")
        if self._dense:
            return self._phase(TrustRegion(), H, Limits(max_columns=self._climb_columns))
        behind, slice_ = np.inf, self._cheap_columns(_SLICE)
        while True:
            solution = self._phase(TrustRegion(), H, Limits(max_columns=self.problem.n_columns + slice_))
            if solution.status is not Status.CRAWLING:
                self._gap = solution.history[-1].relative_gap or 0.0
                return solution
            try:
                solution = self._with_proof(solution)
            except KeyboardInterrupt:
                return solution.ended(Status.INTERRUPTED)
            proof = solution.certificate
            self._gap = 0.0 if proof is None else proof.gap_beyond_rounding
            proved = self._gap <= self.run.goal.tol  # then the rows are what is left to settle
            still = self.problem.row_residual(*solution.point) if proved else self._gap / self.run.goal.tol
            if still > _PAYS * behind:
                return solution.ended(Status.FLAT if proved and proof is not None else Status.CRAWLING)
            behind, H = still, solution.point.H

    def interior(self, climbed: Array | None = None) -> Solution[Iterate]:
        """Solve by the interior-point method, and bring what it found to low rank and to the boundary.

        Where the optimum is flat, its X is the middle of all solutions and of high rank. A point ``climbed`` to before
        is taken instead where the dual shows that it is as good.
        """
        self.announce("solving by the interior-point method")
        found = self._interior_point()
        self.announce("going to the boundary")
        y = found.point.multipliers
        self.multipliers = namespace(y).zeros(self.problem.size, dtype=y.dtype, device=y.device)
        self.multipliers[self.problem.active] = y
        face = point_near(self.problem, found.point.X, max(self.rank_tol, _NOISE))
        solution = Solution(evaluated(self.problem, face), found.status, found.history)
        if found.status in _USERS_OWN:
            return solution
        try:
            return self._to_the_boundary(found.point, face, climbed)
        except KeyboardInterrupt:  # between phases, which end by themselves
            return solution.ended(Status.INTERRUPTED)

    def _interior_point(self) -> Solution[PrimalDual]:
        left = max(1, self.run.steps_left)
        run: Run[Any] = replace(self.run, goal=Goal(_SHARP, max_iter=self.run.goal.max_iter), certify=None, save=None)
        method = InteriorPoint(enough=min(_ENOUGH, 0.1 * self.run.goal.tol))
        found = run.phase(self.problem.dense(), method, limits=Limits(max_iter=min(STEPS, left)))
        out_of_steps = found.status is Status.MAX_ITER and left > STEPS  # the method's own limit, not the user's
        return found.ended(Status.STALLED) if out_of_steps else found

    def _to_the_boundary(self, pair: PrimalDual, face: Array, climbed: Array | None) -> Solution[Iterate]:
        """From an interior point to one of low rank whose rows settle; where none does, to one that is proved."""
        bound = float(pair.multipliers.sum())
        for start in self._starts(face, climbed, bound):
            most = self.problem.n_columns + self._climb_columns + 4 * start.shape[1]
            solution = self._at_its_rank(self._phase(TrustRegion(), start, Limits(max_columns=most)), TrustRegion)
            if solution.status is Status.CONVERGED or solution.status in _USERS_OWN:
                return solution
            solution, proved = self._proved(solution, bound)
            if proved:
                return solution.ended(Status.FLAT)
        whole = point_near(self.problem, pair.X, 0.0)
        rank = min(2 * extreme_rank(self.problem.size), whole.shape[1])
        while True:  # of the directions in which it lies, the leading ones that suffice
            point = evaluated(self.problem, leading_columns(self.problem, whole, rank))
            solution, proved = self._proved(solution.at(point), bound)
            if proved or rank == whole.shape[1]:
                return solution.ended(Status.FLAT if proved else Status.STALLED)
            rank = min(2 * rank, whole.shape[1])

    def _starts(self, face: Array, climbed: Array | None, bound: float) -> Iterator[Array]:
        """Points to go to the boundary from, those of low rank before a face that is wider than an optimum need be."""
        extreme = extreme_rank(self.problem.size)
        if face.shape[1] <= extreme:
            yield self._narrowed(face, 0.0)
        if climbed is not None:
            narrow = self.problem.reduced(climbed, self.rank_tol)
            if bound - self.problem.objective(*evaluated(self.problem, narrow)) <= self.run.goal.tol * abs(bound):
                yield narrow
        if face.shape[1] > extreme:
            yield leading_columns(self.problem, face, extreme)
            yield face

    def _proved(self, solution: Solution[Iterate], bound: float) -> tuple[Solution[Iterate], bool]:
        """Whether a point meets the tolerance on the gap: by the dual at hand first, then by its certificate."""
        value, tol = self.problem.objective(*solution.point), self.run.goal.tol
        if bound - value > tol * abs(value):
            return solution, False
        solution = self._with_proof(solution)
        return solution, solution.certificate is None or solution.certificate.gap_beyond_rounding <= tol

    def _with_proof(self, solution: Solution[Iterate]) -> Solution[Iterate]:
        """The solution with the certificate of its point, where certificates are asked for at all."""
        if self.run.certify is None or solution.certificate is not None:
            return solution
        return replace(solution, certificate=self.run.certify(solution.point))

    def _phase(self, method: ElliptopeMethod, H: Array, limits: Limits = NO_LIMITS) -> Solution[Iterate]:
        """Run one method after what was done before, and remember the best point of all phases."""
        solution = self.run.phase(self.problem, method, H, limits)
        value = self.problem.objective(*solution.point)
        if self._best is None or value > self._best[0]:
            self._best = value, solution.point
        return solution

    def _best_of(self, solution: Solution[Iterate]) -> Solution[Iterate]:
        """The best point of all phases: directions that a later phase dropped may not have come back."""
        if self._best is None or self._best[0] <= self.problem.objective(*solution.point):
            return solution
        return solution.at(self._best[1])

    def _on_stand_in(self, stand_in: LinearMap, H: Array) -> tuple[Array, bool]:
        """Solve with the stand-in alone, the budget of exact products untouched, and say whether it was interrupted."""
        problem, least = self.problem, self.run.goal.residual_tol
        shift = self._stand_in_shift(stand_in)
        model = Elliptope(stand_in, problem.diagonal, shift=shift, lengths=problem.lengths)
        stages: tuple[tuple[ElliptopeMethod, float, int], ...] = (
            (AcceleratedPower(), _ROUGH_RESIDUAL, _ROUGH_STEPS),
            (TrustRegion(), _STAND_IN_RESIDUAL, _STAND_IN_STEPS),
        )
        for method, residual, steps in stages:
            goal = Goal(1.0, residual_tol=max(residual, least), max_iter=steps, max_products=_STAND_IN_COLUMNS)
            rough = solve(model, method, H, goal=goal)
            H = self._narrowed(rough.point.H, _ROUGH_RANK_TOL)
            if rough.status is Status.INTERRUPTED:
                break
        self.n_stand_in_columns += model.n_columns
        return H, rough.status is Status.INTERRUPTED

    def _narrowed(self, H: Array, rank_tol: float) -> Array:
        """The point of lowest rank near H, but not of rank one: rows that are ±1 cannot turn."""
        narrow = self.problem.reduced(H, rank_tol)
        if narrow.shape[1] > (1 if self.problem.split is None else 2):
            return narrow
        noise = like(self.rng.standard_normal((self.problem.size, 1)), narrow)
        turned = namespace(narrow).concat([narrow, _TURN * noise], axis=1)
        return self.problem.project(turned, first_axis(turned.shape[1], narrow))

    def _stand_in_shift(self, stand_in: LinearMap) -> float:
        """A number c with J̃ + cI ≽ 0: J̃ ≼ J ≽ 0 leaves out no more than the difference of the traces.

        Where that is much, J̃ = SFFᵀS - (Sv)(Sv)ᵀ falls below zero by no more than ‖Sv‖².
        """
        s, xp = self.problem.scale, namespace(self.problem.scale)
        missing = xp.clip(self.problem.operator.diagonal() - stand_in.diagonal(), 0.0, None)
        left_out = float(xp.sum(s**2 * missing))
        removed = np.inf if self.problem.removed is None else float(xp.sum((s * self.problem.removed) ** 2))
        return min(left_out, removed)

    def _at_its_rank(self, solution: Solution[Iterate], method: Callable[[], ElliptopeMethod]) -> Solution[Iterate]:
        """Bring a solution to the rank that is counted and solve there again, so that rows keep their lengths."""
        if solution.status is not Status.CONVERGED:
            return solution
        reduced = self.problem.reduced(solution.point.H, self.rank_tol)
        if reduced.shape[1] == solution.point.H.shape[1]:
            return solution
        self.announce("solving at the rank found")
        again = self._phase(method(), reduced)
        return again if again.status is Status.CONVERGED else solution
