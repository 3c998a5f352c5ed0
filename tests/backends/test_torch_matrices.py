"""Kernel matrices on tensors against those on NumPy arrays."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest

from mercer import LowRankOperator
from mercer.backends import config_context, forms, profiles
from mercer.backends.matrix import kernel_matrix
from mercer.backends.rounding import EntryError

torch = pytest.importorskip("torch")
from mercer.backends.torch import triton_products  # noqa: E402  which imports torch
from mercer.backends.torch.triton_plan import Plan, Side  # noqa: E402

GAUSSIAN = forms.Pairing("sqeuclidean", profiles.Exponential(), 1.3)
MATERN = forms.Pairing("sqeuclidean", profiles.BesselMatern(1.7), 1.3)
POLYNOMIAL = forms.Pairing("dot", profiles.PowerOfAffine(0.5, 1.0, 3))
FORMS = {
    "gaussian": GAUSSIAN,
    "matern 1/2": forms.Pairing("sqeuclidean", profiles.RootExponential(), 1.3),
    "matern 5/2": forms.Pairing("sqeuclidean", profiles.RootExponential(1.0, 1 / 3), 1.3),
    "matern 1.7": MATERN,
    "laplacian": forms.Pairing("cityblock", profiles.Exponential(), 2.0),
    "chi-squared": forms.Pairing("chi2", profiles.Exponential(), 0.5),
    "distance": forms.Pairing("sqeuclidean", profiles.Identity(), 2.0),
    "linear": forms.Pairing("dot", profiles.Identity()),
    "polynomial": POLYNOMIAL,
    "shifted polynomial": forms.Pairing("dot", profiles.PowerOfAffine(0.5, -1.0, 2)),
    "sigmoid": forms.Pairing("dot", profiles.TanhOfAffine(0.1, -0.3)),
    "cosine": forms.Pairing("cosine", profiles.Identity()),
    "sum": forms.SumOf(GAUSSIAN, POLYNOMIAL),
    "sum of positive ones": forms.SumOf(GAUSSIAN, MATERN),
    "product": forms.ProductOf(GAUSSIAN, POLYNOMIAL),
    "multiple": forms.MultipleOf(2.5, GAUSSIAN),
    "power": forms.PowerOf(GAUSSIAN, 2.0),
    "power of any sign": forms.PowerOf(POLYNOMIAL, 2.0),
    "normalised": forms.NormalizedOf(POLYNOMIAL),
    "normalised gaussian": forms.NormalizedOf(forms.MultipleOf(3.0, GAUSSIAN)),
    "function": forms.TileFunction(lambda x, y: x @ y.T + 1.0, lambda x: (x * x).sum(1) + 1.0, EntryError(1, 10)),
}
DTYPES = ("float64", "float32")
N, M = 150, 140  # more than two tiles, which the memory limit below makes 64 rows each


@pytest.fixture(autouse=True)
def _small_tiles():
    with config_context(memory_limit=10**6):
        yield


def points(n, d, dtype, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 2.0, (n, d)).astype(dtype)


def tensor(values):
    return torch.as_tensor(values)


def both(name, d, dtype, *, rectangular=False, wide=None):
    X, Y = points(N, d, dtype), points(M, d, dtype, seed=1) if rectangular else None
    given = (X, Y), (tensor(X), None if Y is None else tensor(Y))
    return tuple(kernel_matrix(FORMS[name], *pair, dtype=wide) for pair in given)


def assert_equal(actual, expected, dtype, scale=None):
    """To the rounding of two ways to add and multiply: some hundred units of the largest value."""
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0) if scale is None else scale
    np.testing.assert_allclose(actual.numpy(), expected, rtol=0, atol=200 * np.finfo(dtype).eps * scale)


@pytest.mark.parametrize(("rectangular", "d"), [(False, 9), (True, 2)], ids=["square", "rectangular"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMS)
def test_everything_is_what_numpy_gives(name, dtype, d, rectangular):
    ours, theirs = both(name, d, dtype, rectangular=rectangular)
    assert theirs.shape == ours.shape
    assert theirs.symmetric is ours.symmetric
    assert theirs.dtype == getattr(torch, dtype)
    assert theirs.nonnegative is ours.nonnegative
    dense = ours.dense()
    assert_equal(theirs.dense(), dense, dtype)
    right, left = points(ours.shape[1], 3, dtype, seed=2), points(N, 2, dtype, seed=3)
    size = np.abs(dense).sum(axis=1).max() * 2
    assert_equal(theirs.multiply(tensor(right)), ours.multiply(right), dtype, size)
    assert_equal(theirs.multiply(tensor(left), transpose=True), ours.multiply(left, transpose=True), dtype, size)
    assert_equal(theirs.row_sums(), ours.row_sums(), dtype, size)
    assert_equal(theirs.row_sums(transpose=True), ours.row_sums(transpose=True), dtype, size)
    for side in ("rows", "cols"):
        assert_equal(theirs.diagonal(side), ours.diagonal(side), dtype)
    stored = theirs.stored()
    assert stored.is_stored
    assert_equal(stored.multiply(tensor(right)), ours.multiply(right), dtype, size)
    assert_equal(stored.dense(), dense, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMS)
def test_logarithms_and_scaled_products_are_what_numpy_gives(name, dtype):
    ours, theirs = both(name, 6, dtype, rectangular=True)
    logs = ours.log_block(slice(None), slice(0, 9))
    assert_equal(theirs.log_block(slice(None), slice(0, 9)), logs, dtype)
    v = points(M, 2, "float64", seed=4)
    for actual, expected in zip(theirs.scaled_product(tensor(v)), ours.scaled_product(v), strict=True):
        assert actual.dtype == torch.float64
        assert_equal(actual, expected, dtype, M * np.abs(expected).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMS)
def test_a_symmetric_matrix_is_so_to_the_last_bit_and_keeps_its_diagonal(name, dtype):
    theirs = both(name, 7, dtype)[1]
    K = theirs.dense()
    assert torch.equal(K, K.T)
    assert torch.equal(K.diagonal(), theirs.diagonal())
    some = torch.tensor([5, 3, 70])
    assert torch.equal(theirs.block(some, some).diagonal(), theirs.diagonal()[some])


@pytest.mark.parametrize("name", ["gaussian", "cosine", "sum", "matern 1.7"])
def test_points_in_single_precision_are_multiplied_in_double_where_that_is_asked_for(name):
    ours, theirs = both(name, 9, "float32", wide=np.float64)
    assert theirs.dtype == torch.float64
    assert_equal(theirs.dense(), ours.dense(), "float64")


def test_logarithms_are_finite_where_the_kernel_underflows():
    X = torch.tensor([[0.0, 0.0], [1.0, 0.0], [60.0, 0.0]], dtype=torch.float64)
    K = kernel_matrix(forms.Pairing("sqeuclidean", profiles.Exponential()), X)
    np.testing.assert_allclose(K.log_block([0], slice(None)), [[0.0, -1.0, -3600.0]], rtol=1e-12)
    scale, product = kernel_matrix(forms.Pairing("sqeuclidean", profiles.Exponential()), X[2:], X[:2]).scaled_product(
        torch.ones(2, 1)
    )
    assert float(scale[0]) == pytest.approx(-(59.0**2))
    assert float(product[0, 0]) == pytest.approx(1.0)


def test_a_row_without_a_positive_entry_is_zero_of_scale_zero():
    K = kernel_matrix(forms.Stored(), torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=torch.float64), torch.eye(2))
    scale, product = K.scaled_product(torch.ones(2, 1))
    np.testing.assert_allclose(torch.exp(scale)[:, None] * product, [[0.0], [3.0]])
    assert float(scale[0]) == 0


def exact_distances(X):
    X = X.astype(np.longdouble)
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_offset_or_a_narrow_kernel_costs_no_digit(dtype, offset):
    """Where inner products would lose the digits of near points, these are multiplied in double, or subtracted."""
    far = np.random.default_rng(0).normal(size=(20, 7))
    X = (np.concatenate([far, far + 1e-4 * far[::-1]]) + offset).astype(dtype)
    for length in (1e-3, 0.05, 1.0):
        K = kernel_matrix(forms.Pairing("sqeuclidean", profiles.RootExponential(), length), tensor(X)).dense()
        expected = np.exp(-np.sqrt(exact_distances(X)) / np.longdouble(length))
        np.testing.assert_allclose(
            K.numpy(), expected.astype(float), rtol=0, atol=2e-6 if dtype == "float32" else 1e-13
        )


@pytest.mark.parametrize("to", [np.asarray, tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_inner_products_lose_is_stated(dtype, to):
    """Near points far from the centre: their distances cancel, and the bound must say so, no more than need be."""
    spread = {"float64": 20.0, "float32": 2.5}[dtype]
    rng = np.random.default_rng(4)
    centres = rng.normal(size=(6, 30))
    centres *= spread / np.linalg.norm(centres, axis=1, keepdims=True)
    X = (np.repeat(centres, 12, axis=0) + 0.1 * rng.normal(size=(72, 30))).astype(dtype)
    matrix = kernel_matrix(forms.Pairing("sqeuclidean", profiles.Exponential()), to(X))
    truth, error, unit = np.exp(-exact_distances(X)), matrix.entry_error, np.finfo(dtype).eps / 2
    off = np.abs(np.asarray(matrix.dense()) - truth)
    assert np.all(off <= error.relative * truth + error.scaled)
    assert np.max(off / truth, where=truth > 0.1, initial=0.0) > 8 * unit  # more than exp alone would lose
    assert error.relative < 200 * unit * spread**2


# --- matrices that are given --------------------------------------------------------------------------------


def sparse(K):
    """torch warns once a process that its sparse rows are young."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.as_tensor(K).to_sparse_csr()


