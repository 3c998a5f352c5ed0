"""Vertex exchange against a conic solver, its optimality conditions, and what it promises when it is stopped."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import qmc

from mercer import Gaussian, GramOperator, config_context
from mercer.certificates import certify_measure
from mercer.linalg.column_cache import ColumnCache
from mercer.problems import Discrepancy
from mercer.solvers import Goal, Iteration, Run, Solution, SparseMeasure, Status, exchange
from mercer.solvers.measure import exchange_steps

RULES = ("block", "second-order", "plain")
KINDS = ("free", "capped", "ridge", "capped ridge", "copies")
TOL = 1e-6


@dataclass
class Case:
    problem: Discrepancy
    kappa: float
    S: np.ndarray  # by the formula, not by the operator

    @property
    def A(self) -> np.ndarray:
        return self.S + np.diag(self.problem.ridge)

    def objective(self, v: np.ndarray) -> float:
        off = self.problem.weights - v
        return 0.5 * off @ self.S @ off + 0.5 * self.problem.ridge @ v**2

    def dense(self, measure: Solution[SparseMeasure]) -> np.ndarray:
        v = np.zeros(self.problem.size)
        v[measure.point.nodes] = measure.point.values
        return v


@functools.cache
def _case(kind: str, seed: int = 0, n: int = 60) -> Case:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    X = rng.standard_normal((n, 2))
    sigma = rng.uniform(0.5, 1.0)
    weights, penalty = rng.uniform(0.2, 1.8, n) / n, rng.uniform(0.5, 2.0, n)
    if kind == "copies":  # with the same penalty: of two copies the one with less could take all, and D would vanish
        first = rng.integers(0, n // 3, n)
        X, penalty = X[first], penalty[first]
    kappa = rng.uniform(0.6, 0.9) * float(weights @ penalty)
    caps = rng.uniform(0.5, 1.5, n) * 2.5 * kappa / penalty.sum() if "capped" in kind else None
    ridge = rng.uniform(0.0, 0.2, n) if "ridge" in kind else None
    squared = GramOperator(Gaussian(sigma) ** 2, X)
    S = np.exp(-2 * np.sum((X[:, None] - X) ** 2, axis=2) / sigma**2)
    return Case(Discrepancy(squared, weights, penalty, caps=caps, ridge=ridge), kappa, S)


@functools.cache
def _optimum(kind: str, seed: int = 0) -> float:
    """The optimal value by a conic solver."""
    import cvxpy as cp

    case = _case(kind, seed)
    problem, n = case.problem, case.problem.size
    L = np.linalg.cholesky(case.S + 1e-13 * np.eye(n))
    v = cp.Variable(n)
    value = cp.sum_squares(L.T @ (problem.weights - v)) + cp.sum_squares(cp.multiply(np.sqrt(problem.ridge), v))
    bounds = [v >= 0, problem.penalty @ v == case.kappa]
    if np.all(np.isfinite(problem.caps)):
        bounds.append(v <= problem.caps)
    programme = cp.Problem(cp.Minimize(50.0 * value), bounds)
    programme.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert programme.status == cp.OPTIMAL
    return float(programme.value) / 100.0


@functools.cache
def _solved(kind: str, rule: str, seed: int = 0) -> Solution[SparseMeasure]:
    case = _case(kind, seed)
    return exchange(case.problem.constrained(case.kappa), rule=rule, tol=TOL, max_iter=300_000)


def _watched(callback) -> Run[SparseMeasure]:
    return Run(Goal(0.0), callbacks=(callback,))


def _no_cache(problem: Discrepancy) -> ColumnCache:
    return ColumnCache(problem.columns, problem.size, 0)


each = pytest.mark.parametrize("kind", KINDS)
by_each_rule = pytest.mark.parametrize("rule", RULES)


# --- optimality -------------------------------------------------------------------------------------------------


@each
@by_each_rule
def test_value_is_that_of_a_conic_solver(kind, rule):
    case, measure, best = _case(kind), _solved(kind, rule), _optimum(kind)
    assert measure.status is Status.CONVERGED
    value = case.objective(case.dense(measure))
    assert best * (1 - 1e-8) <= value <= best * (1 + 1.01 * TOL) + 1e-11
    assert measure.history[-1].value == pytest.approx(value, rel=1e-9, abs=1e-13)


@each
@by_each_rule
def test_measure_is_feasible_and_its_gradient_belongs_to_it(kind, rule):
    case, measure = _case(kind), _solved(kind, rule)
    v = case.dense(measure)
    assert np.all(measure.point.values > 0)
    assert np.all(v <= case.problem.caps)
    assert case.problem.penalty @ v == pytest.approx(case.kappa, rel=1e-14)
    np.testing.assert_allclose(measure.point.gradient, case.A @ v - case.S @ case.problem.weights, atol=1e-14)


@each
@by_each_rule
def test_optimality_conditions_hold(kind, rule):
    """Some λ: prices at most λ where v is positive, at least λ where it is below its cap, up to the gap's worth."""
    case, measure = _case(kind), _solved(kind, rule)
    v, d = case.dense(measure), case.problem.penalty
    price = (case.A @ v - case.S @ case.problem.weights) / d
    least = price[v < case.problem.caps].min()
    excess = np.maximum(price - least, 0.0)
    assert d * v @ excess <= TOL * case.objective(v) + 1e-14
    if "capped" in kind:
        assert np.any(v == case.problem.caps)  # or the caps were not tried


