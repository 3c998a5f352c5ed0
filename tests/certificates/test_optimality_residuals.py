"""Mean values, angles and complementarity, by the papers' formulas on dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Precomputed, SDPEmbedding
from mercer.certificates import certify_elliptope
from mercer.certificates.residuals import conformality_residual, mean_value_residual
from mercer.datasets import two_moons
from mercer.problems import Elliptope

METHODS = ("factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos")


@pytest.fixture(scope="module")
def moons():
    X, _ = two_moons(n_points=120)
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=0.5), X))
    problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
    return problem, SDPEmbedding(Gaussian(sigma=0.5), random_state=0).fit(X).coordinates_


def _by_the_paper(A, Xi):
    """PSD17 (11) at every point, and the cosines of §2.3 for every pair."""
    image = A @ Xi
    factor = np.diag(A) / np.einsum("ij,ij->i", A, Xi @ Xi.T)
    mean = np.max(np.linalg.norm(Xi - factor[:, None] * image, axis=1)) / np.max(np.linalg.norm(Xi, axis=1))
    cosines = [V @ V.T for V in (M / np.linalg.norm(M, axis=1)[:, None] for M in (image, Xi))]
    return mean, np.sqrt(np.mean((cosines[0] - cosines[1]) ** 2))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shake", [0.0, 1e-6, 1e-3, 1.0])
def test_they_are_the_papers_quantities(moons, method, shake):
    problem, coordinates = moons
    point = (
        coordinates + shake * np.random.default_rng(0).standard_normal(coordinates.shape) * np.abs(coordinates).max()
    )
    Xi = problem.scale[:, None] * point / np.linalg.norm(point, axis=1)[:, None]
    mean, angles = _by_the_paper(problem.operator.to_dense(), Xi)
    certificate = certify_elliptope(problem, point, rng=np.random.default_rng(0), method=method, tol=1e-6)
    assert certificate.mean_value_residual == pytest.approx(mean, rel=1e-6, abs=1e-12)
    assert certificate.conformality_residual == pytest.approx(angles, rel=1e-6, abs=1e-12)
    if shake == 0.0:
        assert certificate.mean_value_residual < 1e-5
        assert certificate.conformality_residual < 1e-5
    if shake == 1.0:
        assert certificate.conformality_residual > 1e-2


def test_angles_do_not_change_under_rotation():
    """Rotated and stretched rows have the same angles: zero to rounding, not to its square root."""
    rng = np.random.default_rng(0)
    H = rng.standard_normal((300, 4))
    H /= np.linalg.norm(H, axis=1)[:, None]
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    assert conformality_residual(H, rng.uniform(0.1, 10, (300, 1)) * H @ rotation) < 1e-15
    tiny = conformality_residual(H, H + 1e-10 * rng.standard_normal(H.shape))
    assert 1e-11 < tiny < 1e-9


def test_rows_that_vanish():
    H = np.eye(3)
    G = np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 2.0]])
    assert conformality_residual(H, G) == pytest.approx(1 / 3)
    assert mean_value_residual(np.ones(3), H, G, np.array([1.0, 0.0, 2.0])) == np.inf


def test_gap_after_a_shift_is_that_of_the_unshifted_objective():
    """The shift is the solver's affair: Σ|J| is a tenth of it here, and the gap does not know it."""
    rng = np.random.default_rng(0)
    S = rng.standard_normal((30, 30))
    A = (S + S.T) / 2
    H = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    certificates = [
        certify_elliptope(
            Elliptope(GramOperator(Precomputed(), A), np.ones(30), shift=shift),
            H,
            rng=np.random.default_rng(0),
            method=m,
        )
        for shift in (20.0, 2e4)
        for m in ("factorisation", "deflated-lanczos")
    ]
    assert all(c.lower == pytest.approx(np.trace(A), rel=1e-8) for c in certificates)
    gaps = [c.upper - c.lower for c in certificates]
    assert gaps[0] == pytest.approx(gaps[2], rel=1e-6)
    assert max(gaps) < 2 * min(gaps)
    optimum = np.linalg.eigvalsh(A)[-1] * 30
    assert all(c.upper <= optimum * (1 + 1e-6) + np.abs(np.diag(A)).sum() for c in certificates)
