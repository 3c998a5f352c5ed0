"""The active set: optimality recomputed from dense matrices, starts of every kind, dependent nodes, small pools."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from scipy.stats import qmc

from mercer import Gaussian, GramOperator, Laplacian, Linear, Polynomial
from mercer.certificates import certify_measure
from mercer.problems import Discrepancy
from mercer.solvers import Goal, Run, Status
from mercer.solvers.measure import active_set
from mercer.solvers.measure.active_set import solve_exactly, solve_on

KERNELS = (
    Gaussian(sigma=0.4),
    Gaussian(sigma=1.5),
    Laplacian(sigma=1.0),
    Polynomial(degree=3, gamma=0.5, coef0=1.0) + Gaussian(sigma=0.5),
    Polynomial(degree=2, gamma=1.0, coef0=0.5),  # of rank 15 in the plane
    Linear(),
)


def _problem(seed, kernel=KERNELS[0], *, n=40, penalty="own", caps=False, ridge=False, copies=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    if copies:
        X = X[rng.integers(0, n // 3, n)]
    weights = rng.uniform(0.2, 2, n) / n
    d = {"own": rng.uniform(0.5, 2, n), "trace": kernel.diag(X), "one": np.ones(n)}[penalty]
    squared = GramOperator(kernel**2, X)
    bounds = rng.uniform(0.5, 4, n) * weights if caps else None
    return Discrepancy(
        squared, weights, d, caps=bounds, ridge=rng.uniform(0, 0.2, n) * squared.diagonal() if ridge else None
    )


def _dense(problem, measure):
    v = np.zeros(problem.size)
    v[measure.point.nodes] = measure.point.values
    return v


def _objective(problem, v, alpha=0.0):
    off = problem.weights - v
    return 0.5 * off @ problem.squared.to_dense() @ off + 0.5 * problem.ridge @ v**2 + alpha * problem.penalty @ v


def _gain(problem, v, alpha=None, kappa=None):
    """What the conditions of Karush, Kuhn and Tucker leave to gain: zero at an optimum, by a linear programme."""
    S, d = problem.squared.to_dense(), problem.penalty
    scale = problem.largest_alpha
    slope = (S @ (v - problem.weights) + problem.ridge * v) / scale
    slope = slope + (alpha / scale if kappa is None else -(slope @ v) / kappa) * d
    bounds = [(0, c if np.isfinite(c) else None) for c in problem.caps]
    level = 10 * problem.total if kappa is None else kappa
    best = linprog(
        slope,
        bounds=bounds,
        **({"A_ub": [d / level], "b_ub": [1.0]} if kappa is None else {"A_eq": [d / level], "b_eq": [1.0]}),
    )
    assert best.status == 0
    return (slope @ v - best.fun) * scale


def _assert_optimal(problem, measure, alpha=None, kappa=None):
    v = _dense(problem, measure)
    assert np.all(measure.point.values > 0)
    assert np.all(v <= problem.caps)
    if kappa is not None:
        assert problem.penalty @ v == pytest.approx(kappa, rel=1e-11)
    value = _objective(problem, v, alpha or 0.0)
    gain = min(_gain(problem, v, alpha, kappa), value)  # no objective is negative
    assert gain <= 1e-8 * value + 5e-11 * problem.constant
    assert measure.history[-1].value == pytest.approx(value, rel=1e-9, abs=1e-14 * problem.constant)


def _assert_history(problem, measure, alpha=0.0):
    """Values fall, and every gap is a true bound."""
    values = np.array([line.value for line in measure.history])
    best = _objective(problem, _dense(problem, measure), alpha)
    assert np.all(np.diff(values) <= 1e-10 * values[:-1] + 1e-14 * problem.constant)
    assert all(line.value - best <= line.gap * (1 + 1e-9) + 1e-13 * problem.constant for line in measure.history)
    assert measure.history[-1].gap <= 1e-7 * values[-1] + 1e-9 * problem.constant  # and the last one is tight


FORMS = [
    {"penalty": penalty, "caps": caps, "ridge": ridge}
    for penalty in ("trace", "own")
    for caps in (False, True)
    for ridge in (False, True)
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_both_programmes_on_random_problems(kernel, form):
    problem = _problem(0, kernel, **form)
    for share in (0.3, 0.01, 1e-5):
        alpha = share * problem.largest_alpha
        measure = solve_exactly(problem.regularised(alpha))
        assert measure.status is Status.CONVERGED
        _assert_optimal(problem, measure, alpha=alpha)
        _assert_history(problem, measure, alpha)
    for fraction in (0.2, 0.7):
        kappa = fraction * min(problem.total, float(problem.caps @ problem.penalty))
        measure = solve_exactly(problem.constrained(kappa))
        assert measure.status is Status.CONVERGED
        _assert_optimal(problem, measure, kappa=kappa)
        _assert_history(problem, measure)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(KERNELS),
    st.integers(2, 40),
    st.sampled_from(["own", "trace", "one"]),
    st.booleans(),
    st.booleans(),
    st.floats(1e-6, 1.0),
)
def test_copies_and_dependent_points_are_no_obstacle(seed, kernel, n, penalty, caps, copies, level):
    """S is singular: copies with penalties of their own, more points than its rank, caps that force them all."""
    problem = _problem(seed, kernel, n=max(n, 4), penalty=penalty, caps=caps, copies=copies)
    alpha, kappa = level * problem.largest_alpha, level * min(problem.total, float(problem.caps @ problem.penalty))
    _assert_optimal(problem, solve_exactly(problem.regularised(alpha)), alpha=alpha)
    _assert_optimal(problem, solve_exactly(problem.constrained(kappa)), kappa=kappa)


@pytest.mark.parametrize("share", [0.5, 0.05, 1e-3, 1e-5])
@pytest.mark.parametrize("seed", range(3))
def test_against_non_negative_least_squares(seed, share):
    problem = _problem(seed, Gaussian(sigma=0.4))
    S, alpha = problem.squared.to_dense(), share * problem.largest_alpha
    R = np.linalg.cholesky(S).T
    oracle, _ = nnls(R, np.linalg.solve(R.T, S @ problem.weights - alpha * problem.penalty))
    measure = solve_exactly(problem.regularised(alpha))
    np.testing.assert_allclose(_dense(problem, measure), oracle, atol=1e-10)
    again = solve_exactly(problem.constrained(float(problem.penalty @ oracle)))  # Lemma 3.3
    np.testing.assert_allclose(_dense(problem, again), oracle, atol=1e-9)
    assert problem.multiplier(again.point.nodes, again.point.values, again.point.gradient) == pytest.approx(
        alpha, rel=1e-6
    )


@pytest.mark.parametrize("seed", range(2))
def test_with_caps_against_a_conic_solver(seed):
    cp = pytest.importorskip("cvxpy")
    problem = _problem(seed, Gaussian(sigma=0.6), caps=True, ridge=True)
    kappa = 0.7 * float(problem.caps @ problem.penalty)
    measure = solve_exactly(problem.constrained(kappa))
    assert np.any(_dense(problem, measure) == problem.caps)  # or the caps were not tried
    L, v = np.linalg.cholesky(problem.squared.to_dense()), cp.Variable(problem.size)
    rest = cp.sum_squares(L.T @ (problem.weights - v)) + cp.sum_squares(cp.multiply(np.sqrt(problem.ridge), v))
    programme = cp.Problem(cp.Minimize(50 * rest), [v >= 0, v <= problem.caps, problem.penalty @ v == kappa])
    programme.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert measure.history[-1].value == pytest.approx(programme.value / 100, rel=1e-7)


# --- starts -----------------------------------------------------------------------------------------------------


def _starts(problem, kappa):
    rng, n = np.random.default_rng(1), problem.size
    some = rng.permutation(n)[: n // 3]
    yield "some points", (some, rng.uniform(0, 0.05, some.size))
    yield "all points", (np.arange(n), np.full(n, 0.5 / n))
    yield "above the caps", (np.arange(n), np.full(n, 10.0))
    yield "far too little", (some[:1], np.array([1e-9]))
    yield "nothing", (some[:0], np.empty(0))
    yield "at the caps", (some, np.minimum(problem.caps[some], kappa))


@pytest.mark.parametrize("caps", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_any_start_leads_to_the_optimum(kernel, caps):
    problem = _problem(3, kernel, penalty="trace", caps=caps)
    kappa, alpha = 0.6 * problem.total, 0.02 * problem.largest_alpha
    values = [[], []]
    for _, start in _starts(problem, kappa):
        by_kappa, by_alpha = (solve_exactly(problem.at(**p), start=start) for p in ({"kappa": kappa}, {"alpha": alpha}))
        _assert_optimal(problem, by_kappa, kappa=kappa)
        _assert_optimal(problem, by_alpha, alpha=alpha)
        values[0].append(by_kappa.history[-1].value)
        values[1].append(by_alpha.history[-1].value)
    for found in values:
        np.testing.assert_allclose(found, found[0], rtol=1e-9, atol=1e-13 * problem.constant)


@pytest.mark.parametrize("distance", [0.0, 1e-12, 1e-9, 1e-6])
def test_nearly_dependent_nodes_at_the_start(distance):
    """Thirty pairs of points next to each other, all with weight: the value falls from pass to pass all the same."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 2))
    X = np.vstack([X, X + distance * rng.standard_normal(X.shape)])
    problem = Discrepancy(GramOperator(Gaussian(sigma=0.5) ** 2, X), np.full(60, 1 / 60), np.ones(60))
    start = (np.arange(60), rng.uniform(0.5, 1.5, 60) * 0.7 / 60)
    for programme in ({"kappa": 0.7}, {"alpha": 0.05 * problem.largest_alpha}):
        measure = solve_exactly(problem.at(**programme), start=start)
        assert measure.status is Status.CONVERGED
        _assert_optimal(problem, measure, **programme)
        _assert_history(problem, measure, programme.get("alpha", 0.0))
        assert measure.point.nodes.size <= 30


