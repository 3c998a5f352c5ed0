"""A primal-dual interior-point method for the programme itself: a bounded number of dense steps at any bandwidth.

    max ⟨J, X⟩  subject to  diag X = 1, X ≽ 0            min Σyᵢ  subject to  Z = Diag(y) - J ≽ 0

Both are strictly feasible from the first step on, so that Σy - ⟨J, X⟩ = ⟨X, Z⟩ is the gap. The step is that of
Helmberg, Rendl, Vanderbei and Wolkowicz (1996): ZX = μI is linearised as

    (Z⁻¹ ∘ X) δy = μ diag(Z⁻¹) - 1,        δX = μZ⁻¹ - X - sym(Z⁻¹ Diag(δy) X),

once with μ = 0 to see how far one gets, and once more with the μ that this suggests and the second-order term
Z⁻¹ Diag(δy) δX of the first (Mehrotra 1992). Low-rank climbs crawl where the optimum is nearly flat; this does not: it
sees the matrix whole, and its steps are counted in tens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh_tridiagonal, lapack

from mercer.backends.threads import run_chunks, single_threaded_blas
from mercer.solvers.result import Iteration, Status

Array = np.ndarray[Any, np.dtype[Any]]
Callback = Callable[[Iteration], bool | None]

PHASE = "interior point"
MATRICES = 10  # of order n that a step holds at once
STEPS = 40  # at most; some fifteen to twenty-five do
_START = 1.1  # times the row sums of |J|: a strictly diagonally dominant Z
_LANCZOS, _LANCZOS_ERROR = 30, 0.05
_CHUNK = 256
_NEAR, _NEARER = 0.9, 0.09  # of the way to the boundary
_BACK, _TRIES = 0.7, 40  # shortening a step
_ENOUGH, _FALLS = 1e-10, 0.5  # below such a gap, two steps that leave more than this part of it are rounding's
_SHORT = 1e-5  # steps below this part are rounding's


def bytes_needed(n: int) -> int:
    """Memory that the method takes for n rows: ten matrices of doubles."""
    return 8 * MATRICES * n * n


@dataclass(frozen=True, eq=False)
class InteriorPoint:
    """A primal-dual pair.

    Attributes
    ----------
    X : array of shape (n, n)
        Positive definite, with unit diagonal.
    multipliers : array of shape (n,)
        y, with Diag(y) - J positive definite up to rounding: Σy bounds the optimum.
    status : Status
        Why the method ended.
    history : tuple of Iteration
        A line a step. ``relative_gap`` is that of the pair, before any allowance for rounding.
    """

    X: Array
    multipliers: Array
    status: Status
    history: tuple[Iteration, ...]

    @property
    def relative_gap(self) -> float:
        """(Σy - ⟨J, X⟩)/|⟨J, X⟩|, as floating point gives it."""
        gap = self.history[-1].relative_gap
        return float("inf") if gap is None else gap


def solve_interior_point(
    J: Array,
    *,
    tol: float,
    enough: float = 0.0,
    lengths: Array | None = None,
    max_iter: int = STEPS,
    n_columns: int = 0,
    callbacks: tuple[Callback, ...] = (),
) -> InteriorPoint:
    """Solve max ⟨J, X⟩, diag X = 1, X ≽ 0 with its dual.

    Parameters
    ----------
    J : array of shape (n, n)
        Symmetric; it need not be positive semi-definite.
    tol : float
        The relative gap at which to stop.
    enough : float, default=0
        A larger gap at which to stop as well, with the status ``STALLED``, where two steps no longer halve it.
    lengths : array of shape (n,), optional
        By what the residuals of rows are weighed in the history; ones if left out.
    max_iter : int, default=40
        Steps at most.
    n_columns : int, default=0
        What the history says of the columns spent so far.
    callbacks : tuple of callables
        Each receives every :class:`Iteration`; one that returns True ends the method.

    Returns
    -------
    InteriorPoint
        The last strictly feasible pair, whatever the status. On Ctrl-C too.

    Raises
    ------
    ValueError
        If J is not square, symmetric and finite.

    Notes
    -----
    A step costs about 6n³ flops, nearly all in products and factorisations of matrices; 80n² bytes. The row residual in
    the history is that of a point on the central path, √(μZᵢᵢ)/|yᵢ|, which needs no product.
    """
    n = _checked(J).shape[0]
    scale = float(np.max(np.abs(J), initial=0.0))
    if scale == 0:
        line = Iteration(0, 0.0, 0.0, n_columns, 0.0, 0.0, PHASE)
        return InteriorPoint(np.eye(n), np.zeros(n), Status.CONVERGED, (line,))
    weights = np.ones(n) if lengths is None else np.asarray(lengths, np.float64)
    pair = _Pair(np.ascontiguousarray(J / scale))
    began, status = time.perf_counter(), Status.MAX_ITER
    history: list[Iteration] = []
    with single_threaded_blas():  # products are dealt to our own threads
        try:
            for number in range(max_iter + 1):
                if number and (not pair.step() or _lingers(history, pair.relative_gap, max(enough, _ENOUGH))):
                    status = Status.STALLED
                    break
                history.append(
                    Iteration(
                        number,
                        scale * pair.objective,
                        pair.residual(weights),
                        n_columns,
                        time.perf_counter() - began,
                        pair.relative_gap,
                        PHASE,
                    )
                )
                answers = [callback(history[-1]) for callback in callbacks]  # all of them are told
                if any(answers):
                    status = Status.STOPPED
                    break
                if pair.relative_gap <= tol:
                    status = Status.CONVERGED
                    break
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    return InteriorPoint(pair.X, scale * pair.y, status, tuple(history))


def _lingers(history: list[Iteration], gap: float, enough: float) -> bool:
    """Whether a gap that is small enough has hardly fallen in two steps."""
    if len(history) < 2 or history[-2].relative_gap is None:
        return False
    return gap < enough and gap > _FALLS * history[-2].relative_gap


def _checked(J: Array) -> Array:
    if J.ndim != 2 or J.shape[0] != J.shape[1]:
        raise ValueError(f"J must be a square matrix, not of shape {J.shape}.")
    if not np.all(np.isfinite(J)):
        row, column = (int(index) for index in np.argwhere(~np.isfinite(J))[0])
        raise ValueError(f"J has {J[row, column]} at ({row}, {column}): every entry must be finite.")
    if not np.array_equal(J, J.T):
        row, column = (int(index) for index in np.argwhere(J != J.T)[0])
        raise ValueError(f"J is not symmetric at ({row}, {column}): pass (J + J.T) / 2.")
    return J


class _Pair:
    """A strictly feasible pair (X, y) with the factors of X and Z; a step replaces all of them or none."""

    def __init__(self, J: Array) -> None:
        n = J.shape[0]
        self.J, self.X = J, np.eye(n)
        self.y = _START * np.abs(J).sum(axis=1)
        self.y = np.maximum(self.y, np.finfo(np.float64).eps * self.y.max())
        factor = _factor(self._slack(self.y))
        assert factor is not None  # Z is diagonally dominant
        self._LZ, self._LX = factor, np.eye(n, order="F")
        self.objective = float(np.trace(J))
        self._start = np.random.default_rng(0).standard_normal(n)

    @property
    def gap(self) -> float:
        return float(self.y.sum()) - self.objective

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.objective), float(np.finfo(np.float64).tiny))

    def residual(self, weights: Array) -> float:
        slack = np.maximum(self.y - np.diagonal(self.J), 0.0)
        turned = np.sqrt(max(self.gap, 0.0) / self.y.size * slack) / np.maximum(np.abs(self.y), np.finfo(float).tiny)
        return float(np.max(weights * np.minimum(turned, 2.0)) / np.max(weights))

    def step(self) -> bool:
        """One predictor and one corrector; False where rounding leaves no way forward."""
        n, X, mu = self.y.size, self.X, self.gap / self.y.size
        inverse = _inverse(self._LZ)
        system = _factor(inverse * X)
        if system is None or not mu > 0:
            return False
        dy = _solve(system, -np.ones(n))
        dX = self._direction(inverse, dy[:, None] * X, 0.0)
        primal, dual = self._reach(dX, dy)
        left = self._gap_after(dX, dy, primal, dual) / n
        target = mu * min(1.0, max(left / mu, 0.0) ** 2)
        second = dy[:, None] * dX
        correction = np.einsum("ij,ij->i", inverse, dX * dy)  # the diagonal of Z⁻¹ Diag(δy) δX
        dy = _solve(system, target * np.diagonal(inverse) - 1 - correction)
        second += dy[:, None] * X
        dX = self._direction(inverse, second, target)
        near = _NEAR + _NEARER * min(primal, dual)
        primal, dual = (min(1.0, near * part) for part in self._reach(dX, dy, most=2.0))
        return self._move(dX, dy, primal, dual)

    def _direction(self, inverse: Array, right: Array, mu: float) -> Array:
        """μZ⁻¹ - X - sym(Z⁻¹ R), of zero diagonal."""
        W, dX = np.empty_like(right), np.empty_like(right)

        def multiply(lo: int) -> None:
            np.matmul(inverse[lo : lo + _CHUNK], right, out=W[lo : lo + _CHUNK])

        def add(lo: int) -> None:
            rows = slice(lo, lo + _CHUNK)
            dX[rows] = -0.5 * (W[rows] + W[:, rows].T) - self.X[rows]
            if mu:
                dX[rows] += mu * inverse[rows]

        panels = range(0, len(W), _CHUNK)
        run_chunks(multiply, panels)
        run_chunks(add, panels)
        dX[np.diag_indices_from(dX)] = 0.0
        return dX

    def _gap_after(self, dX: Array, dy: Array, primal: float, dual: float) -> float:
        return self.gap + dual * float(dy.sum()) - primal * float(np.vdot(self.J, dX))

    def _reach(self, dX: Array, dy: Array, most: float = 1.0) -> tuple[float, float]:
        """How far X + α δX and Z + α Diag(δy) stay positive definite, at most so far."""
        least = run_chunks(
            lambda pair: _least(*pair, self._start),
            [(self._LX, lambda v: blas.dsymv(1.0, dX.T, v, lower=1)), (self._LZ, lambda v: dy * v)],
        )
        primal, dual = (most if value >= -1 / most else -1 / value for value in least)
        return primal, dual

    def _move(self, dX: Array, dy: Array, primal: float, dual: float) -> bool:
        """Go so far, or back from there until both matrices factor."""
        (primal, LX), (dual, LZ) = run_chunks(
            lambda pair: _shortened(*pair),
            [(primal, lambda part: self.X + part * dX), (dual, lambda part: self._slack(self.y + part * dy))],
        )
        if LX is None or LZ is None or max(primal, dual) < _SHORT:
            return False
        X, y = self.X + primal * dX, self.y + dual * dy
        objective = float(np.vdot(self.J, X))
        self.X, self.y, self._LX, self._LZ, self.objective = X, y, LX, LZ, objective
        return True

    def _slack(self, y: Array) -> Array:
        Z = -self.J
        Z[np.diag_indices_from(Z)] += y
        return Z


def _shortened(part: float, matrix: Callable[[float], Array]) -> tuple[float, Array | None]:
    """The part of a step, shortened until its matrix factors, and the factor; None where nothing helps."""
    for _ in range(_TRIES):
        factor = _factor(matrix(part))
        if factor is not None:
            return part, factor
        part *= _BACK
    return part, None


def _factor(S: Array) -> Array | None:
    """The lower Cholesky factor, None where there is none; what lies above the diagonal is left over."""
    L, info = lapack.dpotrf(S.T, lower=1, clean=0, overwrite_a=1)
    return L if info == 0 and np.all(np.isfinite(np.diagonal(L))) else None


def _inverse(L: Array) -> Array:
    """The inverse of LLᵀ, both triangles filled."""
    S = lapack.dpotri(L, lower=1)[0].T
    for lo in range(0, len(S), _CHUNK):  # by panels: a transpose of the whole would take another matrix
        hi = lo + _CHUNK
        S[hi:, lo:hi] = S[lo:hi, hi:].T
        corner = np.triu(S[lo:hi, lo:hi])
        S[lo:hi, lo:hi] = corner + np.triu(corner, 1).T
    return S


def _solve(L: Array, b: Array) -> Array:
    return lapack.dpotrs(L, b, lower=1)[0].ravel()


def _least(L: Array, multiply: Callable[[Array], Array], start: Array) -> float:
    """About the least eigenvalue of L⁻¹ΔL⁻ᵀ, rather from below, by Lanczos with full reorthogonalisation."""
    n = start.size
    steps = min(_LANCZOS, n)
    basis = np.empty((steps, n))
    basis[0] = start / np.linalg.norm(start)
    alpha, beta = np.zeros(steps), np.zeros(steps)
    for k in range(steps):
        v = blas.dtrsv(L, basis[k], lower=1, trans=1)
        w = blas.dtrsv(L, multiply(v), lower=1)
        alpha[k] = float(w @ basis[k])
        for _ in range(2):
            w -= basis[: k + 1].T @ (basis[: k + 1] @ w)
        beta[k] = float(np.linalg.norm(w))
        done = k + 1 == steps or beta[k] <= np.finfo(np.float64).eps * np.abs(alpha[: k + 1]).max()
        if done or k % 5 == 4:
            values, vectors = eigh_tridiagonal(alpha[: k + 1], beta[:k], select="i", select_range=(0, 0))
            error = 0.0 if k + 1 == n else abs(float(beta[k] * vectors[-1, 0]))
            if done or error <= _LANCZOS_ERROR * abs(values[0]):
                break
        basis[k + 1] = w / beta[k]
    return float(values[0]) - error
