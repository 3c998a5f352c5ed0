"""Whole fits on tensors: the nodes, weights and proofs of NumPy, and no tensor becomes a NumPy array on the way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import mercer
from mercer import Gaussian, GramOperator, Matern, Polynomial, Precomputed, QuadratureSparsifier, config_context
from mercer.backends.ordering import places
from mercer.problems import Discrepancy
from mercer.quadrature import eliminate, squared_kernel_discrepancy
from mercer.solvers.measure.active_set import solve_on
from mercer.solvers.measure.elimination import _independent

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(5)
POINTS = np.concatenate([RNG.standard_normal((50, 2)), 0.4 * RNG.standard_normal((40, 2)) + 2.0])
POINTS[60] = POINTS[3]  # a repetition
WEIGHTS = RNG.uniform(0.5, 2.0, 90)
NEW = RNG.standard_normal((7, 2))
KERNEL = Gaussian(sigma=0.9)

REQUESTS = {
    "nodes": {"n_nodes": 9},
    "trace": {"trace_fraction": 0.5},
    "alpha": {"alpha": 0.02},
    "path": {"alpha": 0.05, "solver": "path"},
    "nodes by the path": {"n_nodes": 8, "solver": "path"},
    "blocks": {"trace_fraction": 0.5, "solver": "exchange"},
    "second order": {"trace_fraction": 0.3, "solver": "exchange-second-order", "max_iter": 100},
    "plain": {"trace_fraction": 0.3, "solver": "exchange-plain", "max_iter": 100},
    "strong": {"trace_fraction": 0.5, "merge": "strong", "n_nodes": 10},
    "strong with caps": {"trace_fraction": 0.5, "merge": "strong", "n_nodes": 12, "max_weight": 0.06},
    "weak": {"trace_fraction": 0.5, "merge": "weak", "n_nodes": 10},
    "increase": {"alpha": 0.01, "max_increase": 0.2},
    "caps and ridge": {"trace_fraction": 0.5, "max_weight": 0.05, "ridge": 1e-3},
    "caps on the path": {"alpha": 0.02, "max_weight": 0.06, "solver": "path"},
    "whole": {"n_nodes": 500},
    "means": {"alpha": 0.02, "max_weight": 0.06, "discrepancy": "mmd"},
}


def _ours(values):
    """The values of a tensor, once they may be read again."""
    return values.numpy()


def _fitted(request, X, weights, kernel=KERNEL):
    return QuadratureSparsifier(kernel, **REQUESTS[request]).fit(X, sample_weight=weights)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_fit_on_tensors_is_that_of_numpy(request_name, refuse_numpy, monkeypatch):
    """From the points to the certificate, and to what is predicted and verified; rounding alone tells them apart."""
    theirs = _fitted(request_name, torch.tensor(POINTS), torch.tensor(WEIGHTS))
    features, witness = theirs.transform(torch.tensor(NEW)), theirs.witness(torch.tensor(NEW))
    pairs = theirs.eigenpairs(3, refine=request_name == "nodes")
    again = mercer.verify(theirs, torch.tensor(POINTS))
    monkeypatch.undo()

    ours = _fitted(request_name, POINTS, WEIGHTS)
    np.testing.assert_array_equal(_ours(theirs.indices_), ours.indices_)
    np.testing.assert_allclose(_ours(theirs.weights_), ours.weights_, rtol=1e-8)
    if ours.slacks_ is not None:
        np.testing.assert_allclose(_ours(theirs.slacks_), ours.slacks_, atol=1e-10)
    scale = 1e-13 + 1e-9 * ours.discrepancy_
    assert abs(theirs.discrepancy_ - ours.discrepancy_) <= scale
    assert (theirs.status_, theirs.n_iter_) == (ours.status_, ours.n_iter_)
    for proof in (theirs.certificate_, again):
        assert proof.lower == pytest.approx(ours.certificate_.lower, rel=1e-8, abs=1e-13)
        assert proof.upper == pytest.approx(ours.certificate_.upper, rel=1e-8, abs=1e-13)
    np.testing.assert_allclose(_ours(features @ features.T), ours.transform(NEW) @ ours.transform(NEW).T, atol=1e-8)
    np.testing.assert_allclose(_ours(witness), ours.witness(NEW), atol=1e-12)
    expected = ours.eigenpairs(3, refine=request_name == "nodes")
    np.testing.assert_allclose(_ours(pairs.functions), expected.functions, atol=1e-8)
    np.testing.assert_allclose(_ours(pairs.upsilon), expected.upsilon, atol=1e-10)
    assert pairs.largest_overlap == pytest.approx(expected.largest_overlap, abs=1e-10)


def test_what_a_fit_on_tensors_leaves_are_tensors():
    model = _fitted("nodes by the path", torch.tensor(POINTS), None)
    path, reduction = model.path_, model.reduction_
    at = path.at(n_nodes=5)
    arrays = (model.indices_, model.weights_, model.components_, path.alphas, path.kappas, path.discrepancies)
    for array in (*arrays, at.indices, at.weights, reduction.values, reduction.removed, reduction.n_nodes):
        assert isinstance(array, torch.Tensor)
    assert isinstance(model.discrepancy_, float)
    assert isinstance(model.kappa_, float)


def test_the_path_on_tensors_has_the_kinks_of_numpy():
    ours, theirs = (_fitted("caps on the path", X, None).path_ for X in (POINTS, torch.tensor(POINTS)))
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(_ours(theirs.alphas), ours.alphas, rtol=1e-10)
    np.testing.assert_allclose(_ours(theirs.discrepancies), ours.discrepancies, rtol=1e-9)
    np.testing.assert_array_equal(_ours(theirs.n_nodes), ours.n_nodes)
    kappa = 0.6 * float(ours.kappas[-1])
    here, there = ours.at(kappa=kappa), theirs.at(kappa=kappa)
    np.testing.assert_array_equal(_ours(there.indices), here.indices)
    np.testing.assert_allclose(_ours(there.weights), here.weights, rtol=1e-8)


@pytest.mark.parametrize("name", ["strong", "strong with caps", "weak", "increase"])
def test_nodes_are_taken_out_in_the_order_of_numpy(name):
    ours, theirs = (_fitted(name, X, None).reduction_ for X in (POINTS, torch.tensor(POINTS)))
    np.testing.assert_allclose(_ours(theirs.values), ours.values, rtol=1e-8)
    for field in ("nodes", "removed") if name == "increase" else ("nodes", "into", "absorbed"):
        np.testing.assert_array_equal(_ours(getattr(theirs, field)), getattr(ours, field))


def test_nodes_that_are_combinations_of_others_go_at_once(refuse_numpy, monkeypatch):
    """Forty nodes where the squared kernel has fifteen dimensions: the rest explain all until the sixteenth is gone."""
    kernel = Polynomial(degree=2, gamma=1.0, coef0=0.5)
    squared = GramOperator(kernel**2, torch.tensor(POINTS[:40]))
    problem = Discrepancy(squared, torch.tensor(WEIGHTS[:40]), torch.ones(40, dtype=torch.float64))
    sequence = eliminate(problem, places(40, problem.weights), n_nodes=6)
    left = sequence.left(34)
    values = solve_on(problem.regularised(0.0), left)
    least = problem.value(left[values > 0], values[values > 0])
    monkeypatch.undo()
    rises = _ours(sequence.values)
    assert left.shape[0] == 6
    assert np.all(rises[:26] <= 1e-9 * problem.constant)
    assert np.all(np.diff(rises) >= 0)
    assert least == pytest.approx(float(rises[-1]), rel=1e-6)


@pytest.mark.parametrize("independent", [1, 4, 9])
def test_independent_rows_are_those_of_lapack(independent):
    rows = np.random.default_rng(independent).standard_normal((9, independent))
    matrix = rows @ rows.T
    np.testing.assert_array_equal(_ours(_independent(torch.tensor(matrix))), _independent(matrix))
    assert _independent(matrix).size == independent


@pytest.mark.parametrize("name", ["nodes", "trace", "blocks", "path"])
def test_single_precision_is_proved_in_double(name):
    """The nodes may differ by what rounding decides; each certificate holds, and bounds the other's optimum."""
    with config_context(dtype="float32"):
        theirs, ours = _fitted(name, torch.tensor(POINTS), None), _fitted(name, POINTS, None)
    assert theirs._points.dtype == torch.float32
    assert theirs.weights_.dtype == torch.float64
    assert theirs.certificate_.relative_gap < 1e-2 + 2 * ours.certificate_.relative_gap
    if name != "nodes":  # a bound over all measures, not over those on the nodes that were found
        assert theirs.certificate_.lower <= ours.certificate_.upper * (1 + 1e-6)
        assert ours.certificate_.lower <= theirs.certificate_.upper * (1 + 1e-6)
    np.testing.assert_allclose(theirs.discrepancy_, ours.discrepancy_, rtol=1e-2)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_precomputed_matrix_of_tensors(sparse, refuse_numpy, monkeypatch):
    dense = Matern(nu=1.5, length_scale=1.0)(POINTS[:40])
    dense[dense < 0.02] = 0.0
    dense += 2.0 * np.eye(40)  # positive definite again
    dense[7] = dense[:, 7] = 0.0  # a point that takes no part
    arrays, tensors = (csr_matrix(dense), torch.tensor(dense).to_sparse()) if sparse else (dense, torch.tensor(dense))
    theirs = _fitted("trace", tensors, torch.tensor(WEIGHTS[:40]), Precomputed())
    features, witness, pairs = theirs.transform(tensors), theirs.witness(tensors), theirs.eigenpairs(3)
    again = mercer.verify(theirs, tensors)
    monkeypatch.undo()
    ours = _fitted("trace", arrays, WEIGHTS[:40], Precomputed())
    np.testing.assert_array_equal(_ours(theirs.indices_), ours.indices_)
    np.testing.assert_allclose(_ours(theirs.weights_), ours.weights_, rtol=1e-8)
    for proof in (theirs.certificate_, again):
        assert proof.lower == pytest.approx(ours.certificate_.lower, rel=1e-6)
    np.testing.assert_allclose(_ours(features), ours.transform(arrays), atol=1e-8)
    np.testing.assert_allclose(_ours(witness), ours.witness(arrays), atol=1e-10)
    np.testing.assert_allclose(_ours(pairs.upsilon), ours.eigenpairs(3).upsilon, atol=1e-10)