@pytest.fixture(scope="module")
def csr():
    K = points(N, N, "float64")
    K = np.where(K > 1.5, K, 0.0)
    K = K + K.T
    return K, sparse(K)


def test_a_sparse_matrix_stays_sparse(csr):
    K, given = csr
    matrix = kernel_matrix(forms.Stored(), given)
    assert matrix.is_stored
    assert matrix.entries.layout == torch.sparse_csr
    V = points(N, 3, "float64", seed=5)
    np.testing.assert_allclose(matrix.multiply(tensor(V)), K @ V, rtol=1e-13)
    np.testing.assert_allclose(matrix.row_sums(), K.sum(axis=1), rtol=1e-13)
    np.testing.assert_array_equal(matrix.dense(), K)
    np.testing.assert_array_equal(matrix.diagonal(), np.diagonal(K))
    rows, cols = np.array([7, 0, 7]), slice(3, 60)
    np.testing.assert_array_equal(matrix.block(rows, cols), K[rows][:, cols])
    np.testing.assert_array_equal(matrix.block(slice(2, 5), np.array([1, 79])), K[2:5][:, [1, 79]])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(matrix.log_block(rows, cols), np.log(K[rows][:, cols]))
    assert matrix.nonnegative
    assert matrix.row_entries == np.count_nonzero(K) / N
    np.testing.assert_allclose(kernel_matrix(forms.Stored(), -given).absolute_product(tensor(V[:, 0])), K @ V[:, 0])
    squared = kernel_matrix(forms.PowerOf(forms.Stored(), 2.0), given)
    np.testing.assert_allclose(squared.multiply(tensor(V)), K**2 @ V, rtol=1e-12)


