"""What every operator must do. The cases, two factories each, are in conftest.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, eigsh, svds

from mercer import config_context
from mercer.backends.arrays import dtype_name, to_numpy

# Rounding a product may leave, in units of eps · (largest row sum of |entries|) · (largest entry of the block).
SLACK = 32


def assert_within(actual, expected, tolerance):
    error = np.abs(to_numpy(actual) - expected)
    assert np.all(error <= tolerance), f"off by {error.max()}, more than {tolerance}"


def assert_product(actual, matrix, v, eps):
    """Compare with the product of the dense matrix, to the rounding of the operator's own arithmetic."""
    v = np.asarray(v, np.float64)
    expected = matrix @ v
    assert tuple(actual.shape) == expected.shape
    size = np.abs(matrix).sum(axis=1).max(initial=0.0) * np.abs(v).max(initial=0.0)
    assert_within(actual, expected, SLACK * eps * size)


def doubled(array):
    return to_numpy(array).astype(np.float64)


def assert_entries(actual, expected, eps, scale):
    assert tuple(actual.shape) == np.shape(expected)
    assert_within(actual, expected, SLACK * eps * scale)


@pytest.fixture
def eps(case):
    return float(np.finfo(case.dtype).eps)


@pytest.fixture
def scale(matrix):
    return np.abs(matrix).max()


@pytest.fixture
def rng():
    return np.random.default_rng(1)


# --- the matrix itself --------------------------------------------------------------------------------------


def test_matrix_is_the_one_of_the_formula(case, matrix, scale):
    expected = case.dense()
    tolerance = 1e-12 if case.dtype == "float64" else 1e-5
    assert matrix.shape == expected.shape
    assert_within(matrix, expected, tolerance * scale)


def test_shape_dtype_and_symmetry_are_declared(case, operator, matrix):
    assert operator.shape == matrix.shape
    assert dtype_name(operator.dtype) == case.dtype
    assert case.same(operator.reference)
    assert operator.symmetric is case.symmetric


def test_symmetric_operator_has_a_symmetric_matrix(case, matrix, eps, scale):
    if case.symmetric:
        assert_entries(matrix, matrix.T, eps, scale)


def test_repr_names_kind_shape_and_dtype(case, operator):
    rows, cols = operator.shape
    assert repr(operator) == f"<{type(operator).__name__} {rows} × {cols} {operator.dtype}>"


# --- products -----------------------------------------------------------------------------------------------


def test_product_with_a_vector(operator, matrix, eps, rng):
    v = rng.normal(size=matrix.shape[1])
    assert_product(operator @ v, matrix, v, eps)


@pytest.mark.parametrize("width", [1, 5])
def test_product_with_a_block(operator, matrix, eps, rng, width):
    v = rng.normal(size=(matrix.shape[1], width))
    assert_product(operator @ v, matrix, v, eps)


def test_product_with_a_block_of_no_columns(case, operator, matrix):
    for _ in range(3):  # the later ones may use a stored matrix
        product = operator @ np.empty((matrix.shape[1], 0))
        assert tuple(product.shape) == (matrix.shape[0], 0)
        assert case.same(product)


def test_product_takes_any_layout_and_any_real_numbers(operator, matrix, eps, rng):
    wide = rng.normal(size=(matrix.shape[1], 6))
    for v in (wide[:, ::2], np.asfortranarray(wide), wide[::-1], wide.astype(np.float32)):
        assert_product(operator @ v, matrix, v, max(eps, np.finfo(v.dtype).eps if v.dtype != np.float64 else 0))
    whole = rng.integers(-3, 4, size=matrix.shape[1])
    assert_product(operator @ whole, matrix, whole, eps)
    assert_product(operator @ whole.tolist(), matrix, whole, eps)
    assert_product(operator @ (whole > 0), matrix, whole > 0, eps)


def test_product_leaves_its_input_alone(operator, matrix, case, rng):
    v = rng.normal(size=(matrix.shape[1], 2)).astype(case.dtype)
    before = v.copy()
    operator @ v
    operator @ v
    np.testing.assert_array_equal(v, before)


@settings(max_examples=5, deadline=None, database=None, derandomize=True)
@given(a=st.floats(-10, 10), b=st.floats(-10, 10), seed=st.integers(0, 2**32 - 1))
def test_product_is_linear_and_the_transpose_is_its_adjoint(case, matrix, a, b, seed):
    operator, eps = case.make(), np.finfo(case.dtype).eps
    rng = np.random.default_rng(seed)
    u, v, w = (rng.uniform(-1, 1, size) for size in (matrix.shape[0], matrix.shape[1], matrix.shape[1]))
    norm = max(np.abs(matrix).sum(axis=1).max(), np.abs(matrix).sum(axis=0).max())
    left = operator @ (a * v + b * w)
    right = a * doubled(operator @ v) + b * doubled(operator @ w)
    assert_within(left, right, SLACK * eps * norm * (1 + abs(a) + abs(b)))
    forward = u @ doubled(operator @ v)
    backward = doubled(operator.T @ u) @ v
    assert abs(forward - backward) <= SLACK * eps * norm * np.abs(u).sum()


