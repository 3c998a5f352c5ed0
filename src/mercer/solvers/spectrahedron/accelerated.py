"""Accelerated projected gradient on the spectrahedron {C ≽ 0, Tr C = 1} (SOS section 3.2, Algorithm 1).

FISTA with adaptive restart (O'Donoghue and Candès). The objective is quadratic, so the gradient at the extrapolated
point is the extrapolation of gradients: one gradient a step, at the iterate itself, serves the step and the bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.backends.arrays import Array, eigh, eigvalsh, like, namespace, norm
from mercer.problems.sum_of_squares import SumOfSquares
from mercer.solvers.solution import Status

_POWER_STEPS = 100
_POWER_ACCURACY = 0.01
_MARGIN = 1.01
_ASK_EVERY = 10


@dataclass(frozen=True)
class SpectrahedronStep:
    """One line of the history: the objective, the proved distance to the optimum, and the rank of C."""

    number: int
    objective: float
    gap: float
    rank: int
    seconds: float


@dataclass(frozen=True)
class SpectrahedronResult:
    """C = F Fᵀ with ‖F‖ = 1, why the solver ended, and how it got there."""

    factor: Array
    status: Status
    history: tuple[SpectrahedronStep, ...]

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return self.history[-1].number if self.history else 0


Callback = Callable[[SpectrahedronStep], bool | None]


def project_on_simplex(values: Array) -> Array:
    """The nearest point with no negative entry and sum one."""
    xp = namespace(values)
    values = values - xp.max(values)  # which changes nothing but the rounding of large ones
    falling = xp.flip(xp.sort(values))
    counts = xp.arange(1, values.shape[0] + 1, dtype=values.dtype, device=values.device)
    excess = (falling.cumsum(0) - 1.0) / counts
    threshold = excess[xp.nonzero(falling > excess)[0][-1]]
    return xp.clip(values - threshold, 0.0, None)


def factor_on_spectrahedron(M: Array) -> Array:
    """A factor F of the nearest C = F Fᵀ with C ≽ 0 and Tr C = 1, for M symmetric (SOS Algorithm 1)."""
    values, vectors = eigh(M)
    weights = project_on_simplex(values)
    kept = weights > 0
    return vectors[:, kept] * namespace(M).sqrt(weights[kept])


def curvature_bound(problem: SumOfSquares) -> float:
    """The largest eigenvalue of C ↦ 2 A*A(C), the Lipschitz constant of the gradient, by a power iteration on A A*.

    Such an iteration stops short of it: the norm of the residual M y - θ y is added to the Rayleigh quotient θ.
    """
    y = like(np.random.default_rng(0).standard_normal(problem.goal.shape[0]), problem.goal)
    y, size, short = y / norm(y), 0.0, np.inf
    for _ in range(_POWER_STEPS):
        image = problem.embed_matrix(problem.adjoint(y))
        size = float(y @ image)
        short = norm(image - size * y)
        if short <= _POWER_ACCURACY * size:
            break
        y = image / norm(image)
    return 2.0 * _MARGIN * (size + short)


def oracle_gap(G: Array, factor: Array, value: float) -> float:
    """⟨∇f, C⟩ - λ_min(∇f), or f(C) itself: no C' is better than C by more (linear minimisation oracle; f ≥ 0)."""
    least = float(eigvalsh(G, 0, 1)[0])
    return min(max(float((factor * (G @ factor)).sum()) - least, 0.0), value)


def small_enough(gap: float, value: float, tol: float, relative: float) -> bool:
    """Whether a gap is at most tol, or at most a part of the optimum, which is proved to be value - gap at least."""
    return gap <= max(tol, relative * (value - gap))


def accelerated_spectrahedron(
    problem: SumOfSquares,
    *,
    tol: float,
    relative: float = 0.0,
    max_iter: int = 10_000,
    start: Array | None = None,
    callback: Callback | None = None,
) -> SpectrahedronResult:
    """Minimise f over the spectrahedron by FISTA with restart, until the oracle's gap is small enough.

    Parameters
    ----------
    problem : SumOfSquares
        What to minimise.
    tol : float
        The absolute gap to reach.
    relative : float, default=0.0
        A gap that is at most this part of the proved lower bound will do as well.
    max_iter : int
        Steps at most; each takes a residual, a gradient and an eigendecomposition of order s.
    start : array of shape (s, r), optional
        A first factor; the centre I/s otherwise.
    callback : callable, optional
        Receives the lines of the history; True ends the run.

    Returns
    -------
    SpectrahedronResult
        The last iterate; on Ctrl-C too, with the status ``INTERRUPTED``.
    """
    xp, s = namespace(problem.basis), problem.dimension
    centre = xp.eye(s, dtype=problem.basis.dtype, device=problem.basis.device)
    factor = centre / math.sqrt(s) if start is None else start / norm(start)
    log = _Log(problem, tol, relative, callback)
    status = Status.MAX_ITER
    try:
        step = 1.0 / curvature_bound(problem)
        residual = problem.residual(factor)
        C, G = factor @ factor.T, problem.gradient(residual)
        dC, dG, momentum = xp.zeros_like(C), xp.zeros_like(G), 1.0
        for number in range(max_iter + 1):
            if number % _ASK_EVERY == 0 or number == max_iter:
                ended = log.verdict(number, factor, residual, G)
                if ended is not None:
                    status = ended
                    break
            following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            beta = (momentum - 1.0) / following
            Y = C + beta * dC
            factor = factor_on_spectrahedron(Y - step * (G + beta * dG))
            residual = problem.residual(factor)
            new_C, new_G = factor @ factor.T, problem.gradient(residual)
            dC, dG = new_C - C, new_G - G
            momentum = 1.0 if float(((Y - new_C) * dC).sum()) > 0 else following
            C, G = new_C, new_G
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return SpectrahedronResult(factor, status, tuple(log.history))


class _Log:
    """The history, and when to end."""

    def __init__(self, problem: SumOfSquares, tol: float, relative: float, callback: Callback | None) -> None:
        self._problem, self._tol, self._relative, self._callback = problem, tol, relative, callback
        self._began = time.perf_counter()
        self.history: list[SpectrahedronStep] = []

    def verdict(self, number: int, factor: Array, residual: Array, G: Array) -> Status | None:
        """Write a line; why to end here, if at all."""
        value = self._problem.value(factor, residual)
        gap = oracle_gap(G, factor, value)
        seconds = time.perf_counter() - self._began
        self.history.append(SpectrahedronStep(number, value, gap, factor.shape[1], seconds))
        if self._callback is not None and self._callback(self.history[-1]):
            return Status.STOPPED
        return Status.CONVERGED if small_enough(gap, value, self._tol, self._relative) else None