def test_points_of_the_other_library_are_brought_over():
    tensors, arrays = _fitted("nodes", torch.tensor(POINTS), None), _fitted("nodes", POINTS, None)
    np.testing.assert_allclose(_ours(tensors.transform(NEW)), arrays.transform(torch.tensor(NEW)), atol=1e-8)
    assert isinstance(tensors.witness(NEW), torch.Tensor)
    assert isinstance(arrays.witness(torch.tensor(NEW)), np.ndarray)
    assert mercer.verify(tensors, POINTS).holds(1e-6)


def test_a_changed_model_of_tensors_is_refused():
    model = _fitted("trace", torch.tensor(POINTS), None)
    model.weights_ = model.weights_ * 1.001
    with pytest.raises(ValueError, match="changed after its fit"):
        mercer.verify(model, torch.tensor(POINTS))


def test_the_discrepancy_of_two_samples_of_tensors(refuse_numpy, monkeypatch):
    value = squared_kernel_discrepancy(
        torch.tensor(POINTS), torch.tensor(NEW), KERNEL, x_weights=torch.tensor(WEIGHTS), y_weights=2.0
    )
    same = squared_kernel_discrepancy(torch.tensor(POINTS), torch.tensor(POINTS).flip(0), KERNEL)
    monkeypatch.undo()
    assert isinstance(value, float)
    assert value == pytest.approx(
        squared_kernel_discrepancy(POINTS, NEW, KERNEL, x_weights=WEIGHTS, y_weights=2.0), rel=1e-12
    )
    assert same == 0.0
