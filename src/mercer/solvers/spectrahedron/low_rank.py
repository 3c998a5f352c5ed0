"""Newton's method on the faces of the spectrahedron, for solutions of low rank.

C = F Fᵀ with F of shape (s, r), ‖F‖ = 1. One round:

1. The gradient G at C and its eigenvectors. The linear oracle's gap ⟨G, C⟩ - λ_min(G) says how far C is from optimal.
2. A Newton direction D of F ↦ f(F Fᵀ) on the sphere, by conjugate gradients preconditioned with the eigenvectors of G.
   Since the tensor of the integrals is symmetric, the derivative of A(F Fᵀ) in F is a matrix: products with it cost
   r m² instead of m³.
3. f is minimised *exactly* over all C' whose range lies in span(F, D, eigenvectors of the least eigenvalues of G): a
   small convex programme. It replaces the line search, finds the rank by itself (eigenvalues vanish, and the oracle's
   eigenvectors enter where the rank is too small), and makes every round at least as good as a Frank-Wolfe step.

Near a solution with strict complementarity rounds converge as Newton's method does; ten to twenty rounds are usual.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, eigh, namespace, norm
from mercer.backends.chunks import KEPT_BYTES
from mercer.backends.rounding import EPS, TINY
from mercer.backends.symmetric_entries import SymmetricEntries
from mercer.problems.squares_likelihood import LOGARITHMS, SquaresLikelihood
from mercer.problems.sum_of_squares import TRACE, SumOfSquares
from mercer.solvers.run import Goal, Method, Report
from mercer.solvers.solution import Status
from mercer.solvers.spectrahedron.face import minimise_small
from mercer.solvers.spectrahedron.interior_point import LARGEST_SYSTEM, Likelihood, minimise_likelihood

SquaresProblem = SumOfSquares | SquaresLikelihood
_WHOLE_UP_TO = 20  # of so small an order the whole spectrahedron is one face
_LARGEST_FACE = 36
_FIRST_FACE = 8
_FEWEST_NEW, _MOST_NEW = 3, 5  # eigenvectors of the gradient that enter a face
_NO_DIRECTION = 1e-10  # of the largest eigenvalue of C: what an interior point leaves where there is no direction
_MAIN = 1e-6
_REMEMBERED = 8
_MOST_COLUMNS = 24  # of F on a face, which must have room for new ones
_RANK_LEVELS = (1e-4, 1e-6, 1e-8)
_MOST_PRODUCTS = 100
_FLOOR = 1e-3
_ON_FACE = 1e-4  # of the gap asked for: eigenvalues that should vanish are then told from those that should not
_PATIENCE = 6  # rounds that neither halve the gap nor lower the objective by a notable part of it
_NOTABLE = 0.02
_PROMISING = 0.1
_INDEPENDENT = 1e-8
_ROUGH = 1e-5  # nats: what tells the range of a likelihood's solution


@final
class LowRank(Method[SquaresProblem, Array]):
    """One round a step; points are factors F of C = F Fᵀ of length one.

    A first factor gives the first face by its range; left out, the directions that are best at C = 0 do. A point that
    meets the goal is given a rank as small as the goal allows.

    Parameters
    ----------
    goal : Goal
        What is asked of the gap: faces are solved beyond it.

    Notes
    -----
    A round costs about k + r products of m × m matrices, k ≤ 36 the order of the face and r the rank, and one
    eigendecomposition of order s. Memory: some m × m matrices, and one for each column that moves, up to 256 MB.
    """

    name = "low-rank"
    phase = "faces"
    handles = frozenset({TRACE, LOGARITHMS})

    def __init__(self, goal: Goal) -> None:
        self._goal = goal

    def start(self, problem: SquaresProblem, point: Any) -> Report[Array]:
        """Report the best point of the first face."""
        self._idle, self._least_gap, self._lowest = 0, math.inf, math.inf
        return self._report(problem, _first_face(problem, point))

    def step(self, problem: SquaresProblem, most: int) -> Report[Array]:
        """Report the best point of the next face."""
        return self._report(problem, _next_face(problem, self._point))

    def _report(self, problem: SquaresProblem, face: Array) -> Report[Array]:
        self._point = point = self._best(problem, face)
        progress = point.gap < 0.5 * self._least_gap or point.value < self._lowest - _NOTABLE * self._least_gap
        self._idle = 0 if progress else self._idle + 1
        self._lowest = min(point.value, self._lowest) if progress else self._lowest
        self._least_gap = min(point.gap, self._least_gap)
        if self._goal.is_met(point.gap, point.value):
            point = self._of_lower_rank(problem, point)
        status = Status.STALLED if self._idle > _PATIENCE else None
        size = point.factor.shape[1]
        return Report(point.factor, point.value, point.gap, size=size, merit=-point.gap, status=status)

    def _best(self, problem: SquaresProblem, face: Array) -> _Point:
        return _Point(problem, _best_on_face(problem, face, _ON_FACE * self._goal.absolute))

    def _of_lower_rank(self, problem: SquaresProblem, point: _Point) -> _Point:
        """Leave out directions of little weight where the best C on the face of the others still meets the goal."""
        vectors, sizes, _ = namespace(point.factor).linalg.svd(point.factor, full_matrices=False)
        for level in _RANK_LEVELS:
            kept = sizes**2 > level
            if kept.all():
                break
            lower = self._best(problem, vectors[:, kept])
            if self._goal.is_met(lower.gap, lower.value):
                return lower
        return point


class _Point:
    """C = F Fᵀ with its gradient, the eigenpairs of that, and the oracle's gap."""

    def __init__(self, problem: SquaresProblem, factor: Array) -> None:
        self.factor = factor / norm(factor)
        residual = problem.residual(self.factor)
        self.value = problem.value(self.factor, residual)
        self.gradient = problem.gradient(residual)
        self.levels, self.vectors = eigh(self.gradient)
        self.level = float((self.factor * (self.gradient @ self.factor)).sum())
        self.gap = max(self.level - float(self.levels[0]), 0.0)
        if not isinstance(problem, SquaresLikelihood):
            self.gap = min(self.gap, self.value)  # f is never negative


