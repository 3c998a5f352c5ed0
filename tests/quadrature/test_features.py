"""Nyström features on nodes, against scikit-learn and the formula."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.kernel_approximation import Nystroem

from mercer import Gaussian, GramOperator, Laplacian, Linear, Polynomial, Precomputed, nystrom
from mercer.quadrature import NystromFeatures

rng = np.random.default_rng(5)
X = rng.normal(size=(60, 3))
Y = rng.normal(size=(17, 3))
NODES = np.array([40, 3, 11, 29, 8, 55, 20])


def completion(kernel, left, right, nodes=NODES):
    inverse = np.linalg.pinv(kernel(X[nodes]), hermitian=True, rcond=1e-13)
    return kernel(left, X[nodes]) @ inverse @ kernel(X[nodes], right)


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_scikit_learn(seed):
    peer = Nystroem(kernel="rbf", gamma=1 / 1.5**2, n_components=12, random_state=seed).fit(X)
    ours = NystromFeatures(Gaussian(1.5), X, peer.component_indices_)
    np.testing.assert_array_equal(ours.components, peer.components_)
    np.testing.assert_allclose(ours.normalization, peer.normalization_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.transform(Y), peer.transform(Y), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplacian(2.0), Polynomial(3, 0.5, 1.0)], ids=repr)
def test_inner_products_complete_the_kernel(kernel):
    features = NystromFeatures(kernel, X, NODES)
    assert features.transform(Y).shape == (17, 7)
    product = features.transform(X) @ features.transform(Y).T
    np.testing.assert_allclose(product, completion(kernel, X, Y), rtol=0, atol=1e-10 * kernel.diag(X).max())
    on_nodes = features.transform(X[NODES])
    np.testing.assert_allclose(on_nodes @ on_nodes.T, kernel(X[NODES]), rtol=0, atol=1e-10 * kernel.diag(X).max())


def test_they_agree_with_the_low_rank_operator():
    features = NystromFeatures(Gaussian(1.5), X, NODES).transform(X)
    low = nystrom(GramOperator(Gaussian(1.5), X), NODES)
    np.testing.assert_allclose(features @ features.T, low.to_dense(), rtol=0, atol=1e-12)


def test_directions_at_rounding_level_are_dropped():
    """The linear kernel has rank three, whatever the number of nodes: three features are enough, seven are returned."""
    features = NystromFeatures(Linear(), X, NODES)
    assert features.rank == 3
    values = features.transform(Y)
    assert values.shape == (17, 7)
    np.testing.assert_allclose(values @ values.T, Y @ Y.T, atol=1e-12)


def test_repeated_points_do_no_harm():
    points = np.concatenate([X, X[:5], X[:5] + 1e-10])
    nodes = np.concatenate([NODES, np.arange(5), np.arange(60, 70)])
    nodes = nodes[np.sort(np.unique(nodes, return_index=True)[1])]
    values = NystromFeatures(Gaussian(1.5), points, nodes).transform(Y)
    assert np.all(np.isfinite(values))
    plain = NystromFeatures(Gaussian(1.5), X, np.union1d(NODES, np.arange(5))).transform(Y)
    np.testing.assert_allclose(values @ values.T, plain @ plain.T, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_a_precomputed_kernel_gives_the_same(form):
    plain = NystromFeatures(Gaussian(1.5), X, NODES)
    given = NystromFeatures(Precomputed(), form(Gaussian(1.5)(X)), NODES)
    np.testing.assert_allclose(given.transform(form(Gaussian(1.5)(Y, X))), plain.transform(Y), atol=1e-10)
    with pytest.raises(
        ValueError, match=r"^A precomputed block must have a column for each of 60 training points, not 7\.$"
    ):
        given.transform(form(Gaussian(1.5)(Y, X[NODES])))


def test_they_can_be_stored():
    features = NystromFeatures(Gaussian(1.5), X, NODES)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(Y), features.transform(Y))


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ([], r"^nodes must be row numbers: a non-empty one-dimensional array of whole numbers\.$"),
        ([0.5], r"^nodes must be row numbers: a non-empty one-dimensional array of whole numbers\.$"),
        ([0, 60], r"^nodes must lie between 0 and 59\.$"),
        ([-1], r"^nodes must lie between 0 and 59\.$"),
        ([4, 4], r"^nodes names a row twice: give it once, with the sum of its values\.$"),
    ],
)
def test_bad_nodes_are_refused_in_one_sentence(nodes, sentence):
    with pytest.raises(ValueError, match=sentence):
        NystromFeatures(Gaussian(1.0), X, nodes)


def test_the_root_waits_until_a_feature_is_asked_for():
    features = NystromFeatures(Gaussian(1.5), X, NODES)
    assert "normalization" not in vars(features)
    features.transform(X)
    assert features.rank == np.linalg.matrix_rank(features.normalization)
    assert "normalization" in vars(features)
    assert not hasattr(features, "root")


def test_nodes_on_which_the_kernel_vanishes_are_refused():
    with pytest.raises(ValueError, match=r"^The kernel vanishes on every node: choose others\.$"):
        NystromFeatures(Linear(), np.zeros((4, 2)), [0, 1])
