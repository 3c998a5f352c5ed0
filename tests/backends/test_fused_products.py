"""Fused products, by Triton's interpreter, beside float64 NumPy; and compiled for cards that need not be there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from fused_forms import FORMS, points

import mercer
from mercer.kernels import Gaussian, Linear, Matern, Polynomial, Sigmoid
from mercer.operators import GramOperator

torch = pytest.importorskip("torch")

# Triton decides when it is imported whether all of a process is interpreted. With a card, kernels are compiled.
INTERPRETED = os.environ.get("TRITON_INTERPRET", "0" if torch.cuda.is_available() else "1") == "1"
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("TRITON_INTERPRET", str(int(INTERPRETED)))
    triton = pytest.importorskip("triton")
    import mercer.backends.torch.triton_kernels

from mercer.backends.torch import triton_products, triton_tuning  # noqa: E402
from mercer.backends.torch.triton_errors import matrix_units  # noqa: E402
from mercer.backends.torch.triton_products import COLUMNS, FusedProducts, can_run, cut  # noqa: E402


@pytest.fixture
def interpreted(monkeypatch):
    if not INTERPRETED:
        pytest.skip("kernels are compiled in this process: set TRITON_INTERPRET=1 to have them interpreted")
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def sides(d, dtype):
    """Two sets of points, of numbers that are no multiple of a block."""
    X, Y = points(70, d), points(67, d, seed=1)
    return X, Y, torch.tensor(X, dtype=dtype), torch.tensor(Y, dtype=dtype)


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float64, 1e-13), (torch.float32, 1e-6)], ids=["double", "single"])
@pytest.mark.parametrize(("kernel", "d"), FORMS, ids=str)
def test_products_and_row_sums(interpreted, kernel, d, dtype, tol):
    X, Y, X_t, Y_t = sides(d, dtype)
    for K, matrix in ((kernel(X), kernel.matrix(X_t)), (kernel(X, Y), kernel.matrix(X_t, Y_t))):
        assert isinstance(matrix._fused, FusedProducts)
        size = abs(K)
        found = matrix.row_sums()
        assert found.dtype == dtype
        assert (abs(found.double().numpy() - K.sum(axis=1)) <= tol * size.sum(axis=1)).all()
        for r, transpose in ((1, False), (3, True), (16, False)):
            A = K.T if transpose else K
            V = np.random.default_rng(r).normal(size=(A.shape[1], r)).astype(np.float32).astype(np.float64)
            product = matrix.multiply(torch.tensor(V, dtype=dtype), transpose=transpose).double().numpy()
            assert (abs(product - A @ V) <= tol * (abs(A) @ abs(V))).all()


def test_other_numbers_of_columns_and_points(interpreted):
    X, Y, X_t, Y_t = sides(3, torch.float64)
    K, matrix = Gaussian(1.3)(X, Y), Gaussian(1.3).matrix(X_t, Y_t)
    np.testing.assert_allclose(matrix.row_sums(transpose=True).numpy(), K.sum(axis=0), rtol=1e-13)
    for r in (0, 2, 4, 5, 37):
        V = np.random.default_rng(r).normal(size=(70, r))
        np.testing.assert_allclose(matrix.multiply(torch.tensor(V), transpose=True).numpy(), K.T @ V, atol=1e-13)
    none = Gaussian(1.3).matrix(X_t[:0], Y_t)
    assert none.multiply(torch.ones(67, 2, dtype=torch.float64)).shape == (0, 2)
    assert none.row_sums(transpose=True).tolist() == [0.0] * 67


def test_single_precision_far_from_the_centre_is_paired_in_double(interpreted):
    X = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32) + np.float32(3.0)
    X[0] = 3e4  # so that inner products of single precision do not hold
    matrix = Gaussian(1.0).matrix(torch.tensor(X))
    assert matrix._entries._work == torch.float64
    exact = Gaussian(1.0)(X.astype(np.float64)).sum(axis=1)
    np.testing.assert_allclose(matrix.row_sums().numpy(), exact, rtol=1e-6)


def test_forms_without_a_fused_product_go_on(interpreted):
    X_t = sides(3, torch.float64)[2]
    for kernel in (Sigmoid(0.1, 0.2), Matern(0.8, 1.0), Gaussian(1.0) + Linear(), Polynomial(20, 1.0, 1.0)):
        matrix = kernel.matrix(X_t)
        assert matrix._fused is None
        assert matrix.row_sums().shape == (70,)


def test_used_on_cards_and_by_the_interpreter_alone(monkeypatch):
    X_t = sides(3, torch.float64)[2]
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert Gaussian(1.3).matrix(X_t)._fused is None
    monkeypatch.setattr(triton_products, "_compiles", lambda device: True)
    assert can_run(torch.device("cuda"))
    monkeypatch.setenv("MERCER_FUSED", "0")
    assert not can_run(torch.device("cuda"))


def test_a_card_on_which_nothing_compiles_is_left_to_torch(monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(FusedProducts, "row_sums", fail)
    assert not triton_products._compiles.__wrapped__(torch.device("cpu"))
    assert "products are made by torch: no compiler" in caplog.text


def test_runs_cover_all_columns():
    for n, m in ((1, 1), (3, 10_000), (64, 65), (10**6, 10**6), (500, 64 * 16 + 1)):
        runs, span = cut(n, m)
        assert span % COLUMNS == 0
        assert (runs - 1) * span < m <= runs * span
    assert cut(3, 10_000)[0] > 1 == cut(10**6, 10**6)[0]


def test_the_quickest_block_that_runs_is_kept(monkeypatch):
    times = {"a": 3.0, "b": None, "c": 1.0}
    monkeypatch.setattr(triton_tuning, "_seconds", lambda run, block: times[block])
    monkeypatch.setattr(triton_tuning, "_found", {})
    card = torch.device("cuda")
    assert triton_tuning.chosen("key", ("a", "b", "c"), lambda block: None, card) == "c"
    times["c"] = 9.0
    assert triton_tuning.chosen("key", ("a", "b", "c"), lambda block: None, card) == "c"
    assert triton_tuning.chosen("key", ("a", "b", "c"), lambda block: None, torch.device("cpu")) == "a"


def test_an_embedding_is_certified_through_them(interpreted):
    X = mercer.datasets.three_clusters(n_per_cluster=10, n_outliers=0)[0]
    make = mercer.SDPEmbedding
    fused = make(Gaussian(1.5), random_state=0).fit(torch.tensor(X))
    plain = make(Gaussian(1.5), random_state=0).fit(X)
    assert fused.certificate_.holds(1e-6)
    np.testing.assert_allclose(abs(fused.embedding_.numpy()), abs(plain.embedding_), atol=1e-5)


# --- what a card rounds ---------------------------------------------------------------------------------------------


def chopped(x, bits):
    """Float32 numbers with their last bits cut off."""
    return (np.ascontiguousarray(x, np.float32).view(np.int32) & ~np.int32(2**bits - 1)).view(np.float32)


def matrix_unit(a, b):
    """A product of float32 matrices as matrix units make it: three products of parts, aligned and cut off at 24 bits."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    high, leading = chopped(a, 13), chopped(b, 13)
    low, trailing = chopped(a - high, 13), chopped(b - leading, 13)
    total = np.zeros((a.shape[0], b.shape[1]))
    for x, y in ((low, leading), (high, trailing), (high, leading)):
        for k in range(a.shape[1]):
            term = x[:, k, None].astype(np.float64) * y[k]
            last = np.ldexp(1.0, np.frexp(np.maximum(abs(total), abs(term)))[1] - 24)  # the last bit of the larger
            total = np.trunc(total / last) * last + np.trunc(term / last) * last
            last = np.ldexp(1.0, np.frexp(total)[1] - 24)
            total = np.trunc(total / last) * last
    return total.astype(np.float32)


