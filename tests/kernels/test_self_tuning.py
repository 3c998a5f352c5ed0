"""The self-tuning kernel: its values against sums written out, what it is invariant under, and what it refuses."""

from __future__ import annotations

import logging
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.base import clone

from mercer import Gaussian, GramOperator, SelfTuning, config_context
from mercer.kernels import Kernel, Properties
from mercer.kernels.base import UnresolvedKernelError
from mercer.kernels.names import kernel_named

LONG = np.longdouble
rng = np.random.default_rng(0)
POINTS = rng.normal(size=(60, 3))
POINTS[7] = POINTS[31]  # one point, twice
FRESH = np.concatenate([rng.normal(size=(12, 3)), POINTS[3:5], POINTS[:1] + 40])
GRID = np.stack(np.meshgrid(np.arange(7.0), np.arange(6.0)), axis=-1).reshape(-1, 2)  # many points equally far


def by_hand(training, X, Y, *, n_neighbors=15, scale_neighbor=7, metric="euclidean", pair_scale="mean"):
    """The definition, pair by pair, from all distances."""
    training, name = np.unique(training, axis=0), {"manhattan": "cityblock"}.get(metric, metric)
    most = len(training) - 1
    near = [np.sort(cdist(points, training, name), axis=1) for points in (X, Y)]
    s, t = (distances[:, min(scale_neighbor, most)] for distances in near)
    d = cdist(X, Y, name)
    values = np.exp(-(d**2) / (np.outer(s, t) if pair_scale == "mean" else np.minimum.outer(s, t) ** 2))
    if n_neighbors is None:
        return values
    r, q = (distances[:, min(n_neighbors, most)] for distances in near)
    return np.where(d <= np.maximum(r[:, None], q) * (1 + 1e-12), values, 0.0)


@pytest.mark.parametrize("counts", [(15, 7), (4, 4), (3, 9), (1, 1), (100, 7), (None, 5)])
@pytest.mark.parametrize("training", [POINTS, GRID], ids=["points", "grid"])
@pytest.mark.parametrize("pair_scale", ["mean", "smaller"])
def test_values_are_those_of_the_definition(pair_scale, training, counts, on):
    fresh = FRESH[:, : training.shape[1]]
    known = dict(zip(("n_neighbors", "scale_neighbor"), counts, strict=True)) | {"pair_scale": pair_scale}
    kernel = on(SelfTuning(**known).resolve(training))
    for X, Y in ((training, fresh), (fresh, training), (fresh, fresh[::2]), (training[::3], training[5:20])):
        assert_allclose(kernel(X, Y), by_hand(training, X, Y, **known), rtol=1e-12)
    for X in (training, fresh, np.concatenate([fresh, training[:9]])):
        assert_allclose(kernel(X), by_hand(training, X, X, **known), rtol=1e-12)
        assert np.array_equal(kernel(X), kernel(X).T)
        assert np.array_equal(kernel.diag(X), np.ones(len(X)))


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "canberra", "cosine", "correlation", "cityblock", "l2"])
@pytest.mark.parametrize("n_neighbors", [15, None])
def test_any_metric(metric, n_neighbors):
    training, fresh = rng.normal(size=(50, 6)), rng.normal(size=(9, 6))
    kernel = SelfTuning(n_neighbors, metric=metric).resolve(training)
    name = {"l2": "euclidean"}.get(metric, metric)
    for X, Y in ((training, training), (fresh, training), (fresh, fresh)):
        assert_allclose(kernel(X, Y), by_hand(training, X, Y, n_neighbors=n_neighbors, metric=name), atol=1e-12)


def test_a_place_on_the_globe():
    places = np.radians(np.random.default_rng(1).uniform([-80, -180], [80, 180], (40, 2)))
    kernel = SelfTuning(5, 3, metric="haversine").resolve(places)
    assert kernel.parts_.sizes.sum() == 40
    assert kernel(places).max() == 1


@pytest.mark.parametrize("neighbors", ["exact", "approximate"])
def test_a_training_point_has_its_row_of_the_graph_to_the_last_bit(neighbors):
    X = np.random.default_rng(3).normal(size=(300, 8))
    kernel = SelfTuning(neighbors=neighbors).resolve(X)
    whole, some = kernel(X), np.array([5, 200, 5, 17])
    assert np.array_equal(kernel(X[some], X), whole[some])
    assert np.array_equal(kernel(X[some]), whole[np.ix_(some, some)])
    assert np.array_equal(kernel(np.concatenate([X[some], X[:1] + 0.1]), X)[:4], whole[some])
    signed = np.where(X[:2] == 0, -0.0, X[:2])
    assert np.array_equal(kernel(signed, X), whole[:2])


