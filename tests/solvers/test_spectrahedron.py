"""Solvers on the spectrahedron: against a conic solver, the certificate and each other."""

from __future__ import annotations

import numpy as np
import pytest
from sum_of_squares_oracle import METHODS, PlainProgramme, minimised, our_programme, random_programme

from mercer.backends.symmetric_entries import SymmetricEntries
from mercer.certificates import certify_spectrahedron
from mercer.solvers import Goal, ProjectedPower, Status, solve
from mercer.solvers.conic import conic_spectrahedron
from mercer.solvers.spectrahedron.accelerated import curvature_bound, factor_on_spectrahedron, project_on_simplex
from mercer.solvers.spectrahedron.face import minimise_small


def larger(sigma=0.5, regularization=1e-4, m=28):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 2)) + 2 * rng.integers(0, 2, (120, 1))
    return our_programme(X, X[:m], sigma, regularization)


@pytest.mark.parametrize("seed", range(32))
def test_random_problems_agree_with_a_conic_solver_on_the_papers_own_formulation(seed):
    cvxpy = pytest.importorskip("cvxpy")
    arguments = random_programme(seed)
    problem = our_programme(*arguments)
    best = PlainProgramme(*arguments).by_conic_solver(cvxpy)
    result = minimised(problem, tol=1e-9 * problem.constant)
    assert result.status is Status.CONVERGED
    certificate = certify_spectrahedron(problem, result.point)
    assert certificate.upper == pytest.approx(best, rel=1e-4, abs=1e-7)
    assert certificate.lower <= best + 1e-7
    assert certificate.upper <= best + 1e-7
    assert certificate.upper - certificate.lower <= 2e-9 * problem.constant


@pytest.mark.parametrize("seed", range(6))
def test_accelerated_gradients_reach_the_same_value(seed):
    problem = our_programme(*random_programme(seed))
    exact = minimised(problem, tol=1e-9 * problem.constant)
    result = minimised(problem, "accelerated", tol=1e-5 * problem.constant, max_iter=20_000)
    assert result.status is Status.CONVERGED
    assert problem.value(result.point) - problem.value(exact.point) <= 1e-5 * problem.constant
    assert np.linalg.norm(result.point) == pytest.approx(1.0)


def test_conic_solver_of_the_programme_itself():
    pytest.importorskip("cvxpy")
    problem = our_programme(*random_programme(2))
    value = problem.value(conic_spectrahedron(problem))
    assert value == pytest.approx(problem.value(minimised(problem, tol=1e-10).point), abs=1e-7)
    with pytest.raises(ValueError, match="order 40 at most"):
        conic_spectrahedron(larger(sigma=0.2, m=60))


@pytest.mark.parametrize("regularization", [0.0, 1e-5, 1e-3, 1.0])
@pytest.mark.parametrize("sigma", [0.2, 0.7, 3.0])
def test_faces_certify_nine_digits_in_few_rounds(sigma, regularization):
    problem = larger(sigma, regularization)
    result = minimised(problem, tol=1e-8 * problem.constant)
    assert result.status is Status.CONVERGED
    assert result.n_iter <= 40
    certificate = certify_spectrahedron(problem, result.point)
    assert certificate.upper - certificate.lower <= 2e-8 * problem.constant


def test_rank_is_no_larger_than_the_solution_needs():
    problem = larger(0.7, 1.0)  # a heavy trace penalty: one square
    assert minimised(problem, tol=1e-9 * problem.constant).point.shape[1] == 1


@pytest.mark.parametrize("seed", range(6))
def test_the_constant_of_the_power_iteration_is_above_the_largest_eigenvalue_but_not_far(seed):
    rng = np.random.default_rng(seed + 18)
    d, m = int(rng.integers(1, 5)), int(rng.integers(2, 60))
    sigma = float(np.exp(rng.uniform(-3, 1.5)))
    X = rng.standard_normal((80, d))
    problem = our_programme(X, X[:m], sigma, 1e-4)
    matrix = np.stack([problem.embed_matrix(problem.adjoint(e)) for e in np.eye(problem.goal.size)])
    largest = 2 * np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1]
    assert largest <= curvature_bound(problem) <= 1.25 * largest


