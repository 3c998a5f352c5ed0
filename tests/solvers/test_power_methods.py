"""The two power methods, and the driver's two tests for stopping on their problem."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Matern, Precomputed
from mercer.certificates import Certificate, certify_elliptope
from mercer.datasets import two_moons
from mercer.problems import Elliptope
from mercer.solvers import AcceleratedPower, Goal, Iteration, ProjectedPower, Status, solve
from mercer.solvers.elliptope.method import Iterate

_METHODS = pytest.mark.parametrize("method", [ProjectedPower, AcceleratedPower])


def _problem(kernel=None, n=60, **kwargs) -> Elliptope:
    X = np.random.default_rng(0).standard_normal((n, 2))
    operator = DiffusionOperator(GramOperator(kernel or Gaussian(sigma=1.0), X))
    return Elliptope(operator, operator.diagonal(), **kwargs)


def _certify(problem):
    rng = np.random.default_rng(0)
    return lambda at: certify_elliptope(problem, at.H, rng=rng, spectrum=False)


def _run(problem, method, *, rank=8, seed=0, certify="gap", tol=1e-6, residual_tol=1e-6, max_iter=20_000, **kwargs):
    return solve(
        problem,
        method(),
        problem.random_point(rank, np.random.default_rng(seed)),
        goal=Goal(tol, residual_tol=residual_tol, max_iter=max_iter),
        certify=_certify(problem) if certify == "gap" else certify,
        **kwargs,
    )


@pytest.mark.parametrize("kernel", [Gaussian(sigma=0.5), Gaussian(sigma=3.0), Matern(nu=1.5, length_scale=1.0)])
@pytest.mark.parametrize("seed", range(3))
def test_power_never_falls_on_a_psd_matrix(kernel, seed):
    result = _run(_problem(kernel), ProjectedPower, seed=seed, max_iter=300, certify=None, residual_tol=1e-14)
    objectives = np.array([iteration.objective for iteration in result.history])
    assert np.all(np.diff(objectives) >= -1e-13 * objectives[-1])
    assert objectives[-1] > 1.5 * objectives[0]


def _indefinite() -> tuple[Elliptope, Elliptope]:
    """A matrix on which plain power steps oscillate, with and without its shift."""
    n = 20
    A = np.ones((n, n)) - 2.0 * np.eye(n)
    A[: n // 2, n // 2 :] = A[n // 2 :, : n // 2] = -1.0
    A -= 20 * np.eye(n)
    operator = GramOperator(Precomputed(), A)
    return Elliptope(operator, np.ones(n)), Elliptope(operator, np.ones(n), shift=-float(np.linalg.eigvalsh(A)[0]))


def test_power_needs_the_shift_and_ascends_with_it():
    plain, shifted = _indefinite()
    fell = _run(plain, ProjectedPower, rank=3, max_iter=50, certify=None, residual_tol=1e-12)
    assert fell.history[-1].row_residual > 0.1  # it flips to and fro
    rose = _run(shifted, ProjectedPower, rank=3, max_iter=5000, certify=None, residual_tol=1e-12)
    objectives = np.array([iteration.objective for iteration in rose.history])
    assert np.all(np.diff(objectives) >= -1e-12 * np.abs(objectives[-1]))
    assert objectives[-1] == pytest.approx(20 * 19 - 21 * 20, rel=1e-9)  # two antipodal groups
    assert objectives[-1] > max(iteration.objective for iteration in fell.history) - 1e-9


@pytest.mark.parametrize("kernel", [Gaussian(sigma=0.7), Gaussian(sigma=2.0), Matern(nu=0.5, length_scale=1.0)])
def test_both_methods_reach_the_same_objective(kernel):
    problem = _problem(kernel)
    power, accelerated = (_run(problem, method) for method in (ProjectedPower, AcceleratedPower))
    assert power.status is accelerated.status is Status.CONVERGED
    assert accelerated.history[-1].objective == pytest.approx(power.history[-1].objective, rel=1e-6)


def test_acceleration_accelerates():
    X, _ = two_moons(n_points=150)
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=0.6), X))
    steps = {}
    for method in (ProjectedPower, AcceleratedPower):
        problem = Elliptope(operator, operator.diagonal())
        steps[method] = _run(problem, method).n_iter
    assert steps[AcceleratedPower] < steps[ProjectedPower] / 4


@_METHODS
def test_result_is_feasible_first_order_and_consistent(method):
    problem = _problem()
    result = _run(problem, method)
    np.testing.assert_allclose(np.linalg.norm(result.point.H, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(result.point.G, problem.apply(result.point.H), rtol=1e-12, atol=1e-16)
    z = problem.multipliers(result.point.H, result.point.G)
    assert np.linalg.norm(result.point.G - z[:, None] * result.point.H) <= 1e-5 * np.linalg.norm(result.point.G)
    assert result.history[-1].objective == pytest.approx(z.sum(), rel=1e-13)
    assert z.min() > 0


@_METHODS
def test_history(method):
    problem = _problem()
    result = _run(problem, method)
    numbers = [iteration.number for iteration in result.history]
    assert numbers == list(range(result.n_iter + 1))
    for name in ("n_columns", "seconds"):
        values = [getattr(iteration, name) for iteration in result.history]
        assert all(a <= b for a, b in itertools.pairwise(values))
    assert [iteration.n_columns for iteration in result.history[:3]] == [8, 16, 24]  # one product of 8 columns a step
    assert all(iteration.relative_gap is None for iteration in result.history[:-1] if iteration.row_residual > 1e-6)
    assert result.history[-1].relative_gap <= 1e-6


# --- stopping -----------------------------------------------------------------------------------------------


@_METHODS
def test_a_small_gap_alone_does_not_stop(method):
    """The certificate is content from the start; the residual decides."""
    asked = []

    def content(at):
        asked.append(1)
        return Certificate(1.0, 1.0, 0.0, "content", 0)

    problem = _problem()
    result = _run(problem, method, certify=content, residual_tol=1e-7)
    assert result.status is Status.CONVERGED
    assert result.n_iter > 10
    assert len(asked) == 1
    residuals = [iteration.row_residual for iteration in result.history]
    assert residuals[-1] <= 1e-7
    assert min(residuals[:-1]) > 1e-7


def test_a_point_with_a_certified_gap_and_a_large_residual_goes_on():
    """Shake an optimum in one light row: the gap stays within tol, the row is wrong, and the loop must see it."""
    X = np.r_[np.random.default_rng(0).standard_normal((59, 2)), [[0.05, 0.0]]]
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=2.0), X))
    problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
    H = _run(problem, AcceleratedPower, rank=2, tol=1e-10, residual_tol=1e-10).point.H.copy()
    row = int(np.argmin(problem.scale))
    angle = 0.01
    H[row] = H[row] @ [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    G = problem.apply(H)
    residual = problem.row_residual(H, G)
    assert _certify(problem)(Iterate(H, G)).relative_gap < 1e-5
    assert residual > 1e-4
    result = solve(
        problem, AcceleratedPower(), H, goal=Goal(1e-5, residual_tol=1e-6, max_iter=1000), certify=_certify(problem)
    )
    assert result.n_iter >= 1
    assert result.history[0].relative_gap is None  # it was not even asked
    assert result.history[-1].row_residual <= 1e-6


@_METHODS
def test_a_small_residual_alone_does_not_stop(method):
    """A saddle has residual zero; a certificate that refuses there says that the rank is too small."""
    asked = []

    def refuse(at):
        asked.append(1)
        return Certificate(1.0, 2.0, 0.0, "refusal", 0)

    problem = _problem()
    result = _run(problem, method, rank=1, certify=refuse)
    assert result.status is Status.TRAPPED
    assert "initial_rank" in result.status.message
    assert result.n_iter < 2000
    assert len(asked) == 1


def test_saddle_is_left_when_there_is_room():
    """From a sign vector embedded in two dimensions and slightly turned, the method escapes to the optimum."""
    problem = _problem(Gaussian(sigma=1.0))
    stuck = _run(problem, ProjectedPower, rank=1, certify=None).point.H
    start = problem.project(np.hstack([stuck, np.zeros_like(stuck)]) + 1e-3, np.ones((60, 2)))
    result = solve(
        problem, AcceleratedPower(), start, goal=Goal(1e-6, residual_tol=1e-6, max_iter=5000), certify=_certify(problem)
    )
    assert result.status is Status.CONVERGED
    assert result.history[-1].objective > 1.01 * np.sum(stuck * problem.apply(stuck))


@_METHODS
@pytest.mark.parametrize("budget", [1, 3])
def test_budget(method, budget):
    result = _run(_problem(), method, max_iter=budget)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == budget
    assert len(result.history) == budget + 1
    assert "max_iter" in result.status.message


def test_without_certificate_no_gap_is_claimed():
    result = _run(_problem(), AcceleratedPower, certify=None)
    assert result.status is Status.CONVERGED
    assert result.history[-1].row_residual <= 1e-6
    assert all(iteration.relative_gap is None for iteration in result.history)


def test_optimal_start_takes_no_step():
    problem = _problem()
    H = _run(problem, AcceleratedPower, tol=1e-8, residual_tol=1e-8).point.H
    result = solve(
        problem, AcceleratedPower(), H, goal=Goal(1e-6, residual_tol=1e-6, max_iter=10), certify=_certify(problem)
    )
    assert result.status is Status.CONVERGED
    assert result.n_iter == 0


# --- callbacks and Ctrl-C -----------------------------------------------------------------------------------


@_METHODS
def test_callbacks_see_every_iteration_and_may_stop(method):
    first, second = [], []

    def watch(iteration):
        first.append(iteration)

    def stop_at_five(iteration):
        second.append(iteration)
        return iteration.number == 5

    result = _run(_problem(), method, callbacks=(stop_at_five, watch))
    assert result.status is Status.STOPPED
    assert tuple(first) == tuple(second) == result.history  # the one that stops does not keep the others from seeing
    assert result.n_iter == 5
    assert all(isinstance(iteration, Iteration) for iteration in first)


@_METHODS
@pytest.mark.parametrize("step", [0, 1, 7])
def test_interrupt_in_a_callback_returns_the_best_iterate(method, step):
    def interrupt(iteration):
        if iteration.number == step:
            raise KeyboardInterrupt

    problem = _problem()
    result = _run(problem, method, callbacks=(interrupt,))
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == step
    objective = float(np.sum(result.point.H * problem.apply(result.point.H)))
    assert objective == pytest.approx(max(i.objective for i in result.history), rel=1e-11)
    np.testing.assert_allclose(np.linalg.norm(result.point.H, axis=1), 1.0, rtol=1e-12)


def test_interrupt_right_after_an_extrapolation_that_lost_ground():
    """Accelerated steps may lose ground for a moment. Stopped there, the loop returns the better iterate before it."""
    problem = _problem(Gaussian(sigma=1.0), n=40)
    whole = _run(problem, AcceleratedPower, seed=0)
    objectives = np.array([iteration.objective for iteration in whole.history])
    falls = np.flatnonzero(np.diff(objectives) < -1e-7 * objectives[-1]) + 1
    assert falls.size, "this problem no longer shows a fall: choose another"
    at = int(falls[0])

    def interrupt(iteration):
        if iteration.number == at:
            raise KeyboardInterrupt

    result = _run(problem, AcceleratedPower, seed=0, callbacks=(interrupt,))
    objective = float(np.sum(result.point.H * result.point.G))
    assert objective == pytest.approx(objectives[:at].max(), rel=1e-12)
    assert objective > objectives[at] * (1 + 1e-8)


def test_interrupt_inside_the_first_certificate():
    def interrupt(at):
        raise KeyboardInterrupt

    problem = _problem()
    H = _run(problem, AcceleratedPower).point.H
    result = solve(problem, AcceleratedPower(), H, goal=Goal(1e-6, residual_tol=1e-4, max_iter=10), certify=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == 0
    np.testing.assert_array_equal(result.point.H, H)


def test_other_exceptions_pass():
    def fail(iteration):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _run(_problem(), AcceleratedPower, callbacks=(fail,))


# --- rows of zeros -------------------------------------------------------------------------------------------


def test_zero_rows_do_not_break_a_step():
    """A matrix with an empty row: G vanishes there, and the row of H stays what it was."""
    A = np.zeros((4, 4))
    A[:3, :3] = [[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]
    problem = Elliptope(GramOperator(Precomputed(), A), np.ones(4))
    for method in (ProjectedPower, AcceleratedPower):
        result = _run(problem, method, rank=2, certify=None, residual_tol=1e-10)
        assert np.isfinite(result.point.H).all()
        assert result.history[-1].objective == pytest.approx(10.0)
