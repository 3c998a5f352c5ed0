"""The trust region, the lower models, the staircase and the conic solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, LowRankOperator, Precomputed, rp_cholesky
from mercer.certificates import certify_elliptope
from mercer.datasets import three_clusters
from mercer.operators import RankOneUpdate
from mercer.problems import Elliptope
from mercer.solvers import Climb, Goal, Minorise, ProjectedPower, Run, Status, TrustRegion, solve, solve_conic
from mercer.solvers.elliptope.escape import escape_direction
from mercer.solvers.elliptope.staircase import Pace
from mercer.solvers.elliptope.trust_region import _Model


def _problem(sigma=1.0, n=60, seed=0) -> Elliptope:
    X = np.random.default_rng(seed).standard_normal((n, 2))
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=sigma), X))
    return Elliptope(operator, operator.diagonal(), removed=operator.stationary)


def _matrix(problem: Elliptope) -> np.ndarray:
    return problem.scale[:, None] * problem.operator.to_dense() * problem.scale


def _stand_in(problem: Elliptope, rank: int):
    low = rp_cholesky(problem.operator.undeflated(), rank, 0)
    return RankOneUpdate(low, problem.removed, -1.0)


def _climb(problem: Elliptope, **options) -> Climb:
    rng = np.random.default_rng(1)
    shared = {"certify": lambda at: certify_elliptope(problem, at.H, rng=rng, spectrum=False)}
    shared |= {name: options.pop(name) for name in ("certify", "callbacks") if name in options}
    goal = Goal(**({"tol": 1e-8, "residual_tol": 1e-7, "max_iter": 3000} | options))
    return Climb(problem, Run(goal, **shared), 1e-5, rng)


# --- derivatives ------------------------------------------------------------------------------------------------


def test_gradient_and_hessian_are_those_of_the_objective():
    """Along the geodesic of a tangent V the objective is f + t f' + t²/2 f'', by differences, with a linear term."""
    problem, rng = _problem(n=15), np.random.default_rng(0)
    problem.linear = rng.standard_normal((15, 3))
    H = problem.random_point(3, rng)
    V = rng.standard_normal(H.shape)
    V -= np.sum(V * H, axis=1, keepdims=True) * H
    model = _Model(problem, H, problem.apply(H))

    def value(t: float) -> float:
        speed = np.linalg.norm(V, axis=1, keepdims=True)
        point = np.cos(t * speed) * H + np.sin(t * speed) * V / speed
        return -problem.objective(point, problem.apply(point)) / 2

    t = 1e-4
    first = (value(t) - value(-t)) / (2 * t)
    second = (value(t) - 2 * value(0.0) + value(-t)) / t**2
    assert np.vdot(model.gradient, V) == pytest.approx(first, rel=1e-6)
    assert np.vdot(V, model.hessian(V)) == pytest.approx(second, rel=1e-5)
    np.testing.assert_allclose(np.sum(model.hessian(V) * H, axis=1), 0, atol=1e-12)  # tangent again


def test_truncated_conjugate_gradients_solve_the_newton_system():
    problem = _problem(sigma=1.0, n=40)
    optimum = _climb(problem).automatic(problem.random_point(6, np.random.default_rng(0)), None).point.H
    assert optimum.shape[1] > 1
    near = problem.project(optimum + 1e-3 * np.random.default_rng(1).standard_normal(optimum.shape), optimum)
    model = _Model(problem, near, problem.apply(near))
    step = model.solve(radius=1e3, max_inner=500)
    left = np.linalg.norm(model.gradient + model.hessian(step.V))
    assert not step.at_boundary
    assert left < 0.1 * np.linalg.norm(model.gradient)
    assert step.gain == pytest.approx(-2 * np.vdot(model.gradient, step.V) - np.vdot(step.V, model.hessian(step.V)))


def test_step_stays_within_its_radius():
    problem = _problem(n=20)
    H = problem.random_point(4, np.random.default_rng(0))
    model = _Model(problem, H, problem.apply(H))
    step = model.solve(radius=1e-2, max_inner=100)
    assert step.at_boundary
    assert np.sqrt(np.sum(model.metric[:, None] * step.V**2)) == pytest.approx(1e-2, rel=1e-9)


