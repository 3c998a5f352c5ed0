"""Worst distributions on points, and on a box by points that are added where the dual function lies lowest."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.backends.arrays import Array
from mercer.backends.rounding import TINY
from mercer.certificates.kernel_sums import KernelSum
from mercer.certificates.supremum import Supremum, bound_supremum
from mercer.certificates.worst_case import BallAround, Values, normalised
from mercer.kernels import Kernel
from mercer.linalg import rp_cholesky
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator
from mercer.problems.worst_case import ExpectationInBall
from mercer.robust.worst_case_function import Integrand
from mercer.solvers.measure.ball_interior_point import BallInteriorPoint
from mercer.solvers.run import Goal, solve
from mercer.validation import distinct_rows

_DENSE, _RANK = 1500, 400
_MARGIN = 0.1  # of tol, for the programme on points
_STEPS = 200
_ROUNDS = 12
_CELLS, _ALL_CELLS = 200_000, 600_000  # of one proof on a box, and of all its rounds
_LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
_ROUNDING = 1e-15
_TINY_WEIGHT = 1e-12


class Request(NamedTuple):
    """ε, the tolerance, and 1 for the largest expectation or -1 for the least, which is the largest of -f."""

    radius: float
    tol: float
    sign: float


class Answer(NamedTuple):
    """A distribution of the ball with its expectation, and bounds of the largest; ``spread`` is that of f."""

    points: Array
    weights: Array
    dual: KernelSum
    value: float
    lower: float
    upper: float
    mmd: float
    spread: float
    covers: str


def worst_on_points(integrand: Integrand, ball: BallAround, candidates: Array, request: Request) -> Answer:
    """Over all distributions on the sample's points and the candidates."""
    ball = _enlarged(ball, candidates)
    return _solved(integrand.values(ball.points), ball, request)


def sample_alone(integrand: Integrand, ball: BallAround, covers: str) -> Answer:
    """Of a ball of radius zero under a characteristic kernel: no distribution but the sample is in it."""
    values = integrand.values(ball.points)
    expected = ball.expectation(values, ball.shares)
    none = KernelSum(ball.kernel, ball.points, 0.0 * ball.shares)
    spread = float(np.ptp(values.numbers))
    return Answer(ball.points, ball.shares, none, expected.value, expected.lower, expected.upper, 0.0, spread, covers)


def worst_on_box(
    integrand: Integrand, ball: BallAround, candidates: Array, corners: tuple[Array, Array], request: Request
) -> Answer:
    """Over all distributions on a box: candidates are added where f - h is largest, until that proves the tolerance."""
    ball, best, spent = _enlarged(ball, candidates), None, 0
    proof = math.inf, KernelSum(ball.kernel, ball.points, 0.0 * ball.shares)
    for _ in range(_ROUNDS):
        answer = _solved(integrand.values(ball.points), ball, request)
        top = _supremum(integrand, answer.dual, corners, request.tol * answer.spread / 3)
        upper = math.nextafter(top.bound + ball.price_of(answer.dual), math.inf)
        proof = min(proof, (upper, answer.dual), key=lambda pair: pair[0])
        best = answer if best is None or answer.lower > best.lower else best
        grown = _enlarged(ball, np.clip(top.points, *corners))  # centres of tiny cells may lie outside by rounding
        spent += top.n_cells
        enough = proof[0] - best.lower <= request.tol * answer.spread
        if enough or spent > _ALL_CELLS or grown.points.shape[0] == ball.points.shape[0]:
            break
        ball = grown
    assert best is not None
    return best._replace(upper=proof[0], dual=proof[1], covers="box")


def _supremum(integrand: Integrand, h: KernelSum, corners: tuple[Array, Array], tolerance: float) -> Supremum:
    def rest(X: Array) -> Array:
        values, (taken, errors) = integrand.values(X), h.values(X)
        slack = values.errors + errors + _ROUNDING * (np.abs(values.numbers) + np.abs(taken))
        return np.asarray(values.numbers - taken + 1.01 * slack)

    return bound_supremum(rest, integrand.modulus(h), corners, tolerance=tolerance, most=_CELLS)


def _enlarged(ball: BallAround, more: Array) -> BallAround:
    """The same ball on more points, of which the sample's weights are zero."""
    points = np.concatenate([ball.points, more]) + 0.0
    kept = np.sort(distinct_rows(points)[0])
    shares = np.concatenate([ball.shares, np.zeros(more.shape[0])])[kept]
    return BallAround(ball.kernel, np.ascontiguousarray(points[kept]), shares, ball.radius)


def _solved(values: Values, ball: BallAround, request: Request) -> Answer:
    """The programme on the ball's points: a distribution that is proved to lie in it, and the dual function's bound."""
    spread = float(np.ptp(values.numbers))
    if spread < TINY or values.numbers.size == 1:
        weights, dual = ball.shares, np.zeros(values.numbers.size)
    else:
        unit = (values.numbers - np.min(values.numbers)) / spread
        problem = ExpectationInBall(unit, ball.shares, features_of(ball.kernel, ball.points), request.radius)
        weights, dual = solved_weights(problem, request.tol)
        dual = spread * dual
    weights, reached = ball.brought_inside(weights)
    expected = ball.expectation(values, weights)
    h = KernelSum(ball.kernel, ball.points, dual)
    upper = min(ball.bound(values, h), _largest(values))
    lower = min(expected.lower, upper)
    return Answer(ball.points, weights, h, expected.value, lower, upper, reached, spread, "points")


def _largest(values: Values) -> float:
    """No expectation is larger than the largest value."""
    return float(np.nextafter(np.max(values.numbers + values.errors), np.inf))


def features_of(kernel: Kernel, points: Array) -> Array:
    """Φ with ΦΦᵀ near the kernel matrix: its eigenvectors, or a partial Cholesky factor of rank 400."""
    if points.shape[0] <= _DENSE:
        levels, vectors = positive_eigenpairs(np.asarray(kernel(points), np.float64), _ROUNDING)
        return np.asarray(vectors * np.sqrt(levels))
    return np.asarray(rp_cholesky(GramOperator(kernel, points), _RANK, 0, tolerance=_TINY_WEIGHT).factor)


def solved_weights(problem: ExpectationInBall, tol: float) -> tuple[Array, Array]:
    """Weights of the worst distribution, and the coefficients of the dual function, its price made the best one."""
    absolute = _MARGIN * tol * float(np.ptp(problem.values))
    solution = solve(problem, BallInteriorPoint(), goal=Goal(0.0, absolute=absolute, max_iter=_STEPS))
    weights, price = solution.point
    offset = problem.offset(weights)
    best = minimize_scalar(
        lambda x: problem.bound(offset, x),
        bounds=(0.5 * price, 2.0 * price),
        method="bounded",
        options={"xatol": 1e-9 * price},
    )
    if price > 0 and best.fun < problem.bound(offset, price):
        price = float(best.x)
    dual = _shortened(problem, price * (weights - problem.shares), tol)
    return normalised(np.where(weights > _TINY_WEIGHT * weights.max(), weights, 0.0)), dual


def _shortened(problem: ExpectationInBall, dual: Array, tol: float) -> Array:
    """The dual function without the many small coefficients that its bound does not need."""
    allowed = problem.bound(problem.features.T @ dual, 1.0) + _MARGIN * tol * float(np.ptp(problem.values))
    for level in _LEVELS:
        fewer = np.where(np.abs(dual) > level * np.max(np.abs(dual)), dual, 0.0)
        if problem.bound(problem.features.T @ fewer, 1.0) <= allowed:
            return fewer
    return dual
