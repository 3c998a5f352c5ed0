"""Products in tiles against the same products in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from mercer.backends import config_context
from mercer.backends.cpu import sweeps, tasks
from mercer.backends.rounding import gamma
from mercer.kernels import Cosine, Gaussian, Linear, Matern, Polynomial, Precomputed

SQUARE = [(dtype, n) for dtype in (np.float32, np.float64) for n in (1, 2, 63, 64, 65, 321, 700, 1100)]
RECTANGLES = [(1, 1), (1, 700), (700, 1), (319, 321), (320, 640), (513, 511), (1100, 330)]
SIGMA = 2.0


def tolerance(dtype, n):
    return {"rtol": 3e-5, "atol": 3e-6 * n**0.5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-13 * n**0.5}


def points(n, d, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def reference(X, Y=None):
    X = X.astype(np.float64)
    return np.exp(-cdist(X, X if Y is None else Y.astype(np.float64), "sqeuclidean") / SIGMA**2)


def matrix(X, Y=None, kernel=None):
    return (kernel or Gaussian(SIGMA)).matrix(X, Y)


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize(("dtype", "n"), SQUARE)
def test_symmetric(dtype, n, d):
    X, V = points(n, d, dtype), points(n, 3, dtype, seed=1)
    K, made = reference(X), matrix(X)
    product, sums, dense = made.multiply(V), made.row_sums(), made.dense()
    assert product.dtype == sums.dtype == dense.dtype == dtype
    assert_allclose(product, K @ V.astype(np.float64), **tolerance(dtype, n))
    assert_allclose(made.multiply(V, transpose=True), product, rtol=0)
    assert_allclose(sums, K.sum(axis=1), **tolerance(dtype, n))
    assert_allclose(made.row_sums(transpose=True), sums, rtol=0)
    assert_allclose(dense, K, **tolerance(dtype, 1))
    assert np.array_equal(dense, dense.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m"), RECTANGLES)
def test_rectangular(n, m, dtype):
    X, Y = points(n, 5, dtype), points(m, 5, dtype, seed=2)
    right, left = points(m, 2, dtype, seed=3), points(n, 2, dtype, seed=4)
    K, made = reference(X, Y), matrix(X, Y)
    assert_allclose(made.multiply(right), K @ right.astype(float), **tolerance(dtype, m))
    assert_allclose(made.multiply(left, transpose=True), K.T @ left.astype(float), **tolerance(dtype, n))
    assert_allclose(made.row_sums(), K.sum(axis=1), **tolerance(dtype, m))
    for width in (2, 20):  # made four rows at a time, and by BLAS
        down, across = points(m, width, dtype, seed=3), points(n, width, dtype, seed=4)
        both = made.multiply_both(across, down)
        assert_allclose(both[0], K @ down.astype(float), **tolerance(dtype, m))
        assert_allclose(both[1], K.T @ across.astype(float), **tolerance(dtype, n))
    assert_allclose(made.row_sums(transpose=True), K.sum(axis=0), **tolerance(dtype, n))
    assert_allclose(made.dense(), K, **tolerance(dtype, 1))


@pytest.mark.parametrize(
    "kernel", [Matern(0.5, 1.0), Matern(3.7, 1.0), Polynomial(2), Cosine(), Linear() + Gaussian(1.0)], ids=repr
)
def test_other_kernels(kernel):
    X, V = points(400, 6, np.float64), points(400, 2, np.float64, seed=1)
    K = kernel(X)
    assert_allclose(kernel.matrix(X).multiply(V), K @ V, rtol=1e-11, atol=1e-10)
    assert_allclose(kernel.matrix(X).row_sums(), K.sum(axis=1), rtol=1e-11, atol=1e-10)
    assert_allclose(kernel.matrix(X[:350], X[50:]).multiply(V[50:]), K[:350, 50:] @ V[50:], rtol=1e-11, atol=1e-10)


def test_stored():
    X, V = points(400, 3, np.float64), points(400, 2, np.float64, seed=1)
    K = reference(X)
    made = Precomputed().matrix(K)
    assert_allclose(made.multiply(V), K @ V, rtol=1e-12, atol=1e-12)
    assert_allclose(made.row_sums(), K.sum(axis=1), rtol=1e-12)
    made = Precomputed().matrix(K[:340], K)
    assert_allclose(made.multiply(V[:340], transpose=True), K[:340].T @ V[:340], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks(dtype):
    X = points(700, 6, dtype)
    made, K = matrix(X), reference(X)
    dense = made.dense()
    some, other = np.array([699, 3, 3, 512, 0]), np.array([0, 512, 3])
    everything = np.arange(700)
    for rows, cols in (
        (slice(None), slice(None)),
        (slice(10, 600), slice(300, 650)),
        (slice(None), some),
        (some, other),
        (everything[::-1], slice(5, 9)),
        (slice(3, 3), other),
        (np.arange(700) % 3 == 0, slice(-4, None)),
    ):
        i, j = everything[rows], everything[cols]
        block = made.block(rows, cols)
        assert_allclose(block, K[np.ix_(i, j)], **tolerance(dtype, 1))
        assert np.all(block[i[:, None] == j] == dense[i, i][np.nonzero(i[:, None] == j)[0]])  # the diagonal, to the bit
    X, Y = X[:400], X[350:]
    made = matrix(X, Y)
    assert_allclose(
        made.block(some[some < 350], other[other < 350]),
        reference(X, Y)[np.ix_([3, 3, 0], [0, 3])],
        rtol=1e-5,
    )


def test_log_rows():
    X = points(400, 6, np.float64)
    made = matrix(X)
    log = made.log_block(slice(37, 350), slice(None))
    assert_allclose(log, -cdist(X[37:350], X, "sqeuclidean") / SIGMA**2, rtol=1e-11, atol=1e-12)
    assert not log[np.arange(313), np.arange(37, 350)].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 6])
def test_the_same_for_any_number_of_threads(dtype, d):
    X, Y, V = points(1100, d, dtype), points(900, d, dtype, seed=1), points(1100, 4, dtype, seed=2)

    def all_products():
        square, rectangle = matrix(X), matrix(X, Y)
        return (
            square.multiply(V),
            square.row_sums(),
            square.dense(),
            rectangle.multiply(V[:900]),
            rectangle.multiply(V, transpose=True),
            rectangle.dense(),
            *rectangle.multiply_both(V, V[:900]),
        )

    answers = []
    for n_threads in (1, 2, 3, 16):
        with config_context(n_threads=n_threads):
            answers.append(all_products())
    for answer in answers[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(answers[0], answer, strict=True))


@pytest.mark.parametrize("panels", [1, 2, 3, 8, 13])
def test_every_two_panels_meet_once_and_none_twice_in_a_round(panels):
    met, busy = [], set()
    for task in range(tasks.tournament(panels)):
        turn, first, second = sweeps.pairing_of(task, panels)
        assert not busy & {(turn, first), (turn, second)}
        busy |= {(turn, first), (turn, second)}
        met += [(first, second)] if second < panels else []
    assert sorted(met) == [(i, j) for i in range(panels) for j in range(i, panels)]
    rounds = range(1 + (panels + panels % 2 - 1 if panels > 1 else 0))
    assert all((turn, panel) in busy for turn in rounds for panel in range(panels))


@pytest.mark.parametrize("players", [1, 2, 7])
def test_two_teams_meet_once_each_and_nobody_twice_in_a_round(players):
    met = [sweeps.match_of(task, players) for task in range(players**2)]
    assert sorted(each[1:] for each in met) == [(i, j) for i in range(players) for j in range(players)]
    assert len({(turn, first) for turn, first, _ in met}) == len({(turn, last) for turn, _, last in met}) == len(met)
    assert [turn for turn, _, _ in met] == sorted(turn for turn, _, _ in met)


@pytest.mark.parametrize("d", [3, 12])
def test_points_that_do_not_fit_memory_are_prepared_some_at_a_time(d, monkeypatch):
    X, Y, V = points(900, d, np.float64), points(500, d, np.float64, seed=1), points(900, 2, np.float64, seed=2)
    square, rectangle, scaled = matrix(X), matrix(X, Y), (matrix(X), matrix(X, Y))
    want = square.multiply(V), rectangle.multiply(V[:500]), rectangle.dense(), *scaled[1].scaled_product(V[:500])
    want += rectangle.multiply_both(V, V[:500])
    monkeypatch.setattr(tasks, "_KEPT_BYTES", 1)
    monkeypatch.setattr(tasks, "_FEWEST_POINTS", 130)
    got = square.multiply(V), rectangle.multiply(V[:500]), rectangle.dense(), *scaled[1].scaled_product(V[:500])
    got += rectangle.multiply_both(V, V[:500])
    for a, b in zip(want, got, strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(SIGMA), Matern(1.5, 2.0), Matern(0.8, 2.0), 2.0 * Gaussian(SIGMA) ** 2])
def test_scaled_products_are_defined_however_far_a_point_is(kernel, dtype):
    Y, v = points(300, 6, dtype), points(300, 2, np.float64, seed=2)
    X = np.concatenate([points(70, 6, dtype, seed=1), 1e3 + points(3, 6, dtype)])
    scale, product = kernel.matrix(X, Y).scaled_product(v)
    logs = kernel.log(X.astype(np.float64), Y.astype(np.float64))
    top = logs.max(axis=1)
    assert_allclose(scale, top, rtol=1e-4 if dtype == np.float32 else 1e-11, atol=1e-5)
    ours = np.exp(scale[:70, None]) * product[:70]
    assert_allclose(ours, np.exp(logs[:70]) @ v, **tolerance(dtype, 300))
    if dtype == np.float64:
        assert_allclose(product, np.exp(logs - top[:, None]) @ v, rtol=1e-6, atol=1e-6)


def test_no_points():
    none, some = np.empty((0, 3)), points(5, 3, np.float64)
    assert matrix(none).multiply(np.empty((0, 2))).shape == (0, 2)
    assert matrix(none).row_sums().shape == (0,)
    assert np.array_equal(matrix(some, none).multiply(np.empty((0, 2))), np.zeros((5, 2)))
    assert np.array_equal(matrix(none, some).multiply(np.empty((0, 2)), transpose=True), np.zeros((5, 2)))
    assert np.array_equal(matrix(some, none).row_sums(), np.zeros(5))


def test_no_columns():
    assert matrix(points(5, 3, np.float64)).multiply(np.empty((5, 0))).shape == (5, 0)


def test_sums_of_many_small_numbers_do_not_drift_in_float32():
    """Tiles are added in double precision: the error is that of one tile, not of n."""
    X = points(6000, 3, np.float32)
    sums = matrix(X).row_sums()
    assert_allclose(sums[:50], reference(X[:50], X).sum(axis=1), rtol=2e-6)


@pytest.mark.parametrize("square", [True, False])
def test_the_stated_depth_of_sums_covers_their_rounding(square):
    """Equal terms are rounded the same way again and again, so that the error is more than a rounding or two."""
    X = (1e-3 * points(3000, 3, np.float32)).astype(np.float32)
    made = matrix(X) if square else matrix(X, X[:2900])
    v = np.full((made.shape[1], 1), np.float32(1 / 3))
    exact = made.dense().astype(np.float64) @ v.astype(np.float64)
    error = np.max(np.abs(made.multiply(v) - exact) / exact)
    unit = np.finfo(np.float32).eps / 2
    assert error <= gamma(made.summation_depth + 2, unit)
    assert error > 3 * unit or not square  # a depth of one would not do


@pytest.mark.parametrize("turned", [False, True])
def test_parts_of_a_scaled_product_are_added_in_the_larger_scale_of_those_that_add_anything(turned):
    nothing_near = np.array([-5.0, -5.0, 0.0]), np.array([[0.0], [0.0], [0.0]])
    something_far = np.array([-800.0, -801.0, -900.0]), np.array([[2.0], [3.0], [0.0]])
    more = np.array([-800.0, -800.0, -7.0]), np.array([[1.0], [1.0], [0.0]])
    scale, total = np.full(3, -np.inf), np.zeros((3, 1))
    parts = [nothing_near, something_far, more]
    for s, P in parts[::-1] if turned else parts:
        tasks.add_scaled_product(scale, total, s, P)
    assert_allclose(scale, [-800.0, -800.0, -np.inf])
    assert_allclose(total[:, 0], [3.0, 3.0 / np.e + 1.0, 0.0])
