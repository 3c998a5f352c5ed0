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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, cast, is_tensor, like, namespace
from mercer.linalg.lanczos import BlockLanczos
from mercer.linalg.tall import first_axis
from mercer.operators import LinearMap
from mercer.problems import Elliptope, ProductBudgetError
from mercer.solvers.elliptope.accelerated import AcceleratedPower
from mercer.solvers.elliptope.interior_point import STEPS, InteriorPoint, bytes_needed, solve_interior_point
from mercer.solvers.elliptope.loop import Callback, Certify, Method, maximise
from mercer.solvers.elliptope.minorise import Minorise
from mercer.solvers.elliptope.result import Iteration, SolverResult, Status
from mercer.solvers.elliptope.trust_region import TrustRegion

_ROUGH_RANK_TOL = (
    1e-3  # directions below this part of the trace are dropped early; the staircase brings back a true one
)
_ROUGH_RESIDUAL, _ROUGH_STEPS = 1e-3, 300
_STAND_IN_RESIDUAL, _STAND_IN_STEPS, _STAND_IN_COLUMNS = 1e-5, 30, 10_000
_MOST_RAISES = 20
_DENSE_UP_TO = 2000  # rows up to which "auto" may end in the interior-point method
_CLIMB, _LEAST_CLIMB = 2, 2000  # columns a row, and at least, before the climb hands over to it
_SLICE, _PAYS = 1000, 0.5  # of more rows: columns after which the gap is asked for, and to what part it must fall
_SHARP = 1e-11  # the relative gap to which the interior-point method goes: so near, its face is nearly the solution
_ENOUGH = 1e-9  # the gap from which on it may end sooner, where rounding holds it up
_NOISE = 1e-7  # of the trace: what an interior point has outside its face
_FURTHER, _SWEEPS = 20, 6  # columns beyond the rank that is looked for, and products with them
_ESCAPE_COLUMNS, _ESCAPE_DEPTH = 20, 40
_ESCAPE_ANGLE = 0.3


@dataclass(frozen=True)
class Pace:
    """A method is slow when in some steps the residual has not fallen to a part of what it was."""

    steps: int
    part: float
    below: float = np.inf  # and only a residual below this counts: before, the climb is still finding its way

    def is_slow(self, residuals: list[float]) -> bool:
        """Whether the method that left these residuals behind is slow."""
        if len(residuals) <= self.steps or min(residuals) > self.below:
            return False
        return min(residuals[-self.steps :]) > self.part * min(residuals[: -self.steps])


_LOWER_MODEL_PACE = Pace(steps=5, part=0.5)
_POWER_PACE = Pace(steps=100, part=0.2, below=1e-2)
_DOMINANT, _DOUBTFUL = 0.1, 1.0  # directions with less of the trace than the first, or than the second times the
# residual, are left to the staircase once first-order steps crawl
_TURN = 0.1
_USERS_OWN = (Status.INTERRUPTED, Status.STOPPED, Status.MAX_ITER)