@pytest.mark.parametrize("n_neighbors", [15, None])
def test_logarithms_are_finite_at_any_distance(n_neighbors, on):
    kernel = on(SelfTuning(n_neighbors).resolve(POINTS))
    far = POINTS[:3] + np.array([[1e4], [1e150], [1e300]])
    logs = kernel.log(far, POINTS)
    assert np.all(np.isfinite(logs.max(axis=1)))
    assert np.all(np.diff(logs.max(axis=1)) < 0)
    with np.errstate(divide="ignore"):
        assert_allclose(kernel.log(FRESH, POINTS), np.log(kernel(FRESH, POINTS)), rtol=1e-12, atol=1e-12)


def test_scaled_products_are_those_of_logarithms(on):
    kernel, V = SelfTuning().resolve(POINTS), np.random.default_rng(2).uniform(size=(60, 2))
    far = FRESH + 1e4 * (np.arange(len(FRESH)) % 2)[:, None]
    top, product = GramOperator(kernel, far, POINTS).scaled_product(V)
    logs = kernel.log(far, POINTS)
    assert_allclose(top, logs.max(axis=1))
    assert_allclose(product, np.exp(logs - logs.max(axis=1)[:, None]) @ V, rtol=1e-12)


@given(
    st.integers(3, 40),
    st.integers(1, 4),
    st.integers(1, 20),
    st.integers(1, 9),
    st.floats(1e-3, 1e3),
    st.integers(0, 2**32 - 1),
)
@example(30, 1, 1, 1, 1.0, 105817)  # a point is isolated
@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore:.*isolated under SelfTuning")  # as points far from all others are
def test_invariants(n, d, n_neighbors, scale_neighbor, factor, seed):
    draw = np.random.default_rng(seed)
    X = np.round(draw.normal(size=(n, d)), int(draw.integers(1, 9)))  # with ties and copies
    if len(np.unique(X, axis=0)) < 2:
        return
    make = SelfTuning(n_neighbors, scale_neighbor)
    K = make.resolve(X)(X)
    assert np.array_equal(K, K.T)
    assert np.all((K >= 0) & (K <= 1))
    assert np.all(K.diagonal() == 1)
    assert np.array_equal(make.resolve(X * 2.0**70)(X * 2.0**70), K)  # of any unit
    order = draw.permutation(n)
    assert np.array_equal(make.resolve(X[order])(X), K)  # in any order
    assert np.array_equal(make.resolve(np.concatenate([X, X[:2]]))(X), K)  # however often a row occurs
    moved = X * factor + 3.0
    ties = np.abs(make.resolve(moved)(moved) - K)
    assert np.mean(ties > 1e-6) < 0.5  # rounding may decide a tie otherwise


@pytest.mark.parametrize("exponent", [-700, -450, 450, 900])
def test_points_whose_squares_leave_double_precision(exponent):
    scaled = np.ldexp(POINTS, exponent)
    for kernel in (SelfTuning(), SelfTuning(None)):
        assert_allclose(kernel.resolve(scaled)(scaled), kernel.resolve(POINTS)(POINTS), rtol=1e-13)


def test_weights_choose_training_points_and_count_for_nothing_else():
    weights = np.where(np.arange(60) % 5 == 0, 0.0, 3.0)
    kernel = SelfTuning().resolve(POINTS, weights)
    assert np.array_equal(kernel(FRESH, POINTS), SelfTuning().resolve(POINTS[weights > 0])(FRESH, POINTS))


def test_small_samples():
    for n in (1, 2, 3):
        kernel = SelfTuning().resolve(POINTS[:n])
        assert np.all(np.isfinite(kernel(FRESH, POINTS[:n])))
    assert SelfTuning().resolve(np.ones((5, 2)))(np.ones((5, 2))).min() == 1
    assert_allclose(SelfTuning().resolve(POINTS[:2])(POINTS[:2]), [[1, np.exp(-1)], [np.exp(-1), 1]])


# --- arithmetic ---------------------------------------------------------------------------------------------------


