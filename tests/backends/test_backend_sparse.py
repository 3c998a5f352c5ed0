"""Sparse kernel matrices against SciPy and against the same matrix written out."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mercer import config_context
from mercer.backends.cpu.sparse import SparseMatrix, _runs
from mercer.kernels import Precomputed
from mercer.operators import CenteredOperator, DiffusionOperator, GramOperator, NormalizedOperator
from mercer.quadrature import QuadratureSparsifier

K = Precomputed()
ALGEBRA = {
    "itself": K,
    "multiple": 0.3 * K,
    "sum": K + 2.0 * K,
    "product": K * (0.5 * K),
    "power": K**3,
    "normalised": K.normalized(),
    "deep": 2.0 * ((K + K**2) * K).normalized() + K,
}


def symmetric(n, density=0.05, seed=0, dtype=np.float64, negative=False):
    """A random symmetric matrix with a positive diagonal but for some empty rows."""
    rng = np.random.default_rng(seed)
    upper = scipy.sparse.random_array((n, n), density=density, rng=rng, format="csr")
    if negative:
        upper.data -= 0.5
    full = (upper + upper.T + scipy.sparse.eye_array(n)).tolil()
    for i in range(3, n, 17):
        full[i, :] = full[:, i] = 0
    result = scipy.sparse.csr_array(full, dtype=dtype)
    result.eliminate_zeros()
    return result


def entries_of(kernel, matrix, training=None):
    made = kernel.matrix(*kernel._checked(matrix, training))
    assert isinstance(made, SparseMatrix)
    return made


@pytest.mark.parametrize("name", ALGEBRA)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("negative", [False, True])
def test_algebra_has_the_bits_of_the_dense_matrix_and_its_zeros(name, dtype, negative):
    kernel, matrix = ALGEBRA[name], symmetric(60, dtype=dtype, negative=negative)
    sparse, dense = entries_of(kernel, matrix), kernel.matrix(matrix.toarray())
    assert np.array_equal(sparse.dense(), dense.dense())
    assert sparse.entries.nnz == matrix.nnz
    assert sparse.dtype == dtype
    assert np.array_equal(sparse.diagonal(), dense.diagonal())
    assert sparse.entry_error == dense.entry_error
    assert sparse.nonnegative == dense.nonnegative
    assert np.array_equal(sparse.block(slice(None), slice(None)), dense.dense())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 3, 4, 5, 33])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products_are_those_of_scipy(dtype, columns, index):
    rng = np.random.default_rng(1)
    square, block = symmetric(50, dtype=dtype), symmetric(50, seed=2, dtype=dtype)[:20]
    for matrix, training in ((square, None), (block, square)):
        made = entries_of(K, matrix, training)
        made.entries.indices, made.entries.indptr = (a.astype(index) for a in (matrix.indices, matrix.indptr))
        exact = matrix.astype(np.float64)
        for transpose in (False, True):
            v = rng.normal(size=(matrix.shape[0 if transpose else 1], columns)).astype(dtype)
            want = (exact.T if transpose and training is not None else exact) @ v.astype(np.float64)
            got = made.multiply(v, transpose=transpose)
            assert got.dtype == dtype
            assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)
            sums = made.row_sums(transpose=transpose)
            assert_allclose(sums, exact.sum(axis=0 if transpose and training is not None else 1), rtol=1e-6)


def test_single_precision_is_summed_in_double():
    """1 + 2⁻²⁴ - 1, one term after another: single precision loses the middle one."""
    row = scipy.sparse.csr_array(np.array([[1.0, 2.0**-24, -1.0]], np.float32))
    made = entries_of(K, row, scipy.sparse.eye_array(3, dtype=np.float32, format="csr"))
    assert made.row_sums()[0] == 2.0**-24
    assert made.multiply(np.ones((3, 8), np.float32))[0, 7] == 2.0**-24


def test_the_same_bits_on_any_number_of_threads():
    matrix = symmetric(4000, density=0.02)
    v = np.random.default_rng(0).normal(size=(4000, 5))
    made = entries_of(K, matrix)
    assert len(_runs(made.entries, 5)) > 8
    with config_context(n_threads=1):
        one = made.multiply(v)
    for threads in (2, 5):
        with config_context(n_threads=threads):
            assert np.array_equal(made.multiply(v), one)


def test_runs_cover_all_rows_once():
    crowded = scipy.sparse.csr_array((np.ones(10**6), (np.full(10**6, 700), np.arange(10**6))), shape=(900, 10**6))
    for matrix in (crowded, crowded.T.tocsr(), scipy.sparse.csr_array((0, 5)), scipy.sparse.csr_array((7, 7))):
        runs = _runs(matrix, 7)
        assert [i for lo, hi in runs for i in range(lo, hi)] == list(range(matrix.shape[0]))


@st.composite
def given_matrices(draw):
    """Symmetric entries in any order, some of them several times, in any format of SciPy."""
    n = draw(st.integers(1, 12))
    places = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    stored = draw(st.lists(st.tuples(places, st.integers(-4, 4)), max_size=40))
    rows = [p for (i, j), _ in stored for p in (i, j)]
    cols = [p for (i, j), _ in stored for p in (j, i)]
    data = np.array([float(a) for _, a in stored for _ in range(2)])
    made = scipy.sparse.coo_array((data, (rows, cols)), shape=(n, n))
    kind = draw(st.sampled_from(["coo", "csr", "csc", "unsorted", "duplicates"]))
    if kind in ("coo", "csr", "csc"):
        return made.asformat(kind), made.toarray()
    order = np.argsort(rows, kind="stable")[:: -1 if kind == "unsorted" else 1]
    order = order[np.argsort(np.array(rows, int)[order], kind="stable")]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(np.array(rows, int), minlength=n))])
    raw = scipy.sparse.csr_array((data[order], np.array(cols, int)[order], indptr), shape=(n, n))
    return raw, made.toarray()


@given(given_matrices(), st.sampled_from(list(ALGEBRA.values())[:5]), st.integers(1, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_any_matrix_is_what_its_entries_say(matrices, kernel, columns, data):
    sparse, dense = matrices
    before = sparse.copy()
    gram, whole = GramOperator(kernel, sparse), kernel(dense)
    v = np.random.default_rng(0).integers(-3, 4, size=(dense.shape[0], columns)).astype(float)
    assert_allclose(gram @ v, whole @ v, atol=1e-9)  # sums of whole numbers, but for the tenths of a multiple
    assert_allclose(gram.row_sums(), whole.sum(axis=1), atol=1e-9)
    n = dense.shape[0]
    rows, cols = (data.draw(st.lists(st.integers(0, n - 1), max_size=2 * n)) for _ in range(2))
    i, j = np.array(rows, int), np.array(cols, int)
    assert np.array_equal(gram.block(i, j), whole[np.ix_(i, j)])
    assert np.array_equal(gram.block(slice(1, None), j), whole[1:][:, j])
    assert np.array_equal(gram.block(slice(None), slice(None, None, 2)), whole[:, ::2])
    assert np.array_equal(gram.diagonal(), whole.diagonal())
    assert (sparse != before).nnz == 0
    if hasattr(sparse, "indices"):
        assert np.array_equal(sparse.indices, before.indices)


@pytest.mark.parametrize(
    "index", [np.array([3, 1, 3, 0]), slice(5, 1, -1), [2, 4], np.arange(40) % 3 == 0, slice(0, 0)]
)
def test_blocks_by_any_index(index):
    matrix = symmetric(40)
    made, dense = entries_of(K, matrix), matrix.toarray()
    assert np.array_equal(made.block(index, slice(None)), dense[index])
    assert np.array_equal(made.block(slice(None), index), dense[:, index])
    assert np.array_equal(made.block(index, index), dense[index][:, index])
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.array_equal(made.log_block(index, slice(None)), np.log(dense[index]))


@pytest.mark.parametrize("negative", [False, True])
def test_scaled_products_are_those_of_the_dense_matrix(negative):
    square, block = symmetric(30, negative=negative), 1e-200 * symmetric(30, seed=3, negative=negative)[:8]
    v = np.random.default_rng(0).normal(size=(30, 3))
    sparse, dense = entries_of(K, block, square), K.matrix(*K._checked(block.toarray(), square.toarray()))
    (scale, product), (want_scale, want) = sparse.scaled_product(v), dense.scaled_product(v)
    assert_allclose(np.exp(scale)[:, None] * product, block @ v, rtol=1e-12, atol=1e-215)
    assert_allclose(scale, want_scale, atol=1e-12)
    assert_allclose(product, want, rtol=1e-11, atol=1e-12 if not negative else 1e-215)
    assert scale[3] == 0  # an empty row
    assert not product[3].any()


def test_absolute_products_and_depth():
    matrix = symmetric(40, negative=True)
    made, dense = entries_of(K, matrix), matrix.toarray()
    assert_allclose(made.absolute_product(np.arange(40.0)), np.abs(dense) @ np.arange(40.0), rtol=1e-13)
    every_other = np.arange(80.0)[::2]  # a vector whose entries lie apart
    assert_allclose(made.absolute_product(every_other), np.abs(dense) @ every_other, rtol=1e-13)
    assert_allclose(K.matrix(dense).absolute_product(np.arange(40.0)), np.abs(dense) @ np.arange(40.0), rtol=1e-13)
    assert made.summation_depth == np.count_nonzero(dense, axis=1).max() + 1
    tall = entries_of(K, scipy.sparse.csr_array(np.ones((9, 2))), scipy.sparse.eye_array(2, format="csr"))
    assert tall.summation_depth == 10  # of a product with the transpose
    assert GramOperator(K, matrix).product_depth == made.summation_depth
    assert GramOperator(K, matrix).row_entries == matrix.nnz / 40
    assert GramOperator(K, dense).row_entries == 40


def test_a_wider_arithmetic():
    matrix = symmetric(30, dtype=np.float32)
    gram = GramOperator(K, matrix, dtype=np.float64)
    assert gram.dtype == np.float64
    v = np.random.default_rng(0).normal(size=30)
    assert_allclose(gram @ v, matrix.astype(np.float64) @ v, rtol=1e-14, atol=1e-14)
    assert gram.entry_error.relative == 2.0**-24  # of entries that were rounded to float32 on their way here


@pytest.mark.parametrize("weights", [None, np.linspace(1, 2, 80)])
def test_operators_on_a_sparse_matrix(weights):
    matrix = symmetric(80) + 10 * scipy.sparse.eye_array(80)
    sparse, dense = (GramOperator(K, m, weights=weights) for m in (matrix, matrix.toarray()))
    made = [DiffusionOperator]
    if weights is None:
        made += [CenteredOperator, NormalizedOperator, lambda gram: NormalizedOperator(gram, 0.5)]
    v = np.random.default_rng(0).normal(size=(80, 4))
    for operator in made:
        ours, theirs = operator(sparse), operator(dense)
        assert_allclose(ours @ v, theirs @ v, rtol=1e-11, atol=1e-13)
        assert_allclose(ours.diagonal(), theirs.diagonal(), rtol=1e-12, atol=1e-15)
        assert_allclose(ours.block(slice(3, 9), slice(None)), theirs.block(slice(3, 9), slice(None)), atol=1e-14)


@pytest.mark.parametrize("order", [0.0, 0.5, 2.0])
def test_a_normalised_block_is_multiplied_by_its_entries(order, monkeypatch):
    square = symmetric(40) + scipy.sparse.diags_array(np.linspace(1, 9, 40))
    block = symmetric(40, seed=5)[:15]
    rng = np.random.default_rng(0)
    v, w = rng.normal(size=(40, 2)), rng.normal(size=(15, 2))
    kernel = Precomputed(2.0)
    dense = NormalizedOperator(GramOperator(kernel, block.toarray(), square.toarray()), order)
    want = dense @ v, dense.T @ w
    sparse = NormalizedOperator(GramOperator(kernel, block, square), order)
    monkeypatch.setattr(SparseMatrix, "block", None)
    assert_allclose(sparse @ v, want[0], rtol=1e-12, atol=1e-14)
    assert_allclose(sparse.T @ w, want[1], rtol=1e-12, atol=1e-14)


def test_an_operator_on_many_points_takes_the_memory_of_its_entries():
    n = 20_000
    rng = np.random.default_rng(0)
    rows, cols = np.repeat(np.arange(n), 10), rng.integers(0, n, 10 * n)
    graph = scipy.sparse.csr_array((np.ones(10 * n), (rows, cols)), shape=(n, n))
    graph = graph + graph.T + 25 * scipy.sparse.eye_array(n)
    v = rng.normal(size=(n, 3))
    tracemalloc.start()
    for kernel in (K, 2.0 * K + K**2, K.normalized()):
        operator = DiffusionOperator(GramOperator(kernel, graph))
        operator @ v
        operator.diagonal()
        operator.block(slice(None), np.array([5, 7]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 50


def test_a_quadrature_of_sparse_affinities():
    matrix = symmetric(60, density=0.2) + 8 * scipy.sparse.eye_array(60)
    ours, theirs = (QuadratureSparsifier(K, n_nodes=5).fit(m) for m in (matrix, matrix.toarray()))
    assert np.array_equal(ours.indices_, theirs.indices_)
    assert_allclose(ours.weights_, theirs.weights_, rtol=1e-8)