def test_a_sparse_block_of_new_points_is_multiplied_from_both_sides(csr):
    K, given = csr
    matrix = kernel_matrix(forms.Stored(1.0), sparse(K[:20]), given)
    V = points(20, 2, "float64", seed=5)
    np.testing.assert_allclose(matrix.multiply(tensor(V), transpose=True), K[:20].T @ V, rtol=1e-13)
    np.testing.assert_allclose(matrix.row_sums(transpose=True), K[:20].sum(axis=0), rtol=1e-13)
    np.testing.assert_array_equal(matrix.diagonal(), np.ones(20))
    np.testing.assert_array_equal(matrix.diagonal("cols"), np.diagonal(K))


# --- Bessel functions ---------------------------------------------------------------------------------------

ORDERS = (0.01, 0.3, 0.5, 0.89, 0.9, 1.0, 1.25, 2.0, 3.7, 10.0, 30.3, 99.9, 199.5, 201.0)
DISTANCES = (1e-30, 1e-11, 1e-9, 1e-4, 0.05, 0.7, 1.99, 2.01, 9.0, 39.9, 40.1, 200.0, 999.0, 1001.0, 3e5)


@pytest.mark.parametrize("order", ORDERS)
def test_matern_profiles_of_any_order_against_mpmath(order):
    from mercer.backends.torch.bessel import log_matern

    found = log_matern(torch.tensor((0.0, *DISTANCES), dtype=torch.float64), order)
    assert abs(float(found[0])) < 1e-15
    with mpmath.workdps(60):
        for s, value in zip(DISTANCES, found[1:].tolist(), strict=True):
            nu, x = mpmath.mpf(order), mpmath.mpf(s)
            exact = mpmath.log(2 ** (1 - nu) / mpmath.gamma(nu) * x**nu * mpmath.besselk(nu, x))
            assert abs(value - float(exact)) <= 1e-13 * max(1.0, abs(float(exact)))  # a tenth of what is stated