def test_momentum_and_restart_beat_plain_gradients():
    problem = larger(1.0, 1e-2)
    steps = minimised(problem, "accelerated", tol=1e-4 * problem.constant).n_iter
    F, step = np.eye(problem.dimension) / np.sqrt(problem.dimension), 1 / curvature_bound(problem)
    for _ in range(steps):
        F = factor_on_spectrahedron(F @ F.T - step * problem.gradient(problem.residual(F)))
    plain = certify_spectrahedron(problem, F)
    assert plain.upper - plain.lower > 3e-4 * problem.constant


@pytest.mark.parametrize("method", METHODS)
def test_history_tells_of_the_way_and_a_callback_ends_it(method):
    problem = larger()
    seen = []
    result = minimised(problem, method, tol=0.0, callbacks=(lambda line: seen.append(line) or len(seen) == 3,))
    assert result.status is Status.STOPPED
    assert len(seen) == 3
    assert [line.number for line in seen] == sorted({line.number for line in seen})
    assert all(line.gap >= 0 and line.rank >= 1 for line in seen)
    assert seen[-1].objective < seen[0].objective


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_and_an_interruption_return_the_best_so_far(method):
    problem = larger()
    assert minimised(problem, method, tol=0.0, max_iter=2).status is Status.MAX_ITER
    assert minimised(problem, method, tol=0.0, max_iter=2).n_iter == 2

    def interrupt(line):
        if line.number > 0:
            raise KeyboardInterrupt

    result = minimised(problem, method, tol=0.0, callbacks=(interrupt,))
    assert result.status is Status.INTERRUPTED
    assert np.linalg.norm(result.point) == pytest.approx(1.0)


def test_an_interruption_before_the_first_point_is_passed_on(monkeypatch):
    problem = larger()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(problem), "embed_pairs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        minimised(problem, tol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_a_good_start_saves_steps(method):
    problem, tol = larger(0.7, 1e-2), 1e-4
    cold = minimised(problem, method, tol=tol * problem.constant)
    good = minimised(problem, tol=1e-6 * problem.constant).point
    warm = minimised(problem, method, tol=tol * problem.constant, start=good)
    assert warm.n_iter < cold.n_iter


def test_what_rounding_forbids_is_called_stalled():
    problem = larger(3.0, 0.0)
    result = minimised(problem, tol=0.0)
    assert result.status is Status.STALLED
    certificate = certify_spectrahedron(problem, result.point)
    assert certificate.upper - certificate.lower <= 1e-7 * problem.constant


@pytest.mark.parametrize("seed", range(5))
def test_projection_on_the_simplex_satisfies_its_optimality_conditions(seed):
    values = 3 * np.random.default_rng(seed).standard_normal(7)
    point = project_on_simplex(values)
    assert point.min() >= 0
    assert point.sum() == pytest.approx(1.0)
    threshold = (values - point)[point > 0]
    assert np.ptp(threshold) < 1e-12
    assert np.all(values[point == 0] <= threshold[0] + 1e-12)


def test_projection_on_the_spectrahedron_is_the_nearest_point():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((6, 6))
    M = M + M.T
    F = factor_on_spectrahedron(M)
    for _ in range(50):  # obtuse angle with every other point of the set
        A = rng.standard_normal((6, 3))
        other = A @ A.T / np.sum(A**2)
        assert np.sum((M - F @ F.T) * (other - F @ F.T)) <= 1e-10


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_the_small_programme_satisfies_its_optimality_conditions(k):
    rng = np.random.default_rng(k)
    entries = SymmetricEntries(k)
    A, b = rng.standard_normal((4, k * (k + 1) // 2)), rng.standard_normal(4)
    R = rng.standard_normal((k, k))
    R = R + R.T
    S = minimise_small(A, b, R, tol=1e-11)
    slope = entries.unpack(2 * A.T @ (A @ entries.pack(S) - b)) + R
    assert np.trace(S) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(S)[0] >= 0
    assert np.sum(S * slope) - np.linalg.eigvalsh(slope)[0] <= 1e-9


def test_a_method_for_other_constraints_is_refused_by_name():
    with pytest.raises(
        ValueError, match=r"^The method 'power' cannot solve this problem, which has a trace constraint"
    ):
        solve(larger(), ProjectedPower(), goal=Goal(1e-6))