def _first_face(problem: SquaresProblem, start: Array | None) -> Array:
    """An orthonormal basis of the range of the start, or of the least eigenvectors of the gradient at zero."""
    s = problem.dimension
    if s <= (_LARGEST_FACE if isinstance(problem, SquaresLikelihood) else _WHOLE_UP_TO):
        return namespace(problem.basis).eye(s, dtype=problem.basis.dtype, device=problem.basis.device)
    if isinstance(problem, SquaresLikelihood):
        return _first_of_likelihood(problem, start)
    best = eigh(problem.gradient(-problem.goal), 0, _FIRST_FACE)[1]
    return best if start is None else _span([start, best])


def _first_of_likelihood(problem: SquaresLikelihood, start: Array | None) -> Array:
    """The range of a rough solution where its equations are few; elsewhere the best directions at the centre."""
    rows = problem.observed.rows
    if start is None and rows.shape[0] <= LARGEST_SYSTEM:
        C = minimise_likelihood(Likelihood(rows, problem.observed.shares, problem.penalty), tol=_ROUGH)
        return eigh(C, problem.dimension - _LARGEST_FACE)[1]
    centre = namespace(rows).sum(rows**2, axis=1)
    best = eigh(problem.gradient(centre), 0, _LARGEST_FACE)[1]
    return best if start is None else _span([start, best])


