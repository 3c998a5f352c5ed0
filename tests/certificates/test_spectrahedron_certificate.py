"""The bound of the spectrahedron's oracle: below the optimum from anywhere, close to it at a solution."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from sum_of_squares_oracle import PlainProgramme, minimised, our_programme, random_programme

import mercer.certificates.spectrahedron as module
from mercer.backends.arrays import like
from mercer.certificates import certify_spectrahedron


@pytest.fixture(params=["numpy", "torch"])
def reference(request):
    """An empty array of a library."""
    return np.empty(0) if request.param == "numpy" else pytest.importorskip("torch").empty(0)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_below_the_optimum_from_any_point(seed, reference):
    problem = our_programme(*random_programme(seed), reference=reference)
    best = problem.value(minimised(problem, tol=1e-10 * problem.constant).point)
    rng = np.random.default_rng(seed)
    for rank in (1, problem.dimension):
        certificate = certify_spectrahedron(problem, like(rng.standard_normal((problem.dimension, rank)), reference))
        assert 0 <= certificate.lower <= best * (1 + 1e-9) + 1e-12
        assert best <= certificate.upper * (1 + 1e-9)
        assert certificate.minimised
        assert certificate.failure_probability == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_holds_against_the_conic_solver(seed):
    cvxpy = pytest.importorskip("cvxpy")
    arguments = random_programme(seed + 100)
    problem = our_programme(*arguments)
    best = PlainProgramme(*arguments).by_conic_solver(cvxpy)
    certificate = certify_spectrahedron(problem, minimised(problem, tol=1e-9 * problem.constant).point)
    assert certificate.lower <= best + 1e-8
    assert certificate.complementarity < 1e-4


def test_upper_is_the_papers_objective_and_the_scale_of_the_factor_is_free():
    arguments = random_programme(5)
    problem, plain = our_programme(*arguments), PlainProgramme(*arguments)
    F = np.random.default_rng(0).standard_normal((problem.dimension, 2))
    coefficients = problem.coefficients(F) * np.exp(-0.5 * problem.integrals.log_scale)
    certificate = certify_spectrahedron(problem, F)
    assert certificate.upper == pytest.approx(plain.value(coefficients @ coefficients.T), rel=1e-8)
    assert certify_spectrahedron(problem, 7.0 * F).upper == pytest.approx(certificate.upper, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_the_least_of_the_tangent_over_the_spectrahedron(seed):
    problem = our_programme(*random_programme(seed))
    F = minimised(problem, tol=1e-10 * problem.constant).point
    F = F + 1e-3 * np.random.default_rng(seed).standard_normal(F.shape)
    F = F / np.linalg.norm(F)
    certificate = certify_spectrahedron(problem, F)
    G = problem.gradient(problem.residual(F))
    values, vectors = np.linalg.eigh(G)
    best = vectors[:, :1] @ vectors[:, :1].T  # where the tangent plane is lowest
    tangent = problem.value(F) + np.sum(G * (best - F @ F.T))
    assert certificate.lower == pytest.approx(max(tangent, 0.0), rel=1e-7, abs=1e-9 * problem.constant)
    assert certificate.least_eigenvalues[0] == pytest.approx(values[0] - np.sum(G * (F @ F.T)), rel=1e-8, abs=1e-12)


def test_a_spoiled_solution_is_found_out(reference):
    problem = our_programme(*random_programme(3), reference=reference)
    F = minimised(problem, tol=1e-10 * problem.constant).point
    good = certify_spectrahedron(problem, F)
    spoiled = certify_spectrahedron(problem, F + 0.05 * like(np.random.default_rng(0).standard_normal(F.shape), F))
    assert good.upper - good.lower < 1e-9
    assert spoiled.upper - spoiled.lower > 1e-5


def test_no_solver_is_imported():
    tree = ast.parse(Path(module.__file__).read_text())
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not any("solvers" in name for name in names)