def test_more_nodes_than_the_rank_are_not_kept():
    """Carathéodory: in the plane S has rank 15, and so many nodes do what all the points did."""
    problem = _problem(0, Polynomial(degree=2, gamma=1.0, coef0=0.5), n=80, penalty="trace")
    start = (np.arange(80), 0.9 * problem.weights)
    measure = solve_exactly(problem.constrained(0.9 * problem.total), start=start)
    _assert_optimal(problem, measure, kappa=0.9 * problem.total)
    assert measure.point.nodes.size <= 15


def test_caps_that_leave_one_measure_only():
    problem = _problem(0, caps=True)
    kappa = float(problem.caps @ problem.penalty)
    for start in (None, (np.arange(problem.size), problem.caps)):
        measure = solve_exactly(problem.constrained(kappa), start=start)
        assert measure.status is Status.CONVERGED
        np.testing.assert_allclose(measure.point.values, problem.caps, rtol=1e-12)
        alpha = problem.multiplier(measure.point.nodes, measure.point.values, measure.point.gradient)
        assert _gain(problem, _dense(problem, measure), alpha=alpha) <= 1e-12  # Lemma 3.3 holds at the caps, too


# --- pools, ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{}, {"caps": True}, {"ridge": True}])
def test_small_pools_take_several_passes_to_the_same_measure(form, monkeypatch):
    problem = _problem(5, Gaussian(sigma=0.5), n=120, **form)
    programmes = [{"alpha": 0.003 * problem.largest_alpha}, {"kappa": 0.45 * problem.total}]
    whole = [solve_exactly(problem.at(**programme)) for programme in programmes]
    monkeypatch.setattr(active_set, "_LEAST_POOL", 3)
    monkeypatch.setattr(active_set, "_POOL_PER_NODE", 0)
    for programme, measure in zip(programmes, whole, strict=True):
        small = solve_exactly(problem.at(**programme))
        assert small.status is Status.CONVERGED
        assert len(small.history) > len(measure.history) + 3
        np.testing.assert_array_equal(small.point.nodes, measure.point.nodes)
        np.testing.assert_allclose(small.point.values, measure.point.values, atol=1e-9)
        _assert_history(problem, small, programme.get("alpha", 0.0))


