"""Normalisation by the diagonal: the survey's (70) and (72), and the limit between them."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from mercer import Gaussian, GramOperator, Linear, NormalizedOperator, Polynomial, Precomputed, Sigmoid

rng = np.random.default_rng(4)
X = rng.normal(size=(45, 3))
Y = rng.normal(size=(20, 3))
POLY = Polynomial(degree=2, gamma=0.7)


def entries(kernel, x, y=None):
    return GramOperator(kernel, x, y).to_dense()


def test_order_zero_is_the_cosine():
    np.testing.assert_allclose(
        NormalizedOperator(GramOperator(Linear(), X)).to_dense(), cosine_similarity(X), atol=1e-14
    )
    np.testing.assert_allclose(
        NormalizedOperator(GramOperator(Linear(), X, Y)).to_dense(), cosine_similarity(X, Y), atol=1e-14
    )


@pytest.mark.parametrize("order", [0.1, 1, 2.5, 7])
def test_order_t_divides_by_the_power_mean(order):
    k, block = entries(POLY, X), entries(POLY, X, Y)
    a, b = np.diag(k), np.diag(entries(POLY, Y))
    for operator, values, cols in (
        (NormalizedOperator(GramOperator(POLY, X), order), k, a),
        (NormalizedOperator(GramOperator(POLY, X, Y), order), block, b),
    ):
        expected = np.array(
            [
                [values[i, j] / (((a[i] ** order) + (cols[j] ** order)) / 2) ** (1 / order) for j in range(len(cols))]
                for i in range(len(a))
            ]
        )
        np.testing.assert_allclose(operator.to_dense(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_order_t_tends_to_the_cosine_as_t_tends_to_zero(dtype):
    gram = GramOperator(POLY, X.astype(dtype))
    limit = NormalizedOperator(gram).to_dense()
    last = np.inf
    for order in (1e-1, 1e-2, 1e-3):
        error = np.abs(NormalizedOperator(gram, order).to_dense() - limit).max()
        assert error < 2 * order
        assert error < last
        last = error
    for order in (1e-9, 1e-15, 1e-100, 1e-300):
        error = np.abs(NormalizedOperator(gram, order).to_dense() - limit).max()
        assert error <= order + 16 * np.finfo(dtype).eps


@pytest.mark.parametrize("order", [50, 1e4, 1e300])
def test_a_large_order_divides_by_the_larger(order):
    k = entries(POLY, X)
    larger = np.maximum.outer(np.diag(k), np.diag(k))
    np.testing.assert_allclose(NormalizedOperator(GramOperator(POLY, X), order).to_dense(), k / larger, rtol=1 / order)


@pytest.mark.parametrize("order", [0, 1, 2.5])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_very_small_and_very_large_kernels(order, scale):
    plain = NormalizedOperator(GramOperator(POLY, X), order).to_dense()
    scaled = NormalizedOperator(GramOperator(scale * POLY, X), order).to_dense()
    np.testing.assert_allclose(scaled, plain, rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2.5])
def test_diagonal_is_one(order):
    operator = NormalizedOperator(GramOperator(POLY, X), order)
    np.testing.assert_array_equal(operator.diagonal(), np.ones(45))
    np.testing.assert_allclose(np.diag(operator.to_dense()), np.ones(45), rtol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2.5])
def test_a_point_whose_kernel_vanishes_becomes_a_row_of_zeros(order):
    points = np.vstack([X[:4], np.zeros(3), X[4:6]])
    operator = NormalizedOperator(GramOperator(Linear(), points), order)
    dense = operator.to_dense()
    assert np.all(np.isfinite(dense))
    np.testing.assert_array_equal(dense[4], np.zeros(7))
    np.testing.assert_array_equal(dense[:, 4], np.zeros(7))
    np.testing.assert_array_equal(operator.diagonal(), [1, 1, 1, 1, 0, 1, 1])
    assert np.all(np.isfinite(operator @ np.ones(7)))
    square = NormalizedOperator(GramOperator(Linear(), points, points.copy()), order)
    np.testing.assert_allclose(square.diagonal(), [1, 1, 1, 1, 0, 1, 1], rtol=1e-14)


def test_a_given_block_takes_the_diagonal_it_is_told():
    k, block = entries(POLY, X), entries(POLY, Y, X)
    with pytest.raises(ValueError, match="new_diagonal"):
        NormalizedOperator(GramOperator(Precomputed(), block, k))
    operator = NormalizedOperator(GramOperator(Precomputed(new_diagonal=2.0), block, k), 1.0)
    np.testing.assert_allclose(operator.to_dense(), block / ((2.0 + np.diag(k)) / 2), rtol=1e-13)


@pytest.mark.parametrize("order", [-1, np.nan, np.inf, "two", True])
def test_a_bad_order_is_refused(order):
    with pytest.raises(ValueError, match="order="):
        NormalizedOperator(GramOperator(Gaussian(sigma=1.0), X), order)


def test_weights_and_negative_diagonals_are_refused():
    with pytest.raises(ValueError, match=r"^A weighted Gram operator cannot be normalised: "):
        NormalizedOperator(GramOperator(Gaussian(sigma=1.0), X, weights=np.ones(45)))
    with pytest.raises(ValueError, match=r"^A kernel with a negative k\(x, x\) cannot be normalised\.$"):
        NormalizedOperator(GramOperator(Sigmoid(coef0=-9.0), X))
