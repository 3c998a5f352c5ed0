"""A primal-dual interior-point method for maximum variance unfolding: some twenty dense steps, whatever the graph.

    max ⟨V, B⟩  with  A(B) + s = hi,  A(B) - t = lo,  B ≽ 0,  s, t ≥ 0,      A(B)ₑ = ‖yᵢ - yⱼ‖²
    min Σ hi x - lo z  with  Z = L_w - V ≽ 0,  w = x - z,  x, z ≥ 0.

The dual is strictly feasible from the first step on; the primal becomes feasible on the way, so that no first point
need be known and none need exist. The step linearises ZB = μI as Helmberg, Rendl, Vanderbei and Wolkowicz (1996) do,
together with xs = zt = μ. Each A is of rank one, and the Schur complement is an entrywise product,

    ((D B Dᵀ) ∘ (D Z⁻¹ Dᵀ) + Diag(x/s + z/t)⁻¹) δw = μ A(Z⁻¹) + …,        D the differences of the pairs,

solved once with μ = 0 and once more with the μ that this suggests and the second-order terms (Mehrotra 1992).

A factor of low rank would cost less a step, but on a curled sheet its local optima are many (2678.4 where the optimum
is 2680.9, 300 points of a Swiss roll); and where distances are kept closely, groups of neighbours that determine their
own shape leave no room, multipliers grow without bound, and first-order multipliers do not settle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks
from mercer.linalg.factors import solve_by_factor, upper_factor
from mercer.problems.unfolding import InfeasibleDistancesError, Unfolding
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

STEPS = 100  # at most; some twenty to thirty do
_FEASIBLE = 1e-7  # of the upper bounds: how far distances may be from them, and from their slack
_NEAR = 0.98  # of the way to the boundary
_BACK, _TRIES = 0.8, 30
_DENSE_UP_TO = 60
_STIFFER = 60  # times that springs may be made stiffer before the first step
_STEEPEST = 3.0
_SHORT = 1e-7
_CHUNK = 512
_LARGE, _WIDE = 1000.0, 100.0  # the first inner products and slacks in units of the bounds: small ones cost steps


class Unfolded(NamedTuple):
    """A pair.

    Attributes
    ----------
    gram : array of shape (n, n)
        B, the inner products of the points, with the last at the origin.
    multipliers : array of shape (E,)
        w, with L_w ≽ V up to rounding.
    """

    gram: Array
    multipliers: Array


@final
class UnfoldingInteriorPoint(Method[Unfolding, Unfolded]):
    """One predictor and one corrector a step.

    Notes
    -----
    Cost a step: E³/3 flops for E pairs and some 12n³; memory 8(2E² + 12n²) bytes.
    """

    name = phase = "interior point"

    def start(self, problem: Unfolding, point: Any) -> Report[Unfolded]:
        self._at = _first_point(problem)
        return self._report(problem)

    def step(self, problem: Unfolding, most: int) -> Report[Unfolded] | None:
        moved = _Step(problem, self._at).taken()
        if moved is None:
            return None
        self._at = moved
        return self._report(problem)

    def _report(self, problem: Unfolding) -> Report[Unfolded]:
        at = self._at
        primal, dual = float(np.vdot(_pull(problem), at.B)), problem.dual_value(at.x - at.z)
        if dual < 0:
            _refuse_infeasible(problem, at.x - at.z)
        error = at.infeasibility(problem)
        gap = dual - primal if error <= _FEASIBLE else None
        return Report(
            Unfolded(np.pad(at.B, (0, 1)), at.x - at.z),
            primal,
            gap=None if gap is None else max(gap, 0.0),
            size=problem.size,
            merit=-max(error / _FEASIBLE, 1.0) * abs(dual - primal),
            status=Status.STALLED if gap is not None and gap < 0 else None,
        )


def _refuse_infeasible(problem: Unfolding, multipliers: Array) -> None:
    """Name the pair that is pushed apart most: with L_w ≽ 0, any points would have 0 ≤ Σ hi w⁺ - lo w⁻ < 0."""
    worst = int(np.argmin(multipliers * problem.lower))
    raise InfeasibleDistancesError(worst)


@dataclass(frozen=True, eq=False)
class _Point:
    """B, the slacks s and t, the multipliers x and z, and Z; t is infinite and z zero without lower bounds."""

    B: Array
    s: Array
    t: Array
    x: Array
    z: Array
    Z: Array

    def infeasibility(self, problem: Unfolding) -> float:
        squares = _squares(problem, self.B)
        error = np.abs(squares + self.s - problem.upper)
        if problem.two_sided:
            error = np.maximum(error, np.abs(squares - self.t - problem.lower))
        return float((error / problem.upper).max())


class _Direction(NamedTuple):
    B: Array
    s: Array
    t: Array
    x: Array
    z: Array
    Z: Any


def _pull(problem: Unfolding) -> Array:
    return problem.pull[:-1, :-1]


def _laplacian(problem: Unfolding, w: Array) -> Any:
    return problem.laplacian(w)[:-1, :-1]


def _squares(problem: Unfolding, X: Array) -> Array:
    """A(X) of a matrix that lacks the row and column of the last point, which are zero."""
    last = problem.size - 1
    i, j = problem.pairs.T
    diagonal = np.append(X.diagonal(), 0.0)
    across = np.zeros(i.size)
    inside = (i < last) & (j < last)
    across[inside] = X[i[inside], j[inside]]
    return diagonal[i] + diagonal[j] - 2 * across


def _first_point(problem: Unfolding) -> _Point:
    """Springs stiff enough, and points equally far from one another."""
    V, hi = _pull(problem), problem.upper
    x = problem.masses.mean() / hi
    for _ in range(_STIFFER):
        if upper_factor(_laplacian(problem, x).toarray() - V) is not None:
            break
        x = 4 * x
    x = 2 * x
    z, t = np.zeros_like(x), np.full_like(x, np.inf)
    if problem.two_sided:
        z, t = x.copy(), _WIDE * hi
        x = x + z
    B = _LARGE * hi.mean() * np.eye(problem.size - 1)
    return _Point(B, _WIDE * hi, t, x, z, _laplacian(problem, x - z).toarray() - V)


class _Step:
    """The linear systems at a point, factored once, and the step that they give."""

    def __init__(self, problem: Unfolding, at: _Point) -> None:
        self._problem, self._at = problem, at

    def taken(self) -> _Point | None:
        """The next point, None where rounding ends the way."""
        at, problem = self._at, self._problem
        of_Z, of_B = upper_factor(at.Z.copy()), upper_factor(at.B.copy())
        if of_Z is None or of_B is None:
            return None
        self._RZ, self._RB = np.triu(of_Z), np.triu(of_B)
        inverse = solve_by_factor(of_Z, np.eye(at.Z.shape[0]))
        self._inverse = (inverse + inverse.T) / 2
        self._curvature = at.x / at.s + at.z / at.t
        factor = upper_factor(self._schur())
        if factor is None:
            return None
        self._factor, self._of_inverse = factor, _squares(problem, self._inverse)
        return self._moved(self._corrected())

    def _schur(self) -> Array:
        """(D B Dᵀ) ∘ (D Z⁻¹ Dᵀ) + Diag(x/s + z/t)⁻¹."""
        D = self._problem.differences[:, :-1]
        left, right = (np.ascontiguousarray((D @ X).T) for X in (self._at.B, self._inverse))
        matrix = np.empty((D.shape[0], D.shape[0]))
        for rows in row_chunks(D.shape[0], _CHUNK):
            part = D[rows]
            np.multiply(part @ left, part @ right, out=matrix[rows])
        matrix[np.diag_indices(D.shape[0])] += 1 / self._curvature
        return matrix

    @property
    def _mu(self) -> float:
        return self._complementarity(self._at) / self._order

    @property
    def _order(self) -> int:
        return self._at.Z.shape[0] + self._at.x.size * (2 if self._problem.two_sided else 1)

    def _complementarity(self, at: _Point) -> float:
        sum_ = float(np.vdot(at.B, at.Z)) + float(at.x @ at.s)
        return sum_ + float(at.z @ at.t) if self._problem.two_sided else sum_

    def _direction(self, mu: float, last: _Direction | None = None) -> _Direction:
        """Solve for complementarity μ, with the second-order terms of the last direction where there is one."""
        at, problem, inverse = self._at, self._problem, self._inverse
        second = 0.0 if last is None else _symmetric((last.Z.T @ last.B.T).T @ inverse)
        over_s = mu - (0.0 if last is None else last.x * last.s)
        over_t = mu - (0.0 if last is None else last.z * last.t) if problem.two_sided else np.zeros_like(at.s)
        lower = problem.lower if problem.two_sided else np.zeros_like(at.s)
        pushed = over_s / at.s - over_t / at.t - at.x / at.s * problem.upper - at.z / at.t * lower
        right = mu * self._of_inverse + pushed / self._curvature
        if last is not None:
            right = right - _squares(problem, second)
        w = solve_by_factor(self._factor, right[:, None])[:, 0]
        Z = _laplacian(problem, w)
        B = mu * inverse - at.B - _symmetric((Z @ at.B).T @ inverse) - second
        squares = _squares(problem, at.B + B)
        s, t = problem.upper - at.s - squares, squares - lower - at.t
        if not problem.two_sided:
            return _Direction(B, s, np.zeros_like(s), w, np.zeros_like(s), Z)
        squares = (w - pushed) / self._curvature  # the same but for rounding, which would leave nothing of x - z = w
        x = over_s / at.s - at.x - at.x / at.s * (problem.upper - at.s - squares)
        z = over_t / at.t - at.z - at.z / at.t * (squares - lower - at.t)
        tight = at.s < at.t  # the multiplier of the smaller slack is the one that cancels: the other tells it
        return _Direction(B, s, t, np.where(tight, w + z, x), np.where(tight, z, x - w), Z)

    def _corrected(self) -> _Direction:
        """The direction with the second-order terms of the one that aims at μ = 0, and the μ that this one reaches."""
        first = self._direction(0.0)
        primal, dual = self._lengths(first)
        there = self._at_lengths(first, primal, dual)
        ratio = max(self._complementarity(there) / self._complementarity(self._at), 0.0)
        aim = min(1.0, max(ratio ** max(1.0, _STEEPEST * min(primal, dual) ** 2), 1e-4))
        return self._direction(aim * self._mu, first)

    def _lengths(self, to: _Direction) -> tuple[float, float]:
        """How far one may go in the primal and in the dual variables; at most all the way."""
        at = self._at
        primal = min(_room(self._RB, to.B), _ratio(at.s, to.s), _ratio(at.t, to.t))
        dual = min(_room(self._RZ, to.Z), _ratio(at.x, to.x), _ratio(at.z, to.z))
        return min(1.0, _NEAR * primal), min(1.0, _NEAR * dual)

    def _at_lengths(self, to: _Direction, primal: float, dual: float) -> _Point:
        at = self._at
        x, z = at.x + dual * to.x, at.z + dual * to.z
        return _Point(
            at.B + primal * to.B,
            at.s + primal * to.s,
            at.t + primal * to.t,
            x,
            z,
            _laplacian(self._problem, x - z).toarray() - _pull(self._problem),
        )

    def _moved(self, to: _Direction) -> _Point | None:
        """The point at the end of a step, which is shortened until B and Z have factors."""
        primal, dual = self._lengths(to)
        for _ in range(_TRIES):
            there = self._at_lengths(to, primal, dual)
            whole = [upper_factor(X.copy()) is not None for X in (there.B, there.Z)]
            if all(whole):
                return replace(there, B=_symmetric(there.B)) if max(primal, dual) > _SHORT else None
            primal, dual = (primal if whole[0] else _BACK * primal), (dual if whole[1] else _BACK * dual)
        return None


def _symmetric(X: Array) -> Array:
    return (X + X.T) / 2


def _ratio(values: Array, steps: Array) -> float:
    """The longest step at which no value becomes negative."""
    falls = steps < 0
    return float(np.min(-values[falls] / steps[falls], initial=1 / _NEAR))


def _room(R: Array, direction: Any) -> float:
    """About the longest step along a direction at which RᵀR stays positive semi-definite: -1/λmin(R⁻ᵀ δ R⁻¹)."""
    n = R.shape[0]

    def multiply(v: Array) -> Array:
        inner = direction @ solve_triangular(R, v.reshape(n, -1), check_finite=False)
        return solve_triangular(R, inner, trans=1, check_finite=False)

    if n <= _DENSE_UP_TO:
        least = float(np.linalg.eigvalsh(_symmetric(multiply(np.eye(n))))[0])
    else:
        map_ = LinearOperator((n, n), matvec=lambda v: multiply(v).ravel(), dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        try:
            least = float(eigsh(map_, k=1, which="SA", v0=start, tol=1e-3, maxiter=50, return_eigenvectors=False)[0])
        except ArpackError:
            least = -1.0
    return -1 / least if least < -_NEAR else 1 / _NEAR


def bytes_needed(n: int, count: int) -> float:
    """What a step takes for n points and so many pairs."""
    return 8.0 * (1.3 * count**2 + 2 * n * count + 14 * n**2)
