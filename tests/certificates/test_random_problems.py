"""Three hundred random problems, several points each, every method: lower ≤ optimum ≤ upper, always.

The optimum comes from an interior-point method of the tests' own with a bracket of about 1e-13 Σ|J|, whose matrix is
formed here by the papers' formulas; a conic solver checks that oracle on some of the problems.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from elliptope_oracle import bracket

from mercer import (
    DiffusionOperator,
    Gaussian,
    GramOperator,
    Laplacian,
    LowRankOperator,
    Matern,
    Precomputed,
    rp_cholesky,
)
from mercer.certificates import certify_elliptope
from mercer.operators import RankOneUpdate
from mercer.problems import Elliptope
from mercer.solvers import AcceleratedPower, Goal, solve

N_PROBLEMS = 320
CHUNK = 20
METHODS = ("factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos")
TOLERANCES = (1e-1, 1e-3, 1e-6, 1e-9)
rounding = 1e-13  # of Σ|J|: the operator and the formulas here round differently


@dataclass
class Case:
    problem: Elliptope
    J: np.ndarray
    lower: float
    upper: float
    X: np.ndarray
    other: np.ndarray  # the solution of the same points under another bandwidth, or of another matrix

    @property
    def methods(self) -> tuple[str, ...]:
        return ("factorisation", "deflated-lanczos") if self.problem.indefinite else METHODS

    def stand_in(self, rng: np.random.Generator) -> LowRankOperator | None:
        """A partial Cholesky factor of any rank, most often far too low."""
        if self.problem.indefinite:
            return None
        removed = self.problem.removed
        A = self.problem.operator if removed is None else RankOneUpdate(self.problem.operator, removed, 1.0)
        return rp_cholesky(A, int(rng.integers(1, len(self.J) + 1)), rng)


def _kernel(rng: np.random.Generator, sigma: float):
    kinds = (
        Gaussian(sigma=sigma),
        Laplacian(sigma=2 * sigma),
        Matern(nu=1.5, length_scale=sigma),
        Gaussian(sigma=sigma) + 0.3 * Laplacian(sigma=3 * sigma),
    )
    return kinds[rng.integers(len(kinds))]


def _embedding_matrix(K: np.ndarray, w: np.ndarray) -> np.ndarray:
    """J = Diag(w√d) Ā Diag(w√d), Ā = K/√(mmᵀ) - √(mmᵀ)/vol, m = Kw, vol = wᵀm."""
    m = K @ w
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / (w @ m)
    scale = w * np.sqrt(np.maximum(np.diag(A), 0.0))
    return scale[:, None] * A * scale


def _embedding(rng: np.random.Generator) -> tuple[Elliptope, np.ndarray, np.ndarray]:
    n, dimension = int(rng.integers(2, 17)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, dimension)) * rng.choice([0.5, 1.0, 2.0])
    sigma = 10 ** rng.uniform(-0.5, 0.8)
    kernel = _kernel(rng, sigma)
    weights = (np.ones(n), rng.integers(1, 5, n).astype(float), rng.uniform(0.1, 3.0, n))[rng.integers(3)]
    operator = DiffusionOperator(GramOperator(kernel, X, weights=weights))
    problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
    other = _embedding_matrix(Gaussian(sigma=2.5 * sigma)(X), weights)
    return problem, _embedding_matrix(kernel(X), weights), other


def _matrix(rng: np.random.Generator, indefinite: bool) -> tuple[Elliptope, np.ndarray, np.ndarray]:
    n = int(rng.integers(2, 15))
    F = rng.standard_normal((n, int(rng.integers(1, n + 1))))
    A = F @ F.T if not indefinite else (S := rng.standard_normal((n, n))) + S.T - rng.uniform(-2, 4) * np.eye(n)
    d = 10 ** rng.uniform(-2, 1, n)
    J = np.sqrt(np.outer(d, d)) * A
    shift = max(0.0, -float(np.linalg.eigvalsh(J)[0])) * (1 + 1e-9) if indefinite else 0.0
    problem = Elliptope(GramOperator(Precomputed(), A), d, shift=shift)
    return problem, J, J + np.diag(rng.uniform(0, 1, n)) + 0.3 * np.abs(J)


@functools.cache
def _case(number: int) -> Case:
    rng = np.random.default_rng(number)
    kind = number % 5
    problem, J, other = _embedding(rng) if kind < 3 else _matrix(rng, indefinite=kind == 4)
    lower, upper, X = bracket(J)
    _, _, wrong = bracket(other)
    return Case(problem, J, lower, upper, _factor(X), _factor(wrong))


def _factor(X: np.ndarray) -> np.ndarray:
    """H with H Hᵀ = X."""
    values, U = np.linalg.eigh(X)
    return U * np.sqrt(np.maximum(values, 0.0))


def _points(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Points that a careless certificate would pass, and one that every certificate should."""
    n = len(case.J)
    steps = case.problem.random_point(min(3, n), rng)
    for _ in range(int(rng.integers(1, 12))):
        steps = steps + case.problem.apply(steps) / np.abs(case.J).sum(axis=1).max()
        steps /= np.linalg.norm(steps, axis=1)[:, None]
    size = 10 ** rng.uniform(-6, 0)
    half = np.arange(n) < n // 2
    return {
        "converged": case.X,
        "stopped early": steps,
        f"shaken by {size:.0e}": case.X + size * rng.standard_normal(case.X.shape),
        "signs that no flip improves": _local_signs(case.J, rng),
        "two dimensions of many": case.X[:, -2:] + 1e-300,
        "halves solved apart": np.hstack([half[:, None] * case.X, ~half[:, None] * case.X]),
        "of another problem": case.other,
    }