@dataclass
class Climb:
    """One solve: its problem, its tolerances, and what is left of its budgets.

    Attributes
    ----------
    problem : Elliptope
        What to maximise.
    certify : callable or None
        Given an iterate and its product with J, returns a proved relative gap.
    tol, residual_tol : float
        Where to stop: the certified gap and the row residual.
    rank_tol : float
        Eigenvalues of B below this fraction of its trace are not dimensions of the solution.
    max_iter : int
        Steps at most.
    max_products : int or None
        Columns of exact products at most, those of certificates included.
    callbacks : tuple of callables
        Each receives every :class:`Iteration`; one that returns True stops the run.
    save : callable or None
        Given the best iterate so far and the history up to it, after every step.
    rng : numpy.random.Generator
        Escape directions.
    n_stand_in_columns : int
        Columns a stand-in was applied to.
    multipliers : array of shape (n,) or None
        The dual variables of the interior-point method, where it ran: a hint for certificates, J ≼ Diag(y).
    tell : callable or None
        Given the name of a phase when it begins.
    """

    problem: Elliptope
    certify: Certify | None
    tol: float
    residual_tol: float
    rank_tol: float
    max_iter: int
    rng: np.random.Generator
    max_products: int | None = None
    callbacks: tuple[Callback, ...] = ()
    save: Callable[[Array, tuple[Iteration, ...]], None] | None = None
    n_stand_in_columns: int = 0
    multipliers: Array | None = None
    tell: Callable[[str], Any] | None = None
    _done: SolverResult | None = field(default=None, repr=False)
    _earlier: tuple[Iteration, ...] = field(default=(), repr=False)
    _gap: float = field(default=np.inf, repr=False)
    _best: tuple[float, Array, Array] | None = field(default=None, repr=False)

    @property
    def _lines(self) -> tuple[Iteration, ...]:
        """The history so far, that of an earlier run included."""
        return self._earlier if self._done is None else self._done.history

    def resume_after(self, history: tuple[Iteration, ...]) -> None:
        """Go on after the history of an earlier run: steps, seconds and columns are counted on."""
        self._earlier = tuple(history)

    def by(self, method: Callable[[], Method], H: Array) -> SolverResult:
        """Solve with one method, then once more at the rank that was found."""
        self._announce("climbing")
        return self._at_its_rank(self._phase(method(), H), method)

    def automatic(self, H: Array, stand_in: LinearMap | None, *, rough: bool = True) -> SolverResult:
        """Solve by the stages above, from a first point H with unit rows; a good one needs no ``rough`` solve."""
        result = self._climbed(H, stand_in, rough)
        if result.status not in (Status.TRAPPED, Status.STALLED, Status.CRAWLING):
            return result
        if self._dense:
            spent = self.problem.n_columns + self.problem.size
            within = self.max_products is None or spent <= self.max_products
            return self.interior(result.H) if within else self._ended(result, Status.MAX_PRODUCTS)
        return result if result.status is Status.STALLED else self._ended(self._best_of(result), Status.CRAWLING)

    @cached_property
    def _dense(self) -> bool:
        """Whether the interior-point method may end this climb."""
        n = int(self.problem.active.sum())
        return n <= _DENSE_UP_TO and bytes_needed(n) <= get_config().memory_bytes

    def _climbed(self, H: Array, stand_in: LinearMap | None, rough: bool) -> SolverResult:
        """Stages one to five, for as long as they pay."""
        if stand_in is not None:
            if rough:
                self._announce("solving with the stand-in")
                H, interrupted = self._on_stand_in(stand_in, H)
                if interrupted:
                    return replace(self._phase(AcceleratedPower(), H, max_iter=0), status=Status.INTERRUPTED)
            self._announce("climbing by lower models")
            lower_models = Minorise(stand_in)
            result = self._phase(lower_models, H, pace=_LOWER_MODEL_PACE, most=self._climb_columns)
            self.n_stand_in_columns += lower_models.n_stand_in_columns
        else:
            self._announce("climbing by power steps")
            result = self._phase(AcceleratedPower(), H, pace=_POWER_PACE, most=self._climb_columns)
        if result.status is Status.SLOW or (result.status is Status.CRAWLING and not self._dense):
            cut = min(_DOMINANT, _DOUBTFUL * result.history[-1].row_residual)
            result = self._while_it_pays(self._narrowed(result.H, cut))
        gap = np.inf
        for _ in range(_MOST_RAISES):
            if result.status is not Status.TRAPPED and (self._dense or result.status is not Status.CRAWLING):
                break
            if not self._dense:
                if self._gap > _PAYS * gap:
                    return self._ended(result, Status.CRAWLING)
                gap = self._gap
            try:
                raised = self._raised(result.H, result.G)
            except KeyboardInterrupt:
                return replace(result, status=Status.INTERRUPTED)
            except ProductBudgetError:
                return replace(result, status=Status.MAX_PRODUCTS)
            result = self._while_it_pays(raised)
        return self._at_its_rank(result, TrustRegion)

    @property
    def _climb_columns(self) -> int:
        """Columns of the problem after which a climb has had its share."""
        return max(_CLIMB * self.problem.size, _LEAST_CLIMB)

    def _while_it_pays(self, H: Array) -> SolverResult:
        """The trust region: up to the climb's share of columns, or in slices for as long as the certified gap falls."""
        self._announce("climbing by trust regions")
        if self._dense:
            return self._phase(TrustRegion(), H, most=self._climb_columns)
        behind = np.inf
        while True:
            result = self._phase(TrustRegion(), H, most=self.problem.n_columns + _SLICE)
            if result.status is not Status.CRAWLING:
                self._gap = result.history[-1].relative_gap or 0.0
                return result
            try:
                self._gap = gap = 0.0 if self.certify is None else self.certify(result.H, result.G)
            except KeyboardInterrupt:
                return self._ended(result, Status.INTERRUPTED)
            proved = gap <= self.tol  # then the rows are what is left to settle
            still = self.problem.row_residual(result.H, result.G) if proved else gap / self.tol
            if still > _PAYS * behind:
                return self._ended(result, Status.FLAT if proved and self.certify is not None else Status.CRAWLING)
            behind, H = still, result.H

    def interior(self, climbed: Array | None = None) -> SolverResult:
        """Solve by the interior-point method, and bring what it found to low rank and to the boundary.

        Where the optimum is flat, its X is the middle of all solutions and of high rank. A point ``climbed`` to before
        is taken instead where the dual shows that it is as good.
        """
        self._announce("solving by the interior-point method")
        found = self._interior_point()
        self._announce("going to the boundary")
        self.multipliers = self._full(found.multipliers)
        face = self._point(found.X, max(self.rank_tol, _NOISE))
        self._done = SolverResult(face, self.problem.apply(face), found.status, (*self._lines, *found.history))
        if found.status in _USERS_OWN:
            return self._done
        try:
            return self._to_the_boundary(found, face, climbed)
        except KeyboardInterrupt:  # between phases, which end by themselves
            return self._ended(self._done, Status.INTERRUPTED)

    def _to_the_boundary(self, found: InteriorPoint, face: Array, climbed: Array | None) -> SolverResult:
        """From an interior point to one of low rank whose rows settle; where none does, to one that is proved."""
        bound = float(found.multipliers.sum())
        for start in self._starts(face, climbed, bound):
            most = self.problem.n_columns + self._climb_columns + 4 * start.shape[1]
            result = self._at_its_rank(self._phase(TrustRegion(), start, most=most), TrustRegion)
            if result.status is Status.CONVERGED or result.status in _USERS_OWN:
                return result
            if self._proved(result, bound):
                return self._ended(result, Status.FLAT)
        whole = self._point(found.X, 0.0)
        rank = min(2 * _extreme_rank(self.problem.size), whole.shape[1])
        while True:  # of the directions in which it lies, the leading ones that suffice
            H = self.problem.project(whole[:, -rank:], first_axis(rank, whole))
            result = replace(result, H=H, G=self.problem.apply(H))
            if self._proved(result, bound):
                return self._ended(result, Status.FLAT)
            if rank == whole.shape[1]:
                return self._ended(result, Status.STALLED)
            rank = min(2 * rank, whole.shape[1])

    def _starts(self, face: Array, climbed: Array | None, bound: float) -> Iterator[Array]:
        """Points to go to the boundary from, those of low rank before a face that is wider than an optimum need be."""
        extreme = _extreme_rank(self.problem.size)
        if face.shape[1] <= extreme:
            yield self._narrowed(face, 0.0)
        if climbed is not None:
            narrow = self.problem.reduced(climbed, self.rank_tol)
            if bound - self.problem.objective(narrow, self.problem.apply(narrow)) <= self.tol * abs(bound):
                yield narrow
        if face.shape[1] > extreme:
            yield self.problem.project(face[:, -extreme:], first_axis(extreme, face))
            yield face

    def _proved(self, result: SolverResult, bound: float) -> bool:
        """Whether a point meets the tolerance on the gap: by the dual at hand first, then by a certificate."""
        value = self.problem.objective(result.H, result.G)
        if bound - value > self.tol * abs(value):
            return False
        return self.certify is None or self.certify(result.H, result.G) <= self.tol

    def _interior_point(self) -> InteriorPoint:
        problem = self.problem
        active = namespace(problem.active).nonzero(problem.active)[0]
        s = as_double(problem.scale[active])
        J = as_double(problem.operator.block(active, active)) * (s[:, None] * s)
        problem.n_columns += active.shape[0]  # its entries are formed
        lines = self._lines
        left = max(1, self.max_iter - (lines[-1].number if lines else 0))
        history: list[Iteration] = []

        def notify(iteration: Iteration) -> bool:
            history.append(self._shown(iteration, lines))
            answers = [callback(history[-1]) for callback in self.callbacks]
            return any(answers)

        found = solve_interior_point(
            (J + J.T) / 2,
            tol=_SHARP,
            enough=min(_ENOUGH, 0.1 * self.tol),
            lengths=problem.lengths[active],
            max_iter=min(STEPS, left),
            n_columns=problem.n_columns,
            callbacks=(notify,),
        )
        out_of_steps = found.status is Status.MAX_ITER and left > STEPS  # not for want of the user's
        return replace(found, history=tuple(history), status=Status.STALLED if out_of_steps else found.status)

    def _full(self, y: Array) -> Array:
        multipliers = namespace(y).zeros(self.problem.size, dtype=y.dtype, device=y.device)
        multipliers[self.problem.active] = y
        return multipliers

    def _point(self, X: Array, cut: float) -> Array:
        """A point H of low rank with H Hᵀ near X: the principal directions above this part of the trace."""
        problem, xp = self.problem, namespace(X)
        s = as_double(problem.scale[problem.active])
        S = s[:, None] * X * s
        few = _extreme_rank(problem.size) + _FURTHER
        values, vectors = xp.linalg.eigh(S) if cut == 0 or s.shape[0] <= 4 * few else _leading(S, few)
        kept = values > cut * float(xp.sum(S.diagonal()))
        H = xp.zeros((problem.size, int(kept.sum())), dtype=xp.float64, device=X.device)
        H[problem.active] = vectors[:, kept] * xp.sqrt(values[kept])
        return cast(problem.project(H, first_axis(H.shape[1], H)), problem.operator.dtype)

    def _ended(self, result: SolverResult, status: Status) -> SolverResult:
        self._done = replace(result, status=status)
        return self._done

    def _announce(self, phase: str) -> None:
        if self.tell is not None:
            self.tell(phase)

    def _phase(
        self,
        method: Method,
        H: Array,
        *,
        pace: Pace | None = None,
        max_iter: int | None = None,
        most: int | None = None,
    ) -> SolverResult:
        """Run one method after what was done before.

        Status ``SLOW`` when it falls behind its pace, ``CRAWLING`` when the problem has seen ``most`` columns.
        """
        lines = self._lines
        shown: list[Iteration] = list(lines)
        residuals: list[float] = []

        def notify(iteration: Iteration) -> bool:
            answers = [callback(shown[-1]) for callback in self.callbacks]  # all of them are told
            return any(answers)

        def keep(H: Array, iteration: Iteration) -> None:
            shown.append(self._shown(iteration, lines))
            if self.save is not None:
                self.save(H, tuple(shown))

        def watch(residual: float) -> bool:
            residuals.append(residual)
            return pace is not None and pace.is_slow(residuals)

        allowed = [limit for limit in (most, self.max_products) if limit is not None]
        result = maximise(
            self.problem,
            method,
            H,
            certify=self.certify,
            tol=self.tol,
            residual_tol=self.residual_tol,
            max_iter=max(0, self.max_iter - (lines[-1].number if lines else 0)) if max_iter is None else max_iter,
            max_products=min(allowed, default=None),
            is_slow=watch,
            save=keep,
            callbacks=(notify,),
        )
        ours = most is not None and (self.max_products is None or most < self.max_products)
        status = Status.CRAWLING if ours and result.status is Status.MAX_PRODUCTS else result.status
        history = tuple(shown) + tuple(self._shown(line, lines) for line in result.history[len(shown) - len(lines) :])
        self._done = replace(result, status=status, history=history)
        value = self.problem.objective(result.H, result.G)
        if self._best is None or value > self._best[0]:
            self._best = value, result.H, result.G
        return self._done

    def _best_of(self, result: SolverResult) -> SolverResult:
        """The best point of all phases: directions that a later phase dropped may not have come back."""
        if self._best is None or self._best[0] <= self.problem.objective(result.H, result.G):
            return result
        return replace(result, H=self._best[1], G=self._best[2])

    def _shown(self, line: Iteration, before: tuple[Iteration, ...]) -> Iteration:
        """A line with number and seconds running on, and with the columns of an earlier run."""
        columns = self._earlier[-1].n_columns if self._earlier else 0
        line = replace(line, n_columns=line.n_columns + columns)
        return line.following(before[-1]) if before else line

    def _on_stand_in(self, stand_in: LinearMap, H: Array) -> tuple[Array, bool]:
        """Solve with the stand-in alone, the budget of exact products untouched, and say whether it was interrupted."""
        problem = self.problem
        shift = self._stand_in_shift(stand_in)
        model = Elliptope(stand_in, problem.diagonal, shift=shift, lengths=problem.lengths)
        for method, residual_tol, steps in (
            (AcceleratedPower(), max(_ROUGH_RESIDUAL, self.residual_tol), _ROUGH_STEPS),
            (TrustRegion(), max(_STAND_IN_RESIDUAL, self.residual_tol), _STAND_IN_STEPS),
        ):
            rough = maximise(
                model,
                method,
                H,
                certify=None,
                tol=1.0,
                residual_tol=residual_tol,
                max_iter=steps,
                max_products=_STAND_IN_COLUMNS,
            )
            H = self._narrowed(rough.H, _ROUGH_RANK_TOL)
            if rough.status is Status.INTERRUPTED:
                break
        self.n_stand_in_columns += model.n_columns
        return H, rough.status is Status.INTERRUPTED

    def _narrowed(self, H: Array, rank_tol: float) -> Array:
        """The point of lowest rank near H, but not of rank one: rows that are ±1 cannot turn."""
        narrow = self.problem.reduced(H, rank_tol)
        if narrow.shape[1] > 1:
            return narrow
        noise = like(self.rng.standard_normal((self.problem.size, 1)), narrow)
        turned = namespace(narrow).concat([narrow, _TURN * noise], axis=1)
        return self.problem.project(turned, first_axis(2, narrow))

    def _stand_in_shift(self, stand_in: LinearMap) -> float:
        """A number c with J̃ + cI ≽ 0: J̃ ≼ J ≽ 0 leaves out no more than the difference of the traces.

        Where that is much, J̃ = SFFᵀS - (Sv)(Sv)ᵀ falls below zero by no more than ‖Sv‖².
        """
        s, xp = self.problem.scale, namespace(self.problem.scale)
        missing = xp.clip(self.problem.operator.diagonal() - stand_in.diagonal(), 0.0, None)
        left_out = float(xp.sum(s**2 * missing))
        removed = np.inf if self.problem.removed is None else float(xp.sum((s * self.problem.removed) ** 2))
        return min(left_out, removed)

    def _at_its_rank(self, result: SolverResult, method: Callable[[], Method]) -> SolverResult:
        """Bring a solution to the rank that is counted and solve there again, so that rows keep their lengths."""
        if result.status is not Status.CONVERGED:
            return result
        reduced = self.problem.reduced(result.H, self.rank_tol)
        if reduced.shape[1] == result.H.shape[1]:
            return result
        self._announce("solving at the rank found")
        again = self._phase(method(), reduced)
        return again if again.status is Status.CONVERGED else result

    def _raised(self, H: Array, G: Array) -> Array:
        """H with one more column, turned a little towards the direction in which the objective grows most."""
        self.problem.max_columns = self.max_products
        try:
            direction = escape_direction(self.problem, H, G, self.rng)
        finally:
            self.problem.max_columns = None
        reach = float(abs(direction).max())
        wider = namespace(H).concat([H, (_ESCAPE_ANGLE / reach * direction)[:, None]], axis=1)
        return self.problem.project(wider, first_axis(H.shape[1] + 1, H))


