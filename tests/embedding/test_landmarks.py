"""Solving on landmarks, extending to all points."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from mercer import Gaussian, Landmarks, Linear, Precomputed, QuadratureSparsifier, SDPEmbedding, verify
from mercer.datasets import three_clusters

KERNEL = Gaussian(sigma=1.5)


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=60, n_outliers=6)[0]


@pytest.fixture(scope="module")
def full(X):
    return SDPEmbedding(KERNEL, random_state=0).fit(X)


class _Every(BaseEstimator):
    """Chooses every k-th row."""

    def __init__(self, k=2, weighted=True):
        self.k, self.weighted = k, weighted

    def fit(self, X, y=None):
        self.indices_ = np.arange(0, len(X), self.k)
        if self.weighted:
            self.weights_ = np.full(self.indices_.size, float(self.k))
        return self


def _aligned_error(model, full):
    """The relative difference of the learned kernels on the whole sample."""
    B, target = (m.embedding_ @ m.embedding_.T for m in (model, full))
    return np.linalg.norm(B - target) / np.linalg.norm(target)


def test_all_points_as_landmarks_change_nothing(X, full):
    model = SDPEmbedding(KERNEL, landmarks=np.arange(len(X)), random_state=0).fit(X)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(full.embedding_), atol=1e-4)
    assert model.certificate_.lower == pytest.approx(full.certificate_.lower, rel=1e-9)


def test_landmarks_are_solved_and_the_rest_is_extended(X):
    chosen = np.arange(0, len(X), 2)
    model = SDPEmbedding(KERNEL, landmarks=(chosen, np.full(chosen.size, 2.0)), random_state=0).fit(X)
    alone = SDPEmbedding(KERNEL, random_state=0).fit(X[chosen], sample_weight=np.full(chosen.size, 2.0))
    np.testing.assert_array_equal(model.landmarks_, chosen)
    np.testing.assert_array_equal(model.sample_weight_, 2.0)
    np.testing.assert_allclose(model.embedding_[chosen], alone.embedding_, atol=1e-12)
    np.testing.assert_allclose(model.embedding_, alone.transform(X), atol=1e-5)
    assert model.certificate_.holds(1e-6)
    assert verify(model, X, random_state=0).holds(1e-6)  # of the problem on the landmarks


def test_more_landmarks_come_nearer_and_the_extended_certificate_says_so(X, full):
    errors, gaps = [], []
    for k in (12, 4, 2):
        model = SDPEmbedding(KERNEL, landmarks=_Every(k), random_state=0).fit(X)
        extended = verify(model, X, extended=True, random_state=0)
        assert extended.lower <= full.certificate_.upper * (1 + 1e-9)
        assert extended.upper >= full.certificate_.lower * (1 - 1e-9)
        errors.append(_aligned_error(model, full))
        gaps.append(1 - extended.lower / full.certificate_.lower)
    assert errors[0] > errors[-1]
    assert errors[-1] < 0.15
    assert gaps[0] > gaps[-1] >= -1e-6


def test_index_array_stands_for_the_sample(X):
    """Without weights every landmark stands for n/m points, so that volume and degrees are those of the sample."""
    model = SDPEmbedding(KERNEL, landmarks=np.arange(0, len(X), 3), random_state=0).fit(X)
    np.testing.assert_allclose(model.sample_weight_.sum(), len(X))


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_estimators_of_landmarks(X, fitted, weighted):
    chooser = _Every(3, weighted)
    if fitted:
        chooser.fit(X)
    model = SDPEmbedding(KERNEL, landmarks=chooser, random_state=0).fit(X)
    np.testing.assert_array_equal(model.landmarks_, np.arange(0, len(X), 3))
    np.testing.assert_allclose(model.sample_weight_.sum(), len(X))  # they stand for the sample, whatever their scale
    assert hasattr(chooser, "indices_") == fitted  # the user's object is not touched


def test_quadrature_landmarks_come_near_the_full_solution(X, full):
    chooser = QuadratureSparsifier(KERNEL, n_nodes=40)
    model = SDPEmbedding(KERNEL, landmarks=chooser, random_state=0).fit(X)
    chosen = chooser.fit(X)
    np.testing.assert_array_equal(model.landmarks_, chosen.indices_)
    np.testing.assert_allclose(model.sample_weight_, chosen.weights_ * len(X) / chosen.weights_.sum(), rtol=1e-12)
    random = np.sort(np.random.default_rng(0).choice(len(X), 40, replace=False))
    by_chance = SDPEmbedding(KERNEL, landmarks=random, random_state=0).fit(X)
    assert _aligned_error(model, full) < 0.5 * _aligned_error(by_chance, full)


def test_an_estimator_of_landmarks_sees_the_sample_weights(X):
    weights = np.where(np.arange(len(X)) % 2, 0.0, 1.0)
    model = SDPEmbedding(KERNEL, landmarks=QuadratureSparsifier(KERNEL, n_nodes=20), random_state=0)
    assert np.all(model.fit(X, sample_weight=weights).landmarks_ % 2 == 0)


def test_boolean_mask_and_negative_rows(X):
    mask = np.zeros(len(X), bool)
    mask[::4] = True
    by_mask = SDPEmbedding(KERNEL, landmarks=mask, random_state=0).fit(X)
    by_rows = SDPEmbedding(KERNEL, landmarks=np.flatnonzero(mask) - len(X), random_state=0).fit(X)
    np.testing.assert_array_equal(by_mask.landmarks_, by_rows.landmarks_)


def test_landmarks_of_a_precomputed_kernel(X):
    chosen, K = np.arange(0, len(X), 2), KERNEL(X)
    stored = SDPEmbedding(Precomputed(), landmarks=chosen, random_state=0).fit(K)
    direct = SDPEmbedding(KERNEL, landmarks=chosen, random_state=0).fit(X)
    np.testing.assert_allclose(np.abs(stored.embedding_), np.abs(direct.embedding_), atol=1e-4)
    np.testing.assert_allclose(stored.novelty(K[:4]), direct.novelty(X[:4]), rtol=1e-9)


def test_sample_weights_of_landmarks_are_used(X):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = SDPEmbedding(KERNEL, landmarks=np.arange(0, len(X), 2), random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.sample_weight_, weights[::2])


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        ([0.5, 1.5], "landmarks must be row numbers"),
        ([[0, 1], [2, 3]], "landmarks must be row numbers"),
        ([0, 1, 10_000], "landmarks has the row 10000, but X has 186 rows"),
        ([0, 1, 1], "landmarks names a row twice"),
        ([3], "Found 1 landmarks of positive weight"),
        ([], "landmarks"),
        (([0, 1, 2], [1.0, 2.0]), "the weights of landmarks has shape"),
        (([0, 1, 2], [1.0, -2.0, 1.0]), "negative"),
        (([0, 1, 2], [1.0, np.nan, 1.0]), "NaN"),
        (([0, 1], [1.0, 1.0], "x"), "landmarks has 3 parts"),
    ],
)
def test_bad_landmarks_get_one_sentence(X, landmarks, message):
    with pytest.raises(ValueError, match=message):
        SDPEmbedding(KERNEL, landmarks=landmarks).fit(X)


def test_estimator_without_indices_gets_one_sentence(X):
    with pytest.raises(TypeError, match="has no attribute indices_ after fit"):
        SDPEmbedding(KERNEL, landmarks=SDPEmbedding()).fit(X)


def test_a_number_of_landmarks_is_that_many_by_k_means_or_of_a_matrix_its_pivots(X, full):
    model = SDPEmbedding(KERNEL, landmarks=40, random_state=3).fit(X)
    chosen = Landmarks(40, strategy="k-means", kernel=KERNEL, random_state=3).fit(X)
    np.testing.assert_array_equal(model.landmarks_, chosen.indices_)
    np.testing.assert_allclose(model.sample_weight_, chosen.weights_)
    assert _aligned_error(model, full) < 0.2
    stored = SDPEmbedding(Precomputed(), landmarks=40, random_state=3).fit(KERNEL(X))
    np.testing.assert_array_equal(stored.landmarks_, Landmarks(40, kernel=KERNEL, random_state=3).fit(X).indices_)


def test_a_number_of_landmarks_of_a_neighbour_graph_is_chosen_by_positions(X):
    model = SDPEmbedding(landmarks=50, random_state=3).fit(X)
    chosen = Landmarks(50, strategy="k-means", kernel=Linear(), random_state=3).fit(X)
    np.testing.assert_array_equal(model.landmarks_, chosen.indices_)
    np.testing.assert_allclose(model.sample_weight_, chosen.weights_)


def test_landmarks_without_a_kernel_take_that_of_the_estimator(X):
    chooser = Landmarks(30, strategy="greedy")
    model = SDPEmbedding(KERNEL, landmarks=chooser, random_state=0).fit(X)
    np.testing.assert_array_equal(model.landmarks_, Landmarks(30, strategy="greedy", kernel=KERNEL).fit(X).indices_)
    assert chooser.kernel is None


@pytest.mark.parametrize(
    ("landmarks", "sentence"),
    [
        (
            "k-means",
            r"^landmarks='k-means' says no number: write landmarks=300, or Landmarks\(300, strategy='k-means'\)\.$",
        ),
        (1, r"^landmarks=1 must be a whole number of at least 2\.$"),
        (-5, r"^landmarks=-5 must be a whole number of at least 2\.$"),
    ],
)
def test_numbers_that_are_none_are_refused_in_one_sentence(X, landmarks, sentence):
    with pytest.raises(ValueError, match=sentence):
        SDPEmbedding(KERNEL, landmarks=landmarks).fit(X)