def _best_on_face(problem: SquaresProblem, face: Array, tol: float) -> Array:
    """A factor of the minimiser over all C whose range lies in the span of the face's orthonormal columns."""
    xp = namespace(face)
    if isinstance(problem, SquaresLikelihood):
        observed, penalty = problem.observed, face.T @ problem.penalty @ face
        S = minimise_likelihood(Likelihood(observed.rows @ face, observed.shares, penalty), tol=tol)
    else:
        entries = SymmetricEntries(face.shape[1], face)
        A = problem.embed_pairs(face) * entries.scale
        S = minimise_small(A, problem.goal, face.T @ problem.linear @ face, tol=tol)
    values, vectors = xp.linalg.eigh(S)
    kept = values > _NO_DIRECTION * values[-1]
    return face @ (vectors[:, kept] * xp.sqrt(values[kept]))


def _next_face(problem: SquaresProblem, point: _Point) -> Array:
    """The span of the columns of F that carry mass, of the oracle's eigenvectors, of the Newton direction and the rest.

    The largest of the others are remembered, for they are what the next columns of F will be made of.
    """
    main = _carries_mass(point.factor)
    F, rest = point.factor[:, main][:, -_MOST_COLUMNS:], point.factor[:, ~main]
    promising = int((point.levels < point.level - _PROMISING * point.gap).sum())
    new = point.vectors[:, : min(max(promising, _FEWEST_NEW), _MOST_NEW)]
    # a derivative keeps one matrix a column: beyond the memory for them, only the largest columns move
    moving = F[:, -max(4, KEPT_BYTES // (8 * problem.size**2)) :]
    direction = _newton_direction(problem, point, moving / norm(moving))
    return _span([F, new, direction, namespace(rest).flip(rest, axis=1)[:, :_REMEMBERED]])


def _span(blocks: list[Array]) -> Array:
    """An orthonormal basis of some blocks, the first first, of at most 36 columns."""
    xp, basis = namespace(*blocks), blocks[0][:, :0]
    for block in blocks:
        size = norm(block)
        if size == 0:
            continue
        rest = block / size
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        vectors, sizes, _ = xp.linalg.svd(rest, full_matrices=False)
        basis = xp.concat([basis, vectors[:, sizes > _INDEPENDENT]], axis=1)
    return xp.linalg.qr(basis[:, :_LARGEST_FACE])[0]


def _carries_mass(factor: Array) -> Array:
    """Which columns do, as those of an interior point which should vanish do not quite."""
    xp = namespace(factor)
    sizes = xp.sum(factor**2, axis=0)
    return sizes > _MAIN * xp.max(sizes)


def _newton_direction(problem: SquaresProblem, point: _Point, F: Array) -> Array:
    """Solve Hess[D] = -grad on the sphere by preconditioned conjugate gradients; where curvature ends, so do they."""
    xp, G = namespace(F), point.gradient
    tangent = problem.tangent(F)
    room = point.levels - point.level
    flat = EPS * norm(G)  # where all points are isolated, G is level·I
    if not float(room[-1]) > flat:
        return xp.zeros_like(F)
    scale = 1.0 / (2.0 * xp.clip(room, _FLOOR * float(room[-1]), None))

    def project(D: Array) -> Array:
        return D - (F * D).sum() * F

    def precondition(D: Array) -> Array:
        return project(point.vectors @ (scale[:, None] * (point.vectors.T @ D)))

    def hessian(D: Array) -> Array:
        return project(2.0 * (G @ D - point.level * D) + 8.0 * tangent.transpose(tangent.apply(D)))

    residual = -project(2.0 * (G @ F))
    first = norm(residual)
    enough = first * min(0.1, float(np.sqrt(first / max(norm(G), TINY))))
    D, step = xp.zeros_like(F), precondition(residual)
    along = float((residual * step).sum())
    for number in range(_MOST_PRODUCTS):
        curved = hessian(step)
        curvature = float((step * curved).sum())
        if curvature <= _NO_DIRECTION * float((step**2).sum()) * float(room[-1]):
            return step if number == 0 else D
        D = D + (along / curvature) * step
        residual = residual - (along / curvature) * curved
        if norm(residual) <= enough:
            break
        ready = precondition(residual)
        along, before = float((residual * ready).sum()), along
        if along <= 0:  # what is left has no digits
            break
        step = ready + (along / before) * step
    return D