# --- trust region -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.6, 1.0, 2.0])
def test_trust_region_converges_quadratically_at_the_rank_of_the_solution(sigma):
    problem = _problem(sigma)
    rough = _climb(problem, tol=1e-4, residual_tol=1e-3).automatic(
        problem.random_point(8, np.random.default_rng(0)), None
    )
    H = problem.reduced(rough.point.H, 1e-4)
    result = solve(problem, TrustRegion(), H, goal=Goal(1.0, residual_tol=1e-12, max_iter=30))
    residuals = [iteration.row_residual for iteration in result.history]
    assert result.status is Status.CONVERGED
    assert len(residuals) <= 15
    small = [r for r in residuals if r < 1e-4]
    assert small[-1] < 1e-3 * small[0]
    objectives = np.array([iteration.objective for iteration in result.history])
    assert np.all(np.diff(objectives) >= -1e-12 * abs(objectives[-1]))


def test_trust_region_needs_no_shift_on_an_indefinite_matrix():
    n = 20
    A = np.ones((n, n)) - 22.0 * np.eye(n)
    A[: n // 2, n // 2 :] = A[n // 2 :, : n // 2] = -1.0
    problem = Elliptope(GramOperator(Precomputed(), A), np.ones(n))
    H = problem.random_point(3, np.random.default_rng(0))
    result = solve(problem, TrustRegion(), H, goal=Goal(1.0, residual_tol=1e-12, max_iter=200))
    assert result.history[-1].objective == pytest.approx(20 * 19 - 21 * 20, rel=1e-9)


# --- lower models -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [5, 20, 40])
def test_lower_model_lies_below_the_objective_and_touches_it(rank):
    problem, rng = _problem(), np.random.default_rng(0)
    stand_in = _stand_in(problem, rank)
    Y = problem.random_point(3, rng)
    G = problem.apply(Y)
    model = Elliptope(stand_in, problem.diagonal)
    model.linear = G - model.curvature(Y)
    constant = problem.objective(Y, G) - model.objective(Y, model.apply(Y))
    for turn in (1e-3, 0.1, 10.0):
        H = problem.project(Y + turn * rng.standard_normal(Y.shape), Y)
        below = model.objective(H, model.apply(H)) + constant
        above = problem.objective(H, problem.apply(H))
        assert below <= above + 1e-12 * abs(above)


@pytest.mark.parametrize("rank", [1, 10, 30])
def test_lower_models_climb_to_the_same_optimum(rank):
    problem = _problem()
    method = Minorise(_stand_in(problem, rank))
    H = problem.random_point(6, np.random.default_rng(0))
    result = _climb(problem, tol=1e-6, residual_tol=1e-5).by(lambda: method, H)
    power = _climb(problem, tol=1e-6, residual_tol=1e-5, max_iter=20_000).by(ProjectedPower, H)
    assert result.status is power.status is Status.CONVERGED
    assert result.history[-1].objective == pytest.approx(power.history[-1].objective, rel=2e-6)
    assert result.n_iter < power.n_iter
    assert method.n_stand_in_columns > 0


def test_a_stand_in_of_nothing_is_the_power_method():
    problem = _problem()
    nothing = LowRankOperator(np.zeros((problem.size, 0)))
    H = problem.random_point(4, np.random.default_rng(0))
    method = Minorise(nothing)
    G = method.start(problem, H).point.G
    after = method.step(problem, 1).point.H
    np.testing.assert_allclose(after, problem.project(G, H), atol=1e-2)  # solved to two percent of the residual


def test_better_stand_ins_need_fewer_exact_columns():
    X, _ = three_clusters()
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=1.2), X))
    columns = []
    for rank in (8, 24, 72):
        problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
        climb = _climb(problem, certify=None, residual_tol=1e-6)
        result = climb.automatic(problem.random_point(10, np.random.default_rng(0)), _stand_in(problem, rank))
        assert result.status is Status.CONVERGED
        columns.append(problem.n_columns)
    assert columns[0] > columns[1] > columns[2]
    assert columns[2] < 40


@pytest.mark.parametrize("rank", [2, 8, 30])
@pytest.mark.parametrize("sigma", [0.2, 1.0])
def test_stand_in_is_shifted_as_far_as_it_falls_below_zero(rank, sigma):
    problem = _problem(sigma)
    stand_in = _stand_in(problem, rank)
    shift = _climb(problem)._stand_in_shift(stand_in)
    least = np.linalg.eigvalsh(problem.scale[:, None] * stand_in.to_dense() * problem.scale)[0]
    assert least + shift >= -1e-14
    assert least < -1e-8 or shift < 1e-6  # nothing is shifted that needs no shift