@pytest.mark.parametrize("seed", range(1, 3))
@each
def test_three_rules_agree_on_more_problems(kind, seed):
    values = [_solved(kind, rule, seed).history[-1].value for rule in RULES]
    assert all(_solved(kind, rule, seed).status is Status.CONVERGED for rule in RULES)
    assert max(values) - min(values) <= TOL * max(values) + 1e-14
    assert min(values) >= _optimum(kind, seed) * (1 - 1e-8)


# --- history ----------------------------------------------------------------------------------------------------


@each
@by_each_rule
def test_value_falls_and_the_gap_is_a_true_bound_on_every_line(kind, rule):
    history, best = _solved(kind, rule).history, _optimum(kind)
    values, gaps = np.array([line.value for line in history]), np.array([line.gap for line in history])
    assert len(history) > 3
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert np.all(values - best <= gaps * (1 + 1e-9) + 1e-11)
    assert np.all(np.diff([line.number for line in history]) > 0)
    assert np.all(np.diff([line.seconds for line in history]) >= 0)


@each
def test_last_gap_is_not_below_the_certificate(kind):
    """The same bound where no cap binds; with caps the certificate's linear programme may prove a little more."""
    case, measure = _case(kind), _solved(kind, "block")
    proof = certify_measure(case.problem, measure.point.nodes, measure.point.values, kappa=case.kappa)
    rounding = 1e-11 * case.problem.constant  # of both bounds
    assert proof.upper - proof.lower <= measure.history[-1].gap * (1 + 1e-6) + rounding
    if "capped" not in kind:
        assert proof.upper - proof.lower == pytest.approx(measure.history[-1].gap, rel=1e-3, abs=rounding)


def test_lines_are_few_and_the_callback_sees_them():
    case = _case("free")
    seen: list[Iteration] = []
    measure = exchange(
        case.problem.constrained(case.kappa), rule="plain", tol=0.0, max_iter=5000, run=_watched(seen.append)
    )
    assert measure.status is Status.MAX_ITER
    assert measure.history[-1].number == 5000
    assert seen == list(measure.history)
    assert 20 < len(seen) < 100


# --- the example of the paper -----------------------------------------------------------------------------------


@functools.cache
def _halton() -> Discrepancy:
    X = qmc.Halton(2, scramble=False).random(2017)[1:] * 2 - 1
    squared = GramOperator(Gaussian(0.4) ** 2, X)
    return Discrepancy(squared, np.full(2016, 1 / 2016), np.ones(2016))


def test_two_dimensional_example_of_the_paper():
    """QUAD 8.1: D = 7.631890e-4 with 160 nodes at ϰ = 0.81, here within a proved 1e-6."""
    measure = exchange(_halton().constrained(0.81), tol=1e-6)
    assert measure.status is Status.CONVERGED
    assert measure.history[-1].value == pytest.approx(7.631890e-4, rel=1e-6)
    assert 160 <= measure.point.nodes.size <= 165


