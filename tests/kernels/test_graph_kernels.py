"""Kernels whose columns come from a neighbour graph: against SciPy's paths and pseudo-inverses, and what they refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csc_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.neighbors import kneighbors_graph

from mercer import Geodesic, GramOperator, GraphLaplacian, LocallyLinear, config_context, rp_cholesky
from mercer.backends.cpu.selected_inverse import inverse_diagonal
from mercer.kernels.base import UnresolvedKernelError

rng = np.random.default_rng(0)


def sheet(n, seed):
    """Points of a rolled strip."""
    u, v = np.random.default_rng(seed).uniform([0.0, 0.0], [7.0, 3.0], (n, 2)).T
    return np.column_stack([np.cos(u) * (1 + u / 3), np.sin(u) * (1 + u / 3), v])


POINTS = sheet(90, 0)
FRESH = sheet(12, 1)
KERNELS = {"geodesic": Geodesic(6, n_center=None), "lle": LocallyLinear(6), "laplacian": GraphLaplacian(6)}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernel(request):
    return request.param.resolve(POINTS)


def paths_by_hand(points, fresh, k, metric="euclidean"):
    """Lengths between all points, the new ones joined to their nearest training points by edges that lead away."""
    n, t = len(points), len(fresh)
    graph = np.zeros((n + t, n + t))
    graph[:n, :n] = kneighbors_graph(points, k, mode="distance", metric=metric).toarray()
    graph[:n, :n] = np.maximum(graph[:n, :n], graph[:n, :n].T)
    D = cdist(fresh, points, {"manhattan": "cityblock"}.get(metric, metric))
    for i, row in enumerate(D):
        near = np.argsort(row)[:k]
        graph[n + i, near] = row[near]
    within = shortest_path(graph[:n, :n])
    outward = shortest_path(graph, directed=True, indices=range(n, n + t))[:, :n]
    between = np.min(outward[:, None, :] + outward[None], axis=2)
    np.fill_diagonal(between, 0.0)
    return within, outward, between


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_lengths_are_those_of_the_shortest_paths(metric, on):
    kernel = Geodesic(6, metric).resolve(POINTS)
    within, outward, between = paths_by_hand(POINTS, FRESH, 6, metric)
    assert_allclose(kernel.distances(POINTS), within, rtol=1e-13)
    assert_allclose(kernel.distances(FRESH, POINTS), outward, rtol=1e-13)
    assert_allclose(kernel.distances(POINTS, FRESH), outward.T, rtol=1e-13)
    assert_allclose(kernel.distances(POINTS[:2], FRESH), outward[:, :2].T, rtol=1e-13)  # searches from the others
    assert_allclose(kernel.distances(FRESH), between, rtol=1e-13)
    squares = within**2
    values = on(Geodesic(6, metric, n_center=None).resolve(POINTS))(FRESH, POINTS)
    by_hand = outward**2 - np.mean(outward**2, axis=1)[:, None] - squares.mean(axis=0) + squares.mean()
    assert_allclose(values, -0.5 * by_hand, atol=1e-12 * squares.max())


def test_the_bound_of_a_path_holds():
    kernel = Geodesic(6, n_center=None).resolve(POINTS)
    gram = GramOperator(kernel, POINTS)
    within = paths_by_hand(POINTS, FRESH, 6)[0] ** 2
    truth = -0.5 * (within - within.mean(axis=0) - within.mean(axis=1)[:, None] + within.mean())
    error = np.abs(gram.block(slice(None), slice(None)) - truth).max()
    assert error <= gram.entry_error.absolute < 1e-9
    assert GramOperator(kernel, FRESH, POINTS).entry_error.absolute < 1e-9
    assert GramOperator(2.0 * kernel, FRESH, POINTS).entry_error.absolute == np.inf  # of points not known beforehand


def laplacian_by_hand(points, k):
    links = kneighbors_graph(points, k).toarray()
    affinities = 0.5 * (links + links.T)
    return np.diag(affinities.sum(axis=1)) - affinities


def residual_by_hand(points, k, reg=1e-3):
    W = np.zeros((len(points), len(points)))
    for i, row in enumerate(cdist(points, points)):
        near = np.argsort(row)[1 : k + 1]
        gram = (points[near] - points[i]) @ (points[near] - points[i]).T
        w = np.linalg.solve(gram + reg * np.trace(gram) * np.eye(k), np.ones(k))
        W[i, near] = w / w.sum()
    return (np.eye(len(points)) - W).T @ (np.eye(len(points)) - W)


@pytest.mark.parametrize(
    ("kernel", "matrix"), [(LocallyLinear(6), residual_by_hand), (GraphLaplacian(6), laplacian_by_hand)]
)
def test_a_kernel_is_the_pseudo_inverse_of_its_matrix(kernel, matrix, on):
    M = matrix(POINTS, 6)
    values = on(kernel.resolve(POINTS))(POINTS)
    assert_allclose(values, np.linalg.pinv(M, hermitian=True), atol=1e-7 * np.abs(values).max())
    assert_allclose(M @ values @ M, M, atol=1e-9 * np.abs(values).max())


@pytest.mark.parametrize("kernel", [LocallyLinear(6), GraphLaplacian(6)])
def test_the_diagonal_comes_from_the_factor(kernel):
    sample = kernel.resolve(sheet(600, 4))._known
    identity = sample.read(sample.positions)
    own, solved = sample.own(identity), sample._solved_diagonal(identity)
    assert_allclose(own, solved, rtol=1e-7)
    assert not np.array_equal(own, solved)  # it was not solved for


def test_the_diagonal_of_an_inverse_where_elimination_made_zeros():
    draw = np.random.default_rng(5)
    for n in (1, 2, 3, 9, 40):
        dense = np.tril(draw.normal(size=(n, n)) * (draw.uniform(size=(n, n)) < 0.2), -1) + np.eye(n)
        pivots = draw.uniform(1, 2, n)
        want = np.linalg.inv(dense @ np.diag(pivots) @ dense.T).diagonal()
        assert_allclose(inverse_diagonal(csc_array(dense), pivots), want, rtol=1e-9)


def test_degrees():
    kernel = GraphLaplacian(6).resolve(POINTS)
    assert_allclose(kernel.degrees_, laplacian_by_hand(POINTS, 6).diagonal())


def test_a_new_point_is_as_its_neighbours_are():
    K = GraphLaplacian(6).resolve(POINTS)
    near = np.argsort(cdist(FRESH, POINTS), axis=1)[:, :6]
    assert_allclose(K(FRESH, POINTS), K(POINTS)[near].mean(axis=1), atol=1e-12)
    among = LocallyLinear(6).resolve(POINTS)
    middle = POINTS[:1] * 0.999 + 0.001 * POINTS[1:2]  # next to the first: rebuilt by it alone
    assert_allclose(among(middle, POINTS)[0], among(POINTS)[0], atol=0.1 * np.abs(among(POINTS)).max())


def test_blocks_agree_however_they_are_asked_for(kernel, dtype):
    X, Y = POINTS.astype(dtype), FRESH.astype(dtype)
    kernel = clone(kernel).set_params().resolve(X)
    K, gram = kernel(X), GramOperator(kernel, X)
    close = {"rtol": 0, "atol": (1e-9 if dtype == np.float64 else 1e-5) * np.abs(K).max()}
    assert K.dtype == dtype
    assert np.array_equal(K, K.T)
    assert np.array_equal(K.diagonal(), kernel.diag(X))
    assert_allclose(gram.block(slice(None), [3, 50]), K[:, [3, 50]], **close)
    assert_allclose(gram.block([7], slice(10, 60)), K[[7], 10:60], **close)
    assert_allclose(gram.diagonal(), K.diagonal(), **close)
    v = np.random.default_rng(0).normal(size=(90, 3)).astype(dtype)
    assert_allclose(gram @ v, K @ v, rtol=1e-3, atol=90 * close["atol"])
    assert_allclose(gram.block(slice(None), [3, 50]), K[:, [3, 50]], **close)
    assert_allclose(kernel(X[::3], X), K[::3], **close)
    assert_allclose(kernel(X, Y), kernel(Y, X).T, **close)
    assert_allclose(kernel(np.concatenate([Y, X[:5]]), X)[12:], K[:5], **close)
    both = kernel(np.concatenate([Y, Y[:2]]))
    assert_allclose(both[:, :12], kernel(np.concatenate([Y, Y[:2]]), Y.copy()), **close)
    assert np.array_equal(both.diagonal(), kernel.diag(np.concatenate([Y, Y[:2]])))
    assert_allclose(GramOperator(kernel, Y, X).kernel_diagonal(), kernel.diag(Y), **close)
    assert_allclose((2.0 * kernel)(Y, X), 2 * kernel(Y, X), **close)
    assert_allclose((2.0 * kernel)(X), 2 * K, **close)


def test_copies_and_weights_change_no_graph(kernel):
    plain = clone(kernel).set_params().resolve(POINTS)
    order = np.random.default_rng(2).permutation(90)
    copied = clone(kernel).set_params().resolve(np.concatenate([POINTS, POINTS[:30]]))
    weighted = (
        clone(kernel)
        .set_params()
        .resolve(np.concatenate([POINTS, FRESH]), np.r_[np.ones(30) * 2, np.ones(60), np.zeros(12)])
    )
    K = plain(POINTS)
    close = {"rtol": 0, "atol": 1e-6 * np.abs(K).max()}
    assert_allclose(weighted(FRESH, POINTS), copied(FRESH, POINTS), **close)
    if isinstance(kernel, Geodesic):
        H = np.eye(90) - 1 / 90
        assert_allclose(H @ copied(POINTS) @ H, K, **close)
    else:
        assert_allclose(copied(POINTS), K, **close)
        assert np.linalg.eigvalsh(K)[0] > -1e-9 * np.abs(K).max()
        assert kernel.properties.positive_definite is True
        assert np.linalg.eigvalsh(plain(np.concatenate([FRESH, POINTS])))[0] > -1e-9 * np.abs(K).max()
    assert_allclose(clone(kernel).set_params().resolve(POINTS[order])(POINTS), K, **close)


def test_tensors_stay_tensors(kernel):
    torch = pytest.importorskip("torch")
    X, Y = torch.tensor(POINTS), torch.tensor(FRESH)
    K = kernel(X)
    assert isinstance(K, torch.Tensor)
    close = {"rtol": 0, "atol": 1e-9 * float(K.abs().max())}
    assert_allclose(K.numpy(), kernel(POINTS), **close)
    assert_allclose(kernel(Y, X).numpy(), kernel(FRESH, POINTS), **close)
    gram = GramOperator(kernel, X)
    assert_allclose(gram.block(slice(None), torch.tensor([3, 5])).numpy(), kernel(POINTS)[:, [3, 5]], **close)
    assert_allclose((gram @ torch.ones(90, 1, dtype=X.dtype)).numpy(), kernel(POINTS).sum(axis=1)[:, None], atol=1e-6)
    assert_allclose(gram.diagonal().numpy(), kernel.diag(POINTS), **close)


def test_pickles_and_names(kernel):
    again = pickle.loads(pickle.dumps(kernel))
    assert np.array_equal(again(FRESH, POINTS), kernel(FRESH, POINTS))
    assert repr(again) == repr(kernel) != repr(clone(kernel).set_params().resolve(FRESH))
    assert "of 90 points" in repr(kernel)
    with pytest.raises(UnresolvedKernelError, match="depends on the data"):
        clone(kernel).set_params()(POINTS)


def test_the_matrix_of_all_points_is_not_made_for_some_of_its_columns(kernel):
    many = sheet(1500, 3)
    kernel = clone(kernel).set_params().resolve(many)
    with config_context(memory_limit="10MB"):
        gram = GramOperator(kernel, many)
        assert gram.block(slice(None), np.arange(20)).shape == (1500, 20)
        with pytest.raises(MemoryError, match="The 1500 × 1500 matrix .* takes 18 MB.*: pass landmarks"):
            gram @ np.ones(1500)


def test_columns_are_not_made_again_for_every_few_of_their_rows(kernel, monkeypatch):
    made, block = [], type(kernel._known).block
    monkeypatch.setattr(
        type(kernel._known),
        "block",
        lambda self, rows, cols, out: made.append(len(cols)) or block(self, rows, cols, out),
    )
    gram, chosen = GramOperator(kernel, POINTS), np.array([40, 3, 77, 5])
    K = np.concatenate([gram.block(slice(lo, lo + 30), chosen) for lo in (0, 30, 60)])
    some = gram.block(slice(10, 50), np.array([5, 40]))
    assert made == [4]
    assert np.array_equal(some, K[10:50, [3, 0]])
    assert_allclose(K, kernel(POINTS)[:, chosen], rtol=0, atol=1e-9 * np.abs(K).max())
    assert np.array_equal(gram.block([-1, 0, 1], [-1])[:, 0], gram.block([89, 0, 1], [89])[:, 0])


def test_landmarks_of_a_graph():
    gram = GramOperator(GraphLaplacian(6).resolve(POINTS), POINTS)
    low = rp_cholesky(gram, 60, 0)
    assert np.abs(low.to_dense() - gram.to_dense()).max() < 0.3 * np.abs(gram.to_dense()).max()


# --- graphs in parts ------------------------------------------------------------------------------------------

APART = np.concatenate([POINTS, POINTS[:30] + 100.0, POINTS[:10] - 100.0])


def test_parts_are_one_sentence():
    for kernel in KERNELS.values():
        with pytest.raises(ValueError, match="falls into 3 parts, of 90, 30, 10 points, .*: raise n_neighbors"):
            kernel.resolve(APART)


def test_parts_can_be_joined():
    kernel = Geodesic(6, connect=True).resolve(APART)
    within = kernel.distances(APART)
    D = cdist(APART, APART)
    assert np.all(np.isfinite(within))
    assert_allclose(within[:90, 90:120].min(), D[:90, 90:120].min())
    assert_allclose(
        within[90:120, 120:].min(), D[:90, 90:120].min() + D[:90, 120:].min(), rtol=0.2
    )  # by way of the middle
    assert_allclose(within[:90, :90], Geodesic(6).resolve(POINTS).distances(POINTS), rtol=1e-12)
    K = GraphLaplacian(6, connect=True).resolve(APART)(APART)
    assert np.linalg.matrix_rank(K) == len(APART) - 1


def test_a_part_that_only_looks_out_is_no_part():
    """Three points that others do not have as neighbours, rebuilt from these: the null vectors are the constants alone."""
    X = np.concatenate([POINTS, POINTS[:3] + np.array([0.0, 0.0, 8.0])])
    assert LocallyLinear(6).resolve(X)(X).shape == (93, 93)


def test_exactly_flat_data_without_regularisation_have_no_one_kernel():
    X = rng.uniform(size=(60, 2))
    with pytest.raises(ValueError, match="more null vectors than the constants|undetermined"):
        LocallyLinear(8, reg=0.0).resolve(X)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Geodesic(0), "n_neighbors=0 must be a whole number of at least 1"),
        (lambda: Geodesic(connect=1), "connect=1 must be True or False"),
        (lambda: Geodesic(metric="precomputed"), "metric='precomputed' takes distances from neighbors|must be one of"),
        (lambda: Geodesic(metric="jumps"), "metric='jumps' must be one of"),
        (lambda: Geodesic(n_center=-1), "n_center=-1 must be"),
        (lambda: LocallyLinear(reg=-1.0), "reg=-1.0 must be at least 0"),
        (lambda: GraphLaplacian(connect="yes"), "connect='yes' must be True or False"),
    ],
)
def test_what_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make().resolve(POINTS)


def test_other_features_and_tiny_samples(kernel):
    with pytest.raises(ValueError, match="X has 2 features, but the training points of the kernel 3"):
        kernel(POINTS[:, :2])
    one = clone(kernel).set_params().resolve(POINTS[:1])
    assert_allclose(one(POINTS[:1]), [[0.0]], atol=1e-15)
    two = clone(kernel).set_params().resolve(POINTS[:2])
    assert_allclose(two(POINTS[:2]).sum(axis=0), 0, atol=1e-12)
