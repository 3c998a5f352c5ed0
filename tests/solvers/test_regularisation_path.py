"""The regularisation path: the paper's numbers, optimality recomputed, ties, caps, loss of precision by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc

from mercer import Gaussian, GramOperator, Polynomial
from mercer.problems import Discrepancy
from mercer.solvers import Goal, Run
from mercer.solvers.measure.active_set import solve_on
from mercer.solvers.measure.kinks import Event, PathEnd
from mercer.solvers.measure.regularisation_path import PathLimits, follow


def _problem(X, kernel=Gaussian(sigma=0.5), *, seed=0, plain=True, **options):  # noqa: B008  (immutable)
    rng = np.random.default_rng(seed)
    n = len(X)
    weights = np.full(n, 1 / n) if plain else rng.uniform(0.3, 2, n) / n
    penalty = np.ones(n) if plain else rng.uniform(0.5, 2, n)
    return Discrepancy(GramOperator(kernel**2, X), weights, penalty, **options)


def _solution(problem, kinks, alpha):
    kink = int(np.searchsorted(-kinks.alphas, -alpha)) - 1
    free, capped = kinks.sets_after(kink)
    matrix = problem.squared.to_dense() + np.diag(problem.ridge)
    v = np.zeros(problem.size)
    v[capped] = problem.caps[capped]
    if free.size:
        right = problem.distortion - alpha * problem.penalty - matrix @ v
        v[free] = np.linalg.solve(matrix[np.ix_(free, free)], right[free])
    return v, matrix @ v - problem.distortion + alpha * problem.penalty


def _assert_optimal(problem, v, slack, alpha):
    """The conditions of Karush, Kuhn and Tucker, relative to α d."""
    accuracy = 1e-7 * alpha * problem.penalty
    assert np.all(v >= -1e-9 * problem.weights.max())
    assert np.all(v <= problem.caps * (1 + 1e-9))
    inside = (v > 1e-12) & (v < problem.caps * (1 - 1e-12))
    assert np.all(np.abs(slack[inside]) <= accuracy[inside])
    assert np.all(slack[v <= 1e-12] >= -accuracy[v <= 1e-12])
    at_cap = v >= problem.caps * (1 - 1e-12)
    assert np.all(slack[at_cap] <= accuracy[at_cap])


@pytest.fixture(scope="module")
def halton():
    problem = _problem(qmc.Halton(2, scramble=False).random(2017)[1:] * 2 - 1, Gaussian(sigma=0.4))
    return problem, follow(problem, PathLimits(kappa=0.81)).point


def test_every_printed_number_of_the_paper(halton):
    problem, kinks = halton
    assert f"{kinks.alphas[0]:.6e}" == "6.310163e-02"
    assert f"{problem.constant:.6e}" == "2.661452e-02"
    assert len(kinks.alphas) == 4049  # the last is p + 1
    assert f"{kinks.kappas[4047]:.7f}" == "0.8099788"
    assert f"{kinks.kappas[4048]:.7f}" == "0.8100256"
    assert f"{kinks.alphas[4047]:.6e}" == "8.355244e-03"
    assert f"{kinks.alphas[4048]:.6e}" == "8.352970e-03"
    assert kinks.n_nodes[4047] == 160
    assert kinks.n_in_order == 4049
    nodes, _ = kinks.sets_after(4047)
    alpha = float(np.interp(0.81, kinks.kappas, kinks.alphas))
    assert f"{alpha:.6e}" == "8.354215e-03"
    values = solve_on(problem.regularised(alpha), nodes)
    assert np.all(values > 0)
    assert values.sum() == pytest.approx(0.81, rel=1e-10)
    assert f"{problem.value(nodes, values):.6e}" == "7.631890e-04"


def test_kinks_are_monotone_and_values_follow_the_quadratic(halton):
    """Lemma 3.2 (vi), and dD = -α dϰ between kinks."""
    _, kinks = halton
    assert np.all(np.diff(kinks.alphas) < 0)
    assert np.all(np.diff(kinks.kappas) > 0)
    assert np.all(np.diff(kinks.values) < 0)
    steps = -0.5 * (kinks.alphas[1:] + kinks.alphas[:-1]) * np.diff(kinks.kappas)
    np.testing.assert_allclose(np.diff(kinks.values), steps, atol=1e-15)


KERNELS = [Gaussian(sigma=0.5), Gaussian(sigma=0.2), Polynomial(degree=3, gamma=1.0, coef0=1.0) + Gaussian(sigma=0.3)]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(0, 10**6),
    st.sampled_from(KERNELS),
    st.booleans(),
    st.sampled_from([None, 0.6, 1.5]),
    st.booleans(),
)
def test_solutions_between_kinks_are_optimal(n, seed, kernel, plain, cap, with_ridge):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    problem = _problem(X, kernel, seed=seed, plain=plain)
    caps = None if cap is None else cap * problem.weights * rng.uniform(0.5, 1.5, n)
    problem = Discrepancy(
        problem.squared,
        problem.weights,
        problem.penalty,
        caps=caps,
        ridge=np.full(n, 0.01) if with_ridge else None,
        distortion=problem.distortion,
    )
    kinks = follow(problem).point
    assert kinks.end in (PathEnd.COMPLETE, PathEnd.SINGULAR, PathEnd.INACCURATE)
    assert np.all(np.diff(kinks.alphas) < 0)
    for k in rng.integers(0, max(len(kinks.alphas) - 1, 1), 6):
        if len(kinks.alphas) > 1:
            alpha = float(rng.uniform(kinks.alphas[k + 1], kinks.alphas[k]))
            if alpha > 1e-6 * kinks.alphas[0]:
                v, slack = _solution(problem, kinks, alpha)
                _assert_optimal(problem, v, slack, alpha)


@pytest.mark.parametrize("seed", range(4))
def test_the_whole_path_ends_at_the_sample(seed):
    X = np.random.default_rng(seed).uniform(-1, 1, (15, 2))
    problem = _problem(X, Gaussian(sigma=0.3), seed=seed, plain=False)
    kinks = follow(problem).point
    assert kinks.end is PathEnd.COMPLETE
    assert kinks.alphas[-1] == 0
    assert kinks.kappas[-1] == pytest.approx(problem.total, rel=1e-9)
    assert kinks.values[-1] == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("side", [3, 4, 6])
def test_simultaneous_events_of_a_regular_grid(side):
    axis = np.linspace(-1, 1, side)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    problem = _problem(X, Gaussian(sigma=0.6))
    kinks = follow(problem).point
    assert kinks.end is PathEnd.COMPLETE
    for alpha in kinks.alphas[0] * np.array([0.9, 0.5, 0.1, 0.01]):
        v, slack = _solution(problem, kinks, alpha)
        _assert_optimal(problem, v, slack, alpha)
        square = v.reshape(side, side)
        np.testing.assert_allclose(square, square.T, atol=1e-9)
        np.testing.assert_allclose(square, square[::-1], atol=1e-9)


def test_points_on_a_circle_enter_together():
    angles = 2 * np.pi * np.arange(12) / 12
    problem = _problem(np.column_stack([np.cos(angles), np.sin(angles)]), Gaussian(sigma=0.7))
    kinks = follow(problem).point
    assert kinks.end is PathEnd.COMPLETE
    v, slack = _solution(problem, kinks, 0.5 * kinks.alphas[0])
    _assert_optimal(problem, v, slack, 0.5 * kinks.alphas[0])
    np.testing.assert_allclose(v, v[0], rtol=1e-8)


def test_dependent_points_end_the_path_by_name():
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    wide = _problem(X, Gaussian(sigma=5.0))
    kinks = follow(wide).point
    assert kinks.end.lost_precision
    assert "Precision ended the path" in kinks.end.value
    alpha = float(kinks.alphas[-2:].mean())
    if alpha > 1e-7 * kinks.alphas[0]:
        _, slack = _solution(wide, kinks, alpha)
        assert np.all(slack >= -1e-5 * alpha)


def test_caps_are_reached_and_left():
    X = np.random.default_rng(3).uniform(-1, 1, (40, 2))
    problem = _problem(X, Gaussian(sigma=0.5))
    problem = Discrepancy(
        problem.squared, problem.weights, problem.penalty, caps=np.full(40, 0.03), distortion=problem.distortion
    )
    kinks = follow(problem).point
    assert {Event.REACHES_CAP, Event.LEAVES_CAP} <= {Event(kind) for kind in kinks.event_kinds}


def test_a_new_factor_at_every_kink_gives_the_same_path(halton):
    problem, kinks = halton
    again = follow(problem, PathLimits(n_kinks=300), refactor=True).point
    np.testing.assert_allclose(again.alphas, kinks.alphas[:300], rtol=1e-11)
    np.testing.assert_array_equal(again.event_points, kinks.event_points[: len(again.event_points)])


def _watched(callback):
    return Run(Goal(0.0), callbacks=(callback,))


def test_limits_and_interruption(halton):
    problem, kinks = halton
    assert len(follow(problem, PathLimits(n_kinks=10)).point.alphas) == 10
    assert follow(problem, PathLimits(n_nodes=12)).point.n_nodes[-1] == 12
    assert follow(problem, PathLimits(alpha=0.06)).point.alphas[-1] <= 0.06
    assert follow(problem, PathLimits(kappa=0.05)).point.kappas[-1] >= 0.05
    assert len(follow(problem, run=_watched(lambda step: step.number == 7)).point.alphas) == 7
    seen = []
    ended = follow(problem, run=_watched(lambda step: seen.append(step) or step.number == 20)).point
    assert ended.end is PathEnd.STOPPED
    np.testing.assert_allclose([step.value for step in seen], ended.values + ended.alphas * ended.kappas)

    def interrupt(step):
        if step.number == 25:
            raise KeyboardInterrupt

    cut = follow(problem, run=_watched(interrupt)).point
    assert cut.end is PathEnd.INTERRUPTED
    np.testing.assert_array_equal(cut.alphas, kinks.alphas[:25])
