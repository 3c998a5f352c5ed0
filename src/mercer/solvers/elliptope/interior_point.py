"""A primal-dual interior-point method for the programme itself: a bounded number of dense steps at any bandwidth.

    max ⟨J, X⟩  subject to  diag X = 1, X ≽ 0            min Σyᵢ  subject to  Z = Diag(y) - J ≽ 0

Both are strictly feasible from the first step on, so that Σy - ⟨J, X⟩ = ⟨X, Z⟩ is the gap. The step is that of
Helmberg, Rendl, Vanderbei and Wolkowicz (1996): ZX = μI is linearised as

    (Z⁻¹ ∘ X) δy = μ diag(Z⁻¹) - 1,        δX = μZ⁻¹ - X - sym(Z⁻¹ Diag(δy) X),

once with μ = 0 to see how far one gets, and once more with the μ that this suggests and the second-order term
Z⁻¹ Diag(δy) δX of the first (Mehrotra 1992). Low-rank climbs crawl where the optimum is nearly flat; this does not: it
sees the matrix whole, and its steps are counted in tens. NumPy's matrices go through LAPACK in place and on our own
threads, tensors through the same factors of their library.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg import blas

from mercer.backends.arrays import Array, contiguous, copied, is_tensor, like, namespace
from mercer.backends.chunks import row_chunks
from mercer.backends.rounding import EPS, TINY
from mercer.backends.threads import run_chunks_of, single_threaded_blas
from mercer.linalg.tall import inner_product, row_products
from mercer.problems.elliptope import INDEFINITE, DenseElliptope
from mercer.solvers.cone import identity_like, inverse_of, least_relative, lower_factor, product, shortened, solve_by
from mercer.solvers.run import Goal, Method, Report, solve
from mercer.solvers.solution import Solution, Status

STEPS = 40  # at most; some fifteen to twenty-five do
_START = 1.1  # times the row sums of |J|: a strictly diagonally dominant Z
_CHUNK = 256
_NEAR, _NEARER = 0.9, 0.09  # of the way to the boundary
_ENOUGH, _FALLS = 1e-10, 0.5  # below such a gap, two steps that leave more than this part of it are rounding's
_SHORT = 1e-5  # steps below this part are rounding's


class PrimalDual(NamedTuple):
    """A strictly feasible pair.

    Attributes
    ----------
    X : array of shape (n, n)
        Positive definite, with unit diagonal.
    multipliers : array of shape (n,)
        y, with Diag(y) - J positive definite up to rounding: Σy bounds the optimum.
    """

    X: Array
    multipliers: Array


@final
class InteriorPoint(Method[DenseElliptope, PrimalDual]):
    """One predictor and one corrector a step: about 6n³ flops, nearly all in products and factors; 80n² bytes.

    The gap that is reported is that of the pair, before any allowance for rounding; the residual that of a point on the
    central path, √(μZᵢᵢ) over the size of yᵢ, which needs no product.

    Parameters
    ----------
    enough : float, default=0
        A gap at which to end, with the status ``STALLED``, where two steps do not halve it.
    """

    name = phase = "interior point"
    handles = frozenset({INDEFINITE})

    def __init__(self, *, enough: float = 0.0) -> None:
        self._enough = max(enough, _ENOUGH)

    def start(self, problem: DenseElliptope, point: Any) -> Report[PrimalDual]:
        J = problem.matrix
        self._scale = float(abs(J).max()) if J.shape[0] else 0.0
        self._gaps: list[float] = []
        if self._scale == 0:
            nothing = namespace(J).zeros_like(J[:, 0])
            return Report(PrimalDual(identity_like(J), nothing), 0.0, 0.0, 0.0, status=Status.CONVERGED)
        self._pair = _Pair(contiguous(J / self._scale))
        return self._report(problem)

    def step(self, problem: DenseElliptope, most: int) -> Report[PrimalDual] | None:
        with single_threaded_blas():  # products are dealt to our own threads
            return self._report(problem) if self._pair.step() else None

    def _report(self, problem: DenseElliptope) -> Report[PrimalDual]:
        pair, scale = self._pair, self._scale
        self._gaps.append(pair.relative_gap)
        lingers = len(self._gaps) > 2 and self._enough > self._gaps[-1] > _FALLS * self._gaps[-3]
        return Report(
            PrimalDual(pair.X, scale * pair.y),
            scale * pair.objective,
            gap=scale * pair.gap,
            residual=pair.residual(problem.lengths),
            size=pair.y.shape[0],
            status=Status.STALLED if lingers else None,
        )


def solve_interior_point(J: Array, *, tol: float, max_iter: int = STEPS, **options: Any) -> Solution[PrimalDual]:
    """Solve max ⟨J, X⟩, diag X = 1, X ≽ 0 with its dual, for a symmetric matrix J, to a relative gap."""
    return solve(DenseElliptope(J), InteriorPoint(), goal=Goal(tol, max_iter=max_iter), **options)


class _Pair:
    """A strictly feasible pair (X, y) with the factors of X and Z; a step replaces all of them or none."""

    def __init__(self, J: Array) -> None:
        xp, self.J, self.X = namespace(J), J, identity_like(J)
        self._on_diagonal = xp.arange(J.shape[0], device=J.device)
        self.y = _START * abs(J).sum(axis=1)
        self.y = xp.clip(self.y, EPS * float(self.y.max()), None)
        factor = lower_factor(self._slack(self.y))
        assert factor is not None  # Z is diagonally dominant
        self._LZ = factor
        self._LX = copied(self.X) if is_tensor(J) else np.eye(J.shape[0], order="F")
        self.objective = float(xp.sum(J.diagonal()))
        self._start = like(np.random.default_rng(0).standard_normal(J.shape[0]), J)

    @property
    def gap(self) -> float:
        return float(self.y.sum()) - self.objective

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.objective), TINY)

    def residual(self, weights: Array) -> float:
        xp = namespace(self.y)
        slack = xp.clip(self.y - self.J.diagonal(), 0.0, None)
        turned = xp.sqrt(max(self.gap, 0.0) / self.y.shape[0] * slack) / xp.clip(abs(self.y), TINY, None)
        return float((weights * xp.clip(turned, None, 2.0)).max()) / float(weights.max())

    def step(self) -> bool:
        """One predictor and one corrector; False where rounding leaves no way forward."""
        n, X, mu = self.y.shape[0], self.X, self.gap / self.y.shape[0]
        inverse = inverse_of(self._LZ)
        system = lower_factor(inverse * X)
        if system is None or not mu > 0:
            return False
        dy = solve_by(system, -namespace(X).ones_like(self.y))
        dX = self._direction(inverse, dy[:, None] * X, 0.0)
        primal, dual = self._reach(dX, dy)
        left = self._gap_after(dX, dy, primal, dual) / n
        target = mu * min(1.0, max(left / mu, 0.0) ** 2)
        second = dy[:, None] * dX
        correction = row_products(inverse, dX * dy)  # the diagonal of Z⁻¹ Diag(δy) δX
        dy = solve_by(system, target * inverse.diagonal() - 1 - correction)
        second += dy[:, None] * X
        dX = self._direction(inverse, second, target)
        near = _NEAR + _NEARER * min(primal, dual)
        primal, dual = (min(1.0, near * part) for part in self._reach(dX, dy, most=2.0))
        return self._move(dX, dy, primal, dual)

    def _direction(self, inverse: Array, right: Array, mu: float) -> Array:
        """μZ⁻¹ - X - sym(Z⁻¹ R), of zero diagonal."""
        W = product(inverse, right)
        dX = namespace(W).empty_like(W)

        def add(rows: slice) -> None:
            dX[rows] = -0.5 * (W[rows] + W[:, rows].T) - self.X[rows]
            if mu:
                dX[rows] += mu * inverse[rows]

        run_chunks_of(W, add, row_chunks(W.shape[0], _CHUNK))
        dX[self._on_diagonal, self._on_diagonal] = 0.0
        return dX

    def _gap_after(self, dX: Array, dy: Array, primal: float, dual: float) -> float:
        return self.gap + dual * float(dy.sum()) - primal * inner_product(self.J, dX)

    def _reach(self, dX: Array, dy: Array, most: float = 1.0) -> tuple[float, float]:
        """How far X + α δX and Z + α Diag(δy) stay positive definite, at most so far."""

        def times(v: Array) -> Array:
            return dX @ v if is_tensor(v) else blas.dsymv(1.0, dX.T, v, lower=1)

        pairs = [(self._LX, times), (self._LZ, lambda v: dy * v)]
        least = run_chunks_of(dX, lambda pair: least_relative(*pair, self._start), pairs)
        primal, dual = (most if value >= -1 / most else -1 / value for value in least)
        return primal, dual

    def _move(self, dX: Array, dy: Array, primal: float, dual: float) -> bool:
        """Go so far, or back from there until both matrices factor."""
        pairs = [(primal, lambda part: self.X + part * dX), (dual, lambda part: self._slack(self.y + part * dy))]
        (primal, LX), (dual, LZ) = run_chunks_of(dX, lambda pair: shortened(*pair), pairs)
        if LX is None or LZ is None or max(primal, dual) < _SHORT:
            return False
        X, y = self.X + primal * dX, self.y + dual * dy
        objective = inner_product(self.J, X)
        self.X, self.y, self._LX, self._LZ, self.objective = X, y, LX, LZ, objective
        return True

    def _slack(self, y: Array) -> Array:
        Z = -self.J
        Z[self._on_diagonal, self._on_diagonal] += y
        return Z
