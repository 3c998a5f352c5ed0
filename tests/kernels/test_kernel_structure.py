"""What every kernel matrix must be, and what is declared of every kernel."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.kernels import ChiSquared, Cosine, Gaussian, Linear, Matern, Polynomial, Precomputed, Properties, Sigmoid
from mercer.kernels.properties import all_of, any_of, of_normalized, of_power, of_product, of_sum


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


# --- the algebra of what is known -----------------------------------------------------------------------------

KNOWN = (True, False, None)
ALL = Properties(True, True, True, True, True, True)
NOTHING = Properties()


def test_logic_with_unknowns():
    for a, b in itertools.product(KNOWN, repeat=2):
        assert all_of(a, b) is (True if a and b else None)
        expected = True if a or b else False if a is False and b is False else None
        assert any_of(a, b) is expected


def test_properties_of_common_kernels():
    assert Gaussian().properties == ALL
    assert Matern(0.5).properties == ALL
    assert Linear().properties.universal is False
    assert Linear().properties.bounded is False
    assert Cosine().properties.bounded is True
    assert Precomputed().properties == NOTHING
    assert ChiSquared().properties.stationary is False
    assert Polynomial(2).properties.positive is True
    assert Polynomial(3).properties.positive is False
    assert Polynomial(2, coef0=-1.0).properties.positive_definite is None
    assert Polynomial(1.5).properties.positive_definite is None


def test_properties_of_a_sum():
    mixed = (Gaussian() + Linear()).properties
    assert mixed.positive_definite is True
    assert mixed.universal is True  # one universal summand is enough
    assert mixed.characteristic is True
    assert mixed.bounded is False  # a psd summand cannot cancel an unbounded diagonal
    assert mixed.positive is None
    assert mixed.stationary is None
    assert (Gaussian() + Matern()).properties == ALL
    assert (Gaussian() + Sigmoid()).properties.positive_definite is None
    assert (Gaussian() + Sigmoid()).properties.universal is None
    assert (Linear() + Linear()).properties.universal is False
    assert of_sum(NOTHING, NOTHING) == NOTHING


def test_properties_of_a_product():
    product = (Gaussian() * Linear()).properties
    assert product.positive_definite is True
    assert product.universal is None  # vanishes at the origin
    assert product.bounded is None
    assert (Gaussian() * Matern()).properties.positive is True
    assert (Gaussian() * Sigmoid()).properties.positive_definite is None
    assert of_product(NOTHING, NOTHING) == NOTHING


def test_properties_of_a_power():
    assert (Linear() ** 2).properties.positive is True
    assert (Linear() ** 3).properties.positive is None
    assert (Linear() ** 2).properties.positive_definite is True
    assert (Gaussian() ** 0.5).properties.positive_definite is None
    assert (Gaussian() ** 0.5).properties.positive is True
    assert (Sigmoid() ** 2).properties.positive_definite is not True
    assert of_power(NOTHING, 3) == NOTHING


def test_properties_of_a_normalised_kernel():
    assert Polynomial(3).normalized().properties.bounded is True
    assert Polynomial(3).normalized().properties.positive_definite is True
    assert Gaussian().normalized().properties == ALL
    assert Sigmoid().normalized().properties.bounded is None
    assert of_normalized(NOTHING) == NOTHING


def test_properties_of_a_multiple():
    assert (2.0 * Gaussian()).properties == ALL
    assert (2.0 * Sigmoid()).properties == Sigmoid().properties


def test_properties_do_not_need_data():
    assert (Gaussian("median") * Polynomial()).properties.positive_definite is True
