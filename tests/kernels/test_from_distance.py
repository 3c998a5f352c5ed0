"""Kernels made from distances: (51) written out, what they are centred on, and what is no distance."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.base import clone

from mercer import FromDistance, GramOperator
from mercer.kernels.base import UnresolvedKernelError

rng = np.random.default_rng(0)
POINTS = rng.normal(size=(70, 4))
FRESH = np.concatenate([rng.normal(size=(9, 4)), POINTS[:2]])


def lopsided(x, y):
    return abs(x[0] - y[0]) + (x[0] > y[0])


def nowhere_zero(x, y):
    return 1.0 + abs(x[0] - y[0])


def largest_gap(x, y):
    return float(np.abs(x - y).max())


def by_hand(D, to_rows, to_cols, among):
    """(51) of squared distances, all of them given."""
    return -0.5 * (D - to_rows.mean(axis=1)[:, None] - to_cols.mean(axis=1) + among.mean())


METRICS = {
    "euclidean": "euclidean",
    "manhattan": "cityblock",
    "chebyshev": "chebyshev",
    "canberra": "canberra",
    "cosine": "cosine",
    "correlation": "correlation",
    "braycurtis": "braycurtis",
    "hamming": "hamming",
    "jaccard": "jaccard",
}


@pytest.mark.parametrize("metric", METRICS)
def test_values_are_those_of_51(metric, on):
    name = METRICS[metric]
    X, Y = (np.round(np.abs(part)) if name in ("hamming", "jaccard") else part for part in (POINTS, FRESH))
    squares = [
        cdist(a != 0, b != 0, name) ** 2 if name == "jaccard" else cdist(a, b, name) ** 2
        for a, b in ((X, X), (Y, X), (Y, Y))
    ]
    distinct = np.unique(X, axis=0, return_index=True)[1]
    assert distinct.size < len(X) or name not in ("hamming", "jaccard")  # copies count as often as they occur
    kernel = on(FromDistance(metric, n_center=None).resolve(X))
    among, across, new = squares
    assert_allclose(kernel(X), by_hand(among, among, among, among), atol=1e-12)
    assert_allclose(kernel(Y, X), by_hand(across, across, among, among), atol=1e-12)
    assert_allclose(kernel(Y), by_hand(new, across, across, among), atol=1e-12)
    assert np.array_equal(kernel(X), kernel(X).T)
    assert np.array_equal(kernel.diag(Y), kernel(Y).diagonal())


def test_functions_and_parameters():
    theirs = FromDistance(largest_gap, n_center=None).resolve(POINTS)
    assert_allclose(theirs(FRESH, POINTS), FromDistance("chebyshev", n_center=None).resolve(POINTS)(FRESH, POINTS))
    cubic = FromDistance("minkowski", {"p": 3}, None).resolve(POINTS)(POINTS)
    D = cdist(POINTS, POINTS, "minkowski", p=3) ** 2
    assert_allclose(cubic, by_hand(D, D, D, D), atol=1e-12)
    whitened = FromDistance("mahalanobis", {"VI": np.diag([1.0, 4.0, 9.0, 16.0])}, None).resolve(POINTS)(POINTS)
    scaled = POINTS * np.arange(1, 5)
    assert_allclose(whitened, FromDistance().resolve(scaled)(scaled), atol=1e-10)


def test_the_euclidean_one_is_the_centred_linear_kernel(dtype):
    X = (POINTS + 1e6).astype(dtype)
    kernel = FromDistance().resolve(X)
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    assert kernel.properties.positive_definite is True
    assert_allclose(kernel(X), centred @ centred.T, rtol=1e-5 if dtype == np.float32 else 1e-9, atol=1e-5)
    assert kernel(X).dtype == dtype
    assert np.linalg.eigvalsh(kernel(X).astype(np.float64))[0] > -1e-5


def test_four_points_of_a_square_show_that_a_metric_is_not_enough():
    """Lemma 4 of the survey says that the kernel of any metric is positive semi-definite."""
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for metric in ("manhattan", "hamming"):
        kernel = FromDistance(metric).resolve(square)
        assert kernel.properties.positive_definite is False
        assert np.linalg.eigvalsh(kernel(square))[0] < -0.1 * np.linalg.eigvalsh(kernel(square))[-1]
    turned = square @ [[1.0, 1.0], [1.0, -1.0]]  # the plane's greatest coordinate is its sum of coordinates, turned
    assert np.linalg.eigvalsh(FromDistance("chebyshev").resolve(turned)(turned))[0] < -0.1
    assert FromDistance("cosine").properties.positive_definite is None
    assert FromDistance(largest_gap).properties.positive_definite is None


def test_what_it_is_centred_on_shifts_nothing_that_is_centred_again():
    few, all_of_them = (FromDistance("manhattan", n_center=count).resolve(POINTS) for count in (7, None))
    H = np.eye(70) - 1 / 70
    assert np.abs(few(POINTS) - all_of_them(POINTS)).max() > 0.01
    assert_allclose(H @ few(POINTS) @ H, all_of_them(POINTS), atol=1e-12)
    one = FromDistance("manhattan", n_center=1).resolve(POINTS)  # Schoenberg's kernel, with an origin
    assert min(one.diag(POINTS)) == 0
    assert_allclose(few(POINTS).sum(), few.resolve(FRESH)(POINTS).sum())


@pytest.mark.parametrize("n_center", [None, 20])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_a_weight_of_two_is_a_row_twice(metric, n_center):
    weights = rng.integers(0, 4, 70).astype(float)
    repeated = np.repeat(POINTS, weights.astype(int), axis=0)
    make = FromDistance(metric, n_center=n_center)
    first, second = make.resolve(POINTS, weights)(FRESH), make.resolve(repeated)(FRESH)
    assert_allclose(first, second, atol=1e-12)
    assert_allclose(make.resolve(POINTS, 1e-3 * weights)(FRESH), second, atol=1e-12)


def test_a_heavy_row_counts_by_its_weight_among_few():
    weights = np.where(np.arange(70) == 5, 1000.0, 1.0)
    few, exact = (FromDistance("manhattan", n_center=count).resolve(POINTS, weights) for count in (40, None))
    assert_allclose(few(FRESH), exact(FRESH), atol=0.05 * np.abs(exact(FRESH)).max())
    assert few._known.weights.max() > 0.9


def test_the_bound_of_the_rounding_holds():
    X = POINTS[:40]
    kernel = FromDistance("manhattan", n_center=None).resolve(X)
    long = X.astype(np.longdouble)
    D = np.abs(long[:, None] - long[None]).sum(axis=2) ** 2
    truth = by_hand(D, D, D, D)
    for points, unit in ((X, 2.0**-53), (X.astype(np.float32), 2.0**-24)):
        gram = GramOperator(kernel, points)
        error = np.abs(gram.block(slice(None), slice(None)) - truth).max()
        assert error <= gram.entry_error.absolute < 1e5 * unit
    assert GramOperator(2.0 * kernel, X).entry_error.absolute == np.inf


def test_products_pickles_clones_and_names():
    kernel = FromDistance("manhattan").resolve(POINTS)
    again = pickle.loads(pickle.dumps(kernel))
    K, v = kernel(POINTS), rng.normal(size=(70, 2))
    assert_allclose(GramOperator(again, POINTS) @ v, K @ v, rtol=1e-12)
    assert_allclose((0.5 * kernel)(FRESH, POINTS), 0.5 * kernel(FRESH, POINTS))
    assert np.array_equal(clone(kernel)(POINTS), K)
    assert repr(clone(kernel)) == repr(kernel) != repr(FromDistance("manhattan").resolve(FRESH))
    assert not kernel.set_params(n_center=3).is_resolved
    with pytest.raises(UnresolvedKernelError, match="depends on the data"):
        FromDistance()(POINTS)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: FromDistance("euclidian"), "metric='euclidian' must be a function of two points, or one of"),
        (lambda: FromDistance("precomputed"), "pass -D..2/2 of a matrix D of distances to KernelPCA"),
        (lambda: FromDistance("mahalanobis"), "would be another one on every block of points: fix it by metric_params"),
        (lambda: FromDistance("manhattan", [3]), "must be a dict"),
        (lambda: FromDistance(n_center=0), "n_center=0 must be a whole number of at least 1"),
        (lambda: FromDistance(lopsided), "is not symmetric"),
        (lambda: FromDistance(nowhere_zero), "must be zero from a point to itself"),
        (lambda: FromDistance(lambda x, y: np.nan), "no finite numbers"),
    ],
)
def test_what_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make().resolve(POINTS)


def test_points_of_other_features_are_refused():
    for metric in ("euclidean", "manhattan"):
        kernel = FromDistance(metric).resolve(POINTS)
        with pytest.raises(ValueError, match="X has 3 features, but the training points of the kernel 4"):
            kernel(POINTS[:, :3])
    with pytest.raises(ValueError, match="no training point of positive weight"):
        FromDistance().resolve(POINTS, np.zeros(70))
