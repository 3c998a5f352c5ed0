"""Whole fits on sparse affinities: those of the same matrix written out, in the memory of the entries stored."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.neighbors import kneighbors_graph

from mercer import verify
from mercer.certificates import certify_elliptope
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.kernels import Precomputed


def neighbour_graph(n=240, seed=0):
    """Gaussian affinities of nearest neighbours in three clusters that touch, with loops that make them definite."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.5 * np.eye(3)[rng.integers(0, 3, n)]
    graph = kneighbors_graph(X, 15, mode="distance")
    graph.data = np.exp(-((graph.data / np.median(graph.data)) ** 2))
    graph = scipy.sparse.csr_array(graph.maximum(graph.T))
    return graph + scipy.sparse.diags_array(graph.sum(axis=1))


def random_graph(n, clusters=3, neighbours=30, seed=0):
    """Random neighbours inside clusters and a few across: a spectrum with a gap, whatever n."""
    rng = np.random.default_rng(seed)
    cluster = np.arange(n) * clusters // n
    rows = np.repeat(np.arange(n), neighbours)
    cols = (cluster[rows] * n // clusters + rng.integers(0, n // clusters, rows.size)) % n
    across = rng.random(rows.size) < 0.02
    cols[across] = rng.integers(0, n, int(across.sum()))
    graph = scipy.sparse.csr_array((np.ones(rows.size), (rows, cols)), shape=(n, n))
    graph = graph + graph.T
    return graph + scipy.sparse.diags_array(graph.sum(axis=1))


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_an_embedding_is_that_of_the_dense_matrix(form):
    graph = neighbour_graph()
    sparse = SDPEmbedding(Precomputed(2.0), random_state=0, tol=1e-7).fit(form(graph))
    dense = SDPEmbedding(Precomputed(2.0), random_state=0, tol=1e-7).fit(graph.toarray())
    ours, theirs = sparse.certificate_, dense.certificate_
    assert ours.holds(1e-7)
    assert ours.lower == pytest.approx(theirs.lower, rel=1e-7)  # the gap that either proves
    assert ours.upper == pytest.approx(theirs.upper, rel=1e-7)
    assert_allclose(sparse.embedding_ @ sparse.embedding_.T, dense.embedding_ @ dense.embedding_.T, atol=1e-3)
    new = graph[:7]
    assert_allclose(sparse.novelty(form(new)), dense.novelty(new.toarray()), rtol=1e-10)
    assert sparse.transform(form(new)).shape == dense.transform(new.toarray()).shape
    assert verify(sparse, form(graph)).holds(1e-6)
    again = pickle.loads(pickle.dumps(sparse))
    assert np.array_equal(again.transform(form(new)), sparse.transform(form(new)))


def test_diffusion_maps_are_those_of_the_dense_matrix():
    graph = neighbour_graph()
    for alpha in (0.0, 1.0):
        sparse, dense = (DiffusionMaps(Precomputed(2.0), n_components=3, alpha=alpha) for _ in range(2))
        ours, theirs = sparse.fit_transform(graph), dense.fit_transform(graph.toarray())
        assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, rtol=1e-10)
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
        assert_allclose(sparse.transform(graph[:9]), ours[:9], rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_affinities_as_a_sparse_tensor():
    torch = pytest.importorskip("torch")
    graph = neighbour_graph()
    tensor = torch.tensor(graph.toarray()).to_sparse_csr()
    ours = SDPEmbedding(Precomputed(2.0), random_state=0, tol=1e-7).fit(tensor)
    theirs = SDPEmbedding(Precomputed(2.0), random_state=0, tol=1e-7).fit(graph)
    assert isinstance(ours.embedding_, torch.Tensor)
    assert ours.certificate_.holds(1e-7)
    assert ours.certificate_.upper == pytest.approx(theirs.certificate_.upper, rel=1e-6)
    new = torch.tensor(graph[:7].toarray()).to_sparse_csr()
    assert_allclose(ours.novelty(new).numpy(), theirs.novelty(graph[:7]), rtol=1e-10)
    assert verify(ours, tensor).holds(1e-6)
    fewer = SDPEmbedding(Precomputed(2.0), random_state=0, landmarks=np.arange(0, 240, 3))
    upper = fewer.fit(tensor).certificate_.upper
    assert upper == pytest.approx(fewer.fit(graph).certificate_.upper, rel=1e-5)
    maps = DiffusionMaps(Precomputed(2.0), n_components=3, random_state=0)
    assert_allclose(maps.fit(tensor).eigenvalues_.numpy(), maps.fit(graph).eigenvalues_, rtol=1e-9)


def self_tuned(n, seed=0):
    """Gaussian affinities of nearest neighbours, each point with a scale of its own: an indefinite matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.5 * np.eye(3)[rng.integers(0, 3, n)]
    graph = kneighbors_graph(X, 15, mode="distance")
    scale = np.sort(graph.data.reshape(n, 15), axis=1)[:, 6]
    graph.data = np.exp(-(graph.data**2) / (np.repeat(scale, 15) * scale[graph.indices]))
    return scipy.sparse.csr_array(graph.maximum(graph.T) + scipy.sparse.eye(n))


def test_an_indefinite_graph_of_some_thousand_points_is_proved_without_its_matrix(monkeypatch):
    """No factorisation, no stand-in, no chance in the shift; and a factorisation agrees with what was proved."""
    graph = self_tuned(2300)
    for place in ("mercer.linalg.definiteness._by_factorisation", "mercer.linalg.definiteness._by_lanczos"):
        monkeypatch.setattr(place, None)
    with monkeypatch.context() as without:
        without.setattr("mercer.certificates.elliptope.certify_by_factorisation", lambda *args, **kwargs: 1 / 0)
        model = SDPEmbedding(Precomputed(), random_state=0).fit(graph)
    proof = model.certificate_
    assert proof.method == "Chebyshev filter bound"
    assert proof.holds(1e-6)
    assert 0 < proof.failure_probability <= 1e-9
    assert model.rank_ < 6
    posed = DiffusionProblem.of(Precomputed(), graph, None, np.random.default_rng(0))
    assert posed.working.failure_probability == 0
    H = model.embedding_ / np.linalg.norm(model.embedding_, axis=1)[:, None]
    exact = certify_elliptope(posed.exact, H, rng=np.random.default_rng(0), method="factorisation", tol=1e-8)
    assert exact.lower <= proof.upper
    assert proof.lower <= exact.upper
    assert exact.upper <= proof.upper * (1 + 1e-6)


def test_weights_and_landmarks_of_a_sparse_matrix():
    graph, weights = neighbour_graph(), np.random.default_rng(1).integers(1, 4, 240).astype(float)
    sparse, dense = (
        SDPEmbedding(Precomputed(2.0), random_state=0).fit(m, sample_weight=weights) for m in (graph, graph.toarray())
    )
    assert sparse.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-5)
    sparse, dense = (
        SDPEmbedding(Precomputed(2.0), random_state=0, landmarks=np.arange(0, 240, 3)).fit(m)
        for m in (graph, graph.toarray())
    )
    assert sparse.certificate_.upper == pytest.approx(dense.certificate_.upper, rel=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        DiffusionMaps(Precomputed(2.0), n_components=2),
        pytest.param(SDPEmbedding(Precomputed(2.0), tol=1e-2, random_state=0, solver="power"), marks=pytest.mark.slow),
        pytest.param(SDPEmbedding(Precomputed(2.0), tol=1e-2, random_state=0), marks=pytest.mark.slow),
    ],
    ids=["maps", "power", "auto"],
)
def test_twenty_thousand_points_take_the_memory_of_their_neighbours(model):
    n = 20_000
    graph = random_graph(n)
    tracemalloc.start()
    model.fit(graph)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 10
    if isinstance(model, SDPEmbedding):
        assert model.certificate_.relative_gap < 1e-2
    separated = np.sign(model.transform(graph[[10, 19_990]])[:, :2])
    assert not np.array_equal(separated[0], separated[1])