def _extreme_rank(n: int) -> int:
    """A rank at which there is an optimum (Barvinok 1995, Pataki 1998)."""
    return int(np.sqrt(2 * n)) + 1


def _leading(S: Array, count: int) -> tuple[Array, Array]:
    """About the largest eigenvalues of a positive definite matrix, rising, with their vectors: subspace iteration."""
    xp = namespace(S)
    Q = like(np.random.default_rng(0).standard_normal((len(S), count)), S)
    for _ in range(_SWEEPS):
        Q, _ = xp.linalg.qr(S @ Q)
    values, vectors = xp.linalg.eigh(Q.T @ (S @ Q))
    return values, Q @ vectors


def escape_direction(problem: Elliptope, H: Array, G: Array, rng: np.random.Generator) -> Array:
    """About the vector v of largest vᵀ(J - Diag z)v / vᵀDiag(z)v outside the span of H, by a few Lanczos steps.

    At a stationary point, a positive value means that turning the rows of H towards v in a new dimension ascends. The
    steps are ARPACK's on NumPy arrays, with restarts, and our own on tensors.
    """
    z, xp = as_double(problem.multipliers(H, G)), namespace(H)
    largest = float(abs(z).max()) if problem.size else 0.0
    root = xp.sqrt(xp.clip(z, max(1e-3 * largest, float(np.finfo(np.float64).tiny)), None))
    Q, _ = xp.linalg.qr(root[:, None] * H)

    def multiply(V: Array) -> Array:
        W = V - Q @ (Q.T @ V)
        W = as_double(problem.curvature(W / root[:, None])) / root[:, None]
        return W - Q @ (Q.T @ W)

    leading = _leading_by_lanczos if is_tensor(H) else _leading_by_arpack
    direction = leading(multiply, Q, rng) / root
    return direction if bool((direction != 0).any()) else like(rng.standard_normal(problem.size), H)


def _leading_by_arpack(multiply: Callable[[Array], Array], Q: Array, rng: np.random.Generator) -> Array:
    """About the leading eigenvector, by ARPACK; where that fails, after a few power steps."""
    n = Q.shape[0]
    map_ = LinearOperator((n, n), matvec=lambda v: multiply(np.reshape(v, (-1, 1)))[:, 0], dtype=np.float64)
    start = rng.standard_normal(n)
    try:
        return eigsh(map_, k=1, which="LA", v0=start, ncv=min(_ESCAPE_COLUMNS, n), maxiter=4, tol=1e-2)[1][:, 0]
    except ArpackError:  # no convergence, or nothing outside the span of H
        for _ in range(4):
            start = map_.matvec(start)
        return start


def _leading_by_lanczos(multiply: Callable[[Array], Array], Q: Array, rng: np.random.Generator) -> Array:
    """About the leading eigenvector, from one Krylov space; zero where there is nothing outside the span of Q."""
    space = BlockLanczos(multiply, Q, rng)
    space.extend(_ESCAPE_DEPTH)
    return space.ritz_pairs(1)[1][:, 0] if space.n_columns else namespace(Q).zeros_like(Q[:, 0])
