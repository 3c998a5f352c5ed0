"""The solvers of a discrepancy on tensors: the value of NumPy, a proof of it, and no tensor becomes a NumPy array."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, GramOperator, Laplacian, Polynomial
from mercer.backends.arrays import to_numpy
from mercer.certificates import certify_measure
from mercer.linalg.column_cache import ColumnCache
from mercer.problems import Discrepancy
from mercer.solvers import Status, exchange
from mercer.solvers.measure import active_set, exchange_steps
from mercer.solvers.measure.active_set import solve_exactly, solve_on
from mercer.solvers.measure.kinks import PathEnd
from mercer.solvers.measure.regularisation_path import PathLimits, follow

torch = pytest.importorskip("torch")

KERNELS = {
    "gaussian": Gaussian(sigma=0.6),
    "laplacian": Laplacian(sigma=1.0),
    "low rank": Polynomial(degree=2, gamma=1.0, coef0=0.5),
}
FORMS = {
    "free": {},
    "capped": {"caps": True},
    "ridge": {"ridge": True},
    "capped ridge": {"caps": True, "ridge": True},
    "copies": {"copies": True},
}


def _problems(kernel="gaussian", *, caps=False, ridge=False, copies=False, n=50, seed=0):
    """The same programme in both libraries."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X = X[rng.integers(0, n // 3, n)] if copies else X
    weights, penalty = rng.uniform(0.2, 2, n) / n, np.ones(n) if copies else rng.uniform(0.5, 2, n)
    options = {
        "caps": 3 * rng.uniform(0.5, 2, n) / n if caps else None,
        "ridge": rng.uniform(0, 0.2, n) if ridge else None,
    }
    out = []
    for to in (np.asarray, torch.tensor):
        given = {name: None if value is None else to(value) for name, value in options.items()}
        squared = GramOperator(KERNELS[kernel] ** 2, to(X))
        out.append(Discrepancy(squared, to(weights), to(penalty), **given))
    return out


