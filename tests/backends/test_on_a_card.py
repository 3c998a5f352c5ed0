"""What only a card can show: ``pytest -m gpu``. Skipped elsewhere; no test here asserts a time."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from fused_forms import FORMS, points

import mercer
from mercer import Gaussian, config_context
from mercer.kernels import Linear
from mercer.operators import GramOperator

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no card that torch can use"),
]


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-13), ("float32", 1e-6)])
@pytest.mark.parametrize(("kernel", "d"), FORMS, ids=str)
def test_fused_products(kernel, d, dtype, tol):
    X, Y = points(3000, d), points(1111, d, seed=1)
    there = [torch.as_tensor(each, device="cuda", dtype=getattr(torch, dtype)) for each in (X, Y)]
    for K, matrix in ((kernel(X), kernel.matrix(there[0])), (kernel(X, Y), kernel.matrix(*there))):
        assert matrix._fused is not None
        size = abs(K).sum(axis=1)
        row_sums = matrix.row_sums()
        assert (abs(row_sums.double().cpu().numpy() - K.sum(axis=1)) <= tol * size).all()
        assert torch.equal(row_sums, matrix.row_sums())  # bit for bit
        for r in (1, 3, 16, 20):
            V = points(K.shape[1], r, seed=2)
            found = matrix.multiply(torch.as_tensor(V, device="cuda", dtype=matrix.dtype)).double().cpu().numpy()
            assert (abs(found - K @ V) <= 10 * tol * (abs(K) @ abs(V))).all()


@pytest.mark.parametrize(("kernel", "d"), FORMS, ids=str)
def test_entries_of_single_precision_keep_their_bound(kernel, d):
    """Columns of the unit matrix give the entries as the product makes them, matrix units and all."""
    X = points(700, d, seed=3)
    matrix = kernel.matrix(torch.as_tensor(X, device="cuda", dtype=torch.float32))
    exact, stated = kernel(X)[:, :3], matrix.entry_error
    found = matrix.multiply(torch.eye(700, device="cuda")[:, :3].contiguous()).double().cpu().numpy()
    own = np.sqrt(kernel.diag(X))
    allowed = stated.relative * abs(exact) + stated.scaled * own[:, None] * own[:3] + stated.absolute
    assert (abs(found - exact) <= allowed).all()


def test_sums_on_matrix_units_keep_their_depth():
    K = points(64, 1, seed=4)[:, 0]
    W = points(64, 16, seed=5)
    here = [torch.as_tensor(each, device="cuda", dtype=torch.float32) for each in (np.ones((1, 1)), K[:, None], W)]
    matrix = Linear().matrix(*here[:2])
    error = abs(matrix.multiply(here[2]).double().cpu().numpy() - K @ W)
    assert (error <= matrix.summation_depth * 2.0**-24 * (abs(K) @ abs(W))).all()


@pytest.mark.parametrize(
    "make", [mercer.SDPEmbedding, mercer.DiffusionMaps, mercer.KernelPCA], ids=lambda kind: kind.__name__
)
def test_fits_of_numpy_users(make):
    X = points(400, 2, seed=6) @ np.diag([2.0, 1.0])
    here = make(Gaussian(1.5), random_state=0).fit(X)
    with config_context(device="cuda"):
        there = make(Gaussian(1.5), random_state=0).fit(X)
        answers = there.transform(X[:5] + 0.01)
    assert isinstance(answers, np.ndarray)
    np.testing.assert_allclose(answers, here.transform(X[:5] + 0.01), atol=1e-6)
    if hasattr(there, "certificate_"):
        assert mercer.verify(there, X).holds(1e-6) or there.certificate_ is None


def test_large_right_hand_sides():
    rng = np.random.default_rng(0)
    A = np.tril(rng.normal(size=(50, 50))) * 0.2 + 2 * np.eye(50)
    B = rng.normal(size=(50, 4000))
    from mercer.backends.arrays import solve_triangular

    found = solve_triangular(*(torch.as_tensor(each, device="cuda") for each in (A, B))).cpu().numpy()
    np.testing.assert_allclose(A @ found, B, atol=1e-12)


def test_a_full_card_is_left_free():
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    taken = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.98), dtype=torch.uint8, device="cuda")
    X = points(200_000, 20, seed=7)
    try:
        with config_context(device="cuda"), pytest.raises(MemoryError, match="The card ran out of memory"):
            mercer.KernelPCA(Gaussian(3.0), random_state=0).fit(X)
    finally:
        del taken
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() <= before + 2**20
    with config_context(device="cuda"):
        assert (GramOperator(Gaussian(3.0), X[:100]) @ np.ones(100)).shape == (100,)