@pytest.fixture
def on_matrix_units(interpreted, monkeypatch):
    from triton.runtime import interpreter

    class Builder(interpreter.InterpreterBuilder):
        def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
            return interpreter.TensorHandle(matrix_unit(a.data, b.data) + d.data, d.dtype.scalar)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", Builder.create_dot)


def all_ones(shape, rng):
    """Numbers near one whose last bits are ones, which loses most where bits are cut off."""
    leading = rng.integers(0, 8, size=shape).astype(np.int32) << 13
    return (np.int32(0x3F800000) | leading | np.int32(2**13 - 1)).view(np.float32)


def test_the_bound_on_an_entry_allows_for_matrix_units_and_needs_to(on_matrix_units):
    """Entries of a linear kernel: their relative error is that of the pairing alone."""
    X = all_ones((40, 16), np.random.default_rng(0))
    matrix = Linear().matrix(torch.tensor(X), torch.tensor(X[:20]))
    exact = X.astype(np.float64) @ X[:20].T.astype(np.float64)
    K = matrix.multiply(torch.eye(20)[:, :1].contiguous()).double().numpy()  # one column: it is not multiplied there
    lengths = np.sqrt((X.astype(np.float64) ** 2).sum(axis=1))
    error = abs(K[:, 0] - exact[:, 0])
    stated, plain = matrix.entry_error, matrix._entries.entry_error
    size = lengths * lengths[0]
    assert (error <= stated.relative * exact[:, 0] + stated.scaled * size).all()
    assert (error > plain.relative * exact[:, 0] + plain.scaled * size).any()


