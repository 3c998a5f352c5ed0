"""The one loop: iteration, stopping, history, callbacks. Methods supply the steps.

It stops when two things hold at once: the row residual is below its tolerance, and a certificate computed from scratch
proves the gap. One alone does not do: a gap of 5e-9 was seen to hide an error of 3e-3 in the extension, and a point
with residual zero may be a saddle. The residual is free, so it is asked first; the certificate is computed when it
passes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

from mercer.backends.arrays import Array
from mercer.backends.rounding import unit_of
from mercer.problems import Elliptope, ProductBudgetError
from mercer.solvers.elliptope.result import Iteration, SolverResult, Status

Certify = Callable[[Array, Array], float]
Callback = Callable[[Iteration], bool | None]

_ASK_AGAIN = 0.25  # after a certificate that failed, the residual must fall below this part of its value first
_TRAPPED = 100.0  # near an optimum a proved gap is of the order of the residual, or of its square; at a saddle it stays
_STATIONARY = 1e-5
_STALL_STEPS = 200
_SAME = 1e4  # objectives this many roundings apart are equal, and then the later iterate is the better one


class Method(Protocol):
    """A rule that turns an iterate into the next."""

    def start(self, problem: Elliptope, H: Array) -> tuple[Array, Array]:
        """Return the first iterate and its product with J."""

    def step(self, problem: Elliptope) -> tuple[Array, Array]:
        """Return the next iterate and its product with J."""


def maximise(
    problem: Elliptope,
    method: Method,
    H: Array,
    *,
    certify: Certify | None,
    tol: float,
    residual_tol: float,
    max_iter: int,
    max_products: int | None = None,
    is_slow: Callable[[float], bool] | None = None,
    save: Callable[[Array, Iteration], None] | None = None,
    callbacks: tuple[Callback, ...] = (),
) -> SolverResult:
    """Run a method until the certified gap is at most tol and the row residual at most residual_tol.

    Parameters
    ----------
    problem : Elliptope
        What to maximise.
    method : Method
        The steps.
    H : array of shape (n, r)
        A first point with unit rows.
    certify : callable or None
        Given an iterate and its product with J, returns a proved relative gap. Without it the residual alone decides.
    tol, residual_tol : float
        The two tolerances.
    max_iter : int
        Steps at most.
    max_products : int, optional
        Columns of the problem's operator at most, counted from the first the problem ever saw; certificates asked
        for on the way count too.
    is_slow : callable, optional
        Sees the residual of every step; when it returns True the run ends with the status ``SLOW``.
    save : callable, optional
        Given the best iterate so far and the last line of the history after every step: the place to keep it.
    callbacks : tuple of callables
        Each receives every :class:`Iteration`; one that returns True stops the run.

    Returns
    -------
    SolverResult
        The iterate that met the tolerances; else the best one, which is the last but for extrapolations that lost
        ground. On Ctrl-C too, with the status ``INTERRUPTED``.
    """
    began = time.perf_counter()
    rounding = 2 * unit_of(problem.operator.dtype)
    history: list[Iteration] = []
    ask_at = math.inf
    best_residual, last_progress = math.inf, 0
    best_objective = -math.inf
    best = None
    status = Status.MAX_ITER
    problem.max_columns = max_products
    try:
        for number in range(max_iter + 1):
            H, G = method.step(problem) if number else method.start(problem, H)
            residual = problem.row_residual(H, G)
            asking = residual <= residual_tol and residual < ask_at
            gap = certify(H, G) if asking and certify is not None else None
            ask_at = _ASK_AGAIN * residual if asking else ask_at
            objective = problem.objective(H, G)
            seconds = time.perf_counter() - began
            history.append(Iteration(number, objective, residual, problem.n_columns, seconds, gap))
            if best is None or objective >= best_objective - _SAME * rounding * abs(best_objective):
                best_objective, best = max(objective, best_objective), (H, G)
            if save is not None:
                save(best[0], history[-1])
            answers = [callback(history[-1]) for callback in callbacks]
            if any(answers):
                status = Status.STOPPED
                break
            if asking and (gap is None or gap <= tol):
                status, best = Status.CONVERGED, (H, G)
                break
            if asking and gap is not None and residual <= _STATIONARY and gap > _TRAPPED * residual:
                status, best = Status.TRAPPED, (H, G)
                break
            if is_slow is not None and is_slow(residual):
                status = Status.SLOW
                break
            if residual < 0.99 * best_residual:
                best_residual, last_progress = residual, number
            elif number - last_progress > _STALL_STEPS and residual < 1e3 * rounding:
                status = Status.STALLED
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except ProductBudgetError:
        status = Status.MAX_PRODUCTS
    finally:
        problem.max_columns = None
    if best is None:  # nothing was evaluated yet: the first point is the best so far
        best = H, problem.apply(H)
        residual, objective = problem.row_residual(*best), problem.objective(*best)
        history.append(Iteration(0, objective, residual, problem.n_columns, time.perf_counter() - began))
    return SolverResult(*best, status, tuple(history))
