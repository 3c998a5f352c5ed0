"""Diffusion maps of weighted samples and through landmarks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from mercer import DiffusionMaps, Gaussian, Landmarks, Precomputed, config_context
from mercer.datasets import three_clusters, two_moons

KERNEL = Gaussian(sigma=1.5)
NAMES = ("embedding_", "eigenvalues_", "stationary_")


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=50, n_outliers=5)[0]


def weighted_formula(K, w, count, time):
    """Coordinates of P = Diag(m)⁻¹ K W, m = K w, by a dense decomposition of W^½ A W^½."""
    m = K @ w
    root = np.sqrt(w / m)
    values, U = eigh(root[:, None] * K * root)
    values, U = values[::-1][1 : count + 1], U[:, ::-1][:, 1 : count + 1]
    return values, values**time * U / np.sqrt(w * m / (w @ m))[:, None]


@pytest.mark.parametrize("alpha", [0, 1])
def test_all_rows_of_weight_one_as_landmarks_are_the_full_fit(X, alpha):
    full = DiffusionMaps(KERNEL, n_components=3, alpha=alpha).fit(X)
    for landmarks in (np.arange(len(X)), (np.arange(len(X)), np.ones(len(X))), len(X), Landmarks(10_000)):
        model = DiffusionMaps(KERNEL, n_components=3, alpha=alpha, landmarks=landmarks).fit(X)
        for name in NAMES:
            np.testing.assert_array_equal(getattr(model, name), getattr(full, name))
        np.testing.assert_array_equal(model.transform(X + 0.1), full.transform(X + 0.1))


@pytest.mark.parametrize("alpha", [0, 0.5])
def test_weights_are_repeated_rows(X, alpha):
    counts = 1 + np.arange(len(X)) % 3
    counts[::7] = 0
    model = DiffusionMaps(KERNEL, n_components=3, alpha=alpha).fit(X, sample_weight=counts)
    repeated = DiffusionMaps(KERNEL, n_components=3, alpha=alpha).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(model.eigenvalues_, repeated.eigenvalues_, rtol=1e-10)
    signs = np.sign(np.sum(model.transform(X) * repeated.transform(X), axis=0))
    np.testing.assert_allclose(model.embedding_ * signs, repeated.transform(X), atol=1e-9)
    np.testing.assert_array_equal(model.landmarks_, np.flatnonzero(counts))
    np.testing.assert_array_equal(model.sample_weight_, counts[counts > 0])
    assert model.stationary_.sum() == pytest.approx(1.0)


def test_weighted_landmarks_are_the_weighted_formula_and_the_rest_is_extended(X):
    chosen = Landmarks(40, kernel=KERNEL, random_state=0).fit(X)
    model = DiffusionMaps(KERNEL, time=2, landmarks=chosen).fit(X)
    values, expected = weighted_formula(KERNEL(X[chosen.indices_]), chosen.weights_, 2, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    found = model.embedding_[chosen.indices_]
    np.testing.assert_allclose(found * np.sign(np.sum(found * expected, axis=0)), expected, atol=1e-9)
    np.testing.assert_allclose(model.embedding_, model.transform(X), atol=1e-9)
    assert model.embedding_.shape == (len(X), 2)


def test_weights_bring_landmarks_nearer_to_all_points(X):
    """The weights stand for the sample: with equal ones the same landmarks are several times as far off."""
    full = DiffusionMaps(KERNEL, n_components=2).fit(X)
    chosen = Landmarks(50, kernel=KERNEL, random_state=0).fit(X)

    def error(landmarks):
        model = DiffusionMaps(KERNEL, n_components=2, landmarks=landmarks).fit(X)
        left, _, right = np.linalg.svd(model.embedding_.T @ full.embedding_)
        return np.linalg.norm(model.embedding_ @ left @ right - full.embedding_) / np.linalg.norm(full.embedding_)

    assert 3 * error(chosen) < error(chosen.indices_)
    assert error(chosen) < 0.1


def test_a_number_of_landmarks_of_a_neighbour_graph():
    """The default kernel is a graph of neighbours: one among the landmarks, which k-means chooses."""
    X, labels = two_moons(n_points=1500)
    model = DiffusionMaps(n_components=1, landmarks=200, random_state=0).fit(X)
    assert model.landmarks_.size == 200
    assert model.sample_weight_.sum() == pytest.approx(1500)
    side = model.embedding_[:, 0] > 0
    assert max(np.mean(side == labels), np.mean(side != labels)) > 0.99


def test_landmarks_of_a_precomputed_kernel_and_in_single_precision(X):
    K, rows = KERNEL(X), np.arange(0, len(X), 3)
    direct = DiffusionMaps(KERNEL, landmarks=rows).fit(X)
    stored = DiffusionMaps(Precomputed(), landmarks=rows).fit(K)
    np.testing.assert_allclose(stored.embedding_, direct.embedding_, atol=1e-10)
    np.testing.assert_allclose(stored.transform(K[:5]), direct.transform(X[:5]), atol=1e-10)
    with config_context(dtype="float32"):
        single = DiffusionMaps(KERNEL, landmarks=rows).fit(X)
    np.testing.assert_allclose(single.embedding_, direct.embedding_, atol=1e-3)


def test_tensors(X):
    torch = pytest.importorskip("torch")
    ours = DiffusionMaps(KERNEL, landmarks=30, random_state=0).fit(X)
    theirs = DiffusionMaps(KERNEL, landmarks=30, random_state=0).fit(torch.asarray(X))
    np.testing.assert_array_equal(theirs.landmarks_.numpy(), ours.landmarks_)
    np.testing.assert_allclose(theirs.embedding_.numpy(), ours.embedding_, atol=1e-9)