def exact_values(X, metric, n_neighbors, pair_scale):
    X = X.astype(LONG)
    difference = np.abs(X[:, None] - X[None])
    d = np.sum(difference, axis=2) if metric == "manhattan" else np.sqrt(np.sum(difference**2, axis=2))
    s = np.sort(d, axis=1)[:, 7]
    values = np.exp(-(d**2) / (np.outer(s, s) if pair_scale == "mean" else np.minimum.outer(s, s) ** 2))
    if n_neighbors is None:
        return values
    r = np.sort(d, axis=1)[:, n_neighbors]
    return np.where(d <= np.maximum(r[:, None], r) * (1 + LONG(1e-15)), values, 0)


@pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="long double is double on this platform")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("n_neighbors", [15, 60, None])
@pytest.mark.parametrize("pair_scale", ["mean", "smaller"])
@pytest.mark.filterwarnings("ignore:.* points are isolated:UserWarning")
def test_entries_lie_within_their_stated_error(pair_scale, n_neighbors, metric, dtype):
    """On a dense cloud beside a sparse one, so that entries between them are as small as e^-20 and far smaller."""
    draw = np.random.default_rng(5)
    X = np.concatenate([0.02 * draw.normal(size=(60, 90)), draw.normal(size=(60, 90))]).astype(dtype)
    truth = exact_values(X, metric, n_neighbors, pair_scale)
    gram = GramOperator(SelfTuning(n_neighbors, metric=metric, pair_scale=pair_scale).resolve(X), X)
    error, distance = gram.entry_error, np.abs(gram.to_dense() - truth)
    assert np.all(distance <= error.relative * truth + error.scaled)
    if dtype == np.float64:  # an error that does not grow with -log k does not cover it
        assert np.max(distance - 8 * 2.0**-53 * truth) > 0
        assert gram.entry_error.relative < 1e-11


def test_double_products_of_points_in_single_precision():
    X = POINTS.astype(np.float32)
    for kernel in (SelfTuning().resolve(X), SelfTuning(None).resolve(X)):
        wide, narrow = GramOperator(kernel, X, dtype=np.float64), GramOperator(kernel, X)
        assert (wide.dtype, narrow.dtype) == (np.float64, np.float32)
        assert_allclose(wide.to_dense(), SelfTuning(kernel.n_neighbors).resolve(X.astype(float))(X.astype(float)))
        off = np.abs(narrow.to_dense() - wide.to_dense())
        assert np.all(off <= narrow.entry_error.relative * wide.to_dense() + narrow.entry_error.scaled)


# --- algebra, parameters, pickles -----------------------------------------------------------------------------------


def test_algebra_of_one_graph(on):
    kernel, K = SelfTuning().resolve(POINTS), SelfTuning().resolve(POINTS)(FRESH, POINTS)
    assert_allclose(on(3 * kernel)(FRESH, POINTS), 3 * K)
    assert_allclose(on(kernel**2)(FRESH, POINTS), K**2)
    assert_allclose(on((2 * kernel).normalized())(FRESH, POINTS), K, rtol=1e-14)
    assert_allclose(on((SelfTuning() + SelfTuning()).resolve(POINTS))(FRESH, POINTS), 2 * K)
    assert (2 * kernel).is_local
    assert not (2 * SelfTuning(None)).is_local
    assert not Gaussian().is_local


@pytest.mark.parametrize("other", [Gaussian(1.0), SelfTuning(5)])
def test_a_graph_is_combined_with_no_other_kernel(other):
    for mixed in (SelfTuning() + other, other * SelfTuning(), 2 * (SelfTuning() + other)):
        with pytest.raises(ValueError, match=r"only one that has the same training points and neighbours"):
            mixed.resolve(POINTS)(POINTS)


def test_properties():
    assert SelfTuning().properties == Properties(bounded=True, stationary=False, positive=True)
    spectrum = np.linalg.eigvalsh(SelfTuning().resolve(POINTS)(POINTS))
    assert spectrum[0] < -1e-3  # it is not positive semi-definite


def test_a_resolved_kernel_stays_what_it_is():
    kernel = SelfTuning(10).resolve(POINTS)
    assert kernel.resolve(FRESH) is kernel
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert repr(copy) == repr(kernel)
        assert np.array_equal(copy(FRESH, POINTS), kernel(FRESH, POINTS))
    assert repr(kernel) != repr(SelfTuning(10).resolve(POINTS[:-1])) != repr(SelfTuning(10))
    assert repr(kernel).count("\n") == 0
    assert len(repr(kernel)) < 180
    kernel.set_params(n_neighbors=5)
    assert not kernel.is_resolved
    with pytest.raises(UnresolvedKernelError, match=r"kernel\.resolve\(X\)"):
        kernel(POINTS)
    assert isinstance(kernel_named("self-tuning"), SelfTuning)
    assert SelfTuning().get_params() == {
        "n_neighbors": 15,
        "scale_neighbor": 7,
        "metric": "euclidean",
        "neighbors": "auto",
        "connect": False,
        "pair_scale": "mean",
    }


