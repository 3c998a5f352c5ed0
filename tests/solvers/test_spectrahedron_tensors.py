"""Solvers of densities and games on tensors: the answers of NumPy, and no step that leaves the library."""

from __future__ import annotations

import numpy as np
import pytest
from sum_of_squares_oracle import minimised, our_programme, random_programme

from mercer import Gaussian, Laplacian, Matern
from mercer.backends.arrays import like
from mercer.backends.symmetric_entries import SymmetricEntries
from mercer.certificates import certify_spectrahedron
from mercer.kernels.integrals import kernel_integrals
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue
from mercer.problems import SumOfSquares
from mercer.solvers import Status
from mercer.solvers.conic import conic_spectrahedron
from mercer.solvers.spectrahedron.accelerated import factor_on_spectrahedron, project_on_simplex
from mercer.solvers.spectrahedron.face import minimise_small

torch = pytest.importorskip("torch")

TENSOR = torch.empty(0, dtype=torch.float64)
ARRAY = np.empty(0)


def sample(m=26):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2)) + 2 * rng.integers(0, 2, (60, 1))
    return X, X[:m]


@pytest.mark.parametrize(("method", "tol"), [("low-rank", 1e-8), ("accelerated", 1e-4)])
def test_no_step_leaves_the_library(method, tol, request):
    X, support = sample()
    plain, problem = (our_programme(X, support, 0.7, 1e-3, reference=reference) for reference in (ARRAY, TENSOR))
    request.getfixturevalue("refuse_numpy")
    result = minimised(problem, method, tol=tol * problem.constant)
    assert isinstance(result.point, torch.Tensor)
    assert result.status is Status.CONVERGED
    expected = minimised(plain, method, tol=tol * plain.constant)
    assert problem.value(result.point) == pytest.approx(plain.value(expected.point), abs=tol * plain.constant)
    assert problem.scale == pytest.approx(plain.scale, rel=1e-12)
    assert float(result.point.norm()) == pytest.approx(1.0)


@pytest.mark.parametrize("measure", [Lebesgue, Box, GaussianMeasure], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("kernel", [Gaussian(0.8), Laplacian(1.0), Matern(2.5, 1.0)], ids=lambda k: type(k).__name__)
def test_integrals_of_every_kind_are_those_of_numpy_and_no_product_with_them_leaves_the_library(
    kernel, measure, request
):
    X, support = sample(9)
    corners = {Lebesgue: (), Box: (np.full(2, -4.0), np.full(2, 6.0)), GaussianMeasure: (np.array([0.5, 1.0]), 1.5)}
    plain, of_tensors = (
        kernel_integrals(
            kernel, like(support, a), measure(*(like(c, a) if np.ndim(c) else c for c in corners[measure]))
        )
        for a in (ARRAY, TENSOR)
    )
    F = np.random.default_rng(0).standard_normal((9, 2))
    c, expected = F[:, 0], [plain.mass(), plain.embed(F @ F.T), plain.weighted_mass(F[:, 0])]
    expected += [plain.mass(X), plain.embed(F @ F.T, X), plain.weighted_mass(X[:, 0], X), plain.square_masses(F).masses]
    Ft, Xt = torch.from_numpy(F), torch.from_numpy(X)
    request.getfixturevalue("refuse_numpy")
    ours = [of_tensors.mass(), of_tensors.embed(Ft @ Ft.T), of_tensors.weighted_mass(like(c, Ft))]
    ours += [of_tensors.mass(Xt), of_tensors.embed(Ft @ Ft.T, Xt), of_tensors.weighted_mass(Xt[:, 0].clone(), Xt)]
    ours += [of_tensors.square_masses(Ft).masses]
    assert of_tensors.log_scale == pytest.approx(plain.log_scale, rel=1e-13)
    for one, other in zip(ours, expected, strict=True):
        assert float((one - torch.from_numpy(other)).abs().max()) <= 1e-12 * float(np.abs(other).max())


@pytest.mark.parametrize("seed", range(4))
def test_certificates_of_tensors_bound_the_optimum_of_numpy(seed):
    arguments = random_programme(seed)
    plain, problem = (our_programme(*arguments, reference=reference) for reference in (ARRAY, TENSOR))
    best = plain.value(minimised(plain, tol=1e-10 * plain.constant).point)
    certificate = certify_spectrahedron(problem, minimised(problem, tol=1e-9 * problem.constant).point)
    assert certificate.lower <= best * (1 + 1e-12)
    assert certificate.upper >= best - 1e-9 * plain.constant
    assert certificate.upper - certificate.lower <= 2e-9 * plain.constant


def test_the_conic_solver_takes_tensors_and_gives_them_back():
    pytest.importorskip("cvxpy")
    problem = our_programme(*random_programme(2), reference=TENSOR)
    factor = conic_spectrahedron(problem)
    assert isinstance(factor, torch.Tensor)
    best = problem.value(minimised(problem, tol=1e-10).point)
    assert problem.value(factor) == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("k", [1, 2, 9])
def test_the_small_programme_has_the_answer_of_numpy(k, request):
    rng = np.random.default_rng(k)
    A, b = rng.standard_normal((4, k * (k + 1) // 2)), rng.standard_normal(4)
    R = rng.standard_normal((k, k))
    expected = torch.from_numpy(minimise_small(A, b, R + R.T, tol=1e-11))
    tensors = [torch.from_numpy(part) for part in (A, b, R + R.T)]
    request.getfixturevalue("refuse_numpy")
    found, entries = minimise_small(*tensors, tol=1e-11), SymmetricEntries(k, tensors[0])
    values = [
        ((tensors[0] @ entries.pack(S) - tensors[1]) ** 2).sum() + (tensors[2] * S).sum() for S in (found, expected)
    ]
    assert float(values[0]) == pytest.approx(float(values[1]), abs=1e-9)
    assert torch.allclose(found, expected, atol=1e-5)  # the root of the gap


def test_projections_have_the_answers_of_numpy(refuse_numpy):
    rng = np.random.default_rng(0)
    values, M = 3 * rng.standard_normal(7), rng.standard_normal((6, 6))
    assert torch.allclose(project_on_simplex(torch.from_numpy(values)), torch.from_numpy(project_on_simplex(values)))
    plain, ours = factor_on_spectrahedron(M + M.T), factor_on_spectrahedron(torch.from_numpy(M + M.T))
    assert torch.allclose(ours @ ours.T, torch.from_numpy(plain @ plain.T))


def test_a_programme_without_mass_is_refused_in_words():
    far = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    integrals = kernel_integrals(Gaussian(0.1), far, GaussianMeasure(torch.tensor([1000.0]), 0.1))
    with pytest.raises(ValueError, match="no mass under the reference"):
        SumOfSquares(integrals, Gaussian(0.1)(far), far[:, 0])
