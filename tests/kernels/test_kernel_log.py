"""log k agrees with the logarithm of k, and stays finite where k underflows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.kernels import ChiSquared, Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed, Sobolev


@pytest.mark.parametrize("d", [2, 6])
def test_log_is_the_logarithm(kernel, points, dtype, d):
    X, Y = points(kernel, 40, d, dtype), points(kernel, 30, d, dtype, seed=1)
    tolerance = 1e-11 if dtype == np.float64 else 1e-4
    for block, log in ((kernel(X, Y), kernel.log(X, Y)), (kernel(X), kernel.log(X))):
        assert log.dtype == dtype
        seen = block > 1e-3 * abs(block).max()  # elsewhere a difference of terms may have cancelled
        assert seen.any()
        assert_allclose(log[seen], np.log(block[seen]), rtol=tolerance, atol=tolerance)
        assert np.all(log[block < -1e-3 * abs(block).max()] == -np.inf)
    assert_allclose(
        kernel.log(X).diagonal()[kernel.diag(X) > 0], np.log(kernel.diag(X)[kernel.diag(X) > 0]), atol=1e-14
    )


DISTANCE = 1e6
FAR = [
    (Gaussian(2.0), -(DISTANCE**2)),
    (Laplacian(2.0), -DISTANCE),
    (Matern(0.5, 2.0), -DISTANCE),
    (Matern(1.5, 2.0), np.log1p(np.sqrt(3) * DISTANCE) - np.sqrt(3) * DISTANCE),
    (Matern(np.inf, 2.0), -(DISTANCE**2) / 2),
    (ChiSquared(0.5), -DISTANCE),
    (3.0 * Gaussian(2.0), np.log(3.0) - DISTANCE**2),
    (Gaussian(2.0) ** 2.5, -2.5 * DISTANCE**2),
    (Gaussian(2.0) + Laplacian(2.0), -DISTANCE),
    (Gaussian(2.0) * Laplacian(2.0), -(DISTANCE**2) - DISTANCE),
    ((5.0 * Laplacian(2.0)).normalized(), -DISTANCE),
    ((Laplacian(2.0) + Laplacian(2.0)).normalized(), -DISTANCE),
]


@pytest.mark.parametrize(("kernel", "want"), FAR, ids=[repr(case[0]) for case in FAR])
def test_log_is_finite_far_away(kernel, want, dtype, on):
    X, Y = np.zeros((1, 1), dtype), np.full((1, 1), 2 * DISTANCE, dtype)
    assert on(kernel)(X, Y)[0, 0] == 0
    assert_allclose(on(kernel).log(X, Y)[0, 0], want, rtol=1e-12 if dtype == np.float64 else 1e-6)
    gram = on(kernel).log(np.vstack([X, Y]))
    assert_allclose(gram[0, 1], want, rtol=1e-12 if dtype == np.float64 else 1e-6)
    assert gram[0, 1] == gram[1, 0]


@pytest.mark.parametrize("nu", [0.01, 0.3, 0.5, 1.5, 2.5, 3.7, 10.0, 99.0, 101.0, 1000.0, np.inf])
def test_log_matern_is_finite_and_falls(nu, dtype, on):
    Y = np.geomspace(1e-3, DISTANCE, 40)[:, None].astype(dtype)
    log = on(Matern(nu, 1.0)).log(np.zeros((1, 1), dtype), Y)[0]
    assert np.all(np.isfinite(log))
    assert np.all(np.diff(log) <= 0)
    assert log[-1] < -1e4
    assert np.isfinite(on(Sobolev(4.0, 1.0)).log(np.zeros((1, 1), dtype), Y)).all()


@pytest.mark.parametrize("d", [1, 6])
def test_log_in_the_extreme_is_finite(d, on):
    X, Y = np.zeros((1, d)), np.full((1, d), 1e250)
    for kernel in (
        Gaussian(1.0),
        Laplacian(1.0),
        Matern(0.5, 1.0),
        Matern(2.5, 1.0),
        Matern(3.7, 1.0),
        Matern(200.0, 1.0),
    ):
        assert on(kernel)(X, Y)[0, 0] == 0
        assert -np.inf < on(kernel).log(X, Y)[0, 0] < -1e100


def test_log_where_the_diagonal_underflows(on):
    log = on((1e-200 * Gaussian(1.0)) ** 2).log(np.array([[0.0], [1.0]]))
    assert_allclose(log, 2 * np.log(1e-200) - np.array([[0.0, 2.0], [2.0, 0.0]]))


def test_log_of_kernels_with_negative_parts(on):
    """log of a sum, a product or a power needs the sign of its parts."""
    X, Y = np.array([[1.0], [-1.0]]), np.array([[2.0], [-3.0]])
    linear = X @ Y.T
    assert_allclose(on(Linear() + Polynomial(2, 1.0, 0.0)).log(X, Y), np.log(linear + linear**2))
    assert_allclose(on(Linear() * Linear()).log(X, Y), np.log(linear**2))
    assert_allclose(on(Linear() ** 2).log(X, Y), np.log(linear**2))
    assert_allclose(on((Linear() ** 2) ** 0.5).log(X, Y), np.log(abs(linear)))
    with np.errstate(divide="ignore"):
        assert_allclose(on(Linear() ** 3).log(X, Y), np.log(np.maximum(linear**3, 0)))
    assert_allclose(on(Precomputed() ** 2).log(np.array([[1.0, -0.5], [-0.5, 1.0]])), np.log([[1, 0.25], [0.25, 1]]))


def test_log_of_zero_is_minus_infinity(on):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    for kernel in (Linear(), Cosine(), 2.0 * Linear(), Linear() + Cosine(), Linear() ** 2, Linear().normalized()):
        log = on(kernel).log(X)
        assert np.all(np.isneginf(log[0])), kernel
        assert np.isneginf(log[1, 2])
        assert np.isfinite(log[1, 1])