# --- the transpose ------------------------------------------------------------------------------------------


def test_transpose(case, operator, matrix, eps, scale, rng):
    transposed = operator.T
    assert transposed.shape == matrix.T.shape
    assert dtype_name(transposed.dtype) == case.dtype
    assert_entries(transposed.to_dense(), matrix.T, eps, scale)
    for v in (rng.normal(size=matrix.shape[0]), rng.normal(size=(matrix.shape[0], 3))):
        assert_product(transposed @ v, matrix.T, v, eps)
    assert_product(transposed.row_sums(), matrix.T, np.ones(matrix.shape[0]), eps)
    assert_entries(transposed.T.to_dense(), matrix, eps, scale)
    empty = transposed @ np.empty((matrix.shape[0], 0))
    assert tuple(empty.shape) == (matrix.shape[1], 0)
    if case.symmetric:
        assert transposed is operator


# --- parts of the matrix ------------------------------------------------------------------------------------


def test_diagonal(case, operator, matrix, eps, scale):
    if matrix.shape[0] == matrix.shape[1]:
        diagonal = operator.diagonal()
        assert case.same(diagonal)
        assert_entries(diagonal, np.diag(matrix), eps, scale)
    else:
        with pytest.raises(ValueError, match=r"^A \d+ × \d+ map has no diagonal\.$"):
            operator.diagonal()


def test_row_sums(case, operator, matrix, eps):
    sums = operator.row_sums()
    assert case.same(sums)
    assert_product(sums, matrix, np.ones(matrix.shape[1]), eps)


