"""The interior-point method: optimality conditions recomputed from scratch, bounded steps, and how it ends."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mercer
from mercer import Gaussian, GramOperator, Precomputed
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.problems import DenseElliptope, Elliptope
from mercer.problems.elliptope import bytes_needed
from mercer.solvers import Goal, InteriorPoint, Status, solve, solve_interior_point

KINDS = ["psd", "indefinite", "negative", "low rank", "rank one", "scales", "nearly diagonal", "blocks", "zero row"]


def matrix(kind: str, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, n))
    J = M + M.T
    if kind == "psd":
        J = M @ M.T
    elif kind == "negative":
        J = -M @ M.T
    elif kind == "low rank":
        J = M[:, :2] @ M[:, :2].T
    elif kind == "rank one":
        J = np.outer(M[0], M[0])
    elif kind == "scales":
        d = 10.0 ** rng.uniform(-6, 0, n)
        J = d[:, None] * (M @ M.T) * d
    elif kind == "nearly diagonal":
        J = np.eye(n) + 1e-5 * (M + M.T)
    elif kind == "blocks":
        J = np.kron(np.eye(n // 4), np.ones((4, 4))) * (M @ M.T)
    elif kind == "zero row":
        J[3] = J[:, 3] = 0
    return (J + J.T) / 2


def assert_optimal(J, found, tol):
    """Feasible on both sides and no gap: that proves the optimum, whoever found it."""
    n, (X, y) = len(J), found.point
    np.testing.assert_allclose(np.diagonal(X), 1.0, atol=1e-12)
    np.testing.assert_array_equal(X, X.T)
    assert np.linalg.eigvalsh(X)[0] > -1e-12 * n
    root = 1 / np.sqrt(np.maximum(np.abs(y), np.abs(J).max() * 1e-300) + np.abs(np.diagonal(J)))
    Z = np.diag(y) - J
    assert np.linalg.eigvalsh(root[:, None] * Z * root)[0] > -1e-12 * n
    primal, dual = float(np.sum(J * X)), float(y.sum())
    size = float(np.abs(J).sum())
    assert -1e-13 * size <= dual - primal <= tol * abs(primal) + 1e-12 * size
    assert found.history[-1].objective == pytest.approx(primal, rel=1e-9, abs=1e-12 * size)
    residual = np.abs(Z @ X).max()
    assert residual <= np.sqrt(max(dual - primal, 1e-12 * size) * np.abs(Z).max() * n) * 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [4, 12, 40])
def test_optimality_conditions(kind, n):
    J = matrix(kind, n)
    found = solve_interior_point(J, tol=1e-8)
    assert found.status is Status.CONVERGED
    assert len(found.history) <= 35
    assert_optimal(J, found, 1e-8)


@pytest.mark.parametrize("kind", ["psd", "indefinite", "scales"])
def test_optimum_is_that_of_a_conic_solver(kind):
    cvxpy = pytest.importorskip("cvxpy")
    J = matrix(kind, 12, seed=3)
    B = cvxpy.Variable((12, 12), PSD=True)
    programme = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(J, B))), [cvxpy.diag(B) == 1])
    optimum = programme.solve(solver=cvxpy.CLARABEL)
    found = solve_interior_point(J, tol=1e-9)
    assert found.history[-1].objective == pytest.approx(optimum, rel=1e-6)
    assert found.point.multipliers.sum() == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("factor", [1e-3, 1e3, 1e150, 1e-150])
def test_units_do_not_matter(factor):
    J = matrix("psd", 10)
    one, other = solve_interior_point(J, tol=1e-8), solve_interior_point(factor * J, tol=1e-8)
    np.testing.assert_allclose(other.point.X, one.point.X, atol=1e-6)
    np.testing.assert_allclose(other.point.multipliers / factor, one.point.multipliers, rtol=1e-6)


@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.1, 0.3, 1.0, 5.0])
def test_steps_do_not_depend_on_the_bandwidth(sigma):
    """From points that are nearly isolated to a matrix of nearly rank two: some fifteen steps."""
    X = np.random.default_rng(0).standard_normal((80, 2))
    problem = DiffusionProblem.of(Gaussian(sigma=sigma), X, None, np.random.default_rng(0)).working
    J = problem.scale[:, None] * problem.operator.to_dense() * problem.scale
    found = solve_interior_point((J + J.T) / 2, tol=1e-8)
    assert found.status is Status.CONVERGED
    assert found.history[-1].number <= 25
    assert_optimal(J, found, 1e-8)


def test_history_falls_and_says_its_phase():
    problem = DenseElliptope(matrix("psd", 30))
    problem.n_columns = 7
    found = solve(problem, InteriorPoint(), goal=Goal(1e-8))
    gaps = [line.relative_gap for line in found.history]
    assert all(later < before for before, later in itertools.pairwise(gaps))
    assert [line.number for line in found.history] == list(range(len(found.history)))
    assert {line.phase for line in found.history} == {"interior point"}
    assert {line.n_columns for line in found.history} == {7}
    assert gaps[-1] <= 1e-8


def test_residual_on_the_way_is_that_of_the_point():
    """√(μZᵢᵢ)/yᵢ against the row residual of a factor of X, within a factor on the way and small at the end."""
    J = matrix("psd", 30)
    found = solve_interior_point(J, tol=1e-6)
    values, vectors = np.linalg.eigh(found.point.X)
    H = vectors * np.sqrt(np.maximum(values, 0))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    G = J @ H
    true = np.linalg.norm(G / np.linalg.norm(G, axis=1, keepdims=True) - H, axis=1).max()
    assert 0.2 * true < found.history[-1].row_residual < 5 * true


def test_out_of_reach_of_rounding_ends_with_the_best_pair():
    J = matrix("psd", 25)
    found = solve_interior_point(J, tol=0.0)
    assert found.status is Status.STALLED
    assert_optimal(J, found, 1e-9)


def test_a_problem_of_zeros():
    found = solve_interior_point(np.zeros((5, 5)), tol=1e-8)
    assert found.status is Status.CONVERGED
    np.testing.assert_array_equal(found.point.X, np.eye(5))
    assert found.point.multipliers.sum() == 0


def test_one_row():
    found = solve_interior_point(np.array([[3.0]]), tol=1e-8)
    assert found.point.X[0, 0] == 1
    assert found.point.multipliers[0] == pytest.approx(3.0)


# --- ends that are the user's -----------------------------------------------------------------------------------


def test_budget_of_steps():
    J = matrix("psd", 20)
    found = solve_interior_point(J, tol=1e-10, max_iter=3)
    assert found.status is Status.MAX_ITER
    assert found.history[-1].number == 3
    assert_optimal(J, found, found.history[-1].relative_gap)


def test_callback_stops():
    seen = []

    def second(line):
        seen.append(line.number)

    found = solve_interior_point(matrix("psd", 20), tol=1e-10, callbacks=(lambda line: line.number == 4, second))
    assert found.status is Status.STOPPED
    assert seen == [0, 1, 2, 3, 4]  # all callbacks are told


def test_interruption_keeps_a_feasible_pair():
    def press(line):
        if line.number == 5:
            raise KeyboardInterrupt

    J = matrix("psd", 20)
    found = solve_interior_point(J, tol=1e-10, callbacks=(press,))
    assert found.status is Status.INTERRUPTED
    assert_optimal(J, found, found.history[-1].relative_gap)


@pytest.mark.parametrize(
    ("J", "message"),
    [
        (np.ones((2, 3)), r"square matrix, not of shape \(2, 3\)"),
        (np.ones(4), r"square matrix, not of shape \(4,\)"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), r"J has nan at \(0, 1\): every entry must be finite"),
        (np.array([[1.0, 2.0], [3.0, 1.0]]), r"not symmetric at \(0, 1\): pass \(J \+ J.T\) / 2"),
    ],
)
def test_bad_input_is_named(J, message):
    with pytest.raises(ValueError, match=message):
        solve_interior_point(J, tol=1e-8)


def test_a_linear_term_is_refused_by_name():
    problem = Elliptope(GramOperator(Precomputed(), matrix("psd", 5)), np.ones(5), linear=np.ones((5, 2)))
    with pytest.raises(ValueError, match="The method 'interior point' cannot solve this problem, which has a linear t"):
        solve(problem.dense(), InteriorPoint(), goal=Goal(1e-6))


def test_memory_is_stated():
    assert bytes_needed(1000) == 80 * 10**6


# --- threads ----------------------------------------------------------------------------------------------------


def test_thread_count_does_not_change_the_result():
    J = matrix("psd", 300)
    with mercer.config_context(n_threads=1):
        one = solve_interior_point(J, tol=1e-6)
    with mercer.config_context(n_threads=3):
        three = solve_interior_point(J, tol=1e-6)
    np.testing.assert_array_equal(one.point.X, three.point.X)
    np.testing.assert_array_equal(one.point.multipliers, three.point.multipliers)
