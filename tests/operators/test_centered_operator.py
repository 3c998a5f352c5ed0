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


def test_a_weighted_mean_is_that_of_repeated_points():
    weights = 1 + np.arange(50) % 3
    weighted = CenteredOperator(GramOperator(POLY, X), weights=weights)
    repeated = CenteredOperator(GramOperator(POLY, np.repeat(X, weights, axis=0)))
    first = np.cumsum(weights) - weights
    root = np.sqrt(weights)
    expected = repeated.to_dense()[np.ix_(first, first)] * np.outer(root, root)
    np.testing.assert_allclose(weighted.to_dense(), expected, rtol=1e-10, atol=1e-12 * expected.max())
    tops = (np.linalg.eigvalsh(operator.to_dense())[::-1][:10] for operator in (weighted, repeated))
    np.testing.assert_allclose(*tops, rtol=1e-10, atol=1e-11 * expected.max())
    np.testing.assert_allclose(weighted @ weighted.unit, 0.0, atol=1e-10 * expected.max())
    new = CenteredOperator(GramOperator(POLY, NEW, X), reference=weighted)
    also = CenteredOperator(GramOperator(POLY, NEW, np.repeat(X, weights, axis=0)), reference=repeated)
    np.testing.assert_allclose(new.to_dense(), also.to_dense()[:, first] * root, rtol=1e-9, atol=1e-11 * expected.max())
    with pytest.raises(ValueError, match=r"^New points are centred with the weights of reference=: leave weights out"):
        CenteredOperator(GramOperator(POLY, NEW, X), reference=weighted, weights=weights)
    with pytest.raises(ValueError, match=r"^weights is negative at index 2"):
        CenteredOperator(GramOperator(POLY, X), weights=-weights)


FAR = (rng.normal(size=(400, 3)) + 5.0).astype(np.float32)


@pytest.mark.parametrize("weights", [None, rng.uniform(0.1, 3.0, 400).astype(np.float32)], ids=["equal", "weighted"])
@pytest.mark.parametrize("kernel", [Gaussian(sigma=2.0), Linear(), Polynomial(degree=2)], ids=repr)
def test_rounding_says_how_far_single_precision_is_from_the_exact_matrix(kernel, weights):
    """Far from the origin centring cancels most of a linear kernel: relative errors of what is left are large."""
    operator = CenteredOperator(GramOperator(kernel, FAR), weights=weights)
    w = np.ones(400) if weights is None else weights.astype(float)
    h = np.eye(400) - np.outer(np.ones(400), w / w.sum())
    exact = np.sqrt(w)[:, None] * (h @ kernel(FAR.astype(float)) @ h.T) * np.sqrt(w)
    allowed, v = operator.rounding(), rng.normal(size=(400, 3)).astype(np.float32)
    off = np.linalg.norm((operator @ v).astype(float) - exact @ v.astype(float), axis=0)
    room = (allowed.product * allowed.norm + allowed.entries) * np.linalg.norm(v, axis=0)
    assert np.all(off > 1e-9 * room)
    assert np.all(off <= room)
    assert np.linalg.norm(operator.to_dense().astype(float) - exact, 2) <= allowed.entries
    assert np.all(np.abs(operator.diagonal() - np.diag(exact)) <= allowed.diagonal)
    assert np.linalg.norm(exact, 2) <= allowed.norm
    assert allowed.entries < 1e-3 * allowed.norm
    assert allowed.semidefinite
