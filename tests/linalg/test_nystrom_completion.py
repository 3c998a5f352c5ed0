"""Nyström completion from landmark columns."""

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Laplacian, Linear, LowRankOperator, Precomputed, nystrom

rng = np.random.default_rng(10)
X = rng.normal(size=(80, 3))
GRAM = GramOperator(Laplacian(sigma=2.0), X)
K = GRAM.to_dense()
INDEX = np.array([3, 70, 11, 42, 8])


def formula(k, index):
    return k[:, index] @ np.linalg.pinv(k[np.ix_(index, index)], hermitian=True) @ k[index]


def test_it_is_the_formula():
    low = nystrom(GRAM, INDEX)
    assert isinstance(low, LowRankOperator)
    assert low.symmetric
    assert low.rank == 5
    np.testing.assert_allclose(low.to_dense(), formula(K, INDEX), atol=1e-13)
    np.testing.assert_array_equal(low.landmarks, np.sort(INDEX))


def test_rows_and_columns_of_landmarks_are_exact():
    low = nystrom(GRAM, INDEX)
    np.testing.assert_allclose(low.block(slice(None), INDEX), K[:, INDEX], atol=1e-13)
    np.testing.assert_allclose(low.block(INDEX, slice(None)), K[INDEX], atol=1e-13)


def test_residual_is_positive_semi_definite_with_the_diagonal_it_says():
    low = nystrom(GRAM, INDEX)
    residual = K - low.to_dense()
    assert np.linalg.eigvalsh(residual)[0] > -1e-13
    np.testing.assert_allclose(low.residual_diagonal, np.diag(residual), atol=1e-14)


def test_it_is_exact_when_the_landmarks_have_the_rank_of_the_matrix():
    gram = GramOperator(Linear(), X)
    np.testing.assert_allclose(nystrom(gram, [0, 1, 2]).to_dense(), X @ X.T, atol=1e-12)
    many = nystrom(gram, np.arange(40))
    assert many.rank == 3
    np.testing.assert_allclose(many.to_dense(), X @ X.T, atol=1e-12)
    np.testing.assert_allclose(nystrom(GRAM, np.arange(80)).to_dense(), K, atol=1e-12)


def test_too_few_landmarks_are_not_exact():
    assert np.abs(nystrom(GramOperator(Linear(), X), [0, 1]).to_dense() - X @ X.T).max() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_singular_block_of_landmarks_is_not_inverted(dtype):
    points = np.vstack([X, X[:10] + 1e-9, X[:10]]).astype(dtype)
    gram = GramOperator(Gaussian(sigma=20.0), points)
    low = nystrom(gram, np.arange(100))
    assert np.all(np.isfinite(low.factor))
    assert low.rank < 80
    np.testing.assert_allclose(low.to_dense(), gram.to_dense(), atol=1e4 * np.finfo(dtype).eps)


def test_order_and_repetition_do_not_matter():
    plain = nystrom(GRAM, INDEX)
    for index in (INDEX[::-1], np.repeat(INDEX, 3), INDEX.tolist(), INDEX - 80, INDEX.astype(np.uint8)):
        low = nystrom(GRAM, index)
        np.testing.assert_array_equal(low.landmarks, plain.landmarks)
        np.testing.assert_allclose(low.to_dense(), plain.to_dense(), atol=1e-14)


def test_a_mask_chooses_landmarks():
    mask = np.zeros(80, bool)
    mask[INDEX] = True
    np.testing.assert_array_equal(nystrom(GRAM, mask).landmarks, np.sort(INDEX))
    np.testing.assert_array_equal(nystrom(GRAM, mask.tolist()).to_dense(), nystrom(GRAM, INDEX).to_dense())


def test_one_landmark():
    low = nystrom(GRAM, 7)
    np.testing.assert_allclose(low.to_dense(), np.outer(K[7], K[7]) / K[7, 7], atol=1e-15)


def test_other_operators_are_completed_too():
    diffusion = DiffusionOperator(GRAM)
    np.testing.assert_allclose(nystrom(diffusion, INDEX).to_dense(), formula(diffusion.to_dense(), INDEX), atol=1e-14)


@pytest.mark.parametrize(
    ("landmarks", "sentence"),
    [
        ([], r"^landmarks must be a non-empty list of whole numbers, or a mask\.$"),
        (np.zeros(80, bool), r"^landmarks must be a non-empty list of whole numbers, or a mask\.$"),
        ([0.5, 1.0], r"^landmarks must be a non-empty list of whole numbers, or a mask\.$"),
        ([[0, 1], [2, 3]], r"^landmarks must be a non-empty list of whole numbers, or a mask\.$"),
        ("all", r"^landmarks must be a non-empty list of whole numbers, or a mask\.$"),
        ([0, 80], r"^landmarks must lie between 0 and 79\.$"),
        ([-81], r"^landmarks must lie between 0 and 79\.$"),
        (np.ones(79, bool), r"^A mask of landmarks must have 80 entries, not \(79,\)\.$"),
        (np.ones(81, bool), r"^A mask of landmarks must have 80 entries, not \(81,\)\.$"),
    ],
)
def test_bad_landmarks_are_refused_in_one_sentence(landmarks, sentence):
    with pytest.raises(ValueError, match=sentence):
        nystrom(GRAM, landmarks)


def test_landmarks_on_which_the_kernel_vanishes_are_refused():
    k = np.diag([0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"^The kernel vanishes on every landmark: choose others\.$"):
        nystrom(GramOperator(Precomputed(), k), [0, 1])
    assert nystrom(GramOperator(Precomputed(), k), [0, 2]).rank == 1


def test_a_map_that_is_not_symmetric_is_refused():
    with pytest.raises(ValueError, match=r"^nystrom completes a symmetric map\.$"):
        nystrom(GramOperator(Laplacian(sigma=1.0), X, X[:3]), [0])
