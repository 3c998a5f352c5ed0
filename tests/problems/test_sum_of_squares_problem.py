"""The programme of a density against the paper's formulas, finite differences and its own linear maps."""

from __future__ import annotations

import numpy as np
import pytest
from sum_of_squares_oracle import PlainProgramme, our_programme, random_programme

from mercer.backends.arrays import like, norm
from mercer.solvers.spectrahedron.accelerated import curvature_bound

LIBRARIES = ["numpy", "torch"]


def array_of(library):
    """An empty array of a library."""
    return np.empty(0) if library == "numpy" else pytest.importorskip("torch").empty(0)


@pytest.fixture(params=range(4))
def seed(request):
    return request.param


@pytest.fixture(params=LIBRARIES)
def both(request, seed):
    arguments = random_programme(seed)
    problem = our_programme(*arguments, reference=array_of(request.param))
    return problem, PlainProgramme(*arguments), np.random.default_rng(seed)


def unit(problem, rng, r):
    F = like(rng.standard_normal((problem.dimension, r)), problem.basis)
    return F / norm(F)


def test_value_and_constraint_are_those_of_the_paper(both):
    """SOS Lemma 3, (11): the squared norm by W, u and K̃, and the mass by W."""
    problem, plain, rng = both
    F = unit(problem, rng, 2)
    coefficients = np.asarray(problem.coefficients(F)) * np.exp(-0.5 * problem.integrals.log_scale)
    B = coefficients @ coefficients.T
    assert np.sum(B * plain.W) == pytest.approx(1.0, rel=1e-10)
    assert problem.value(F) == pytest.approx(plain.value(B), rel=1e-7)
    assert problem.constant == pytest.approx(plain.target @ np.linalg.solve(plain.K, plain.target), rel=1e-8)


def test_gradient_is_the_derivative(both):
    problem, _, rng = both
    s = problem.dimension
    F, D = unit(problem, rng, 3), like(rng.standard_normal((s, s)), problem.basis)
    D = D + D.T
    C = F @ F.T

    def value(t):
        residual = problem.embed_matrix(C + t * D) - problem.goal
        return float(residual @ residual + (problem.penalty * (C + t * D)).sum())

    slope = float((problem.gradient(problem.residual(F)) * D).sum())
    assert slope == pytest.approx((value(1.0) - value(-1.0)) / 2, rel=1e-8, abs=1e-9)  # exact for a quadratic


def test_linear_maps_agree_with_each_other(both):
    problem, _, rng = both
    s = problem.dimension
    F, G, y = unit(problem, rng, 2), unit(problem, rng, 2), like(rng.standard_normal(len(problem.goal)), problem.goal)
    symmetric = (F @ G.T + G @ F.T) / 2
    assert np.allclose(problem.embed(F, G), problem.embed_matrix(symmetric), atol=1e-10)
    paired = float((problem.adjoint(y) * symmetric).sum())
    assert float(y @ problem.embed_matrix(symmetric)) == pytest.approx(paired, rel=1e-8)
    tangent = problem.tangent(F)
    assert np.allclose(tangent.apply(G), problem.embed(F, G), atol=1e-10)
    assert np.allclose(tangent.transpose(y), problem.adjoint(y) @ F, atol=1e-10)
    i, j = np.triu_indices(s)
    pairs = np.asarray(problem.embed_pairs(like(np.eye(s), problem.basis)))
    entries = np.asarray(symmetric)[i, j] * np.where(i == j, 1, 2)
    assert np.allclose(pairs @ entries, problem.embed_matrix(symmetric), atol=1e-9)


def test_coordinates_undo_coefficients(both):
    problem, _, rng = both
    F = unit(problem, rng, 2)
    assert np.allclose(problem.coordinates(problem.coefficients(F)), F, atol=1e-10)


def test_curvature_is_bounded_by_the_power_iteration_and_small(both):
    problem = both[0]
    s = problem.dimension
    bound = curvature_bound(problem)
    units = like(np.eye(s * s).reshape(-1, s, s), problem.basis)
    matrix = np.stack([np.asarray(problem.embed_matrix(E)) for E in units], axis=1)
    exact = 2 * np.linalg.norm(matrix, 2) ** 2
    assert exact <= bound <= 1.03 * exact
    assert bound <= 2 * s  # ‖A(C)‖ is at most the sum of the eigenvalues' sizes


@pytest.mark.parametrize("spread", [1e-3, 1e-2])
def test_points_that_the_kernel_cannot_tell_apart_do_not_break_the_constraint(spread):
    rng = np.random.default_rng(0)
    X = spread * rng.standard_normal((40, 2))
    problem = our_programme(X, X[:20], 1.0, 0.0)
    assert problem.dimension < 20
    F = unit(problem, rng, problem.dimension)
    scaled = problem.coefficients(F)
    assert np.sum(scaled * (problem.integrals.mass() @ scaled)) == pytest.approx(1.0, abs=1e-5)
    assert curvature_bound(problem) < 4 * problem.dimension


def test_regularisation_is_in_the_units_of_the_density():
    X, support, sigma, _ = random_programme(7)
    F = np.eye(our_programme(X, support, sigma, 0.0).dimension)[:, :1]
    without, with_ = (our_programme(X, support, sigma, value) for value in (0.0, 0.3))
    B = with_.coefficients(F) @ with_.coefficients(F).T * np.exp(-with_.integrals.log_scale)
    trace = np.sum(B * PlainProgramme(X, support, sigma, 0.0).K)
    assert with_.value(F) - without.value(F) == pytest.approx(0.3 * trace, rel=1e-9)
