"""Convex functions of few linear functionals on the spectrahedron, with bounds on these, by a barrier.

    minimise F(u) + ⟨R, C⟩ - μ log det C - μ Σ log(upper - u) - μ Σ log(u - lower)   over   Tr C = 1,   u_j = ⟨N_j, C⟩

by Newton's method, for falling μ. With C = LLᵀ and a step C + LDLᵀ the Hessian is μ I plus one of rank q: a step is a
least squares problem in q numbers, not a system of order s(s + 1)/2. At the minimiser for μ the gradient of the rest is
μ C⁻¹ + y I, so that the oracle's gap is at most μ (s + 2 · bounds); μ over the room before a bound is its price.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS
from mercer.problems.convex_squares import ConvexSquares, PricedFactor
from mercer.problems.sum_of_squares import TRACE
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

_FALL = 0.1  # of μ, from one minimiser to the next
_CENTRED = 0.3  # of μ: what a further step would gain
_TO_BOUNDARY = 0.9
_SUFFICIENT = 0.1
_HALVINGS = 40
_LEAST = 1e-15  # of the first gap: smaller μ are rounding
_PATIENCE = 30


class _Direction(NamedTuple):
    """D, the change of u, and how fast the barrier's objective falls along it."""

    D: Array
    move: Array
    fall: float


