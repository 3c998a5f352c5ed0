"""Affinities that the user brings: dense, sparse, indefinite, without loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from mercer import DiffusionMaps, Gaussian, Precomputed, SDPEmbedding
from mercer.datasets import three_clusters

_BOTH = pytest.mark.parametrize("Estimator", [SDPEmbedding, DiffusionMaps])


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=30, n_outliers=4)[0]


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(0).uniform(-1.0, 4.0, (11, 2))


@_BOTH
def test_same_as_the_kernel_it_came_from(Estimator, X, new):
    kernel = Gaussian(sigma=1.5)
    model = Estimator(kernel, random_state=0).fit(X)
    given = Estimator(Precomputed(), random_state=0).fit(kernel(X))
    np.testing.assert_allclose(given.embedding_, model.embedding_, atol=1e-5)
    np.testing.assert_allclose(given.transform(kernel(new, X)), model.transform(new), atol=1e-5)
    np.testing.assert_allclose(given.transform(kernel(X, X.copy())), given.embedding_, atol=1e-5)


def test_certificate_and_novelty_too(X, new):
    kernel = Gaussian(sigma=1.5)
    model = SDPEmbedding(kernel, random_state=0).fit(X)
    given = SDPEmbedding(Precomputed(), random_state=0).fit(kernel(X))
    assert given.certificate_.lower == pytest.approx(model.certificate_.lower, rel=1e-6)
    assert given.certificate_.holds(1e-6)
    np.testing.assert_allclose(given.novelty(kernel(new, X)), model.novelty(new), rtol=1e-9)


def _thresholded(X, at=0.1) -> np.ndarray:
    K = Gaussian(sigma=1.5)(X)
    return np.where(at < K, K, 0.0)


@_BOTH
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix])
def test_sparse_affinities(Estimator, form, X):
    """A thresholded Gaussian is indefinite: the shift makes the power method ascend, and the proof needs none."""
    K = _thresholded(X)
    assert np.linalg.eigvalsh(K)[0] < -1e-3
    dense = Estimator(Precomputed(), random_state=0).fit(K)
    model = Estimator(Precomputed(), random_state=0).fit(form(K))
    np.testing.assert_allclose(model.embedding_, dense.embedding_, atol=1e-6)
    np.testing.assert_allclose(model.transform(form(K)), model.embedding_, atol=1e-5)
    np.testing.assert_allclose(model.transform(sparse.csr_matrix(K[:5])), model.embedding_[:5], atol=1e-5)
    np.testing.assert_allclose(model.transform(K[:5]), model.embedding_[:5], atol=1e-5)


def test_indefinite_affinities_are_certified(X):
    model = SDPEmbedding(Precomputed(), random_state=0).fit(sparse.csr_matrix(_thresholded(X)))
    assert model.certificate_.holds(1e-6)
    assert model.certificate_.least_eigenvalues[0] > -1e-6
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-10)


def _two_parties(n: int) -> np.ndarray:
    """Strong affinities across, weak ones within: a least eigenvalue near -1, where plain power steps flip for ever."""
    K = 0.1 * np.random.default_rng(0).uniform(size=(n, n))
    K = (K + K.T) / 2
    K[: n // 2, n // 2 :] += 1.0
    K[n // 2 :, : n // 2] += 1.0
    np.fill_diagonal(K, 1.5)
    return K


@pytest.mark.parametrize(
    ("solver", "tol"), [("accelerated", 1e-6), ("power", 1e-3)]
)  # the shift makes power steps short
def test_strongly_indefinite_affinities(solver, tol):
    K = _two_parties(40)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    assert np.linalg.eigvalsh(A)[0] < -0.7
    model = SDPEmbedding(Precomputed(), solver=solver, tol=tol, residual_tol=tol, random_state=0, max_iter=50_000).fit(
        K
    )
    assert model.certificate_.holds(tol)
    E = model.embedding_
    y = np.sum(E * (A @ E), axis=1) / np.diag(A)
    assert np.linalg.eigvalsh(np.diag(y) - A)[0] > -tol


def test_points_in_several_components():
    """Two groups without a path between them: still a fine problem, and they sit opposite each other."""
    K = np.kron(np.eye(2), np.ones((10, 10)) + np.eye(10))
    model = SDPEmbedding(Precomputed(), random_state=0).fit(K)
    cosines = model.embedding_ / np.linalg.norm(model.embedding_, axis=1)[:, None]
    assert np.all(cosines[:10] @ cosines[10:].T < -0.999)


@_BOTH
def test_wrong_number_of_columns(Estimator, X):
    model = Estimator(Precomputed(), random_state=0).fit(_thresholded(X))
    with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 94 features"):
        model.transform(np.ones((2, 3)))


@_BOTH
def test_matrices_that_cannot_be_affinities(Estimator, X):
    K = _thresholded(X)
    with pytest.raises(ValueError, match="must be square, not 10 × 94"):
        Estimator(Precomputed()).fit(K[:10])
    lopsided = K.copy()
    lopsided[0, 1] += 0.1
    with pytest.raises(ValueError, match="must be symmetric"):
        Estimator(Precomputed()).fit(lopsided)
    with pytest.raises(ValueError, match="contains NaN"):
        Estimator(Precomputed()).fit(np.where(K == 1, np.nan, K))
    empty = K.copy()
    empty[3] = empty[:, 3] = 0
    with pytest.raises(ValueError, match="Row 3 of the kernel matrix sums to 0"):
        Estimator(Precomputed()).fit(sparse.csr_matrix(empty))
    with pytest.raises(ValueError, match="All points look alike"):
        Estimator(Precomputed()).fit(np.ones((5, 5)))
    with pytest.raises(ValueError, match="Every point is isolated"):
        Estimator(Precomputed()).fit(np.eye(5))


@_BOTH
def test_new_point_without_affinity(Estimator, X):
    model = Estimator(Precomputed(), random_state=0).fit(_thresholded(X))
    with pytest.raises(ValueError, match="Row 1 of X has no positive affinity"):
        model.transform(np.vstack([_thresholded(X)[0], np.zeros(len(X))]))


@_BOTH
@pytest.mark.parametrize("factor", [1e-300, 1e-3, 1e5, 1e300])
def test_units_of_the_affinities_do_not_matter(Estimator, factor, X):
    K = Gaussian(sigma=1.5)(X)
    reference = Estimator(Precomputed(), random_state=0).fit(K)
    model = Estimator(Precomputed(), random_state=0).fit(factor * K)
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-6)
    np.testing.assert_allclose(model.transform(factor * K[:5]), reference.embedding_[:5], atol=1e-5)


def test_varying_diagonal_needs_k_of_new_points(X):
    K = _thresholded(X) + np.diag(np.linspace(0, 1, len(X)))
    model = SDPEmbedding(Precomputed(), random_state=0).fit(K)
    with pytest.raises(ValueError, match="new_diagonal"):
        model.transform(K[:3])
    model = SDPEmbedding(Precomputed(new_diagonal=1.5), random_state=0).fit(K)
    assert np.isfinite(model.transform(K[:3])).all()


def test_graph_without_loops():
    """k(x, x) = 0 prescribes no length: nothing to solve, said so. Diffusion maps do not ask for it."""
    ring = np.roll(np.eye(12), 1, axis=1)
    ring += ring.T
    with pytest.raises(ValueError, match="No point has room under Precomputed.*larger diagonal"):
        SDPEmbedding(Precomputed()).fit(sparse.csr_matrix(ring))
    model = DiffusionMaps(Precomputed()).fit(sparse.csr_matrix(ring))
    np.testing.assert_allclose(model.eigenvalues_, np.cos(2 * np.pi / 12), rtol=1e-12)
    np.testing.assert_allclose(np.ptp(np.linalg.norm(model.embedding_, axis=1)), 0.0, atol=1e-12)  # a circle
    np.testing.assert_allclose(model.transform(ring), model.embedding_, atol=1e-12)


def test_hubs_without_room_are_named():
    """A star with loops: the hub has k/m < m/vol, which no positive semi-definite kernel gives."""
    n = 30
    K = np.eye(n)
    K[0, :] = K[:, 0] = 1.0
    with pytest.warns(UserWarning, match="1 of 30 points have no room under Precomputed"):
        model = SDPEmbedding(Precomputed(), random_state=0, max_iter=50_000).fit(K)
    assert np.abs(model.embedding_[0]).max() < 1e-15
    assert np.all(np.linalg.norm(model.embedding_[1:], axis=1) > 0)
    assert model.certificate_.holds(1e-6)


def test_cross_validation_cuts_rows_and_columns(X):
    """The pairwise tag: scikit-learn must cut the affinities to train × train and test × train."""
    labels = three_clusters(n_per_cluster=30, n_outliers=4)[1]
    keep = labels >= 0
    K = Gaussian(sigma=2.0)(X)[np.ix_(keep, keep)]
    order = np.random.default_rng(0).permutation(keep.sum())
    model = make_pipeline(SDPEmbedding(Precomputed(), random_state=0), KNeighborsClassifier())
    scores = cross_val_score(model, K[np.ix_(order, order)], labels[keep][order], cv=3)
    assert scores.min() > 0.9
