"""The programme (5.7) of QUAD with a full matrix Σ: against least squares, the diagonal ridge, and its own machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

import mercer
from mercer import Box, Gaussian, Laplacian, Precomputed, QuadratureSparsifier
from mercer.certificates import certify_measure
from mercer.certificates.measure_definiteness import prove_square_definite
from mercer.operators import GramOperator
from mercer.operators.gram_sum import GramSum
from mercer.quadrature.sample import make_problem, make_sample

N, KERNEL = 70, Gaussian(sigma=1.0)
X = np.random.default_rng(0).normal(size=(N, 2))
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, N)
OMEGA = WEIGHTS / WEIGHTS.sum()
SIGMA = 0.05 * Gaussian(sigma=0.5)(X) + 0.02 * np.outer(np.abs(X[:, 0]), np.abs(X[:, 0]))
SIGMA = (SIGMA + SIGMA.T) / 2


def dense(model):
    v = np.zeros(N)
    v[model.indices_] = model.weights_
    return v


@pytest.mark.parametrize("alpha", [0.0, 0.004])
def test_the_solution_is_that_of_least_squares(alpha):
    """½ vᵀ(S + Σ)v - (Sω - αd)ᵀv over v ≥ 0 is a least-squares problem in a Cholesky factor."""
    S = KERNEL(X) ** 2
    root = np.linalg.cholesky(S + SIGMA)
    v, _ = nnls(root.T, np.linalg.solve(root, S @ OMEGA - alpha), maxiter=5000)
    model = QuadratureSparsifier(KERNEL, alpha=alpha, ridge=SIGMA).fit(X, sample_weight=WEIGHTS)
    best = 0.5 * (v - OMEGA) @ S @ (v - OMEGA) + 0.5 * v @ SIGMA @ v + alpha * v.sum()
    assert np.allclose(dense(model), v, atol=1e-7)
    proof = mercer.verify(model, X)
    assert proof.lower <= best * (1 + 1e-12)
    assert model.certificate_.upper == pytest.approx(best, rel=1e-8)
    assert proof.upper - proof.lower < 1e-10
    assert model.discrepancy_ == pytest.approx(0.5 * (v - OMEGA) @ S @ (v - OMEGA), rel=1e-6)
    assert model.margin_ == pytest.approx(v @ S @ (v - OMEGA), rel=1e-6)


def test_slacks_are_those_of_the_generalised_square_loss():
    """ξ = Σv solves (5.6): g ≥ -αd - ξ everywhere, and the values of the two programmes add up to zero (duality)."""
    alpha, S = 0.004, KERNEL(X) ** 2
    model = QuadratureSparsifier(KERNEL, alpha=alpha, ridge=SIGMA).fit(X, sample_weight=WEIGHTS)
    v = dense(model)
    xi, g = SIGMA @ v, model.witness(X)
    assert np.allclose(model.slacks_, xi[model.indices_], atol=1e-12)
    assert np.all(g >= -alpha - xi - 1e-12)
    machine = 0.5 * (v - OMEGA) @ S @ (v - OMEGA) + (v - OMEGA) @ S @ OMEGA + 0.5 * xi @ np.linalg.solve(SIGMA, xi)
    assert machine == pytest.approx(-model.certificate_.upper, rel=1e-7)


@pytest.mark.parametrize(
    "wish",
    [{"alpha": 0.003}, {"trace_fraction": 0.8}, {"n_nodes": 12}, {"trace_fraction": 0.7, "solver": "path"}],
    ids=str,
)
def test_a_diagonal_matrix_is_a_ridge(wish):
    rho = np.random.default_rng(2).uniform(0.01, 0.1, N)
    one = QuadratureSparsifier(KERNEL, **wish, ridge=rho).fit(X, sample_weight=WEIGHTS)
    other = QuadratureSparsifier(KERNEL, **wish, ridge=np.diag(rho)).fit(X, sample_weight=WEIGHTS)
    assert np.array_equal(np.sort(one.indices_), np.sort(other.indices_))
    assert np.allclose(dense(one), dense(other), atol=1e-9)
    assert other.discrepancy_ == pytest.approx(one.discrepancy_, rel=1e-7)
    assert np.allclose(one.slacks_, other.slacks_, atol=1e-10)
    assert other.certificate_.holds(1e-6)


def test_a_kernel_gives_the_covariance_of_its_own_matrix():
    kernel = 0.05 * Laplacian(sigma=1.0)
    one = QuadratureSparsifier(KERNEL, trace_fraction=0.8, ridge=kernel).fit(X)
    other = QuadratureSparsifier(KERNEL, trace_fraction=0.8, ridge=kernel(X)).fit(X)
    assert np.array_equal(one.indices_, other.indices_)
    assert one.certificate_.upper == pytest.approx(other.certificate_.upper, rel=1e-9)
    assert mercer.verify(one, X).holds(1e-7)
    law = QuadratureSparsifier(KERNEL, alpha=0.01, ridge=kernel, measure=Box(-1.0, 1.0)).fit(X)
    assert mercer.verify(law, X).holds(1e-6)


def test_tensors_and_single_precision():
    torch = pytest.importorskip("torch")
    model = QuadratureSparsifier(KERNEL, alpha=0.003, ridge=SIGMA).fit(X)
    tensors = QuadratureSparsifier(KERNEL, alpha=0.003, ridge=torch.as_tensor(SIGMA)).fit(torch.as_tensor(X))
    assert isinstance(tensors.slacks_, torch.Tensor)
    assert tensors.certificate_.upper == pytest.approx(model.certificate_.upper, rel=1e-9)
    with mercer.config_context(dtype="float32"):
        single = QuadratureSparsifier(KERNEL, alpha=0.003, ridge=SIGMA).fit(X.astype(np.float32))
    assert single.certificate_.lower <= model.certificate_.upper * (1 + 1e-5)
    assert single.discrepancy_ == pytest.approx(model.discrepancy_, rel=1e-3)


def test_the_error_of_the_product_with_the_sample_is_counted(monkeypatch):
    """A product Sω that is wrong within what is stated of it moves the objective; unstated, the bound is false."""
    import mercer.quadrature.sample as module

    sample = make_sample(X, KERNEL, WEIGHTS)
    exact = make_problem(X, KERNEL, sample, ridge=SIGMA)
    model = QuadratureSparsifier(KERNEL, alpha=0.003, ridge=SIGMA).fit(X, sample_weight=WEIGHTS)
    nodes, values = model.indices_, model.weights_
    value = exact.value(nodes, values) + 0.003 * values.sum()
    sections = exact.law.sections
    assert np.all(sections.errors > 0)
    assert sections.energy_error > 0
    shifted = sections.values + 0.9 * sections.errors
    for errors, holds in ((sections.errors, True), (0.0 * sections.errors, False)):
        wrong = module.LawSections(shifted, errors, sections.energy, 0.0)
        monkeypatch.setattr(module, "_as_target", lambda *_, wrong=wrong: module.TargetLaw(wrong, 1.0))
        problem = make_problem(X, KERNEL, sample, ridge=SIGMA)
        monkeypatch.setattr(
            "mercer.certificates.measure_rounding.entry_error_of", lambda _: mercer.kernels.EntryError(0.0)
        )
        proof = certify_measure(
            problem, nodes, values, alpha=0.003, definiteness=prove_square_definite(problem.squared)
        )
        assert bool(proof.upper >= value) == holds


def test_the_sum_of_two_matrices_has_the_errors_of_both():
    left, right = GramOperator(KERNEL**2, X), GramOperator(Precomputed(), SIGMA)
    both = GramSum(left, right)
    assert np.allclose(both @ np.eye(N)[:, :3], (KERNEL(X) ** 2 + SIGMA)[:, :3], rtol=1e-13)
    assert np.allclose(both.diagonal(), 1 + np.diag(SIGMA))
    assert np.allclose(both.block([3, 5], slice(None)), (KERNEL(X) ** 2 + SIGMA)[[3, 5]])
    assert both.entry_error.relative > left.entry_error.relative
    assert GramSum(left, left).positive_definite
    assert not both.positive_definite


@pytest.mark.parametrize(
    ("ridge", "sentence"),
    [
        (np.eye(3), "ridge has shape .3, 3.: a matrix must be 70 × 70"),
        (np.triu(SIGMA), "ridge is not symmetric"),
        (SIGMA - 0.5, "ridge has negative entries, or may"),
        (1.0 * mercer.Linear(), "ridge has negative entries, or may"),
        (50.0 * (np.ones((N, N)) - np.eye(N)), "positive semi-definite"),
    ],
    ids=range(5),
)
def test_what_is_no_covariance_is_refused(ridge, sentence):
    with pytest.raises(ValueError, match=sentence):
        QuadratureSparsifier(KERNEL, alpha=0.003, ridge=ridge).fit(X)
