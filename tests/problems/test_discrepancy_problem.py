"""The quadratic programmes of the discrepancy against dense matrices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import Gaussian, GramOperator, Polynomial
from mercer.backends.arrays import to_numpy
from mercer.problems import Discrepancy

N = 25


KERNEL = Polynomial(2, 0.5, 1.0) + Gaussian(0.8)


def _problem(seed=0, *, caps=False, ridge=False, kernel=KERNEL, to=np.asarray):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 2))
    return Discrepancy(
        GramOperator(kernel**2, to(X)),
        to(rng.uniform(0.2, 2, N) / N),
        to(rng.uniform(0.5, 2, N)),
        caps=to(rng.uniform(0.02, 0.2, N)) if caps else None,
        ridge=to(rng.uniform(0, 1, N)) if ridge else None,
    )


def _measure(problem, seed=1, count=7):
    rng = np.random.default_rng(seed)
    nodes, values = rng.permutation(N)[:count], rng.uniform(0, 0.3, count)
    v = np.zeros(N)
    v[nodes] = values
    return nodes, values, v


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("ridge", [False, True])
def test_everything_against_the_dense_matrix(ridge, library):
    to = np.asarray if library == "numpy" else pytest.importorskip("torch").tensor
    problem = _problem(ridge=ridge, to=to)
    S, omega, rho = (to_numpy(array) for array in (problem.squared.to_dense(), problem.weights, problem.ridge))
    penalty, A = to_numpy(problem.penalty), S + np.diag(rho)
    nodes, values, v = _measure(problem)
    chosen, weights = to(nodes), to(values)
    assert np.any(rho > 0) == ridge
    np.testing.assert_allclose(to_numpy(problem.distortion), S @ omega, rtol=1e-13)
    np.testing.assert_allclose(to_numpy(problem.diagonal), np.diag(A), rtol=1e-14)
    np.testing.assert_allclose(to_numpy(problem.columns(chosen)), A[:, nodes], rtol=1e-14, atol=1e-15)
    part = to_numpy(problem.block(chosen[:3], chosen))
    np.testing.assert_allclose(part, A[np.ix_(nodes[:3], nodes)], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(to_numpy(problem.gradient(chosen, weights)), A @ v - S @ omega, atol=1e-13)
    assert problem.value(chosen, weights) == pytest.approx(0.5 * (omega - v) @ S @ (omega - v) + 0.5 * rho @ v**2)
    assert problem.discrepancy(chosen, weights) == pytest.approx(0.5 * (omega - v) @ S @ (omega - v))
    assert problem.constant == pytest.approx(0.5 * omega @ S @ omega)
    assert problem.total == pytest.approx(penalty @ omega)
    assert problem.largest_alpha == pytest.approx(np.max(S @ omega / penalty))
    assert np.all(to_numpy(problem.caps) == np.inf)
    assert problem.n_columns == 4 * 7


def test_the_gradient_is_that_of_the_value():
    problem = _problem(ridge=True)
    nodes, values, _ = _measure(problem)
    gradient = problem.gradient(nodes, values)
    for place, node in enumerate(nodes):
        step = np.zeros(nodes.size)
        step[place] = 1e-5
        rise = (problem.value(nodes, values + step) - problem.value(nodes, values - step)) / 2e-5
        assert rise == pytest.approx(gradient[node], rel=1e-6, abs=1e-9)


def test_the_empty_measure():
    problem = _problem()
    none = np.empty(0, np.intp)
    assert problem.value(none, np.empty(0)) == pytest.approx(problem.constant)
    np.testing.assert_array_equal(problem.gradient(none, np.empty(0)), -problem.distortion)
    assert problem.multiplier(none, np.empty(0), -problem.distortion) == problem.largest_alpha


def test_panels_of_columns_and_their_number(monkeypatch):
    problem = _problem(ridge=True)
    nodes, values, _ = _measure(problem)
    whole = problem.gradient(nodes, values)
    assert problem.n_columns == 7
    monkeypatch.setattr("mercer.backends.chunks._COLUMN_BYTES", 8 * N * 2)
    np.testing.assert_allclose(problem.gradient(nodes, values), whole, rtol=1e-13, atol=1e-15)
    assert problem.n_columns == 14


def test_values_close_to_the_sample_keep_their_digits():
    """v = (1 + 1e-9) ω with weights that are whole multiples of a power of two: D is known to every digit."""
    squared = GramOperator(Gaussian(sigma=0.7) ** 2, np.random.default_rng(0).standard_normal((N, 2)))
    weights = np.random.default_rng(1).integers(1, 9, N) / 64
    problem = Discrepancy(squared, weights, np.ones(N))
    values = weights * (1 + 2.0**-30)
    S, small = squared.to_dense(), [Fraction(w) / 2**30 for w in weights]
    exact = sum(Fraction(S[i, j]) * small[i] * small[j] for i in range(N) for j in range(N)) / 2
    assert problem.value(np.arange(N), values) == pytest.approx(float(exact), rel=1e-5, abs=0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-6, 1.0), st.booleans(), st.booleans())
def test_filling_up(seed, share, caps, partly):
    problem = _problem(seed, caps=caps)
    gain = np.random.default_rng(seed).standard_normal(N)
    left = 0.5 * problem.caps if partly else problem.caps
    kappa = share * min(float(left @ problem.penalty), 3.0)
    nodes, values = problem.filled(gain, kappa, left) if partly else problem.filled(gain, kappa)
    assert problem.penalty[nodes] @ values == pytest.approx(kappa, rel=1e-12)
    assert np.all((values > 0) & (values <= left[nodes]))
    assert np.all(np.diff(gain[nodes]) <= 0)
    assert np.all(values[:-1] == left[nodes[:-1]])  # only the last is not full
    assert np.all(np.sort(gain)[::-1][: nodes.size] == gain[nodes])


def test_the_multiplier_is_read_off_the_nodes_below_their_caps():
    problem = _problem(caps=True)
    nodes = np.array([3, 8, 12])
    values = problem.caps[nodes] * np.array([1.0, 0.5, 0.25])
    gradient = problem.gradient(nodes, values)
    inside, d = nodes[1:], problem.penalty
    expected = -gradient[inside] @ values[1:] / (d[inside] @ values[1:])
    assert problem.multiplier(nodes, values, gradient) == pytest.approx(expected)
    at_caps = problem.multiplier(nodes, problem.caps[nodes], gradient)
    assert np.all(gradient[nodes] + at_caps * d[nodes] <= 1e-15)  # the slack of nodes at their caps is not positive


def test_a_negative_discrepancy_is_no_discrepancy():
    problem = _problem()
    with pytest.raises(ValueError, match="is negative.*must be positive semi-definite"):
        problem.value(np.array([0]), np.array([0.0]), gradient=problem.distortion)
