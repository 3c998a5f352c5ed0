"""Kernel matrices whose points come block by block are those of the points in memory."""

import numpy as np
import pytest

from mercer import Gaussian, GramOperator, Laplacian, Linear, Matern, Polynomial, Precomputed, config_context, open_rows
from mercer.backends.row_source import JoinedRows
from mercer.kernels.checks import as_points

rng = np.random.default_rng(5)
X = rng.normal(size=(700, 6)) + 3.0
Y = X[::28] + 0.1
FAR = np.where(np.arange(700)[:, None] < 300, X, X + 400.0)  # where every k underflows
KERNELS = [
    Gaussian(2.0),
    Laplacian(3.0),
    Matern(1.5, 2.0),
    Polynomial(3) + Linear(),
    (Gaussian(2.0) * Linear()).normalized(),
]


@pytest.fixture(autouse=True, params=["0.2MB", "1GB"])
def limit(request):
    with config_context(memory_limit=request.param):
        yield request.param


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("sides", ["rows", "columns", "both"])
def test_products_are_those_in_memory(kernel, sides):
    pair = {"rows": (X, Y), "columns": (Y, X), "both": (X, None)}[sides]
    source = open_rows(X)
    given = [source if part is X else part for part in pair]
    plain, streamed = GramOperator(kernel, *pair), GramOperator(kernel, *given)
    assert (streamed.shape, streamed.symmetric, streamed.nonnegative) == (
        plain.shape,
        plain.symmetric,
        plain.nonnegative,
    )
    dense = kernel(*pair)
    v, u = rng.normal(size=(plain.shape[1], 3)), rng.normal(size=plain.shape[0])
    close = {"rtol": 1e-11, "atol": 1e-12 * np.abs(dense).max()}
    many = {"rtol": 1e-10, "atol": 1e-12 * np.abs(dense).sum(axis=1).max()}
    np.testing.assert_allclose(streamed @ v, dense @ v, **many)
    np.testing.assert_allclose(streamed.T @ u, dense.T @ u, **many)
    np.testing.assert_allclose(streamed.row_sums(), dense.sum(axis=1), **many)
    np.testing.assert_allclose(streamed.block([20, 3, 3], slice(1, 25)), dense[[20, 3, 3], 1:25], **close)
    np.testing.assert_allclose(streamed.to_dense(), dense, **close)
    for side in ("rows", "cols"):
        np.testing.assert_allclose(streamed.kernel_diagonal(side), plain.kernel_diagonal(side), rtol=1e-13)
    stated = max(streamed.entry_error.relative, streamed.entry_error.scaled)
    assert stated >= 0.9 * max(plain.entry_error.relative, plain.entry_error.scaled) > 0
    assert streamed.summation_depth >= 1


@pytest.mark.parametrize("sides", ["rows", "columns", "both"])
def test_sums_are_at_least_as_long_as_those_of_every_block(sides):
    tall, wide = rng.normal(size=(3000, 6)), rng.normal(size=(2500, 6))
    given = {"rows": (open_rows(tall), wide), "columns": (tall, open_rows(wide)), "both": (open_rows(tall), None)}[
        sides
    ]
    matrix = GramOperator(Gaussian(2.0), *given)._matrix
    parts = list(matrix._parts())
    blocks = max(len({i.start for i, _, _ in parts}), len({j.start for _, j, _ in parts}))
    assert matrix.summation_depth >= min(3000, max(part.summation_depth for _, _, part in parts) + blocks)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.5, 1.0), 2.0 * Matern(2.5, 1.3) + Gaussian(3.0)], ids=str)
def test_other_blocks_than_those_of_a_pass_are_no_less_accurate_than_is_stated(kernel):
    """Every block of the pass holds a point far off, so that points are subtracted; others lie as far as products allow."""
    points = rng.normal(size=(400, 6))
    points *= 13 * rng.uniform(0.9, 1.0, (400, 1)) / np.linalg.norm(points, axis=1)[:, None]
    points[::50] = 0.0
    points[::50, 0] = 40 + np.arange(8)
    near = np.flatnonzero(np.arange(400) % 50 > 0)[:60]
    with config_context(memory_limit="1MB"):
        stated = GramOperator(kernel, open_rows(points)).entry_error
    other = GramOperator(kernel, points[near[:30]], points[near[30:]])
    assert other.entry_error.relative <= stated.relative < 1e-9


def test_a_block_whose_centre_is_amid_none_of_the_others_is_no_less_accurate_than_is_stated():
    points = rng.normal(size=(400, 6))
    points *= 10 / np.linalg.norm(points, axis=1)[:, None]
    points = np.r_[points, -points]
    with config_context(memory_limit="1MB"):
        stated = GramOperator(Gaussian(2.0), open_rows(points)).entry_error
    other = GramOperator(Gaussian(2.0), points[[400, 0]], points[:1])
    assert 0.8 * stated.relative <= other.entry_error.relative <= stated.relative


def test_blocks_lie_in_the_limit(limit):
    gram = GramOperator(Gaussian(2.0), open_rows(X))
    heights = [rows.stop - rows.start for rows, _, _ in gram._matrix._parts()]
    assert max(heights) == (700 if limit == "1GB" else max(heights))
    if limit != "1GB":
        assert max(heights) * 6 * 8 * 6 <= 0.2e6 / 5 < 700 * 6 * 8 * 6


@pytest.mark.parametrize("columns", ["array", "source"])
def test_scaled_products_where_the_kernel_underflows(columns):
    source = open_rows(FAR)
    others = FAR[:300:10] if columns == "array" else source
    plain = GramOperator(Gaussian(2.0), FAR, others if columns == "array" else FAR[:])
    streamed = GramOperator(Gaussian(2.0), source, others)
    v = rng.uniform(1.0, 2.0, size=(plain.shape[1], 2))
    (s, P), (t, Q) = plain.scaled_product(v), streamed.scaled_product(v)
    np.testing.assert_allclose(np.log(P) + s[:, None], np.log(Q) + t[:, None], rtol=1e-9)
    assert t.min() < -1000 or columns == "source"


def test_joined_rows_and_precision():
    both = as_points(JoinedRows(X.astype(np.float32), open_rows(Y)))
    assert (both.shape, both.dtype) == ((725, 6), np.dtype("float64"))
    together = np.concatenate([X.astype(np.float32), Y])
    np.testing.assert_array_equal(both[[710, 4, 699, 700]], together[[710, 4, 699, 700]])
    np.testing.assert_array_equal(np.concatenate([block for _, block in both.blocks(299)]), together)
    narrow = GramOperator(Gaussian(2.0), open_rows(X.astype(np.float32)), Y.astype(np.float32))
    assert (narrow @ np.ones(25)).dtype == np.float32
    assert narrow.entry_error.relative == np.inf


def test_a_matrix_that_is_given_is_refused():
    with pytest.raises(ValueError, match="given cannot come a block at a time"):
        GramOperator(Precomputed(), open_rows(X @ X.T))


def test_what_needs_all_rows_says_so():
    with pytest.raises(TypeError, match="needs all 700 rows at once: pass some of them"):
        np.asarray(open_rows(X))