def _local_signs(J: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A stationary point of rank one: where ascent in one dimension ends."""
    signs = np.where(rng.standard_normal(len(J)) < 0, -1.0, 1.0)
    for _ in range(1000):
        gain = np.diag(J) - signs * (J @ signs)
        if gain.max() <= 0:
            break
        signs[np.argmax(gain)] *= -1
    return signs[:, None]


CHUNKS = range(0, N_PROBLEMS, CHUNK)


@pytest.mark.parametrize(
    "chunk", [*CHUNKS[::2], *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in CHUNKS[1::2])]
)
def test_every_method_brackets_the_optimum_at_every_point(chunk):
    for number in range(chunk, chunk + CHUNK):
        case = _case(number)
        rng = np.random.default_rng([number, 1])
        noise = rounding * np.abs(case.J).sum()
        points = _points(case, rng)
        poor = [name for name in points if name != "converged"]
        for name in ("converged", *rng.choice(poor, 3, replace=False)):
            for method in case.methods:
                options = {
                    "method": method,
                    "tol": (None, 1e-6)[rng.integers(2)],
                    "block": int(rng.choice([1, 3, 8])),
                    "stand_in": case.stand_in(rng) if rng.integers(2) else None,
                }
                spectrum = number % 7 == 0
                certificate = certify_elliptope(case.problem, points[name], rng=rng, spectrum=spectrum, **options)
                _judge(case, certificate, noise, f"problem {number}, {name}, {options}")
                if (
                    options["stand_in"] is None
                    and name == "converged"
                    and case.lower > 0.05 * np.abs(case.J).sum() / len(case.J)
                ):
                    assert certificate.holds(1e-6), f"problem {number}, {method}: {certificate}"


def _judge(case: Case, certificate, noise: float, what: str) -> None:
    assert certificate.lower <= case.upper + noise, what
    assert certificate.upper >= case.lower - noise, what
    if certificate.lower != 0:
        suboptimality = (case.lower - noise - certificate.lower) / abs(certificate.lower)
        for tol in TOLERANCES:
            assert not (suboptimality > tol and certificate.holds(tol)), what


@pytest.mark.parametrize("number", range(0, N_PROBLEMS, 16))
def test_automatic_choice_and_the_solvers_own_points(number):
    """What fit does: low rank, first-order steps, a tolerance, the automatic choice of method."""
    case = _case(number)
    rng = np.random.default_rng([number, 2])
    result = solve(
        case.problem,
        AcceleratedPower(),
        case.problem.random_point(min(len(case.J), 6), rng),
        goal=Goal(1e-6, residual_tol=1e-6, max_iter=3000),
        certify=lambda at: certify_elliptope(case.problem, at.H, rng=rng, tol=1e-6, spectrum=False),
    )
    certificate = certify_elliptope(case.problem, result.point.H, rng=rng, tol=1e-6)
    noise = rounding * np.abs(case.J).sum()
    _judge(case, certificate, noise, f"problem {number}")
    if result.status.name == "CONVERGED":
        assert certificate.holds(1e-6)
        assert certificate.lower >= (1 - 1.1e-6) * case.upper - noise


@pytest.mark.parametrize("number", range(3, N_PROBLEMS, 40))
def test_the_oracle_agrees_with_a_conic_solver(number):
    cvxpy = pytest.importorskip("cvxpy")
    case = _case(number)
    size = float(np.abs(case.J).sum())
    B = cvxpy.Variable(case.J.shape, PSD=True)
    conic = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(case.J / size, B))), [cvxpy.diag(B) == 1])
    conic.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert case.lower / size == pytest.approx(conic.value, abs=1e-8)
    assert (case.upper - case.lower) / size < 1e-11


def test_the_poor_points_are_poor():
    """Most points other than the converged one are far from optimal, so the tests above have something to find."""
    gaps = []
    for number in range(0, 100, 5):
        case = _case(number)
        for name, H in _points(case, np.random.default_rng(number)).items():
            unit = H / np.linalg.norm(H, axis=1)[:, None]
            if name != "converged":
                gaps.append((case.lower - np.sum((case.J @ unit) * unit)) / np.abs(case.J).sum())
    assert np.mean(np.array(gaps) > 1e-4) > 0.5