def _agree(ours, theirs):
    """The same value; and the same measure, where it is the only one."""
    assert isinstance(theirs.point.values, torch.Tensor)
    assert theirs.status is ours.status
    assert theirs.history[-1].value == pytest.approx(ours.history[-1].value, rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_active_set(kernel, form, refuse_numpy, monkeypatch):
    numpy_problem, problem = _problems(kernel, **FORMS[form])
    alpha, kappa = 0.01 * problem.largest_alpha, 0.6 * problem.total
    theirs = [solve_exactly(problem.regularised(alpha)), solve_exactly(problem.constrained(kappa))]
    proofs = [
        certify_measure(problem, theirs[0].point.nodes, theirs[0].point.values, alpha=alpha),
        certify_measure(problem, theirs[1].point.nodes, theirs[1].point.values, kappa=kappa),
    ]
    monkeypatch.undo()
    ours = [solve_exactly(numpy_problem.regularised(alpha)), solve_exactly(numpy_problem.constrained(kappa))]
    for mine, his, proof in zip(ours, theirs, proofs, strict=True):
        _agree(mine, his)
        assert proof.lower <= mine.history[-1].value * (1 + 1e-12)
        assert proof.relative_gap <= 1e-6
        if form != "copies" and kernel != "low rank":  # the only solution
            np.testing.assert_array_equal(to_numpy(his.point.nodes), mine.point.nodes)
            np.testing.assert_allclose(to_numpy(his.point.values), mine.point.values, rtol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_a_start_of_dependent_nodes_hands_weight_on(form, refuse_numpy, monkeypatch):
    numpy_problem, problem = _problems("low rank", **FORMS[form])
    alpha = 1e-3 * problem.largest_alpha
    start = (torch.arange(50), problem.weights)
    theirs = solve_exactly(problem.regularised(alpha), start=start)
    monkeypatch.undo()
    ours = solve_exactly(numpy_problem.regularised(alpha), start=(np.arange(50), numpy_problem.weights))
    _agree(ours, theirs)


@pytest.mark.parametrize("rule", ["block", "second-order", "plain"])
@pytest.mark.parametrize("form", FORMS)
def test_vertex_exchange(form, rule, refuse_numpy, monkeypatch):
    numpy_problem, problem = _problems(**FORMS[form])
    kappa = 0.6 * problem.total
    theirs = exchange(problem.constrained(kappa), rule=rule, tol=1e-3)
    proof = certify_measure(problem, theirs.point.nodes, theirs.point.values, kappa=kappa)
    monkeypatch.undo()
    assert theirs.status is Status.CONVERGED
    assert proof.relative_gap <= 2e-3
    best = solve_exactly(numpy_problem.constrained(kappa)).history[-1].value
    assert best * (1 - 1e-9) <= theirs.history[-1].value <= best * (1 + 1.1e-3)
    np.testing.assert_allclose(float(problem.penalty[theirs.point.nodes] @ theirs.point.values), kappa, rtol=1e-13)


def test_parts_of_the_nodes_in_turn_and_few_columns(monkeypatch):
    """Blocks smaller than the measure and a cache of two columns."""
    monkeypatch.setattr(exchange_steps, "_LEAST_BLOCK", 12)
    numpy_problem, problem = _problems(caps=True)
    cache = ColumnCache(problem.columns, problem.size, 0, reference=problem.distortion)
    theirs = exchange(problem.constrained(0.6 * problem.total), cache=cache, tol=1e-4)
    assert theirs.status is Status.CONVERGED
    assert theirs.point.nodes.shape[0] > 12
    best = solve_exactly(numpy_problem.constrained(0.6 * problem.total)).history[-1].value
    assert theirs.history[-1].value == pytest.approx(best, rel=2e-4)


def test_small_pools(monkeypatch):
    monkeypatch.setattr(active_set, "_LEAST_POOL", 3)
    monkeypatch.setattr(active_set, "_POOL_PER_NODE", 0)
    numpy_problem, problem = _problems()
    alpha = 0.02 * problem.largest_alpha
    ours, theirs = solve_exactly(numpy_problem.regularised(alpha)), solve_exactly(problem.regularised(alpha))
    assert len(theirs.history) == len(ours.history) > 2
    _agree(ours, theirs)


@pytest.mark.parametrize("form", ["free", "capped", "capped ridge"])
def test_weights_on_given_nodes(form):
    numpy_problem, problem = _problems(**FORMS[form])
    for given in ({"alpha": 0.0}, {"kappa": 0.2 * problem.total}):
        ours = solve_on(numpy_problem.at(**given), np.arange(0, 50, 4))
        theirs = solve_on(problem.at(**given), torch.arange(0, 50, 4))
        np.testing.assert_allclose(to_numpy(theirs), ours, atol=1e-9)


@pytest.mark.parametrize("form", ["free", "capped", "ridge"])
def test_the_path(form, refuse_numpy, monkeypatch):
    numpy_problem, problem = _problems(**FORMS[form])
    limits = PathLimits(alpha=0.02 * problem.largest_alpha)
    theirs = follow(problem, limits).point
    monkeypatch.undo()
    ours = follow(numpy_problem, limits).point
    assert theirs.end is ours.end is PathEnd.REQUESTED
    for name in ("event_points", "event_kinds", "event_kinks"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))
    for name in ("alphas", "kappas", "values", "n_nodes"):
        np.testing.assert_allclose(to_numpy(getattr(theirs, name)), getattr(ours, name), rtol=1e-9)


def test_events_of_a_regular_grid_come_together():
    x = np.linspace(-1, 1, 5)
    X = np.stack(np.meshgrid(x, x), -1).reshape(-1, 2)
    ends = []
    for to in (np.asarray, torch.tensor):
        problem = Discrepancy(GramOperator(Gaussian(0.7) ** 2, to(X)), to(np.full(25, 0.04)), to(np.ones(25)))
        kinks = follow(problem, PathLimits(alpha=0.05 * problem.largest_alpha)).point
        ends.append((kinks.end, float(kinks.kappas[-1]), int(kinks.n_nodes[-1])))
    assert ends[0][0] is ends[1][0]
    assert ends[0][2] == ends[1][2]
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-9)