# --- staircase --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_staircase_leaves_the_saddles_of_rank_one(seed):
    """A sign vector that is stationary, and far from optimal: every row is ±1 and no row gains by turning over."""
    problem = _problem(sigma=0.7, n=80, seed=seed)
    stuck = solve(
        problem,
        ProjectedPower(),
        problem.random_point(1, np.random.default_rng(seed)),
        goal=Goal(1.0, residual_tol=1e-12, max_iter=1000),
    )
    direction = escape_direction(problem, stuck.point.H, stuck.point.G, np.random.default_rng(0))
    z = problem.multipliers(stuck.point.H, stuck.point.G)
    assert direction @ (_matrix(problem) @ direction) > direction @ (z * direction)  # the dual slack is negative there
    result = _climb(problem).automatic(stuck.point.H, None)
    assert result.status is Status.CONVERGED
    assert result.point.H.shape[1] > 1
    assert result.history[-1].objective > 1.001 * stuck.history[-1].objective


@pytest.mark.parametrize("with_stand_in", [False, True])
def test_result_has_exactly_the_rank_that_is_counted(with_stand_in):
    problem = _problem(sigma=1.0, n=80)
    stand_in = _stand_in(problem, 20) if with_stand_in else None
    result = _climb(problem).automatic(problem.random_point(8, np.random.default_rng(0)), stand_in)
    _, eigenvalues = problem.principal(result.point.H)
    assert result.status is Status.CONVERGED
    assert np.all(eigenvalues > 1e-5)
    np.testing.assert_allclose(np.linalg.norm(result.point.H, axis=1), 1.0, atol=1e-14)


def test_history_runs_on_through_the_stages():
    problem = _problem(sigma=0.5, n=80)
    seen = []
    climb = _climb(problem, callbacks=(seen.append,))
    result = climb.automatic(problem.random_point(8, np.random.default_rng(0)), _stand_in(problem, 20))
    numbers = [iteration.number for iteration in result.history]
    assert list(result.history) == seen
    assert numbers == sorted(numbers)
    assert [iteration.n_columns for iteration in seen] == sorted(iteration.n_columns for iteration in seen)
    assert all(b.seconds >= a.seconds for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("budget", [1, 3, 10, 50, 200])
def test_product_budget_is_never_passed_by_the_solver(budget):
    problem = _problem(sigma=0.5, n=80)
    climb = _climb(problem, certify=None, residual_tol=1e-13, max_products=budget)
    result = climb.automatic(problem.random_point(4, np.random.default_rng(0)), None)
    assert result.status is Status.MAX_PRODUCTS
    assert problem.n_columns <= max(budget, 4)  # the first point is always evaluated
    np.testing.assert_allclose(result.point.G, problem.apply(result.point.H), atol=1e-12)


def test_pace():
    pace = Pace(steps=3, part=0.5, below=0.1)
    assert not pace.is_slow([0.09, 0.08, 0.07])  # too few to tell
    assert pace.is_slow([0.09, 0.08, 0.07, 0.06])
    assert not pace.is_slow([0.09, 0.08, 0.07, 0.04])
    assert not pace.is_slow([0.9, 0.9, 0.9, 0.9])  # still finding its way


# --- conic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [25, 60])
@pytest.mark.parametrize("sigma", [0.5, 1.5])
def test_conic_solver_agrees(sigma, n):
    problem = _problem(sigma, n=n)
    conic = solve_conic(problem)
    climbed = _climb(problem).automatic(problem.random_point(8, np.random.default_rng(0)), None)
    objective = problem.objective(conic, problem.apply(conic))
    assert objective == pytest.approx(climbed.history[-1].objective, rel=1e-5 if n > 40 else 1e-6)
    np.testing.assert_allclose(conic @ conic.T, climbed.point.H @ climbed.point.H.T, atol=1e-2)


def test_conic_solver_refuses_large_problems():
    with pytest.raises(ValueError, match="at most 200 points, not 201: use solver='auto'"):
        solve_conic(_problem(n=201))


def test_conic_solver_refuses_a_linear_term_by_name():
    problem = _problem(n=20)
    problem.linear = np.ones((20, 2))
    with pytest.raises(ValueError, match="The method 'conic' cannot solve this problem, which has a linear term"):
        solve_conic(problem)
    assert problem.n_columns == 0