@final
class Barrier(Method[ConvexSquares, PricedFactor]):
    """One Newton step a step; a point is a square factor L of C, with the prices of the bounds.

    Parameters
    ----------
    enough : callable, optional
        Given u; where it is true the run ends there.

    Notes
    -----
    A step costs q products of s × s matrices, some q² s² operations and one evaluation of ∇²F. The first point must
    keep the bounds strictly; left out, it is I/s.
    """

    name = "barrier"
    phase = "barrier"
    handles = frozenset({TRACE})
    _ahead: _Direction

    def __init__(self, enough: Callable[[Array], bool] | None = None) -> None:
        self._enough = enough

    def start(self, problem: ConvexSquares, point: Any) -> Report[PricedFactor]:
        """Report the first point, at which μ is chosen."""
        s = problem.dimension
        self._L = np.eye(s) / math.sqrt(s) if point is None else np.linalg.cholesky(point.factor @ point.factor.T)
        self._u = problem.functional_values(self._L)
        self._value, self._slope = problem.function.seen(self._u)
        if not math.isfinite(self._value):
            raise ValueError("value is not finite at the density that the search starts from: it must be at all.")
        none = np.zeros(problem.count)
        first = problem.gap(self._L, self._slope, none, none)
        self._mu = self._first_mu = max(first, EPS * abs(self._value)) / (s + 2 * problem.n_bounds)
        self._idle, self._least_gap = 0, math.inf
        return self._report(problem)

    def step(self, problem: ConvexSquares, most: int) -> Report[PricedFactor] | None:
        """Take one Newton step; where it would gain little, for a smaller μ."""
        while self._ahead.fall <= _CENTRED * self._mu:
            self._mu *= _FALL
            if self._mu < _LEAST * self._first_mu:
                return None
            self._ahead = self._direction(problem)
        length = self._length(problem)
        if length is None:
            return None
        L = self._L @ np.linalg.cholesky(np.eye(problem.dimension) + length * self._ahead.D)
        self._L = L / np.linalg.norm(L)
        self._u = problem.functional_values(self._L)
        if not problem.is_inside(self._u):
            return None  # the room before a bound is rounding
        self._value, self._slope = problem.function.seen(self._u)
        return self._report(problem)

    def _prices(self, problem: ConvexSquares) -> tuple[Array, Array]:
        return self._mu / (self._u - problem.lower), self._mu / (problem.upper - self._u)

    def _direction(self, problem: ConvexSquares) -> _Direction:
        """The Newton step for the current μ.

        With EEᵀ the Hessian of F and the bounds in u, D is the residual, over μ, of the least squares problem
        min ‖G + Σ (Ew)_j N_j‖² + μ‖w‖². It is taken from a QR factorisation: in the normal equations functionals that
        nearly depend on each other, with prices far apart, lose all digits.
        """
        terms, (below, above) = self._terms, self._prices(problem)
        root = np.sqrt(above**2 + below**2) / math.sqrt(self._mu)
        E = np.concatenate([terms.root, np.diag(root)[:, root > 0]], axis=1)
        identity = np.eye(terms.order)
        G = terms.traceless(terms.combined(self._slope + above - below) + terms.penalty - self._mu * identity)
        Q = np.linalg.qr(np.concatenate([terms.flat.T @ E, math.sqrt(self._mu) * np.eye(E.shape[1])]))[0]
        residual = -np.concatenate([G.ravel(), np.zeros(E.shape[1])])
        for _ in range(2):
            residual = residual - Q @ (Q.T @ residual)
        D = residual[: G.size].reshape(G.shape) / self._mu
        D = (D + D.T) / 2
        return _Direction(D, terms.flat @ D.ravel(), float(residual @ residual) / self._mu)

    def _length(self, problem: ConvexSquares) -> float | None:
        """A step that keeps C definite and u in its bounds, and lowers the barrier's objective; None without one."""
        D, move, fall = self._ahead
        linear = float((self._terms.penalty * D).sum())
        room = np.concatenate([problem.upper - self._u, self._u - problem.lower])
        used = np.concatenate([move, -move])
        finite = np.isfinite(room)
        shares = np.concatenate([-np.linalg.eigvalsh(D), used[finite] / room[finite]])
        length = min(1.0, _TO_BOUNDARY / max(float(np.max(shares)), EPS))
        noise = 8 * EPS * (abs(self._value) + abs(float(self._terms.penalty.trace())) + self._mu * shares.size)
        for _ in range(_HALVINGS):
            value = problem.function.value(self._u + length * move)
            change = value - self._value + length * linear - self._mu * float(np.sum(np.log1p(-length * shares)))
            if change <= noise - _SUFFICIENT * length * fall:
                return length
            length /= 2
        return None

    def _report(self, problem: ConvexSquares) -> Report[PricedFactor]:
        """The point with the better of two prices: those of its room, and those that the next step expects."""
        self._terms = _Terms(problem, self._L, self._u)
        self._ahead = self._direction(problem)
        below, above = self._prices(problem)
        move = self._ahead.move
        expected = below * (1 - move / (self._u - problem.lower)), above * (1 + move / (problem.upper - self._u))
        prices = [(below, above), tuple(np.maximum(price, 0.0) for price in expected)]
        gaps = [problem.gap(self._L, self._slope, *pair) for pair in prices]
        best = int(np.argmin(gaps))
        gap = gaps[best]
        objective = self._value + float((self._L * (problem.penalty @ self._L)).sum())
        self._idle = 0 if gap < 0.9 * self._least_gap else self._idle + 1
        self._least_gap = min(gap, self._least_gap)
        status, merit = Status.STALLED if self._idle > _PATIENCE else None, -gap
        if self._enough is not None and self._enough(self._u):
            status, merit = Status.STOPPED, math.inf
        point = PricedFactor(self._L, *prices[best])
        return Report(point, objective, gap, size=problem.dimension, merit=merit, status=status)


@final
class _Terms:
    """What the Newton steps at one C = LLᵀ share: the functionals LᵀN_jL and a root of ∇²F.

    Functionals such as the masses of cells add up to the trace, which is fixed: left in, its part would cancel.
    """

    def __init__(self, problem: ConvexSquares, L: Array, u: Array) -> None:
        self.order, mass = L.shape[0], L.T @ L
        self._mass = mass / np.linalg.norm(mass)
        self.penalty = self.traceless(L.T @ problem.penalty @ L)
        self.flat = self.traceless(L.T @ problem.matrices @ L).reshape(problem.count, -1)
        levels, vectors = np.linalg.eigh(problem.function.hessian(u))
        self.root = vectors[:, levels > 0] * np.sqrt(levels[levels > 0])

    def traceless(self, matrices: Array) -> Array:
        """Without their part along LᵀL: steps D keep the trace of C, ⟨LᵀL, D⟩ = 0, and do not see it."""
        along = np.sum(matrices * self._mass, axis=(-2, -1), keepdims=True)
        return np.asarray(matrices - along * self._mass)

    def combined(self, y: Array) -> Array:
        """Σ y_j LᵀN_jL."""
        return np.asarray((y @ self.flat).reshape(self.order, self.order))
