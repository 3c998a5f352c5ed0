"""Accelerated projected gradient on the spectrahedron {C ≽ 0, Tr C = 1} (SOS section 3.2, Algorithm 1).

FISTA with adaptive restart (O'Donoghue and Candès). The objective is quadratic, so the gradient at the extrapolated
point is the extrapolation of gradients: one gradient a step, at the iterate itself, serves the step and the bound.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, eigh, eigvalsh, like, namespace, norm
from mercer.problems.squares_likelihood import SquaresLikelihood
from mercer.problems.sum_of_squares import TRACE, SumOfSquares
from mercer.solvers.run import Method, Report

_POWER_STEPS = 100
_POWER_ACCURACY = 0.01
_MARGIN = 1.01
_ASK_EVERY = 10


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


def oracle_gap(G: Array, factor: Array, most: float) -> float:
    """⟨∇f, C⟩ - λ_min(∇f), or ``most``, f(C) where f ≥ 0: no C' is better than C by more (linear oracle)."""
    least = float(eigvalsh(G, 0, 1)[0])
    return min(max(float((factor * (G @ factor)).sum()) - least, 0.0), most)


def value_and_gap(problem: SumOfSquares | SquaresLikelihood, factor: Array) -> tuple[float, float]:
    """f(C) of C = F Fᵀ with ‖F‖ = 1, and the oracle's gap; infinite where a likelihood vanishes."""
    residual = problem.residual(factor)
    value = problem.value(factor, residual)
    if not math.isfinite(value):
        return value, math.inf
    most = math.inf if isinstance(problem, SquaresLikelihood) else value
    return value, oracle_gap(problem.gradient(residual), factor, most)


@final
class AcceleratedGradients(Method[SumOfSquares, Array]):
    """FISTA with restart; points are factors F of C = F Fᵀ of length one, the centre I/s where none is given.

    A step takes a residual, a gradient and an eigendecomposition of order s; every tenth is reported, with the oracle's
    gap.
    """

    name = "accelerated"
    phase = "gradients"
    handles = frozenset({TRACE})

    def start(self, problem: SumOfSquares, point: Any) -> Report[Array]:
        """Report the first factor."""
        xp, s = namespace(problem.basis), problem.dimension
        centre = xp.eye(s, dtype=problem.basis.dtype, device=problem.basis.device) / math.sqrt(s)
        self._factor = centre if point is None else point / norm(point)
        self._residual = problem.residual(self._factor)
        self._C, self._G = self._factor @ self._factor.T, problem.gradient(self._residual)
        self._dC, self._dG, self._momentum = xp.zeros_like(self._C), xp.zeros_like(self._G), 1.0
        self._length: float | None = None
        return self._report(problem, 0)

    def step(self, problem: SumOfSquares, most: int) -> Report[Array]:
        """Take ten steps, or as many as are left."""
        if self._length is None:
            self._length = 1.0 / curvature_bound(problem)
        steps = min(_ASK_EVERY, most)
        for _ in range(steps):
            self._advance(problem, self._length)
        return self._report(problem, steps)

    def _advance(self, problem: SumOfSquares, length: float) -> None:
        following = (1.0 + math.sqrt(1.0 + 4.0 * self._momentum**2)) / 2.0
        beta = (self._momentum - 1.0) / following
        Y = self._C + beta * self._dC
        self._factor = factor_on_spectrahedron(Y - length * (self._G + beta * self._dG))
        self._residual = problem.residual(self._factor)
        C, G = self._factor @ self._factor.T, problem.gradient(self._residual)
        self._dC, self._dG = C - self._C, G - self._G
        self._momentum = 1.0 if float(((Y - C) * self._dC).sum()) > 0 else following
        self._C, self._G = C, G

    def _report(self, problem: SumOfSquares, steps: int) -> Report[Array]:
        value = problem.value(self._factor, self._residual)
        gap = oracle_gap(self._G, self._factor, value)
        return Report(self._factor, value, gap, size=self._factor.shape[1], steps=steps)
