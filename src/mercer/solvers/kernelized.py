"""A primal-dual interior-point method for the kernelised programme, in the coordinates of its Hilbert space.

    max ⟨C, B⟩  subject to  lᵢᵀBlᵢ = dᵢ, B ≽ 0        min dᵀy  subject to  Z = LᵀDiag(y)L - C ≽ 0

with C = LᵀPK̄PL - λI and lᵢ the rows of L, LLᵀ = K. In the coordinates B' = LBLᵀ of the embedding the same programme has
the matrix PK̄P - λK⁻¹, whose entries are as large as λ/λmin(K) and whose solution is lost in their rounding; here every
eigenvalue of Z is λ at least but for those that vanish at the optimum, whatever K is. The step is that of Helmberg,
Rendl, Vanderbei and Wolkowicz (1996) with Mehrotra's corrector: ZB = μI is linearised as

    (LZ⁻¹Lᵀ ∘ LBLᵀ) δy = μ diag(LZ⁻¹Lᵀ) - d,        δB = μZ⁻¹ - B - sym(Z⁻¹ LᵀDiag(δy)L B).
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg import blas, solve_triangular

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS, TINY
from mercer.linalg.tall import row_products
from mercer.problems.kernelized import KernelizedProgramme
from mercer.solvers.cone import damped_system, inverse_of, least_relative, lower_factor, shortened
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

STEPS = 60  # at most; some fifteen to thirty do
_START = 1.1  # times the row sums of |PK̄P|: a diagonal that dominates it
_NEAR, _NEARER = 0.9, 0.09  # of the way to the boundary
_SHORT = 1e-6  # steps below this part are rounding's
_FALLS, _LINGERS = 0.5, 3  # a small gap that has not fallen by half in so many steps is rounding's
_NEARLY = 1e-4  # of the objective: a small gap


class HilbertPair(NamedTuple):
    """A strictly feasible pair.

    Attributes
    ----------
    B : array of shape (m, m)
        Positive definite, lᵢᵀBlᵢ = dᵢ.
    multipliers : array of shape (m,)
        y, with Z positive definite up to rounding: dᵀy bounds the optimum.
    """

    B: Array
    multipliers: Array


@final
class HilbertInteriorPoint(Method[KernelizedProgramme, HilbertPair]):
    """One predictor and one corrector a step: ten products of matrices of order m and four factors; 120m² bytes."""

    name = phase = "interior point"

    def start(self, problem: KernelizedProgramme, point: Any) -> Report[HilbertPair]:
        self._pair = _Pair(problem)
        self._gaps: list[float] = []
        return self._report(problem)

    def step(self, problem: KernelizedProgramme, most: int) -> Report[HilbertPair] | None:
        problem.spend(problem.size)
        return self._report(problem) if self._pair.step() else None

    def _report(self, problem: KernelizedProgramme) -> Report[HilbertPair]:
        pair = self._pair
        self._gaps.append(pair.gap)
        near = pair.gap <= _NEARLY * abs(pair.objective)
        lingers = near and len(self._gaps) > _LINGERS and pair.gap > _FALLS * self._gaps[-1 - _LINGERS]
        return Report(
            HilbertPair(pair.B, pair.y),
            pair.objective,
            gap=pair.gap,
            size=problem.size,
            merit=-pair.gap,
            status=Status.STALLED if lingers else None,
        )


class _Pair:
    """A strictly feasible pair (B, y) with the factors of B and Z; a step replaces all of them or none."""

    def __init__(self, problem: KernelizedProgramme) -> None:
        self.problem, self.L, self.d = problem, problem.factor, problem.prescribed
        self._inside = problem.compressed  # C + λI
        length = np.sqrt(self.d / np.sum(self.L**2, axis=1))
        half = solve_triangular(self.L, length[:, None] * self.L, lower=True)
        self.B = half @ half.T
        self.y = _START * problem.dominating + EPS
        LB, LZ = lower_factor(self.B.copy()), lower_factor(problem.slack(self.y))
        if LB is None or LZ is None:
            raise ArithmeticError("The kernelised programme has no interior point in double precision.")
        self._LB, self._LZ = LB, LZ
        self._start = np.random.default_rng(0).standard_normal(problem.size)
        self._measure()

    def _measure(self) -> None:
        """The objective and the gap; y·d and the diagonal of LBLᵀ agree but for rounding."""
        self.objective = float(np.sum(self._inside * self.B)) - self.problem.regularization * float(np.trace(self.B))
        self.gap = max(float(self.y @ self.d) - self.objective, 0.0)

    def step(self) -> bool:
        """One predictor and one corrector; False where rounding leaves no way forward."""
        m, L, d = self.d.shape[0], self.L, self.d
        mu = self.gap / m
        inverse = inverse_of(self._LZ)
        left, right = L @ inverse, L @ self.B  # LZ⁻¹ and LB
        G, X = left @ L.T, right @ L.T
        system = damped_system(G * X)
        if system is None or not mu > TINY:
            return False
        dy = system.solve(-d)
        dB = self._direction(inverse, left.T @ (dy[:, None] * right), 0.0)
        primal, dual = self._reach(dB, dy)
        ahead = float(np.sum(self._inside * dB)) - self.problem.regularization * float(np.trace(dB))
        after = max(self.gap + dual * float(dy @ d) - primal * ahead, 0.0)
        target = mu * min(1.0, after / self.gap) ** 2
        moved = L @ dB
        correction = row_products(G * dy, moved @ L.T)
        second = dy[:, None] * moved
        dy = system.solve(target * G.diagonal() - d - correction)
        dB = self._direction(inverse, left.T @ (dy[:, None] * right + second), target)
        near = _NEAR + _NEARER * min(primal, dual)
        primal, dual = (min(1.0, near * part) for part in self._reach(dB, dy, most=2.0))
        return self._move(dB, dy, primal, dual)

    def _direction(self, inverse: Array, W: Array, mu: float) -> Array:
        """μZ⁻¹ - B - sym(W)."""
        dB = -0.5 * (W + W.T) - self.B
        if mu:
            dB += mu * inverse
        return np.asarray(dB)

    def _reach(self, dB: Array, dy: Array, most: float = 1.0) -> tuple[float, float]:
        """How far B + α δB and Z + α δZ stay positive definite, at most so far."""

        def of_B(v: Array) -> Array:
            return np.asarray(blas.dsymv(1.0, dB.T, v, lower=1))

        def of_Z(v: Array) -> Array:
            return self.L.T @ (dy * (self.L @ v))

        least = (least_relative(self._LB, of_B, self._start), least_relative(self._LZ, of_Z, self._start))
        primal, dual = (most if value >= -1 / most else -1 / value for value in least)
        return primal, dual

    def _move(self, dB: Array, dy: Array, primal: float, dual: float) -> bool:
        """Go so far, or back from there until both matrices factor."""
        primal, LB = shortened(primal, lambda part: self.B + part * dB)
        dual, LZ = shortened(dual, lambda part: self.problem.slack(self.y + part * dy))
        if LB is None or LZ is None or max(primal, dual) < _SHORT:
            return False
        self.B, self.y = self.B + primal * dB, self.y + dual * dy
        self._LB, self._LZ = LB, LZ
        self._measure()
        return True