INDICES = {
    "all": lambda n: slice(None),
    "slice": lambda n: slice(1, n // 2),
    "slice with a step": lambda n: slice(None, None, 3),
    "slice backwards": lambda n: slice(None, None, -1),
    "slice from the end": lambda n: slice(-4, None),
    "slice beyond the end": lambda n: slice(n // 2, 10 * n),
    "empty slice": lambda n: slice(0, 0),
    "array": lambda n: np.array([n - 1, 0, n // 3]),
    "list": lambda n: [n // 2, 0],
    "repeated": lambda n: np.array([n // 2, 0, n // 2, n // 2]),
    "negative": lambda n: np.array([-1, 0, -n, -(n // 2) - 1]),
    "empty array": lambda n: np.array([], dtype=np.intp),
    "unsigned": lambda n: np.arange(n, dtype=np.uint16)[:5],
    "mask": lambda n: np.arange(n) % 3 == 1,
    "permutation": lambda n: np.random.default_rng(0).permutation(n),
}


def test_block(case, operator, matrix, eps, scale):
    n, m = matrix.shape
    few_rows, few_cols = np.array([n // 2, 0]), np.array([0, m - 1])
    for kind, index in INDICES.items():
        for rows, cols in ((index(n), few_cols), (few_rows, index(m)), (index(n), index(m))):
            block = operator.block(rows, cols)
            assert case.same(block), kind
            assert_entries(block, matrix[rows][:, cols], eps, scale)


def test_block_out_of_range_is_refused(operator, matrix):
    with pytest.raises(IndexError):
        operator.block([matrix.shape[0]], [0])
    with pytest.raises(IndexError):
        operator.block([0], [-matrix.shape[1] - 1])


def test_a_block_is_a_copy(operator, matrix, eps, scale, rng):
    v = rng.normal(size=matrix.shape[1])
    for _ in range(3):
        operator @ v
    operator.block(slice(0, 3), slice(None))[...] = 7.0
    operator.to_dense()[...] = 7.0
    assert_entries(operator.to_dense(), matrix, eps, scale)
    assert_product(operator @ v, matrix, v, eps)


# --- dtype --------------------------------------------------------------------------------------------------


def test_everything_keeps_the_dtype(case, operator, matrix, rng):
    n, m = matrix.shape
    assert case.same(operator.to_dense())
    assert case.same(operator.block([0], [0]))
    assert case.same(operator.row_sums())
    for dtype in (np.float32, np.float64, np.int64):
        for _ in range(2):
            assert case.same(operator @ np.ones((m, 2), dtype))
            assert case.same(operator.T @ np.ones(n, dtype))


# --- scipy --------------------------------------------------------------------------------------------------


def test_bridge_to_scipy(case, operator, matrix, eps, rng):
    if case.library == "torch":
        with pytest.raises(TypeError, match=r"^A map on tensors is no operator of SciPy, .*\.$"):
            operator.as_scipy()
        return
    bridge = operator.as_scipy()
    assert isinstance(bridge, LinearOperator)
    assert bridge.shape == matrix.shape
    assert bridge.dtype == case.dtype
    right, left = rng.normal(size=(matrix.shape[1], 2)), rng.normal(size=(matrix.shape[0], 2))
    assert_product(bridge.matmat(right), matrix, right, eps)
    assert_product(bridge.matvec(right[:, 0]), matrix, right[:, 0], eps)
    assert_product(bridge.matmat(right[:, :1]), matrix, right[:, :1], eps)
    assert_product(bridge.rmatvec(left[:, 0]), matrix.T, left[:, 0], eps)
    assert_product(bridge.rmatmat(left), matrix.T, left, eps)
    assert_product(bridge.H @ left, matrix.T, left, eps)


def test_scipy_finds_eigenvalues_or_singular_values(case, operator, matrix, rng):
    if min(matrix.shape) == 1 or case.library == "torch":
        return  # Lanczos needs more than one dimension, and SciPy needs NumPy arrays
    start, tolerance = rng.normal(size=min(matrix.shape)).astype(case.dtype), 1e3 * np.finfo(case.dtype).eps
    if case.symmetric:
        found = np.sort(eigsh(operator.as_scipy(), k=3, v0=start, return_eigenvectors=False))
        exact = np.linalg.eigvalsh(matrix)
        exact = np.sort(exact[np.argsort(np.abs(exact))[-3:]])
    else:
        found = np.sort(svds(operator.as_scipy(), k=3, v0=start, return_singular_vectors=False))
        exact = np.sort(np.linalg.svd(matrix, compute_uv=False)[:3])
    assert_within(found, exact, tolerance * np.abs(exact).max())


# --- tensors ------------------------------------------------------------------------------------------------


def test_no_tensor_becomes_a_numpy_array(case, matrix, refuse_numpy):
    if case.library == "numpy":
        return
    right, left = (refuse_numpy.ones((n, 2), dtype=refuse_numpy.float64) for n in matrix.shape[::-1])
    operator = case.make()
    for _ in range(2):  # the second may use a stored matrix
        assert bool((operator @ right).isfinite().all())
        assert bool((operator.T @ left).isfinite().all())
    operator.row_sums()
    operator.to_dense()
    operator.block(refuse_numpy.tensor([0]), slice(0, 3))
    if matrix.shape[0] == matrix.shape[1]:
        operator.diagonal()
    if not getattr(operator, "alpha", 0.0):
        operator.rounding()


# --- errors -------------------------------------------------------------------------------------------------


def test_a_wrong_shape_is_refused_in_one_sentence(operator, matrix):
    n, m = matrix.shape
    sentence = rf"^A product with this {n} × {m} map takes {m} rows, not \(.*\)\.$"
    for wrong in (np.ones(m + 1), np.ones((m + 1, 2)), np.ones((m, 2, 2)), 1.0, np.ones(0)):
        with pytest.raises(ValueError, match=sentence):
            operator @ wrong


def test_a_complex_block_is_refused_in_one_sentence(operator, matrix):
    with pytest.raises(ValueError, match=r"^A product with a complex block is not supported: .*\.$"):
        operator @ np.ones(matrix.shape[1], complex)


# --- where it runs ------------------------------------------------------------------------------------------


def test_any_number_of_threads_gives_the_same(case, matrix, eps, scale, rng):
    v, u = rng.normal(size=(matrix.shape[1], 3)), rng.normal(size=matrix.shape[0])
    for threads in (1, 2, 3):
        with config_context(n_threads=threads):
            operator = case.make()
            for _ in range(2):
                assert_product(operator @ v, matrix, v, eps)
                assert_product(operator.T @ u, matrix.T, u, eps)
            assert_product(operator.row_sums(), matrix, np.ones(matrix.shape[1]), eps)
            assert_entries(operator.to_dense(), matrix, eps, scale)


@pytest.mark.parametrize("memory_limit", [0, "1 GB"])
def test_storing_the_matrix_changes_no_answer(case, matrix, eps, scale, rng, memory_limit):
    v, u = rng.normal(size=(matrix.shape[1], 3)), rng.normal(size=(matrix.shape[0], 2))
    with config_context(memory_limit=memory_limit):
        operator = case.make()
        for _ in range(3):
            assert_product(operator @ v, matrix, v, eps)
            assert_product(operator.T @ u, matrix.T, u, eps)
        assert_product(operator.row_sums(), matrix, np.ones(matrix.shape[1]), eps)
        assert_entries(operator.to_dense(), matrix, eps, scale)
        assert_entries(operator.block([0, -1], slice(0, 4)), matrix[[0, -1], :4], eps, scale)
        if matrix.shape[0] == matrix.shape[1]:
            assert_entries(operator.diagonal(), np.diag(matrix), eps, scale)