def test_the_bound_of_a_distance_allows_for_them(on_matrix_units):
    X = all_ones((40, 32), np.random.default_rng(1)) * np.random.default_rng(2).choice([-1.0, 1.0], (40, 32))
    X = X.astype(np.float32)
    matrix = Gaussian(6.0).matrix(torch.tensor(X))
    assert matrix._entries._work == torch.float32
    assert matrix._fused._plan.by_dot
    K, exact = matrix.multiply(torch.eye(40)[:, :3].contiguous()).double().numpy(), Gaussian(6.0)(X.astype(np.float64))
    stated, plain = matrix.entry_error, matrix._entries.entry_error
    assert (abs(K - exact[:, :3]) <= stated.relative * exact[:, :3] + stated.absolute).all()
    assert stated.relative > plain.relative + matrix_units(32) * 2 * matrix._entries._largest


def test_the_depth_of_a_sum_allows_for_them_and_needs_to(on_matrix_units):
    """Sixteen columns are multiplied on matrix units: all but the first term are cut off, where sums would round them."""
    matrix = Linear().matrix(torch.ones(3, 1), torch.ones(COLUMNS, 1))
    W = torch.full((COLUMNS, 16), 0.99 * 2.0**-23)
    W[0] = 1.0
    exact = W.double().sum(dim=0)
    error = float((matrix.multiply(W).double() - exact).abs().max() / exact.max()) * 2.0**24
    assert COLUMNS + 2 < error < matrix.summation_depth


def test_depth_does_not_grow_with_single_precision(interpreted):
    narrow = Gaussian(1.0).matrix(torch.zeros(300, 2), torch.zeros(10**5, 2)).summation_depth
    wide = Gaussian(1.0).matrix(*(torch.zeros(n, 2, dtype=torch.float64) for n in (300, 10**5))).summation_depth
    assert narrow < 900
    assert 10**5 / COLUMNS < wide < 10**5


def test_a_fit_in_single_precision_counts_it(interpreted):
    """The bound of an operator's entries is that of the product that multiplies."""
    X = torch.tensor(np.random.default_rng(0).normal(size=(50, 20)), dtype=torch.float32)
    gram = GramOperator(Gaussian(9.0), X)
    assert gram.entry_error.relative > gram._matrix._entries.entry_error.relative
    assert gram.summation_depth > COLUMNS


# --- compiled ---------------------------------------------------------------------------------------------------------

COMPILED = [
    ("fp32", {"PAIR": 2, "NORMS": True, "BY_DOT": True, "D": 784, "R": 16, "PROFILE": 1}),
    ("fp64", {"PAIR": 0, "R": 3, "SYMMETRIC": True}),
    ("fp64", {"PAIR": 2, "NORMS": True, "BY_DOT": True, "D": 32, "R": 20, "RP": 32}),
    ("fp32", {"PAIR": 1, "WEIGHED": True}),
    ("fp32", {"PAIR": 2, "PROFILE": 3, "DEGREE": 3, "R": 4}),
]


def compiled(precision, constants, capability):
    """Machine code for a card, and the text it is made from. Run in a process in which nothing is interpreted."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from mercer.backends.torch import triton_kernels

    values = {"PAIR": 0, "NORMS": False, "WEIGHED": False, "BY_DOT": False, "D": 1, "PROFILE": 0, "DEGREE": 1}
    values |= {"SYMMETRIC": False, "R": 0, "RP": 16, "PRECISION": "tf32x3", "BM": 64, "BN": 64, "BD": 32} | constants
    pointers = dict.fromkeys(("X", "Y", "NX", "NY", "DIAGONAL", "W"), precision) | {"G": "fp64", "P": "fp64"}
    pointers["OUT"] = "fp64"
    kernel = triton_kernels.product
    kinds = {name: f"*{pointers[name]}" if name in pointers else "i32" for name in kernel.arg_names}
    kinds |= dict.fromkeys(values, "constexpr")
    source = ASTSource(fn=kernel, signature=kinds, constexprs=values, attrs={})
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"enable_fp_fusion": True})
    return made.asm["ptx"], made.metadata.shared, len(made.asm["cubin"])


def check_compiled(tmp_path, cases, capability):
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    script = f"import json, {__name__.rpartition('.')[2]} as t; print(json.dumps([t.compiled(*c, {capability}) for c in {cases!r}]))"
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    for (precision, constants), (text, shared, size) in zip(cases, json.loads(done.stdout), strict=True):
        assert size
        assert shared <= 99 * 1024  # what the smallest of these cards gives a program
        assert ("tf32" in text) == (precision == "fp32" and (constants.get("R", 0) > 4 or "BY_DOT" in constants))
        assert ("sqrt.rn" in text) == (constants.get("PROFILE") == 1)


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_compiled_for_two_cards(tmp_path, capability):
    check_compiled(tmp_path, COMPILED, capability)
