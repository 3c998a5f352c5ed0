"""Embeddings of a neighbour graph: proofs about the sparse matrix that is there, and places of new points."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons

from mercer import DiffusionMaps, GramOperator, Precomputed, SDPEmbedding, SelfTuning, verify

X = make_moons(n_samples=120, noise=0.06, random_state=0)[0]
NEW = make_moons(n_samples=20, noise=0.1, random_state=1)[0]


@pytest.fixture(scope="module", params=["exact", "approximate"])
def kernel(request):
    return SelfTuning(10, neighbors=request.param)


@pytest.fixture(scope="module")
def model(kernel):
    return SDPEmbedding(kernel, n_levels=2, random_state=0).fit(X)


def test_the_certificate_is_that_of_the_sparse_matrix(model):
    graph = GramOperator(model.kernel_, X).to_dense()
    given = SDPEmbedding(Precomputed(), n_levels=2, random_state=0).fit(scipy.sparse.csr_array(graph))
    for ours, theirs in zip(model.levels_, given.levels_, strict=True):
        a, b = ours.certificate, theirs.certificate
        assert a.holds(1e-6)
        assert a.lower <= b.upper * (1 + 1e-12)
        assert b.lower <= a.upper * (1 + 1e-12)
    assert verify(model, X).holds(1e-6)


def test_training_points_keep_their_places(model):
    assert_allclose(model.transform(X), model.embedding_, atol=1e-5 * np.abs(model.embedding_).max())
    assert_allclose(model.transform(X[[3, 3, 50]]), model.transform(X)[[3, 3, 50]], atol=1e-12)
    learned = model.learned_kernel(X)
    assert_allclose(learned, model.embedding_ @ model.embedding_.T, atol=1e-4 * np.abs(learned).max())


def test_new_points_have_places_at_any_distance(model):
    far = NEW[:3] * np.array([[1e3], [1e8], [1e200]])
    novelty = model.novelty(np.concatenate([NEW, far]))
    assert np.all(np.isfinite(novelty))
    assert np.all(np.diff(novelty[-3:]) > 0)
    assert novelty[-3] > novelty[:-3].max()
    assert np.all(np.isfinite(model.transform(far)))


def test_a_pickled_model_knows_its_graph(model):
    twin = pickle.loads(pickle.dumps(model))
    assert np.array_equal(twin.transform(NEW), model.transform(NEW))
    assert verify(twin, X).upper == verify(model, X).upper


def test_diffusion_maps_of_the_graph(kernel):
    model = DiffusionMaps(kernel, n_components=3, random_state=0).fit(X)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9 * np.abs(model.embedding_).max())
    assert np.all(np.isfinite(model.transform(NEW * 1e6)))


@pytest.mark.parametrize("n_neighbors", [10, None])
def test_a_row_of_weight_two_is_the_row_twice(n_neighbors):
    weights = np.where(np.arange(len(X)) < 25, 2.0, 1.0)
    weighted = SDPEmbedding(SelfTuning(n_neighbors), n_levels=1, random_state=0).fit(X, sample_weight=weights)
    repeated = SDPEmbedding(SelfTuning(n_neighbors), n_levels=1, random_state=0).fit(np.concatenate([X, X[:25]]))
    assert_allclose(weighted.certificate_.lower, repeated.certificate_.lower, rtol=1e-5)
    assert_allclose(weighted.diagonal_, repeated.diagonal_[: len(X)], rtol=1e-9)