@pytest.mark.parametrize("rule", ["second-order", "plain"])
def test_single_exchanges_approach_the_papers_value_from_above(rule):
    measure = exchange(_halton().constrained(0.81), rule=rule, max_iter=6000)
    values = [line.value for line in measure.history]
    assert values == sorted(values, reverse=True)
    assert 7.631889e-4 < values[-1] < 1.01 * 7.631890e-4
    assert values[-1] - 7.631890e-4 < measure.history[-1].gap


def test_blocks_need_far_fewer_operations_on_columns():
    operations = {}
    for rule in ("block", "plain"):
        cache = ColumnCache(_halton().columns, 2016, 10**8)
        measure = exchange(_halton().constrained(0.81), rule=rule, tol=3e-2, cache=cache)
        assert measure.status is Status.CONVERGED
        operations[rule] = cache.hits + cache.misses
    assert 5 * operations["block"] < operations["plain"]


# --- starts -----------------------------------------------------------------------------------------------------


@each
def test_start_at_the_solution_takes_no_step(kind):
    case, measure = _case(kind), _solved(kind, "block")
    again = exchange(
        case.problem.constrained(case.kappa), start=(measure.point.nodes, measure.point.values), tol=2 * TOL
    )
    assert again.status is Status.CONVERGED
    assert again.history[-1].number == 0


@pytest.mark.parametrize("factor", [0.4, 1.1])
@pytest.mark.parametrize("kind", ["free", "capped"])
def test_start_from_another_kappa_is_scaled_within_the_caps(kind, factor):
    """At 1.1 the nodes at their caps cannot grow and the others make up for it."""
    case, other = _case(kind), _solved(kind, "block")
    lines: list[Iteration] = []
    measure = exchange(
        case.problem.constrained(factor * case.kappa),
        start=(other.point.nodes, other.point.values),
        tol=TOL,
        run=_watched(lines.append),
    )
    fresh = exchange(case.problem.constrained(factor * case.kappa), tol=TOL)
    assert lines[0].n_nodes == other.point.nodes.size
    assert measure.history[-1].value == pytest.approx(fresh.history[-1].value, rel=2 * TOL)


def test_start_on_too_few_capped_nodes_spills_to_others():
    case = _case("capped")
    lines: list[Iteration] = []
    measure = exchange(
        case.problem.constrained(case.kappa), start=(np.array([3]), np.array([1.0])), run=_watched(lines.append)
    )
    assert lines[0].n_nodes > 1
    assert measure.status is Status.CONVERGED
    assert case.problem.penalty @ case.dense(measure) == pytest.approx(case.kappa, rel=1e-14)


def test_caps_that_leave_one_measure_only():
    """Σ cᵢdᵢ = ϰ: v = c, at once."""
    problem = _case("free").problem
    caps = np.random.default_rng(0).uniform(0.5, 1.0, problem.size) / problem.size
    capped = Discrepancy(problem.squared, problem.weights, problem.penalty, caps=caps)
    for rule in RULES:
        measure = exchange(capped.constrained(float(caps @ problem.penalty)), rule=rule)
        assert measure.status is Status.CONVERGED
        np.testing.assert_allclose(measure.point.values, caps[measure.point.nodes], rtol=1e-12)
        assert measure.point.nodes.size == problem.size


@by_each_rule
@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_points(n, rule):
    squared = GramOperator(Gaussian(1.0) ** 2, np.array([[0.0], [1.0]])[:n])
    problem = Discrepancy(squared, np.full(n, 1 / n), np.ones(n))
    measure = exchange(problem.constrained(0.5), rule=rule)
    np.testing.assert_allclose(measure.point.values, 0.5 / n, rtol=1e-6)
    assert measure.status in (Status.CONVERGED, Status.STALLED)


# --- ends -------------------------------------------------------------------------------------------------------