# --- parts ----------------------------------------------------------------------------------------------------------


def apart():
    draw = np.random.default_rng(4)
    return np.concatenate([draw.normal(size=(40, 2)), draw.normal(size=(30, 2)) + 100])


def test_parts_are_logged_and_are_no_reason_to_warn(caplog):
    with caplog.at_level(logging.INFO, logger="mercer"):
        kernel = SelfTuning().resolve(apart())
    assert caplog.messages == ["The neighbour graph has 2 parts, of 40, 30 points."]
    assert np.array_equal(kernel.parts_.labels, np.repeat([0, 1], [40, 30]))
    assert SelfTuning(None).resolve(apart()).parts_.sizes.tolist() == [70]


def test_isolated_points_are_named():
    X = np.concatenate([[[1e5, 0.0]], apart(), [[0.0, -1e7]]])
    with pytest.warns(UserWarning, match=r"2 of 72 points are isolated under SelfTuning\(.*\), for .*: rows 0, 71\."):
        kernel = SelfTuning().resolve(X)
    assert kernel.parts_.sizes.tolist() == [40, 30, 1, 1]
    joined = SelfTuning(connect=True).resolve(X)
    assert joined.parts_.sizes.tolist() == [72]
    K, J = kernel(X), joined(X)
    assert np.array_equal(J, J.T)
    assert np.array_equal(K[K > 0], J[K > 0])
    added = np.argwhere((J > 0) & (K == 0))
    assert len(added) == 6
    assert np.all(J[tuple(added.T)] == np.exp(-1))
    clusters = added[(added[:, 0] % 71 > 0) & (added[:, 1] % 71 > 0) & (added[:, 0] < added[:, 1])][0]
    distances = cdist(X[1:41], X[41:71])
    assert tuple(clusters - [1, 41]) == np.unravel_index(distances.argmin(), distances.shape)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, r"n_neighbors=0 must be a whole number of at least 1\."),
        ({"n_neighbors": 2.5}, r"n_neighbors=2\.5 must be a whole number"),
        ({"scale_neighbor": 0}, r"scale_neighbor=0 must be a whole number of at least 1\."),
        ({"metric": "mahalanobis"}, r"metric='mahalanobis' must be one of 'euclidean'.*passed as neighbors\."),
        ({"metric": lambda x, y: 0.0}, r"metric=<function .* must be one of"),
        ({"neighbors": "kd_tree"}, r"neighbors='kd_tree' must be one of 'auto', 'exact', 'approximate', a transformer"),
        ({"neighbors": 3}, r"neighbors=3 must be one of"),
        ({"pair_scale": "larger"}, r"pair_scale='larger' must be one of 'mean', 'smaller'\."),
        ({"connect": 1}, r"connect=1 must be True or False\."),
        ({"metric": "canberra", "neighbors": "approximate"}, r"neighbors='approximate' knows metric='euclidean'"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        SelfTuning(**parameters).resolve(POINTS)


def test_input_is_checked():
    kernel = SelfTuning().resolve(POINTS)
    with pytest.raises(ValueError, match=r"X has nan in row 0, column 1"):
        SelfTuning().resolve([[0.0, np.nan]])
    with pytest.raises(ValueError, match=r"X has 2 features, but the training points of the kernel 3\."):
        kernel(POINTS[:, :2])
    with pytest.raises(TypeError, match="SelfTuning has no parameter 'n_neighbours'"):
        SelfTuning(n_neighbours=3)
    rays = np.outer(np.arange(1.0, 12.0), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"Row 0 of X is at distance zero from 7 other rows by metric='cosine'"):
        SelfTuning(metric="cosine").resolve(rays)


def test_copies_that_make_the_graph_dense():
    X = np.repeat(np.arange(4.0)[:, None], 2000, axis=0)
    kernel: Kernel = SelfTuning().resolve(X)
    with (
        config_context(memory_limit="100MB"),
        pytest.raises(MemoryError, match="give each point once, with the number"),
    ):
        kernel.matrix(X)