def test_without_penalty_the_sample_comes_back():
    """Lemma 3.2 (i); with caps below ω the programme differs."""
    problem = _problem(0, Laplacian(sigma=0.5))
    measure = solve_exactly(problem.regularised(0.0))
    np.testing.assert_allclose(measure.point.values, problem.weights, rtol=1e-8)
    capped = Discrepancy(problem.squared, problem.weights, problem.penalty, caps=0.8 * problem.weights)
    _assert_optimal(capped, solve_exactly(capped.regularised(0.0)), alpha=0.0)


def test_the_two_dimensional_example_of_the_paper():
    X = qmc.Halton(2, scramble=False).random(2017)[1:] * 2 - 1
    problem = Discrepancy(GramOperator(Gaussian(sigma=0.4) ** 2, X), np.full(2016, 1 / 2016), np.ones(2016))
    measure = solve_exactly(problem.constrained(0.81))
    assert measure.status is Status.CONVERGED
    assert measure.point.nodes.size == 160
    assert f"{measure.history[-1].value:.6e}" == "7.631890e-04"
    assert (
        f"{problem.multiplier(measure.point.nodes, measure.point.values, measure.point.gradient):.6e}" == "8.354215e-03"
    )
    assert certify_measure(problem, measure.point.nodes, measure.point.values, kappa=0.81).holds(
        2e-10
    )  # rounding: 1.4e-10
    rough = solve_exactly(problem.constrained(0.81), tol=1e-2)
    assert 0 <= rough.history[-1].value - measure.history[-1].value <= rough.history[-1].gap


