"""The solver that ``"auto"`` means: cheap products first, few columns, second order last, more rank only where needed.

1. *Stand-in.* Where a low-rank stand-in J̃ ≼ J is given, solve with it alone, from many columns: this finds the rank.
2. *Few columns.* Principal directions that carry next to nothing are dropped, so that a product costs the rank found.
3. *Lower models* (:mod:`mercer.solvers.minorise`), one exact product a step, while each of them pays; without a
   stand-in, accelerated power steps.
4. *Second order.* Where these crawl, what keeps them is a rank that is too high: superfluous columns fade like 1/t. So
   only the dominant directions are kept, and the trust region converges there quadratically.
5. *Staircase.* A point that no longer moves but is not certified is a saddle of the next rank up: a column is added
   along the direction in which the dual slack is most negative, and the climb goes on (Boumal 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer.operators import LinearMap
from mercer.problems import Elliptope, ProductBudgetError
from mercer.solvers.accelerated import AcceleratedPower
from mercer.solvers.loop import Callback, Certify, Method, maximise
from mercer.solvers.minorise import Minorise
from mercer.solvers.result import Iteration, SolverResult, Status
from mercer.solvers.trust_region import TrustRegion

Array = np.ndarray[Any, np.dtype[Any]]

_ROUGH_RANK_TOL = (
    1e-3  # directions below this part of the trace are dropped early; the staircase brings back a true one
)
_ROUGH_RESIDUAL, _ROUGH_STEPS = 1e-3, 300
_STAND_IN_RESIDUAL, _STAND_IN_STEPS, _STAND_IN_COLUMNS = 1e-5, 30, 10_000
_MOST_RAISES = 20
_ESCAPE_COLUMNS = 20
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
_DOMINANT, _DOUBTFUL = 0.1, 10.0  # directions with less of the trace than the first, or than the second times the
# residual, are left to the staircase once first-order steps crawl
_TURN = 0.1


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
        Given the best iterate so far, and the last line of the history, after every step.
    rng : numpy.random.Generator
        Escape directions.
    n_stand_in_columns : int
        Columns a stand-in was applied to.
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
    save: Callable[[Array, Iteration], None] | None = None
    n_stand_in_columns: int = 0
    _done: SolverResult | None = field(default=None, repr=False)
    _last: Iteration | None = field(default=None, repr=False)

    def resume_after(self, last: Iteration) -> None:
        """Count steps and seconds on from the last line of an earlier run."""
        self._last = last

    def by(self, method: Callable[[], Method], H: Array) -> SolverResult:
        """Solve with one method, then once more at the rank that was found."""
        return self._at_its_rank(self._phase(method(), H), method)

    def automatic(self, H: Array, stand_in: LinearMap | None, *, rough: bool = True) -> SolverResult:
        """Solve by the stages above, from a first point H with unit rows; a good one needs no ``rough`` solve."""
        if stand_in is not None:
            if rough:
                H, interrupted = self._on_stand_in(stand_in, H)
                if interrupted:
                    return replace(self._phase(AcceleratedPower(), H, max_iter=0), status=Status.INTERRUPTED)
            lower_models = Minorise(stand_in)
            result = self._phase(lower_models, H, pace=_LOWER_MODEL_PACE)
            self.n_stand_in_columns += lower_models.n_stand_in_columns
        else:
            result = self._phase(AcceleratedPower(), H, pace=_POWER_PACE)
        if result.status is Status.SLOW:
            cut = min(_DOMINANT, _DOUBTFUL * result.history[-1].row_residual)
            result = self._phase(TrustRegion(), self._narrowed(result.H, cut))
        for _ in range(_MOST_RAISES):
            if result.status is not Status.TRAPPED:
                break
            try:
                raised = self._raised(result.H, result.G)
            except KeyboardInterrupt:
                return replace(result, status=Status.INTERRUPTED)
            except ProductBudgetError:
                return replace(result, status=Status.MAX_PRODUCTS)
            result = self._phase(TrustRegion(), raised)
        return self._at_its_rank(result, TrustRegion)

    def _phase(
        self, method: Method, H: Array, *, pace: Pace | None = None, max_iter: int | None = None
    ) -> SolverResult:
        """Run one method after what was done before; status ``SLOW`` when it falls behind its pace."""
        last = self._last
        residuals: list[float] = []

        def notify(iteration: Iteration) -> bool:
            shown = iteration if last is None else iteration.following(last)
            answers = [callback(shown) for callback in self.callbacks]  # all of them are told
            return any(answers)

        def keep(H: Array, iteration: Iteration) -> None:
            if self.save is not None:
                self.save(H, iteration if last is None else iteration.following(last))

        def watch(residual: float) -> bool:
            residuals.append(residual)
            return pace is not None and pace.is_slow(residuals)

        result = maximise(
            self.problem,
            method,
            H,
            certify=self.certify,
            tol=self.tol,
            residual_tol=self.residual_tol,
            max_iter=max(0, self.max_iter - (0 if last is None else last.number)) if max_iter is None else max_iter,
            max_products=self.max_products,
            is_slow=watch,
            save=keep,
            callbacks=(notify,),
        )
        result = result if last is None else result.following(last)
        self._done = result if self._done is None else result.after(self._done)
        self._last = result.history[-1]
        return self._done

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
        turned = np.column_stack([narrow, _TURN * self.rng.standard_normal(self.problem.size)])
        return self.problem.project(turned, np.eye(1, 2))

    def _stand_in_shift(self, stand_in: LinearMap) -> float:
        """A number c with J̃ + cI ≽ 0: J̃ ≼ J ≽ 0 leaves out no more than the difference of the traces.

        Where that is much, J̃ = SFFᵀS - (Sv)(Sv)ᵀ falls below zero by no more than ‖Sv‖².
        """
        s = self.problem.scale
        left_out = float(s**2 @ np.maximum(self.problem.operator.diagonal() - stand_in.diagonal(), 0.0))
        removed = np.inf if self.problem.removed is None else float(np.sum((s * self.problem.removed) ** 2))
        return min(left_out, removed)

    def _at_its_rank(self, result: SolverResult, method: Callable[[], Method]) -> SolverResult:
        """Bring a solution to the rank that is counted and solve there again, so that rows keep their lengths."""
        if result.status is not Status.CONVERGED:
            return result
        reduced = self.problem.reduced(result.H, self.rank_tol)
        if reduced.shape[1] == result.H.shape[1]:
            return result
        again = self._phase(method(), reduced)
        return again if again.status is Status.CONVERGED else result

    def _raised(self, H: Array, G: Array) -> Array:
        """H with one more column, turned a little towards the direction in which the objective grows most."""
        self.problem.max_columns = self.max_products
        try:
            direction = escape_direction(self.problem, H, G, self.rng)
        finally:
            self.problem.max_columns = None
        reach = float(np.max(np.abs(direction)))
        return self.problem.project(np.column_stack([H, _ESCAPE_ANGLE / reach * direction]), np.eye(1, H.shape[1] + 1))


def escape_direction(problem: Elliptope, H: Array, G: Array, rng: np.random.Generator) -> Array:
    """About the vector v of largest vᵀ(J - Diag z)v / vᵀDiag(z)v outside the span of H, by a few Lanczos steps.

    At a stationary point, a positive value means that turning the rows of H towards v in a new dimension ascends.
    """
    z = problem.multipliers(H, G)
    y = np.maximum(z, 1e-3 * float(np.max(z)))
    Q, _ = np.linalg.qr(np.sqrt(y)[:, None] * H)

    def multiply(v: Array) -> Array:
        w = np.ravel(v) - Q @ (Q.T @ np.ravel(v))
        w = problem.curvature((w / np.sqrt(y))[:, None])[:, 0] / np.sqrt(y)
        return w - Q @ (Q.T @ w)

    n = problem.size
    map_ = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
    start = rng.standard_normal(n)
    try:
        _, vectors = eigsh(map_, k=1, which="LA", v0=start, ncv=min(_ESCAPE_COLUMNS, n), maxiter=4, tol=1e-2)
    except ArpackNoConvergence:
        for _ in range(4):
            start = multiply(start)
        vectors = start[:, None]
    return vectors[:, 0] / np.sqrt(y)
