"""Factorisations of a kernel matrix, what they leave, and the bound that is proved of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import qr

from mercer import (
    Gaussian,
    GramOperator,
    Laplacian,
    Linear,
    LowRankOperator,
    Precomputed,
    factorize,
    greedy_cholesky,
    nystrom,
    nystrom_completion,
    rp_cholesky,
)
from mercer.backends.rounding import UNIT
from mercer.certificates import bound_low_rank_error, low_rank_error
from mercer.kernels import EntryError, Kernel, Properties, TileFunction

X = np.random.default_rng(4).normal(size=(150, 2))
ROUGH, SMOOTH = Laplacian(sigma=2.0), Gaussian(sigma=1.5)
METHODS = ["eigen", "cholesky", "qr"]
every = pytest.mark.parametrize("method", METHODS)


def gram(kernel=ROUGH, points=X):
    return GramOperator(kernel, points)


# --- factors ------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("kernel", [ROUGH, SMOOTH], ids=["rough", "smooth"])
def test_the_residual_is_psd_with_the_diagonal_it_says_and_bounds_every_norm(method, kernel):
    K = gram(kernel).to_dense()
    low = factorize(gram(kernel), 20, method, random_state=0)
    assert isinstance(low, LowRankOperator)
    assert low.rank == 20
    residual = K - low.to_dense()
    values = np.linalg.eigvalsh(residual)
    assert values[0] > -1e-11
    np.testing.assert_allclose(low.residual_diagonal, np.diag(residual), atol=1e-12)
    trace = float(low.residual_diagonal.sum())
    for order in (2, "fro", "nuc"):
        assert np.linalg.norm(residual, order) <= trace * (1 + 1e-9) + 1e-12


def test_eigenvectors_leave_the_least():
    """They leave the eigenvalues beyond the rank (Eckart, Young); QR comes near, one column at a time less so."""
    K = gram().to_dense()
    left = {method: float(factorize(gram(), 25, method).residual_diagonal.sum()) for method in METHODS}
    assert left["eigen"] == pytest.approx(np.linalg.eigvalsh(K)[:-25].sum(), rel=1e-9)
    assert left["eigen"] < left["qr"] < left["cholesky"]
    assert left["qr"] < 1.3 * left["eigen"]


def test_qr_takes_the_columns_of_lapack():
    pivots = qr(gram().to_dense(), pivoting=True, mode="r")[1]
    np.testing.assert_array_equal(factorize(gram(), 30, "qr").landmarks, pivots[:30])


@every
def test_it_is_exact_from_the_true_rank_on(method):
    low = factorize(gram(Linear()), 30, method)
    assert low.rank == 2
    np.testing.assert_allclose(low.to_dense(), X @ X.T, atol=1e-12)


def test_eigenvectors_of_a_large_sample_are_found_by_lanczos():
    points = np.random.default_rng(0).normal(size=(1800, 2))
    low = factorize(gram(SMOOTH, points), 8, "eigen", random_state=0)
    proof = bound_low_rank_error(gram(SMOOTH, points), low)
    values = np.linalg.eigvalsh(gram(SMOOTH, points).to_dense())
    assert low.residual_diagonal.sum() == pytest.approx(values[:-8].sum(), rel=1e-8)
    assert values[:-8].sum() <= proof.bound <= values[:-8].sum() * (1 + 1e-6)


@every
def test_tensors_and_single_precision(method):
    torch = pytest.importorskip("torch")
    ours, theirs = factorize(gram(), 12, method), factorize(gram(points=torch.asarray(X)), 12, method)
    np.testing.assert_allclose(theirs.to_dense().numpy(), ours.to_dense(), atol=1e-9)
    assert bound_low_rank_error(gram(points=torch.asarray(X)), theirs).bound == pytest.approx(
        bound_low_rank_error(gram(), ours).bound, rel=1e-9
    )
    single = factorize(gram(points=X.astype(np.float32)), 12, method)
    np.testing.assert_allclose(single.to_dense(), ours.to_dense(), atol=2e-2 if method == "qr" else 1e-3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((gram(), 5, "svd"), r"^method='svd' must be one of 'cholesky', 'eigen', 'qr'\.$"),
        ((gram(), 0), r"^rank=0 must be a whole number of at least 1\.$"),
        ((GramOperator(ROUGH, X, X[:3]), 2), r"^factorize takes a symmetric map\.$"),
    ],
)
def test_what_cannot_be_factored_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        factorize(*arguments)


# --- the bound ----------------------------------------------------------------------------------------------------


def extended(kernel, points):
    """The kernel matrix in extended precision."""
    P = points.astype(np.longdouble)
    off = P[:, None] - P
    if isinstance(kernel, Gaussian):
        return np.exp(-np.sum(off * off, axis=2) / np.longdouble(kernel.sigma) ** 2)
    return np.exp(-np.sum(np.abs(off), axis=2) / np.longdouble(kernel.sigma))


def frobenius(kernel, points, low):
    """‖K - FFᵀ‖ in extended precision, which no norm that the bound is for falls short of but the operator norm."""
    F = np.asarray(low.factor).astype(np.longdouble)
    return float(np.sqrt(np.sum((extended(kernel, points) - F @ F.T) ** 2)))


WAYS = {
    "rp_cholesky": lambda g, k: rp_cholesky(g, k, 0),
    "greedy_cholesky": greedy_cholesky,
    "nystrom": lambda g, k: nystrom(g, np.arange(k)),
    **{method: (lambda g, k, method=method: factorize(g, k, method)) for method in METHODS},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rank", [1, 5, 40, 120])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bound_holds_in_extended_precision_and_is_sharp(way, rank, dtype):
    points = X[:120].astype(dtype)
    operator = gram(SMOOTH, points)
    low = WAYS[way](operator, rank)
    proof = bound_low_rank_error(operator, low)
    assert frobenius(SMOOTH, points, low) <= proof.bound
    if rank <= 5 and dtype is np.float64:
        assert proof.rounding < 1e-6 * proof.trace
        assert proof.bound == pytest.approx(float(low.residual_diagonal.sum()), rel=1e-6)
    assert proof.rounding < (1e-5 if dtype is np.float64 and way != "nystrom" else np.inf) * proof.trace_of_kernel


def test_without_its_rounding_the_bound_would_be_false():
    """At full rank the computed trace of the residual is now and then less than the residual."""
    false = 0
    for seed in range(10):
        points = np.random.default_rng(seed).normal(size=(40, 2))
        operator = gram(ROUGH, points)
        low = factorize(operator, 40, "eigen")
        proof = bound_low_rank_error(operator, low)
        true = frobenius(ROUGH, points, low)
        false += true > max(proof.trace, 0.0)
        assert true <= proof.bound
    assert false


@pytest.mark.parametrize("way", ["rp_cholesky", "eigen"])
def test_a_factor_of_another_matrix_gets_an_honest_bound(way):
    """The factor may be anything: a wrong one has a large bound, never a small one."""
    operator, rng = gram(SMOOTH), np.random.default_rng(0)
    low = WAYS[way](operator, 10)
    for factor in (
        1.3 * low.factor,
        low.factor + 1e-3 * rng.normal(size=low.factor.shape),
        rng.normal(size=low.factor.shape),
    ):
        forged = LowRankOperator(factor, landmarks=low.landmarks, basis=low.basis)
        true = np.linalg.norm(operator.to_dense() - factor @ factor.T, "nuc")
        assert true <= bound_low_rank_error(operator, forged).bound * (1 + 1e-12)


def test_every_term_beside_the_trace_is_needed(monkeypatch):
    """A factor that is too long has a residual with a negative trace: without η its bound would be zero."""
    operator = gram(SMOOTH)
    low = rp_cholesky(operator, 30, 0)
    forged = LowRankOperator(1.1 * low.factor, landmarks=low.landmarks)
    true = np.linalg.norm(operator.to_dense() - forged.to_dense(), 2)
    assert bound_low_rank_error(operator, forged).bound >= true
    monkeypatch.setattr(low_rank_error, "_leftovers", lambda *_: 0.0)
    assert bound_low_rank_error(operator, forged).bound < true


def test_a_factor_that_is_wrong_off_its_pivots_is_found_out():
    """It agrees with the matrix where the pivots meet, so that the cross terms C Rᵀ alone tell."""
    operator = gram(SMOOTH)
    low = rp_cholesky(operator, 8, 0)
    off = np.random.default_rng(1).normal(size=low.factor.shape)
    off[low.landmarks] = 0.0
    off -= low.factor * np.sum(off * low.factor) / np.sum(low.factor**2)
    off[low.landmarks] = 0.0
    forged = LowRankOperator(low.factor + 0.05 * off, landmarks=low.landmarks)
    true = np.linalg.norm(operator.to_dense() - forged.to_dense(), "nuc")
    assert true <= bound_low_rank_error(operator, forged).bound
    assert true > np.trace(operator.to_dense() - forged.to_dense())


def test_a_factor_that_cannot_be_looked_at_is_bounded_by_its_size():
    operator = gram(SMOOTH)
    forged = LowRankOperator(np.ones((150, 2)), landmarks=np.arange(2))  # F at its pivots has no inverse
    proof = bound_low_rank_error(operator, forged)
    assert np.linalg.norm(operator.to_dense() - forged.to_dense(), "nuc") <= proof.bound < 1.1 * (150 + 300)


@pytest.mark.parametrize("inexact", [1.0, 1.5])
def test_what_is_beside_the_psd_part_is_bounded_term_by_term(inexact, monkeypatch):
    """K - FFᵀ - N for a factor that disagrees at its pivot alone, F long and L short, and for a C that is not F L⁻¹."""
    rng = np.random.default_rng(0)
    f, pivot = rng.normal(size=(12, 1)), 3
    f[pivot] = 0.1
    K = f @ f.T
    K[pivot, pivot] += 0.0 if inexact > 1 else 0.7
    S = np.eye(12)[:, [pivot]]
    inverse = np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda L: inexact * inverse(L))
    C = inexact * f / f[pivot]
    projector = np.eye(12) - C @ S.T
    beside = K - f @ f.T - projector @ K @ projector.T
    bound = low_rank_error._leftovers(f, S, K @ S, 0.0, 0.0)
    assert np.linalg.norm(beside, "nuc") <= bound < 3 * np.linalg.norm(beside, "nuc")


class Careless(Kernel):
    """exp(-‖x - y‖₁/50), whose entries err by a millionth of themselves, as it says; or does not say."""

    def __init__(self, honest=True):
        self.honest = honest

    def exact(self, rows, cols):
        return np.exp(-np.abs(rows[:, None] - cols).sum(axis=2) / 50)

    def _form(self, n_features):
        def noise(rows, cols):
            return 1 + 1e-6 * np.sign(np.cos(1e6 * (rows.sum(axis=1)[:, None] + cols.sum(axis=1))))

        def function(rows, cols):
            return self.exact(rows, cols) * noise(rows, cols)

        def diagonal(points):
            return np.diag(noise(points, points))

        return TileFunction(function, diagonal, EntryError(1e-6 / UNIT if self.honest else 8.0), nonnegative=True)

    @property
    def properties(self):
        return Properties(positive=True, positive_definite=True)


@pytest.mark.parametrize("way", WAYS)
def test_the_errors_of_entries_are_counted(way, monkeypatch):
    """The factor fits the evaluated matrix; the bound is about the kernel, and false if entries were taken as exact.

    So it is if they were counted in the trace alone.
    """
    points = X[:40]
    operator, low = gram(Careless(), points), WAYS[way](gram(Careless(), points), 40)
    true = np.linalg.norm(Careless().exact(points, points) - low.to_dense(), "nuc")
    assert true <= bound_low_rank_error(operator, low).bound < 10.0
    assert true > bound_low_rank_error(gram(Careless(honest=False), points), low).bound
    images = low_rank_error._images
    monkeypatch.setattr(low_rank_error, "_images", lambda *arguments: (*images(*arguments)[:2], 0.0))
    assert true > bound_low_rank_error(operator, low).bound


class Short(Careless):
    """The same, every entry too small by a millionth."""

    def _form(self, n_features):
        def function(rows, cols):
            return (1 - 1e-6) * self.exact(rows, cols)

        def diagonal(points):
            return np.full(len(points), 1 - 1e-6)

        return TileFunction(function, diagonal, EntryError(1e-6 / UNIT), nonnegative=True)


def test_the_errors_of_the_diagonal_are_counted():
    """Without a single column the trace is all there is: that of the kernel, not the evaluated one."""
    nothing = LowRankOperator(np.zeros((40, 0)), landmarks=np.zeros(0, int))
    proof = bound_low_rank_error(gram(Short(), X[:40]), nothing)
    assert proof.trace == pytest.approx(40 * (1 - 1e-6), rel=1e-12)
    assert 40 <= proof.bound < 40 * (1 + 1e-5)


def test_a_matrix_that_is_given_needs_a_word_on_its_spectrum():
    K = gram(SMOOTH).to_dense()
    operator = gram(Precomputed(), K)
    low = rp_cholesky(operator, 10, 0)
    with pytest.raises(
        ValueError, match=r"^Precomputed\(.*\) is not known to be positive semi-definite, so that the trace"
    ):
        bound_low_rank_error(operator, low)
    proof = bound_low_rank_error(operator, low, below_zero=1e-12)
    assert np.linalg.norm(K - low.to_dense(), "nuc") <= proof.bound
    assert proof.bound == pytest.approx(proof.trace, rel=1e-5)
    indefinite = np.diag(np.r_[np.ones(9), -0.5])
    low = rp_cholesky(gram(Precomputed(), indefinite), 9, 0)
    assert bound_low_rank_error(gram(Precomputed(), indefinite), low, below_zero=0.5).bound >= 0.5
    assert bound_low_rank_error(gram(Precomputed(), indefinite), low, below_zero=0.0).bound < 0.5  # a false word


@pytest.mark.parametrize(
    ("low", "sentence"),
    [
        (LowRankOperator(X), "does not say what it was built from"),
        (LowRankOperator(X, landmarks=np.arange(1)), "does not say what it was built from"),
        (LowRankOperator(X[:5], landmarks=np.arange(2)), "must be symmetric and of the same shape"),
        (LowRankOperator(X, 2 * X, landmarks=np.arange(2)), "must be symmetric and of the same shape"),
    ],
)
def test_factors_of_which_nothing_can_be_said(low, sentence):
    with pytest.raises(ValueError, match=sentence):
        bound_low_rank_error(gram(), low)


# --- completion from blocks ---------------------------------------------------------------------------------------


def completed(K, m):
    return nystrom_completion(K[:m, :m], K[:m, m:]).to_dense()


def test_blocks_are_completed_as_the_whole_matrix_is():
    K = gram().to_dense()
    np.testing.assert_allclose(completed(K, 40), nystrom(gram(), np.arange(40)).to_dense(), atol=1e-12)
    low = nystrom_completion(K[:40, :40], K[:40, 40:])
    np.testing.assert_allclose(
        low.block(slice(40, None), slice(40, None)),
        K[:40, 40:].T @ np.linalg.solve(K[:40, :40], K[:40, 40:]),
        atol=1e-12,
    )
    assert low.shape == K.shape
    np.testing.assert_array_equal(low.landmarks, np.arange(40))


def test_lemma_17_more_landmarks_leave_less_and_the_rank_of_the_matrix_leaves_nothing():
    F = np.random.default_rng(0).normal(size=(60, 6))
    K = F @ F.T
    left = [np.trace(K - completed(K, m)) for m in range(1, 10)]
    assert np.all(np.diff(left) < 1e-10)
    assert left[4] > 0.1
    assert np.max(np.abs(left[5:])) < 1e-9
    np.testing.assert_allclose(completed(K, 6), K, atol=1e-10)


def test_lemma_17_also_needs_the_block_to_have_the_rank_of_the_matrix():
    """Rank two, two landmarks that are alike: the survey calls it exact, and it is not."""
    F = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    K = F @ F.T
    assert np.linalg.matrix_rank(K) == 2
    assert np.trace(K - completed(K, 2)) == pytest.approx(2.0)
    swapped = K[np.ix_([0, 2, 1, 3], [0, 2, 1, 3])]
    np.testing.assert_allclose(completed(swapped, 2), swapped, atol=1e-12)


def test_it_is_the_psd_completion_of_least_trace():
    K = gram(SMOOTH).to_dense()[:30, :30]
    low = completed(K, 10)
    assert np.linalg.eigvalsh(low)[0] > -1e-12
    assert np.linalg.eigvalsh(K - low)[0] > -1e-12


@pytest.mark.parametrize(
    ("A", "B", "sentence"),
    [
        ([[1.0, 2.0]], [[1.0]], r"^A and B are 1 × 2 and 1 × 1: A must be square, and B must have as many rows\.$"),
        (
            np.eye(2),
            np.ones((3, 1)),
            r"^A and B are 2 × 2 and 3 × 1: A must be square, and B must have as many rows\.$",
        ),
        (
            np.diag([1.0, -0.5]),
            np.ones((2, 1)),
            r"^A has the eigenvalue -0\.5, but the block of a psd matrix has none below zero\.$",
        ),
        ([[1.0, 2.0], [0.0, 1.0]], np.ones((2, 1)), "must be symmetric"),
        (np.zeros((2, 2)), np.zeros((2, 3)), r"^The kernel vanishes on every landmark: choose others\.$"),
        ([[np.nan]], [[1.0]], "A has nan in row 0"),
    ],
)
def test_blocks_of_no_psd_matrix_are_refused(A, B, sentence):
    with pytest.raises(ValueError, match=sentence):
        nystrom_completion(A, B)
