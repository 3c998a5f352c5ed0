"""Randomly pivoted Cholesky: what it leaves, when it stops, and how it draws."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from mercer import (
    CenteredOperator,
    DiffusionOperator,
    Gaussian,
    GramOperator,
    Laplacian,
    Linear,
    LowRankOperator,
    Matern,
    Polynomial,
    Precomputed,
    config_context,
    rp_cholesky,
)
from mercer.operators import LinearMap

rng = np.random.default_rng(9)
X = rng.normal(size=(200, 2))
SMOOTH, ROUGH = Gaussian(sigma=1.0), Laplacian(sigma=1.0)


def gram(kernel=ROUGH, points=X):
    return GramOperator(kernel, points)


def as_gram(matrix):
    return GramOperator(Precomputed(), matrix)


# --- what is left -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [SMOOTH, ROUGH, Matern(nu=1.5, length_scale=1.0)])
@pytest.mark.parametrize("rank", [1, 2, 30, 64, 65, 150])
def test_residual_is_positive_semi_definite_with_the_diagonal_it_says(kernel, rank):
    k = gram(kernel).to_dense()
    low = rp_cholesky(gram(kernel), rank, random_state=0)
    residual = k - low.to_dense()
    assert np.linalg.eigvalsh(residual)[0] > -1e-12
    np.testing.assert_allclose(low.residual_diagonal, np.diag(residual), atol=1e-13)
    assert np.all(low.residual_diagonal >= 0)
    np.testing.assert_array_equal(low.residual_diagonal[low.landmarks], np.zeros(low.rank))


def test_result_is_a_low_rank_operator_with_distinct_landmarks():
    low = rp_cholesky(gram(), 90, random_state=1)
    assert isinstance(low, LowRankOperator)
    assert low.symmetric
    assert low.rank == low.factor.shape[1] == 90
    assert low.landmarks.dtype.kind == "i"
    assert len(set(low.landmarks.tolist())) == 90
    assert low.landmarks.min() >= 0
    assert low.landmarks.max() < 200


def test_it_agrees_with_the_matrix_on_its_landmarks():
    k = gram().to_dense()
    low = rp_cholesky(gram(), 90, random_state=1)
    np.testing.assert_allclose(low.block(slice(None), low.landmarks), k[:, low.landmarks], atol=1e-12)


def test_factor_is_lower_triangular_on_its_landmarks_in_order():
    low = rp_cholesky(gram(), 90, random_state=1)
    pivot_rows = low.factor[low.landmarks]
    np.testing.assert_allclose(np.triu(pivot_rows, 1), np.zeros((90, 90)), atol=1e-12)
    assert np.all(np.diag(pivot_rows) > 0)


@pytest.mark.parametrize("wrap", [DiffusionOperator, CenteredOperator])
def test_other_operators_are_factored_too(wrap):
    operator = wrap(gram(SMOOTH))
    low = rp_cholesky(operator, 200, random_state=0)
    np.testing.assert_allclose(low.to_dense(), operator.to_dense(), atol=1e-12)


# --- the end of the matrix ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), true_rank=st.integers(1, 6), single=st.booleans())
def test_it_is_exact_from_the_true_rank_on_and_stops_there(seed, n, true_rank, single):
    draw = np.random.default_rng(seed)
    f = draw.normal(size=(n, true_rank)) * 10.0 ** draw.uniform(-2, 0, true_rank)
    k = (f @ f.T).astype(np.float32 if single else np.float64)
    low = rp_cholesky(as_gram((k + k.T) / 2), n, random_state=seed)
    eps = np.finfo(k.dtype).eps
    np.testing.assert_allclose(low.to_dense(), k, atol=256 * eps * k.max())
    assert np.all(np.isfinite(low.factor))
    assert low.rank <= min(n, true_rank) + 2  # rounding may pass for a direction or two, no more


@pytest.mark.parametrize(
    ("kernel", "true_rank"), [(Linear(), 2), (Polynomial(degree=2, gamma=1.0), 6)], ids=["linear", "polynomial"]
)
def test_finite_features_are_found_and_no_more(kernel, true_rank):
    for seed in range(5):
        low = rp_cholesky(gram(kernel), 150, random_state=seed)
        k = gram(kernel).to_dense()
        assert true_rank <= low.rank <= true_rank + 4
        np.testing.assert_allclose(low.to_dense(), k, atol=1e-13 * k.max())
        exact = rp_cholesky(gram(kernel), true_rank, random_state=seed)
        np.testing.assert_allclose(exact.to_dense(), k, atol=1e-11 * k.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sigma", [3.0, 30.0, 1e4])
def test_it_stops_at_the_numerical_rank(dtype, sigma):
    operator = gram(Gaussian(sigma=sigma), X.astype(dtype))
    k = operator.to_dense().astype(np.float64)
    for seed in range(3):
        low = rp_cholesky(operator, 200, random_state=seed)
        assert low.rank < 150
        assert low.factor.shape == (200, low.rank)
        assert np.all(np.isfinite(low.factor))
        np.testing.assert_allclose(low.to_dense(), k, atol=512 * np.finfo(dtype).eps)
        assert np.linalg.eigvalsh(k - low.to_dense())[0] > -64 * 200 * np.finfo(dtype).eps


def test_duplicates_are_drawn_once():
    points = np.repeat(X[:20], 10, axis=0)
    for seed in range(5):
        low = rp_cholesky(gram(SMOOTH, points), 100, random_state=seed)
        assert low.rank == 20
        assert len(np.unique(points[low.landmarks], axis=0)) == 20
        np.testing.assert_allclose(low.to_dense(), gram(SMOOTH, points).to_dense(), atol=1e-13)


def test_coincident_points_have_rank_one():
    low = rp_cholesky(gram(SMOOTH, np.ones((30, 2))), 10, random_state=0)
    assert low.rank == 1
    np.testing.assert_allclose(low.to_dense(), np.ones((30, 30)), rtol=1e-14)


def test_a_rank_beyond_the_size_is_the_whole_matrix():
    k = gram().to_dense()
    low = rp_cholesky(gram(), 10_000, random_state=0)
    assert low.rank == 200
    np.testing.assert_array_equal(np.sort(low.landmarks), np.arange(200))
    np.testing.assert_allclose(low.to_dense(), k, atol=1e-12)


def test_zero_matrix_has_rank_zero():
    low = rp_cholesky(as_gram(np.zeros((6, 6))), 3, random_state=0)
    assert low.rank == 0
    assert low.landmarks.size == 0
    np.testing.assert_array_equal(low.to_dense(), np.zeros((6, 6)))
    np.testing.assert_array_equal(low @ np.ones(6), np.zeros(6))
    np.testing.assert_array_equal(low.residual_diagonal, np.zeros(6))


def test_rows_of_zeros_are_never_drawn():
    k = np.zeros((8, 8))
    k[2:5, 2:5] = np.eye(3) + 1
    for seed in range(10):
        low = rp_cholesky(as_gram(k), 8, random_state=seed)
        np.testing.assert_array_equal(np.sort(low.landmarks), [2, 3, 4])


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e200])
def test_scale_does_not_matter(scale):
    plain, scaled = (rp_cholesky(GramOperator(c * ROUGH, X), 20, random_state=4) for c in (1.0, scale))
    np.testing.assert_array_equal(plain.landmarks, scaled.landmarks)
    np.testing.assert_allclose(scaled.factor / np.sqrt(scale), plain.factor, rtol=1e-9, atol=1e-12)


class _RoundingOnly(LinearMap):
    """A map whose diagonal is rounding that its entries do not confirm."""

    def __init__(self, n):
        super().__init__((n, n), np.float64, symmetric=True)

    def _multiply(self, v):
        return 0 * v

    _transpose_multiply = _multiply

    def diagonal(self):
        return np.full(self.shape[0], 1e-17)

    def block(self, rows, cols):
        return np.zeros((np.arange(self.shape[0])[rows].size, np.arange(self.shape[1])[cols].size))


def test_a_diagonal_of_rounding_does_not_keep_it_drawing_for_ever():
    low = rp_cholesky(_RoundingOnly(30), 5, random_state=0)
    assert low.rank == 0
    np.testing.assert_array_equal(low.residual_diagonal, np.zeros(30))


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-310])
def test_numbers_that_have_lost_their_digits_do_not_either(size):
    matrix = size * np.eye(20)
    low = rp_cholesky(GramOperator(Precomputed(), matrix), 5, random_state=0, weights=np.linspace(1e-12, 1.0, 20))
    assert low.rank == 0


def test_weights_and_residuals_that_are_small_both_are_drawn_all_the_same():
    weights = np.array([1e-300, 0.0, 1e-300])
    matrix = GramOperator(Precomputed(), np.diag([1e-200, 1e-200, 1e-200]))
    assert sorted(rp_cholesky(matrix, 2, random_state=0, weights=weights).landmarks) == [0, 2]


# --- quality ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "rank", "factor"),
    [(ROUGH, 10, 2), (ROUGH, 60, 2.5), (Matern(nu=1.5, length_scale=1.0), 30, 3), (SMOOTH, 10, 3)],
)
def test_trace_left_over_is_near_the_least_possible(kernel, rank, factor):
    values = np.linalg.eigvalsh(gram(kernel).to_dense())
    best = values[:-rank].sum()
    left = [rp_cholesky(gram(kernel), rank, random_state=seed).residual_diagonal.sum() for seed in range(15)]
    assert min(left) >= best * (1 - 1e-9)
    assert np.mean(left) <= factor * best


# --- the draws ----------------------------------------------------------------------------------------------


def test_a_seed_repeats_the_draws():
    one, two = (rp_cholesky(gram(), 40, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.landmarks, two.landmarks)
    np.testing.assert_array_equal(one.factor, two.factor)
    other = rp_cholesky(gram(), 40, random_state=8)
    assert not np.array_equal(one.landmarks, other.landmarks)


def test_a_generator_moves_on():
    source = np.random.default_rng(7)
    one, two = (rp_cholesky(gram(), 40, random_state=source) for _ in range(2))
    assert not np.array_equal(one.landmarks, two.landmarks)
    np.testing.assert_array_equal(one.landmarks, rp_cholesky(gram(), 40, random_state=7).landmarks)


def test_without_a_seed_it_still_works():
    assert rp_cholesky(gram(), 5).rank == 5
    assert rp_cholesky(gram(), 5, random_state=np.random.RandomState(3)).rank == 5


def sequential_pairs(k):
    """The probability of each ordered pair of first pivots, drawn one by one from the residual diagonal."""
    chances = {}
    for i, j in permutations(range(len(k)), 2):
        left = np.diag(k) - k[:, i] ** 2 / k[i, i]
        left[i] = 0
        chances[i, j] = k[i, i] / np.trace(k) * left[j] / left.sum()
    return chances


# Points 0, 1 and 2 are nearly the same, and 4 weighs most: without rejection (0, 1) would be drawn 40 times too often.
FACTOR = np.array([[1.0, 0.0, 0.1], [1.0, 0.1, 0.0], [1.0, 0.1, 0.1], [0.2, 0.8, 0.0], [0.0, 0.5, 1.4]])
SMALL = FACTOR @ FACTOR.T + 0.01 * np.eye(5)


@pytest.mark.parametrize("rank", [2, 3])
def test_first_two_pivots_are_drawn_as_one_by_one(rank):
    draws, operator, source = 3000, as_gram(SMALL), np.random.default_rng(11)
    chances = sequential_pairs(SMALL)
    counts = dict.fromkeys(chances, 0)
    for _ in range(draws):
        first, second = rp_cholesky(operator, rank, random_state=source).landmarks[:2]
        counts[int(first), int(second)] += 1
    assert sum(chances.values()) == pytest.approx(1)
    # Pairs too rare for a chi-square test are counted together.
    common = [pair for pair in chances if chances[pair] * draws >= 8]
    observed = [counts[pair] for pair in common] + [sum(counts[pair] for pair in chances if pair not in common)]
    expected = [chances[pair] * draws for pair in common]
    expected.append(draws - sum(expected))
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    assert statistic < chi2.ppf(1 - 1e-4, df=len(observed) - 1)


def test_the_chi_square_test_would_notice_missing_rejection():
    """Without rejection a block is independent draws without replacement, far from sequential ones."""
    p = np.diag(SMALL) / np.trace(SMALL)
    chances = sequential_pairs(SMALL)
    naive = {(i, j): p[i] * p[j] / (1 - p[i]) for i, j in chances}
    distance = sum((naive[pair] - chances[pair]) ** 2 / chances[pair] for pair in chances)
    assert 3000 * distance > 10 * chi2.ppf(1 - 1e-4, df=19)


# --- what it refuses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, -1, 2.0, "3", None, True, np.nan])
def test_a_bad_rank_is_refused(rank):
    with pytest.raises(ValueError, match=r"^rank=.* must be a whole number of at least 1\.$"):
        rp_cholesky(gram(), rank)


def test_a_numpy_integer_is_a_rank():
    assert rp_cholesky(gram(), np.int64(3), random_state=0).rank == 3


@pytest.mark.parametrize("seed", [-1, "seed", 1.5])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match=r"^random_state=.* must be None, a whole number"):
        rp_cholesky(gram(), 3, random_state=seed)


def test_a_map_that_is_not_symmetric_is_refused():
    for operator in (GramOperator(ROUGH, X, X[:3]), GramOperator(ROUGH, X, weights=np.ones(200))):
        with pytest.raises(ValueError, match=r"^A Cholesky factorisation is of a symmetric map\.$"):
            rp_cholesky(operator, 3)


@pytest.mark.parametrize("tolerance", [0.5, 1e-2, 1e-6])
def test_tolerance_stops_when_the_residual_trace_is_small(tolerance):
    gram = GramOperator(Gaussian(sigma=1.0), np.random.default_rng(0).standard_normal((300, 2)))
    low = rp_cholesky(gram, 300, 0, tolerance=tolerance)
    full = rp_cholesky(gram, 300, 0)
    assert low.residual_diagonal.sum() <= tolerance * 300
    assert low.rank < full.rank


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, np.nan, True])
def test_tolerance_that_is_none(tolerance):
    gram = GramOperator(Gaussian(sigma=1.0), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="tolerance=.* must lie between 0 and 1"):
        rp_cholesky(gram, 2, 0, tolerance=tolerance)


def test_any_number_of_threads_gives_the_same_bits():
    """More rows than a chunk of 4096, so that the threads share them."""
    gram = GramOperator(Laplacian(sigma=3.0), np.random.default_rng(5).normal(size=(4500, 2)))
    found = []
    for threads in (1, 2, 3):
        with config_context(n_threads=threads):
            found.append(rp_cholesky(gram, 130, random_state=1))
    for other in found[1:]:
        np.testing.assert_array_equal(other.landmarks, found[0].landmarks)
        np.testing.assert_array_equal(other.factor, found[0].factor)
        np.testing.assert_array_equal(other.residual_diagonal, found[0].residual_diagonal)
    F, rows = found[0].factor, np.array([0, 4095, 4096, 4499])
    exact = gram.block(rows, found[0].landmarks)
    np.testing.assert_allclose(F[rows] @ F[found[0].landmarks].T, exact, atol=1e-13)  # it agrees on its own columns
