"""Loops of linear algebra on tensors: the same answers as on NumPy arrays, and no tensor becomes one."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import (
    DiffusionOperator,
    Gaussian,
    GramOperator,
    Laplacian,
    LowRankOperator,
    Precomputed,
    nystrom,
    rp_cholesky,
)
from mercer.backends import arrays, config_context
from mercer.backends.arrays import solve_triangular
from mercer.linalg import eigen, leading_eigenpairs, least_eigenvalue, prove_definiteness
from mercer.linalg.definiteness import spectral_radius
from mercer.linalg.eigen import EigenvalueWarning, deterministic_signs, positive_eigenpairs
from mercer.linalg.factors import damped_inverse
from mercer.linalg.lanczos import BlockLanczos
from mercer.operators import LinearMap

torch = pytest.importorskip("torch")
DTYPES = ("float64", "float32")
LANCZOS_FROM = 1501
RNG = np.random.default_rng(7)
X = RNG.normal(size=(200, 3))
as_numpy = torch.Tensor.numpy  # kept for the comparisons: the fixture refuses it to everybody else


def source(seed=0):
    return np.random.default_rng(seed)


def eps(dtype):
    return float(np.finfo(dtype).eps)


def both(dtype, make, *arrays):
    """A map of NumPy arrays and the same of tensors."""
    arrays = [array.astype(dtype) for array in arrays]
    return make(*arrays), make(*(torch.as_tensor(array) for array in arrays))


def assert_close(actual, expected, tolerance):
    assert actual.dtype == getattr(torch, expected.dtype.name)
    np.testing.assert_allclose(as_numpy(actual), expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=0.0))


def diffusion(points):
    return DiffusionOperator(GramOperator(Gaussian(sigma=1.5), points))


# --- Krylov spaces ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 3])
def test_lanczos_takes_the_same_starts_and_finds_the_same_ritz_pairs(block, refuse_numpy):
    M = RNG.normal(size=(60, 60))
    M = M + M.T
    Q = np.linalg.qr(RNG.normal(size=(60, 2)))[0]
    ours, theirs = (
        BlockLanczos(lambda V, A=A: A @ V, basis, source(), block=block)
        for A, basis in ((M, Q), (torch.as_tensor(M), torch.as_tensor(Q)))
    )
    ours.extend(8)
    theirs.extend(8)
    assert ours.n_columns == theirs.n_columns
    assert_close(theirs.ritz_values(), ours.ritz_values().copy(), 1e-12)
    values, vectors, product = theirs.ritz_pairs(2)
    assert_close(vectors.T @ vectors, np.eye(2), 1e-13)
    complement = torch.as_tensor(np.eye(60) - Q @ Q.T)
    assert_close(product, as_numpy(complement @ torch.as_tensor(M) @ vectors), 1e-12)
    norms = torch.linalg.vector_norm(product - values * vectors, dim=0)
    assert_close(theirs.residual_norms()[:2], as_numpy(norms), 1e-11)


@pytest.mark.parametrize("block", [1, 3])
def test_a_block_of_tensors_that_loses_rank_goes_on_with_the_rest(block):
    basis = np.linalg.qr(RNG.normal(size=(100, 5)))[0]
    M = torch.as_tensor(basis @ np.diag([3.0, 2.0, 1.0, 0.5, 0.2]) @ basis.T)
    space = BlockLanczos(lambda V: M @ V, torch.zeros((100, 0), dtype=torch.float64), source(), block=block)
    space.extend(60)
    assert space.closed
    assert space.n_columns <= 6 + 2 * block
    np.testing.assert_allclose(space.ritz_values()[:5], [3.0, 2.0, 1.0, 0.5, 0.2], atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_restart_forgets_nothing_of_the_pairs_it_keeps(library):
    M = RNG.normal(size=(80, 80))
    M = M + M.T
    basis = np.zeros((80, 0))
    if library == "torch":
        M, basis = torch.as_tensor(M), torch.as_tensor(basis)
    space = BlockLanczos(lambda V: M @ V, basis, source(), block=2)
    space.extend(12)
    values, _, product = space.ritz_pairs(5)
    norms = space.residual_norms()[:5]
    space.restart(5)
    again, _, same = space.ritz_pairs(5)
    np.testing.assert_allclose(again, values, rtol=1e-13)
    np.testing.assert_allclose(abs(np.asarray(same)), abs(np.asarray(product)), atol=1e-12)
    np.testing.assert_allclose(space.residual_norms(), norms, atol=1e-12)
    space.extend(space.depth + 6)
    V = np.asarray(space.vectors)
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-12)
    np.testing.assert_allclose(V.T @ np.asarray(M) @ V, np.asarray(space._projected), atol=1e-11)


# --- eigenpairs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_eigenpairs(dtype, refuse_numpy):
    ours, theirs = (leading_eigenpairs(map_, 4, rng=source()) for map_ in both(dtype, diffusion, X))
    assert_close(theirs[0], ours[0], 50 * eps(dtype))
    assert_close(theirs[1], ours[1], 2e3 * eps(dtype))  # over the gaps of the spectrum


@pytest.mark.parametrize("dtype", DTYPES)
def test_lanczos_with_restarts_finds_what_arpack_finds(dtype, refuse_numpy):
    points = RNG.normal(size=(LANCZOS_FROM + 99, 2))
    ours, theirs = (leading_eigenpairs(map_, 6, rng=source()) for map_ in both(dtype, diffusion, points))
    assert_close(theirs[0], ours[0], 200 * eps(dtype))
    assert_close(theirs[1], ours[1], 2e4 * eps(dtype))


def test_restarts_find_eigenvalues_in_a_slow_spectrum():
    """Eigenvalues 1 - k/n: no space of 48 columns is enough without restarts."""
    n = LANCZOS_FROM
    exact = 1 - np.arange(n) / n
    map_ = GramOperator(Precomputed(), torch.diag(torch.as_tensor(exact) ** 2))
    values, vectors = leading_eigenpairs(map_, 3, rng=source(), tolerance=1e-9)
    np.testing.assert_allclose(values, exact[:3] ** 2, rtol=1e-12)
    np.testing.assert_allclose(vectors[:3], np.eye(3), atol=1e-5)


def test_more_eigenpairs_than_the_rank_are_found():
    basis = np.linalg.qr(RNG.normal(size=(LANCZOS_FROM, 2)))[0]
    values, vectors = leading_eigenpairs(LowRankOperator(torch.as_tensor(basis * [2.0, 1.0])), 12, rng=source())
    np.testing.assert_allclose(values, [4.0, 1.0, *([0.0] * 10)], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-10)


def test_eigenvalues_too_close_to_tell_apart_are_warned_of(monkeypatch):
    monkeypatch.setattr(eigen, "_RESTARTS", 2)
    monkeypatch.setattr(eigen, "_DEPTH", 5)
    n = LANCZOS_FROM
    values = torch.ones(n, dtype=torch.float64) - 1e-3 * torch.arange(n) / n

    class Crowd(LinearMap):
        def __init__(self):
            super().__init__((n, n), torch.float64, symmetric=True, reference=values)

        def _multiply(self, v):
            return values[:, None] * v

        _transpose_multiply = _multiply

        def diagonal(self):
            return values

        def block(self, rows, cols):
            raise NotImplementedError

    with config_context(memory_limit=10**6), pytest.warns(EigenvalueWarning, match="lie so close together"):
        leading_eigenpairs(Crowd(), 2, rng=source())


@pytest.mark.parametrize("n", [150, LANCZOS_FROM])
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_eigenvalue(n, dtype, refuse_numpy):
    points = RNG.normal(size=(n, 2))
    ours, theirs = (least_eigenvalue(map_, rng=source()) for map_ in both(dtype, diffusion, points))
    assert theirs == pytest.approx(ours, abs=20 * eps(dtype))


def test_signs_and_positive_eigenpairs(refuse_numpy):
    K = Gaussian(sigma=1.0)(X[:40])
    given = torch.as_tensor(K)
    for actual, expected in zip(positive_eigenpairs(given, 1e-16), positive_eigenpairs(K, 1e-16), strict=True):
        assert tuple(actual.shape) == expected.shape
    V = RNG.normal(size=(9, 4))
    assert_close(deterministic_signs(torch.as_tensor(V)), deterministic_signs(V), 0.0)
    assert deterministic_signs(torch.zeros((0, 3))).shape == (3,)


# --- factorisations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_pivoted_cholesky_takes_the_same_pivots(dtype, refuse_numpy):
    ours, theirs = both(dtype, lambda points: rp_cholesky(GramOperator(Laplacian(3.0), points), 90, random_state=3), X)
    np.testing.assert_array_equal(as_numpy(theirs.landmarks), ours.landmarks)
    assert_close(theirs.factor, ours.factor, 1e3 * eps(dtype))
    assert_close(theirs.residual_diagonal, ours.residual_diagonal, 1e4 * eps(dtype))


def test_pivoted_cholesky_stops_at_a_tolerance_or_at_the_rank(refuse_numpy):
    smooth = both("float64", lambda points: rp_cholesky(GramOperator(Gaussian(9.0), points), 200, 0), X)
    for low in smooth:  # where the rank ends is told by rounding
        assert low.rank < 200
        assert float(low.residual_diagonal.max()) <= 64 * eps("float64")
    early = both("float64", lambda points: rp_cholesky(GramOperator(Laplacian(3.0), points), 200, 0, tolerance=0.2), X)
    assert early[0].rank == early[1].rank < 200
    assert float(early[1].residual_diagonal.sum()) <= 0.2 * 200


@pytest.mark.parametrize("dtype", DTYPES)
def test_nystrom(dtype, refuse_numpy):
    chosen = np.array([3, 150, 3, -1, 77])
    ours = nystrom(GramOperator(Laplacian(3.0), X.astype(dtype)), chosen)
    points = torch.as_tensor(X.astype(dtype))
    mask = torch.zeros(200, dtype=torch.bool)
    mask[[3, 150, 199, 77]] = True
    for landmarks in (chosen, torch.as_tensor(chosen), mask):
        theirs = nystrom(GramOperator(Laplacian(3.0), points), landmarks)
        np.testing.assert_array_equal(as_numpy(theirs.landmarks), ours.landmarks)
        assert_close(theirs.to_dense(), ours.to_dense(), 100 * eps(dtype))


@pytest.mark.parametrize("singular", [False, True])
def test_damped_inverse(singular, refuse_numpy):
    A = RNG.normal(size=(12, 5 if singular else 30))
    A = A @ A.T
    assert_close(damped_inverse(torch.as_tensor(A)), damped_inverse(A), 1e-4 if singular else 1e-10)


# --- definiteness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, -0.05])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dense", [True, False], ids=["factored", "Lanczos"])
def test_definiteness_is_proved_alike(dense, dtype, shift, refuse_numpy):
    K = Laplacian(3.0)(X) + shift * np.eye(200)
    least = np.linalg.eigvalsh(K)[0]
    maps = both(dtype, lambda given: GramOperator(Precomputed(), given), K)
    ones = np.ones(200)
    with config_context(memory_limit=None if dense else 10**5):
        ours, theirs = (prove_definiteness(map_, ones, rng=source()) for map_ in maps)
    assert theirs.shift == pytest.approx(ours.shift, rel=1e-4, abs=1e-4)
    assert theirs.failure_probability == ours.failure_probability
    assert least >= -(theirs.shift + theirs.slack)
    assert theirs.shift == 0 or shift < 0 or not dense
    assert spectral_radius(maps[1], ones) == pytest.approx(spectral_radius(maps[0], ones), rel=1e-4)


# --- many right-hand sides on a card ------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_many_right_hand_sides_are_multiplied_by_the_inverse(refuse_numpy, monkeypatch, lower, transpose):
    """As a card does it; residuals are those of substitution even for factors of condition 10¹⁰."""
    rng = np.random.default_rng(4)
    A = np.tril(rng.normal(size=(30, 30))) * 0.3
    A[np.diag_indices(30)] = np.logspace(0, -10, 30)
    A = A if lower else A.T
    B = rng.normal(size=(30, 900))
    triangle, right = torch.as_tensor(A + (np.triu(A, 1) if lower else np.tril(A, -1))), torch.as_tensor(B)
    plain = solve_triangular(triangle, right, lower=lower, transpose=transpose)
    few = solve_triangular(triangle, right[:, :9], lower=lower, transpose=transpose)
    monkeypatch.setattr(arrays, "_on_a_card", lambda tensor: True)
    found = solve_triangular(triangle, right, lower=lower, transpose=transpose)
    assert not torch.equal(found, plain)
    assert torch.equal(solve_triangular(triangle, right[:, :9], lower=lower, transpose=transpose), few)
    a = torch.as_tensor(A.T if transpose else A)
    size = a.abs() @ plain.abs()
    for x in (plain, found):
        assert float(((a @ x - right).abs() / size).max()) < 1e-14