def test_ends_that_are_asked_for(monkeypatch):
    monkeypatch.setattr(active_set, "_LEAST_POOL", 3)
    monkeypatch.setattr(active_set, "_POOL_PER_NODE", 0)
    problem = _problem(0, Gaussian(sigma=0.5), n=120, caps=True)
    kappa = 0.5 * problem.total
    lines = []
    stopped = solve_exactly(
        problem.constrained(kappa),
        run=Run(Goal(1e-12), callbacks=(lambda line: lines.append(line) or len(lines) == 2,)),
    )
    assert stopped.status is Status.STOPPED
    assert lines == list(stopped.history)
    assert solve_exactly(problem.constrained(kappa), max_passes=1).status is Status.MAX_ITER

    def interrupt(line):
        if line.number == 1:
            raise KeyboardInterrupt

    cut = solve_exactly(problem.constrained(kappa), run=Run(Goal(1e-12), callbacks=(interrupt,)))
    assert cut.status is Status.INTERRUPTED
    assert problem.penalty[cut.point.nodes] @ cut.point.values == pytest.approx(kappa, rel=1e-11)
    np.testing.assert_allclose(cut.point.gradient, problem.gradient(cut.point.nodes, cut.point.values), atol=1e-14)
    for wrong in ({}, {"alpha": 0.1, "kappa": 0.1}):
        with pytest.raises(ValueError, match="either alpha or kappa"):
            solve_exactly(problem.at(**wrong))


def test_an_indefinite_matrix_is_named():
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (40, 40))
    A = (A + A.T) / 2
    np.fill_diagonal(A, 0.1)

    class Squared:
        shape, dtype = (40, 40), np.dtype(np.float64)

        def __matmul__(self, v):
            return A**2 @ v

        def diagonal(self):
            return np.diagonal(A) ** 2

        def block(self, rows, cols):
            return (A**2)[rows][:, cols]

    problem = Discrepancy(Squared(), np.full(40, 1 / 40), np.full(40, 0.1))
    with pytest.raises(ValueError, match="must be positive semi-definite"):
        solve_exactly(problem.regularised(1e-3 * problem.largest_alpha))


# --- the programme on given nodes -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_weights_on_given_nodes(seed):
    problem = _problem(seed, Gaussian(sigma=0.8), n=30)
    nodes = np.random.default_rng(seed).permutation(30)[:9]
    S, alpha = problem.squared.to_dense(), 0.01 * problem.largest_alpha
    R = np.linalg.cholesky(S[np.ix_(nodes, nodes)]).T
    right = (problem.distortion - alpha * problem.penalty)[nodes]
    np.testing.assert_allclose(
        solve_on(problem.regularised(alpha), nodes), nnls(R, np.linalg.solve(R.T, right))[0], atol=1e-10
    )


@pytest.mark.parametrize("seed", range(4))
def test_weights_on_given_nodes_stay_within_their_caps(seed):
    whole = _problem(seed, Gaussian(sigma=0.8), n=30, caps=True)
    nodes = np.random.default_rng(seed).permutation(30)[:12]
    most = float(whole.caps[nodes] @ whole.penalty[nodes])
    for share in (0.3, 0.9, 1.0):
        values = solve_on(whole.constrained(share * most), nodes)
        assert np.all((values >= 0) & (values <= whole.caps[nodes]))
        assert whole.penalty[nodes] @ values == pytest.approx(share * most, rel=1e-12)
        used = values > 0
        proof = certify_measure(whole, nodes[used], values[used], kappa=share * most, on_nodes=True)
        assert proof.holds(1e-9)
    beyond = whole.constrained(float(whole.caps @ whole.penalty))
    np.testing.assert_array_equal(solve_on(beyond, nodes), whole.caps[nodes])