def test_matern_profiles_of_huge_orders_keep_their_digits():
    """As ν grows, f(√ν r) tends to exp(-r²/4); the next term is known, and no factorial leaves its rounding behind."""
    r = np.array([0.1, 1.0, 2.0])
    for order in (1e6, 1e9):
        form = forms.Pairing("sqeuclidean", profiles.BesselMatern(order), 1.0)
        expected = np.exp(-(r**2) / 4 - (r**2 / 4 - r**4 / 32) / order)
        for X in (r[:, None] * np.sqrt(order), tensor(r[:, None] * np.sqrt(order))):
            K = kernel_matrix(form, X, 0 * X[:1])
            np.testing.assert_allclose(
                np.asarray(K.dense())[:, 0], expected, rtol=2 / order**2 + K.entry_error.relative
            )


# --- arithmetic ---------------------------------------------------------------------------------------------


def all_by_one_name():
    torch.set_float32_matmul_precision("medium")


def one_backend():
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"


@pytest.mark.parametrize("lower", [all_by_one_name, one_backend])
def test_products_with_fewer_digits_are_refused(lower):
    matrix = kernel_matrix(GAUSSIAN, torch.ones(3, 2))
    sentence = r"^torch is set to multiply float32 with fewer digits"
    try:
        lower()
        with pytest.raises(ValueError, match=sentence):
            kernel_matrix(GAUSSIAN, torch.ones(3, 2))
        with pytest.raises(ValueError, match=sentence):
            matrix.multiply(torch.ones(3, 1))
        with pytest.raises(ValueError, match=sentence):
            LowRankOperator(torch.ones(3, 1))
        kernel_matrix(GAUSSIAN, torch.ones(3, 2, dtype=torch.float64))
    finally:
        torch.set_float32_matmul_precision("highest")
    matrix.multiply(torch.ones(3, 1))


def test_memory_is_that_of_a_few_tiles():
    """A product of n = 1500 takes no array of more than a few tiles of 64 rows."""
    X = torch.as_tensor(points(1500, 3, "float64"))
    K = kernel_matrix(GAUSSIAN, X)
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                self.seen = max(self.seen, out.numel())
            return out

    with config_context(n_threads=1), Largest() as largest:  # such a mode sees one thread alone
        K.multiply(torch.ones(1500, 2, dtype=X.dtype))
    assert 64 * 64 <= largest.seen <= max(64 * 64, 1500 * 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits_and_torch_keeps_its_own(dtype):
    X, v = torch.as_tensor(points(N, 5, dtype)), torch.as_tensor(points(N, 3, dtype, 1))
    found, before = [], torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for threads in (1, 2, 5):
            with config_context(n_threads=threads):
                K = kernel_matrix(GAUSSIAN, X)
                found.append((K.multiply(v), K.row_sums(), K.dense(), K.stored().multiply(v)))
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


# --- launches of fused products, with the launch itself left out ----------------------------------------------------


def test_a_full_card_is_not_remembered_as_one_without_triton(monkeypatch):
    tries = []

    def launched(self, w, transpose):
        tries.append(w)
        if len(tries) == 1:
            raise torch.OutOfMemoryError("full")
        return torch.full((1, 2), 2.0, dtype=torch.float64)

    monkeypatch.setattr(triton_products, "find_spec", lambda name: True)
    monkeypatch.setattr(triton_products.FusedProducts, "_launched", launched)
    triton_products._compiles.cache_clear()
    try:
        with pytest.raises(torch.OutOfMemoryError):
            triton_products._compiles(torch.device("cpu"))
        assert triton_products._compiles(torch.device("cpu"))
    finally:
        triton_products._compiles.cache_clear()


def test_fused_products_are_launched_on_the_card_of_their_points(monkeypatch):
    entered, launches = [], []

    class On:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            entered.append(self.device)

        def __exit__(self, *error):
            entered.pop()

    monkeypatch.setattr(triton_products, "_on", On)
    monkeypatch.setattr(triton_products, "chosen", lambda key, blocks, run, device: blocks[0])
    monkeypatch.setattr(triton_products.FusedProducts, "_run", lambda self, *_: launches.append(entered[-1]))
    empty, points = torch.zeros(0), torch.zeros(1, 3)
    side = Side(points, empty)
    plan = Plan(0, False, False, empty, torch.ones(4, dtype=torch.float64), 0, 1, 1, False, side, side, empty)
    triton_products.FusedProducts(plan, EntryError(0.0)).row_sums()
    assert launches == [points.device]
    monkeypatch.undo()
    assert triton_products._on(torch.device("cuda:1")).idx == 1
