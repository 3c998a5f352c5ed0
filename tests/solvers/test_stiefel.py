"""Quasi-Newton steps on matrices with orthonormal columns, against eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.problems.stiefel import StiefelProblem, ValueAndGradient, tangent
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Status
from mercer.solvers.stiefel.quasi_newton import StiefelQuasiNewton, retracted


class Quadratic(StiefelProblem):
    """Tr(Uᵀ A U N), N diagonal with different entries, which also turns U: the minimum pairs eigenvalues with N."""

    def __init__(self, A, N):
        self.A, self.N = A, N

    def evaluate(self, U):
        return ValueAndGradient(float(np.sum((self.A @ U * self.N) * U)), 2 * self.A @ U * self.N)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 12))
    return Quadratic(A + A.T, np.array([3.0, 2.0, 1.0])), retracted(rng.standard_normal((12, 3)))


def test_the_minimum_is_that_of_the_eigenvalues(problem):
    problem, start = problem
    solution = solve(problem, StiefelQuasiNewton(), start, goal=Goal(tol=1.0, residual_tol=1e-7, max_iter=300))
    values, vectors = np.linalg.eigh(problem.A)
    assert solution.status is Status.CONVERGED
    assert solution.history[-1].objective == pytest.approx(values[:3] @ problem.N, rel=1e-10)
    np.testing.assert_allclose(np.abs(vectors[:, :3].T @ solution.point), np.eye(3), atol=1e-6)
    np.testing.assert_allclose(solution.point.T @ solution.point, np.eye(3), atol=1e-13)
    objectives = [line.objective for line in solution.history]
    assert (np.diff(objectives) <= 1e-12).all()
    assert solution.n_iter < 100  # steepest descent takes some three hundred


def test_a_stationary_start_is_an_end(problem):
    problem, _ = problem
    saddle = np.linalg.eigh(problem.A)[1][:, 4:7]
    solution = solve(problem, StiefelQuasiNewton(), saddle, goal=Goal(tol=1.0, residual_tol=1e-8, max_iter=50))
    assert solution.n_iter == 0
    np.testing.assert_array_equal(solution.point, saddle)


def test_tangents_and_retractions(problem):
    _, U = problem
    V = tangent(U, np.random.default_rng(1).standard_normal((12, 3)))
    np.testing.assert_allclose(U.T @ V + V.T @ U, 0, atol=1e-13)
    np.testing.assert_allclose(tangent(U, V), V, atol=1e-13)
    np.testing.assert_allclose(retracted(U), U, atol=1e-13)
    h = 1e-5
    np.testing.assert_allclose((retracted(U + h * V) - retracted(U - h * V)) / (2 * h), V, atol=1e-8)
