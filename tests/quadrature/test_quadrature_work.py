"""How much of the squared kernel a fit evaluates: every gradient once, weights solved once."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, QuadratureSparsifier
from mercer.problems import Discrepancy
from mercer.quadrature import selection

KERNEL = Gaussian(sigma=0.7)


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((300, 2))


@pytest.fixture
def gradients(monkeypatch):
    """The measures of which a gradient was computed."""
    seen: list[bytes] = []
    original = Discrepancy.gradient

    def gradient(self, nodes, values):
        dense = np.zeros(self.size)
        dense[nodes] = values
        seen.append(dense.tobytes())
        return original(self, nodes, values)

    monkeypatch.setattr(Discrepancy, "gradient", gradient)
    return seen


@pytest.fixture
def solved(monkeypatch):
    """The programmes whose weights were solved on given nodes."""
    seen: list[tuple] = []
    original = selection.solve_on

    def solve_on(problem, nodes):
        seen.append((problem.alpha, problem.kappa, tuple(sorted(nodes.tolist()))))
        return original(problem, nodes)

    monkeypatch.setattr(selection, "solve_on", solve_on)
    return seen


def test_a_trace_fraction_takes_two_gradients(X, gradients):
    """One of the solver at its end and one of the proof, which does not believe it; the start is a single node."""
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.8).fit(X)
    assert model.n_columns_ == 2 * model.indices_.size + 1
    assert len(gradients) == 3
    assert gradients[-1] == gradients[-2]


@pytest.mark.parametrize(
    "options", [{"n_nodes": 20}, {"n_nodes": 30, "max_weight": 0.05}, {"n_nodes": 15, "merge": "weak"}]
)
def test_a_number_of_nodes_computes_no_gradient_and_no_weights_twice(X, gradients, solved, options):
    """Only the measure that is returned has a gradient more: that of its proof."""
    model = QuadratureSparsifier(KERNEL, **options).fit(X)
    assert len(set(gradients)) >= len(gradients) - 1
    assert len(set(solved)) == len(solved)
    columns = sum(int(np.count_nonzero(np.frombuffer(each))) for each in gradients)
    assert model.n_columns_ == columns


def test_swaps_cost_no_gradient_where_the_pool_holds_all_points(X, gradients, monkeypatch):
    """Which measure is the better one is asked on its nodes; the proof alone needs the other points."""
    swapped = QuadratureSparsifier(KERNEL, n_nodes=20).fit(X)
    assert len(gradients) == 1
    monkeypatch.setattr("mercer.solvers.measure.swapping._WORTH", np.inf)
    gradients.clear()
    plain = QuadratureSparsifier(KERNEL, n_nodes=20).fit(X)
    assert len(gradients) == 1
    assert plain.discrepancy_ > swapped.discrepancy_


@pytest.mark.parametrize("merge", ["strong", "weak", "eliminate"])
def test_taking_nodes_out_of_a_solution_starts_from_its_gradient(X, gradients, merge):
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.8, merge=merge, n_nodes=10).fit(X)
    assert model.indices_.size == 10
    assert len(gradients) == 3  # the start, the solution, the proof of the ten
    assert len(set(gradients)) == 3


def test_an_exchange_hands_its_gradient_to_the_active_set(X, gradients):
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.8, solver="exchange").fit(X)
    assert model.certificate_.holds(1e-7)
    phases = [line.phase for line in model.history_]
    assert phases[0] == "exchange"
    assert phases[-1] == "active set"
    assert len(gradients) <= phases.count("active set") + 3