@by_each_rule
def test_callback_stops_the_run(rule):
    case = _case("capped ridge")
    measure = exchange(case.problem.constrained(case.kappa), rule=rule, run=_watched(lambda line: line.number >= 2))
    assert measure.status is Status.STOPPED
    assert measure.history[-1].number == 2
    assert case.problem.penalty @ case.dense(measure) == pytest.approx(case.kappa, rel=1e-14)


@by_each_rule
@pytest.mark.parametrize("after", [0, 1, 2, 5, 9])
def test_interrupt_anywhere_returns_a_feasible_measure(rule, after, monkeypatch):
    """The interrupt strikes while columns are made, so in the middle of a step or of the first gradient."""
    case, calls = _case("capped"), 0
    original = Discrepancy.columns

    def columns(self: Discrepancy, nodes: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == after + 1:
            raise KeyboardInterrupt
        return original(self, nodes)

    monkeypatch.setattr(Discrepancy, "columns", columns)
    measure = exchange(case.problem.constrained(case.kappa), rule=rule, cache=_no_cache(case.problem), tol=1e-9)
    assert measure.status is Status.INTERRUPTED
    v = case.dense(measure)
    assert case.problem.penalty @ v == pytest.approx(case.kappa, rel=1e-13)
    assert np.all(v <= case.problem.caps)
    np.testing.assert_allclose(measure.point.gradient, case.A @ v - case.S @ case.problem.weights, atol=1e-14)
    values = [line.value for line in measure.history]
    assert values == sorted(values, reverse=True)


@by_each_rule
def test_tolerance_beyond_double_precision_is_admitted(rule):
    """At ϰ = dᵀω with no caps the optimum is zero, at v = ω: no relative gap can be proved there."""
    rng = np.random.default_rng(0)
    squared = GramOperator(Gaussian(0.3) ** 2, rng.standard_normal((12, 2)))
    problem = Discrepancy(squared, rng.uniform(0.5, 1.0, 12), np.ones(12))
    measure = exchange(problem.constrained(problem.total), rule=rule, tol=1e-9)
    assert measure.status is Status.STALLED
    assert measure.history[-1].value < 1e-20
    np.testing.assert_allclose(measure.point.values, problem.weights, rtol=1e-7)


@by_each_rule
def test_convergence_is_never_claimed_on_a_gradient_that_drifted(rule):
    """Columns that are wrong by a thousandth: the claim rests on the gradient computed anew."""
    case = _case("free")
    wrong = np.random.default_rng(0).uniform(0.999, 1.001, case.problem.size)
    cache = ColumnCache(lambda nodes: wrong[:, None] * case.problem.columns(nodes), case.problem.size, 10**6)
    measure = exchange(case.problem.constrained(case.kappa), rule=rule, cache=cache, max_iter=400)
    v = case.dense(measure)
    gradient = case.A @ v - case.S @ case.problem.weights
    gap = gradient @ v - case.kappa * np.min(gradient / case.problem.penalty)
    assert measure.history[-1].gap == pytest.approx(gap, rel=1e-6)
    assert (measure.status is Status.CONVERGED) == (measure.history[-1].gap <= 1e-6 * measure.history[-1].value)


# --- memory -----------------------------------------------------------------------------------------------------


class Watched:
    """A linear map that records the blocks asked of it."""

    def __init__(self, inner: GramOperator) -> None:
        self.inner, self.shape, self.dtype = inner, inner.shape, inner.dtype
        self.blocks: list[tuple[int, int]] = []

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        return self.inner @ v

    def diagonal(self) -> np.ndarray:
        return self.inner.diagonal()

    def block(self, rows, cols):
        block = self.inner.block(rows, cols)
        self.blocks.append(block.shape)
        return block


@by_each_rule
def test_neither_the_matrix_nor_more_columns_than_allowed_are_ever_held(rule, monkeypatch):
    monkeypatch.setattr(exchange_steps, "_LEAST_BLOCK", 150)
    n, fit = 900, 30
    X = np.random.default_rng(1).standard_normal((n, 2))  # some 350 nodes, however processors round
    squared = Watched(GramOperator(Gaussian(0.5) ** 2, X))
    problem = Discrepancy(squared, np.full(n, 1 / n), np.ones(n))
    cache = ColumnCache(problem.columns, n, 8 * n * fit)
    held: list[int] = []
    measure = exchange(
        problem.constrained(0.7),
        rule=rule,
        cache=cache,
        tol=3e-2,
        run=_watched(lambda line: held.append(len(cache)) or False),
    )
    assert measure.status is Status.CONVERGED
    assert max(held) == len(cache) == cache.capacity == fit
    widths = [rows for rows, cols in squared.blocks if cols == n]  # columns of a symmetric matrix come as its rows
    inside = [shape for shape in squared.blocks if n not in shape]
    assert max(widths[:-1]) <= max(fit, measure.point.nodes.size)
    assert max((rows * cols for rows, cols in inside), default=0) <= n**2 / 4
    assert sum(widths) == problem.n_columns


def test_more_nodes_than_a_block_holds(monkeypatch):
    """Parts of the nodes in turn lead to the same value, with caps and without."""
    monkeypatch.setattr(exchange_steps, "_LEAST_BLOCK", 24)
    for kind in ("free", "capped ridge"):
        case = _case(kind)
        measure = exchange(case.problem.constrained(case.kappa), cache=_no_cache(case.problem), tol=TOL)
        assert measure.status is Status.CONVERGED
        assert measure.point.nodes.size > 24
        assert measure.history[-1].value == pytest.approx(_solved(kind, "block").history[-1].value, rel=2 * TOL)


def test_cache_takes_a_quarter_of_the_limit(monkeypatch):
    case, made = _case("free"), []
    monkeypatch.setattr(
        "mercer.solvers.measure.vertex_exchange.ColumnCache",
        lambda *given, **named: made.append(given) or ColumnCache(*given, **named),
    )
    with config_context(memory_limit=8 * 60 * 40):
        exchange(case.problem.constrained(case.kappa), max_iter=3)
    assert [(size, limit) for _, size, limit in made] == [(60, 8 * 60 * 10)]


# --- points of a block ------------------------------------------------------------------------------------------


def test_new_points_of_a_block_are_no_copies_of_each_other():
    """Fifty copies of the cheapest point would crowd all others out."""
    X = np.concatenate([np.full((50, 1), 0.0), np.arange(2.0, 12.0)[:, None]])
    problem = Discrepancy(GramOperator(Gaussian(0.5) ** 2, X), np.full(60, 1 / 60), np.ones(60))
    state = exchange_steps.ExchangeState(problem, 0.5, ColumnCache(problem.columns, 60, 10**6))
    mass = np.zeros(60)
    mass[59] = 0.5
    state.put(mass)
    state.refresh()
    step = exchange_steps.BlockStep(max_bytes=10**6)
    new = step._new_points(state, step._level(state))
    assert np.sum(new < 50) == 1
    assert new.size == 10
    assert new[0] == np.argmin(state.price)


# --- mistakes ---------------------------------------------------------------------------------------------------


def test_caps_that_cannot_hold_kappa():
    case = _case("capped")
    most = float(case.problem.caps @ case.problem.penalty)
    with pytest.raises(ValueError, match=f"allow dᵀv = {most:.6g} at most, but kappa = {1.5 * most:.6g}: raise them"):
        exchange(case.problem.constrained(1.5 * most))


@pytest.mark.parametrize("kappa", [0.0, -1.0, np.nan, np.inf])
def test_kappa_must_be_positive(kappa):
    with pytest.raises(ValueError, match="must be a positive number"):
        exchange(_case("free").problem.constrained(kappa))


def test_unknown_rule():
    with pytest.raises(ValueError, match="rule='fast' must be one of 'block', 'second-order', 'plain'"):
        exchange(_case("free").problem.constrained(0.5), rule="fast")


@pytest.mark.parametrize("start", [([0, 1], [1.0]), ([0], [-1.0]), ([0], [0.0])])
def test_start_that_is_no_measure(start):
    with pytest.raises(ValueError, match="start must be nodes and as many values"):
        exchange(_case("free").problem.constrained(0.5), start=start)
