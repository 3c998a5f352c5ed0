"""What every kernel matrix must be, and what is declared of every kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.kernels import ChiSquared, Cosine, Gaussian, Linear, Matern, Polynomial, Sigmoid


@pytest.mark.parametrize("n", [1, 5, 345])
@pytest.mark.parametrize("d", [2, 6])
def test_diagonal_symmetry_and_dtype(kernel, points, dtype, n, d):
    X = points(kernel, n, d, dtype)
    K, diagonal = kernel(X), kernel.diag(X)
    assert K.dtype == diagonal.dtype == dtype
    assert np.array_equal(K.diagonal(), diagonal)
    assert np.array_equal(K, K.T)
    assert np.all(np.isfinite(K))
    assert np.array_equal(K, kernel(X, X))


def test_symmetry_across_float32_tiles(kernel, points):
    X = points(kernel, 530, 6, np.float32)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    assert np.array_equal(K.diagonal(), kernel.diag(X))


def test_rectangular_block_agrees_with_the_square_one(kernel, points, dtype, on):
    kernel = on(kernel)
    X = points(kernel, 60, 6, dtype)
    tolerance = 1e-11 if dtype == np.float64 else 1e-4
    K = kernel(X)
    assert_allclose(kernel(X, X.copy()), K, rtol=tolerance, atol=tolerance * abs(K).max())
    assert_allclose(kernel(X[:7], X[7:]), K[:7, 7:], rtol=tolerance, atol=tolerance * abs(K).max())
    assert kernel(X[:7], X[7:]).dtype == dtype


def test_integers_and_lists_become_float64(kernel):
    X = [[1, 2, 3], [0, 4, 1]]
    K = kernel(X)
    assert K.dtype == np.float64
    assert np.array_equal(K, kernel(np.array(X, np.int8)))
    assert np.array_equal(K, kernel(np.array(X, np.float64)))
    assert kernel(np.array(X, np.float16)).dtype == np.float64
    assert kernel(np.array(X, np.float32), np.array(X)).dtype == np.float64


def test_layout_of_the_points_does_not_matter(kernel, points):
    X = points(kernel, 40, 6)
    wide = np.zeros((80, 12))
    wide[::2, ::2] = X
    for same in (np.asfortranarray(X), wide[::2, ::2]):
        assert np.array_equal(kernel(same), kernel(X))
    X.flags.writeable = False
    assert kernel(X).shape == (40, 40)


def test_points_are_not_changed(kernel, points, on):
    kernel = on(kernel)
    X = points(kernel, 20, 6)
    before = X.copy()
    kernel(X), kernel(X, X[:3]), kernel.diag(X), kernel.log(X)
    assert np.array_equal(X, before)


@pytest.mark.parametrize("d", [1, 3, 6])
def test_gram_matrices_are_psd_where_that_is_declared(kernel, points, d):
    X = points(kernel, 80, d, seed=d)
    X = np.vstack([X, X[:5]])  # singular as well
    values = np.linalg.eigvalsh(kernel(X))
    assert not kernel.properties.positive_definite or values[0] >= -1e-12 * values[-1]


def test_declared_signs_and_bounds_hold(kernel, points):
    X = points(kernel, 80, 3)
    K = kernel(X)
    if kernel.properties.positive:
        assert K.min() >= 0
    if kernel.properties.bounded:
        assert abs(kernel(1e3 * X)).max() < 10
    if kernel.properties.bounded is False:
        assert abs(kernel(1e3 * X)).max() > 1e3 * abs(K).max()
    if kernel.properties.stationary:
        assert_allclose(kernel(X + 0.5), K, rtol=1e-9)


def test_most_kernels_are_declared_psd():
    """Otherwise the test above would say nothing."""
    gaussian, deep = Gaussian(1.0), 2.5 * ((Gaussian(1.7) + Matern(1.5, 1.0) * Cosine()) ** 2).normalized()
    for kernel in (gaussian, Linear(), Polynomial(3), Cosine(), ChiSquared(), deep):
        assert kernel.properties.positive_definite is True


def test_sigmoid_is_indefinite():
    X = np.array([[0.0], [1.0], [2.0]])
    assert Sigmoid().properties.positive_definite is False
    assert np.linalg.eigvalsh(Sigmoid(1.0, -1.0)(X))[0] < -0.1
