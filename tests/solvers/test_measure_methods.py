"""Methods on measures under the one driver: what they refuse, and what is left of an interrupted run."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, GramOperator
from mercer.certificates import certify_measure
from mercer.problems import Discrepancy
from mercer.solvers import Goal, Limits, Run, Status, exchange
from mercer.solvers.measure.active_set import ActiveSet, solve_exactly
from mercer.solvers.measure.elimination import Elimination, eliminate
from mercer.solvers.measure.merging import Merging, merge
from mercer.solvers.measure.regularisation_path import PathFollower, PathLimits
from mercer.solvers.measure.swapping import Swapping
from mercer.solvers.measure.vertex_exchange import VertexExchange


@pytest.fixture
def problem():
    X = np.random.default_rng(0).standard_normal((60, 2))
    return Discrepancy(GramOperator(Gaussian(sigma=0.7) ** 2, X), np.full(60, 1 / 60), np.ones(60))


def _run(*callbacks):
    return Run(Goal(0.0), callbacks=callbacks)


def test_a_problem_says_what_it_needs(problem):
    assert problem.needs == frozenset()
    assert problem.regularised(0.1).needs == {"a penalty on the trace"}
    assert problem.constrained(0.5).needs == {"a trace constraint"}
    options = {"caps": np.full(60, 0.1), "ridge": np.full(60, 1e-3)}
    bounded = Discrepancy(problem.squared, problem.weights, problem.penalty, **options)
    assert bounded.constrained(0.5).needs == {"caps", "a ridge", "a trace constraint"}


def test_exchanges_refuse_a_penalty_by_name_before_any_work(problem):
    with pytest.raises(ValueError, match="'vertex exchange' cannot solve this problem, which has a penalty on the tr"):
        exchange(problem.regularised(0.1))
    assert problem.n_columns == 0


@pytest.mark.parametrize("method", [PathFollower(PathLimits()), Elimination(), Merging(), Swapping()])
def test_methods_without_a_level_refuse_one_by_name(problem, method):
    for level, name in ((problem.regularised(0.1), "a penalty"), (problem.constrained(0.5), "a trace constraint")):
        with pytest.raises(ValueError, match=f"{method.name!r} cannot solve this problem, which has {name}"):
            _run().phase(level, method, np.arange(10))


def test_every_method_handles_caps_and_a_ridge():
    for method in (ActiveSet, VertexExchange, PathFollower, Elimination, Merging, Swapping):
        assert {"caps", "a ridge"} <= method.handles


def test_levels_share_the_count_of_columns_and_its_budget(problem):
    level = problem.constrained(0.5)
    found = Run(Goal(1e-12, max_products=3)).phase(level, ActiveSet())
    assert found.status is Status.MAX_PRODUCTS
    assert problem.n_columns == level.n_columns <= 3
    assert problem.max_columns is None


@pytest.mark.parametrize("kappa", [0.0, -1.0, np.nan])
def test_levels_are_checked_once_for_all(problem, kappa):
    with pytest.raises(ValueError, match="must be a positive number"):
        problem.constrained(kappa)


def test_a_certificate_travels_with_the_solution(problem):
    def certify(point):
        return certify_measure(problem, point.nodes, point.values, kappa=0.5)

    for solver in (solve_exactly, exchange):
        found = solver(problem.constrained(0.5), run=Run(Goal(0.0), certify=certify))
        assert found.certificate.holds(1e-5)
        assert found.certificate.discrepancy == pytest.approx(found.history[-1].objective, rel=1e-12)
        assert found.certificate.trace == pytest.approx(0.5, rel=1e-12)
    assert solve_exactly(problem.constrained(0.5)).certificate is None


def _interrupt_at(number):
    def interrupt(line):
        if line.number >= number:
            raise KeyboardInterrupt

    return interrupt


def test_an_interrupted_elimination_is_the_beginning_of_the_whole_one(problem):
    nodes = np.arange(40)
    whole = eliminate(problem, nodes, n_nodes=5)
    cut = _run(_interrupt_at(12)).phase(problem, Elimination(5), nodes, Limits(max_iter=60))
    assert cut.status is Status.INTERRUPTED
    steps = cut.point.removed.size
    assert 0 < steps < whole.removed.size
    np.testing.assert_array_equal(cut.point.removed, whole.removed[:steps])
    assert {line.phase for line in cut.history} == {"elimination"}
    assert cut.history[-1].n_nodes == 40 - steps


@pytest.mark.parametrize("strategy", ["strong", "weak"])
def test_an_interrupted_merging_is_the_beginning_of_the_whole_one(problem, strategy):
    measure = solve_exactly(problem.constrained(0.6)).point
    whole = merge(problem, measure.nodes, measure.values, strategy=strategy)
    start = (measure.nodes, measure.values, measure.gradient)
    cut = _run(_interrupt_at(6)).phase(problem, Merging(strategy), start, Limits(max_iter=60))
    assert cut.status is Status.INTERRUPTED
    steps = cut.point.into.size
    assert steps == 6
    np.testing.assert_array_equal(cut.point.absorbed, whole.absorbed[:steps])
    nodes, values = cut.point.at()
    assert problem.trace(nodes, values) == pytest.approx(0.6, rel=1e-12)


def test_a_budget_ends_elimination_where_it_is_spent(problem):
    cut = _run().phase(problem, Elimination(), np.arange(40), Limits(max_iter=7))
    assert cut.status is Status.MAX_ITER
    assert cut.n_iter == 7


def test_swapping_keeps_the_last_sweep(problem):
    nodes = eliminate(problem, np.arange(60), n_nodes=8).left(52)
    whole = _run().phase(problem, Swapping(), nodes, Limits(max_iter=5))
    assert whole.status is Status.CONVERGED
    values = [line.objective for line in whole.history]
    assert np.diff(values).max() <= 1e-14 * values[0]  # the last sweep changes nothing but the rounding
    cut = _run(_interrupt_at(1)).phase(problem, Swapping(), nodes, Limits(max_iter=5))
    assert cut.status is Status.INTERRUPTED
    assert cut.history[-1].objective == values[1]
