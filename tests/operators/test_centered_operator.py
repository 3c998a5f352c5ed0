"""Centring in feature space against explicit features and scikit-learn's KernelCenterer."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.preprocessing import KernelCenterer

from mercer import CenteredOperator, Gaussian, GramOperator, Linear, Polynomial

rng = np.random.default_rng(2)
X = rng.normal(size=(50, 3)) + 2.0
NEW = rng.normal(size=(9, 3))
POLY = Polynomial(degree=3, gamma=0.3)


def pair(kernel=POLY):
    train = CenteredOperator(GramOperator(kernel, X))
    return train, CenteredOperator(GramOperator(kernel, NEW, X), reference=train)


def test_training_matrix_is_that_of_scikit_learn_and_of_the_formula():
    k = polynomial_kernel(X, degree=3, gamma=0.3)
    h = np.eye(50) - 1 / 50
    train, _ = pair()
    np.testing.assert_allclose(train.to_dense(), KernelCenterer().fit_transform(k), rtol=1e-10, atol=1e-11 * k.max())
    np.testing.assert_allclose(train.to_dense(), h @ k @ h, rtol=1e-10, atol=1e-11 * k.max())


def test_new_points_are_centred_as_in_scikit_learn():
    k, k_new = (polynomial_kernel(points, X, degree=3, gamma=0.3) for points in (X, NEW))
    _, new = pair()
    expected = KernelCenterer().fit(k).transform(k_new)
    np.testing.assert_allclose(new.to_dense(), expected, rtol=1e-10, atol=1e-11 * k.max())


def test_features_lose_their_training_mean():
    train, new = pair(Linear())
    centred, centred_new = X - X.mean(axis=0), NEW - X.mean(axis=0)
    np.testing.assert_allclose(train.to_dense(), centred @ centred.T, atol=1e-12)
    np.testing.assert_allclose(new.to_dense(), centred_new @ centred.T, atol=1e-12)
    np.testing.assert_allclose(train.diagonal(), (centred**2).sum(axis=1), atol=1e-12)


def test_training_points_seen_as_new_ones_give_the_training_matrix():
    train, _ = pair()
    again = CenteredOperator(GramOperator(POLY, X.copy(), X), reference=train)
    assert not again.symmetric
    np.testing.assert_allclose(again.to_dense(), train.to_dense(), atol=1e-11)
    np.testing.assert_allclose(again.diagonal(), train.diagonal(), atol=1e-11)


def test_rows_sum_to_zero_and_nothing_turns_negative():
    train, new = pair(Gaussian(sigma=1.0))
    np.testing.assert_allclose(train.row_sums(), np.zeros(50), atol=1e-13)
    np.testing.assert_allclose(new.row_sums(), np.zeros(9), atol=1e-13)
    assert np.linalg.eigvalsh(train.to_dense())[0] > -1e-14


def test_means_are_those_of_the_training_matrix():
    k = GramOperator(POLY, X).to_dense()
    train, new = pair()
    np.testing.assert_allclose(train.column_means, k.mean(axis=0), rtol=1e-13)
    assert train.mean == pytest.approx(k.mean(), rel=1e-13)
    assert new.mean == train.mean


def test_new_points_need_their_training_points():
    block = GramOperator(Gaussian(sigma=1.0), NEW, X)
    with pytest.raises(ValueError, match=r"^Centring new points needs reference="):
        CenteredOperator(block)
    with pytest.raises(ValueError, match=r"^gram has 50 columns for 9 training points\.$"):
        CenteredOperator(block, reference=CenteredOperator(GramOperator(Gaussian(sigma=1.0), NEW)))
    with pytest.raises(ValueError, match="reference="):
        CenteredOperator(GramOperator(Gaussian(sigma=1.0), X, weights=np.ones(50)))
