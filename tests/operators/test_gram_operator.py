"""The Gram operator: its entries, its weights, and when it keeps them in memory."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process.kernels import Matern as GaussianProcessMatern
from sklearn.metrics.pairwise import pairwise_kernels

from mercer import (
    CenteredOperator,
    ChiSquared,
    Cosine,
    DiffusionOperator,
    Gaussian,
    GramOperator,
    Laplacian,
    Linear,
    Matern,
    NormalizedOperator,
    Polynomial,
    Precomputed,
    Sigmoid,
    config_context,
)

rng = np.random.default_rng(5)
FEW = rng.uniform(0.1, 2.0, size=(40, 3))
MANY = rng.uniform(0.1, 2.0, size=(31, 12))


def matern(nu, length):
    return lambda x, y: GaussianProcessMatern(length_scale=length, nu=nu)(x, y)


KERNELS = {
    "gaussian": (Gaussian(sigma=1.3), {"metric": "rbf", "gamma": 1 / 1.3**2}),
    "laplacian": (Laplacian(sigma=1.3), {"metric": "laplacian", "gamma": 1 / 1.3}),
    "linear": (Linear(), {"metric": "linear"}),
    "polynomial": (Polynomial(degree=3, gamma=0.2, coef0=0.7), {"metric": "poly", "gamma": 0.2, "coef0": 0.7}),
    "sigmoid": (Sigmoid(gamma=0.1, coef0=-0.3), {"metric": "sigmoid", "gamma": 0.1, "coef0": -0.3}),
    "cosine": (Cosine(), {"metric": "cosine"}),
    "chi-squared": (ChiSquared(gamma=0.4), {"metric": "chi2", "gamma": 0.4}),
    "matern": (Matern(nu=1.5, length_scale=0.9), matern(1.5, 0.9)),
}


def by_scikit_learn(how, x, y):
    if callable(how):
        return how(x, y)
    return pairwise_kernels(x, y, **how)


@pytest.mark.parametrize("points", [FEW, MANY], ids=["few features", "many features"])
@pytest.mark.parametrize("name", KERNELS)
def test_entries_are_those_of_scikit_learn(name, points):
    kernel, how = KERNELS[name]
    new = points[:7] + 0.05
    square, block = GramOperator(kernel, points), GramOperator(kernel, new, points)
    np.testing.assert_allclose(square.to_dense(), by_scikit_learn(how, points, points), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(block.to_dense(), by_scikit_learn(how, new, points), rtol=1e-11, atol=1e-13)
    assert square.symmetric
    assert not block.symmetric


def test_the_same_array_twice_is_the_symmetric_matrix():
    assert GramOperator(Gaussian(sigma=1.0), FEW, FEW).symmetric
    assert not GramOperator(Gaussian(sigma=1.0), FEW, FEW.copy()).symmetric


def test_weights_multiply_the_columns():
    w = rng.uniform(size=len(FEW))
    gram = GramOperator(Gaussian(sigma=1.0), FEW, weights=w)
    plain = GramOperator(Gaussian(sigma=1.0), FEW)
    np.testing.assert_allclose(gram.to_dense(), plain.to_dense() @ np.diag(w), rtol=1e-14)
    np.testing.assert_allclose(gram.row_sums(), plain @ w, rtol=1e-13)
    np.testing.assert_allclose(gram.diagonal(), w * plain.diagonal(), rtol=1e-14)
    assert not gram.symmetric
    assert gram.unweighted().symmetric
    np.testing.assert_array_equal(gram.unweighted().to_dense(), plain.to_dense())
    np.testing.assert_array_equal(gram.kernel_diagonal(), plain.diagonal())


def test_whole_numbers_and_lists_are_weights():
    gram = GramOperator(Linear(), [[1.0], [2.0]], weights=[3, 0])
    np.testing.assert_array_equal(gram.to_dense(), [[3.0, 0.0], [6.0, 0.0]])


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(3), r"^weights has 3 entries for 40 points\.$"),
        (-np.ones(40), r"^weights must not be negative, and at least one must be positive\.$"),
        (np.zeros(40), r"^weights must not be negative, and at least one must be positive\.$"),
        (np.full(40, np.nan), "weights has nan in row 0"),
    ],
)
def test_bad_weights_are_refused(weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        GramOperator(Gaussian(sigma=1.0), FEW, weights=weights)


def test_dropping_weights_shares_the_stored_matrix():
    gram = GramOperator(Gaussian(sigma=1.0), FEW, weights=np.ones(len(FEW)))
    assert gram.unweighted() is not gram
    for _ in range(3):
        gram @ np.ones(len(FEW))
    assert gram.unweighted()._matrix is gram._matrix
    plain = GramOperator(Gaussian(sigma=1.0), FEW)
    assert plain.unweighted() is plain


def test_diagonal_of_both_sides_of_a_rectangle():
    gram = GramOperator(Linear(), FEW[:5], FEW)
    np.testing.assert_allclose(gram.kernel_diagonal(), (FEW[:5] ** 2).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(gram.kernel_diagonal("cols"), (FEW**2).sum(axis=1), rtol=1e-14)


def test_log_rows_are_finite_where_the_kernel_underflows():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [60.0, 0.0]])
    gram = GramOperator(Gaussian(sigma=1.0), points)
    assert gram.to_dense()[0, 2] == 0.0
    np.testing.assert_allclose(gram.log_rows(0, 1), [[0.0, -1.0, -3600.0]], rtol=1e-12)


def test_no_new_points_give_an_empty_product():
    gram = GramOperator(Gaussian(sigma=1.0), FEW[:0], FEW)
    assert (gram @ np.ones(len(FEW))).shape == (0,)
    assert (gram @ np.ones((len(FEW), 2))).shape == (0, 2)
    assert gram.to_dense().shape == (0, len(FEW))


# --- storing: only if it fits, only if it pays, and never for one product -----------------------------------

BEYOND_CACHE = 2100  # 35 MB in double precision: more than the 32 MiB below which storing always pays


def multiply(gram, times):
    for _ in range(times):
        gram @ np.ones((gram.shape[1], 2))


def test_small_matrix_is_stored_from_the_second_product_on():
    gram = GramOperator(Gaussian(sigma=1.0), FEW)
    multiply(gram, 1)
    assert not gram.is_stored
    multiply(gram, 1)
    assert gram.is_stored


def test_looking_at_the_matrix_does_not_store_it():
    gram = GramOperator(Gaussian(sigma=1.0), FEW)
    for _ in range(3):
        gram.row_sums()
        gram.diagonal()
        gram.to_dense()
        gram.block([0, 1], slice(None))
    assert not gram.is_stored
    multiply(gram, 1)
    assert not gram.is_stored


def test_no_memory_no_storing():
    with config_context(memory_limit=0):
        gram = GramOperator(Gaussian(sigma=1.0), FEW)
        multiply(gram, 5)
        assert not gram.is_stored
    multiply(gram, 1)
    assert gram.is_stored


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_limit_is_kept_to_the_byte(dtype):
    size = len(FEW) ** 2 * np.dtype(dtype).itemsize
    for limit, stored in ((size - 1, False), (size, True)):
        gram = GramOperator(Gaussian(sigma=1.0), FEW.astype(dtype))
        with config_context(memory_limit=limit):
            multiply(gram, 3)
        assert gram.is_stored is stored


def test_large_matrix_of_few_features_is_evaluated_again():
    gram = GramOperator(Gaussian(sigma=1.0), rng.normal(size=(BEYOND_CACHE, 2)))
    with config_context(memory_limit="1 GB"):
        multiply(gram, 3)
    assert not gram.is_stored


def test_large_matrix_of_many_features_is_stored():
    gram = GramOperator(Gaussian(sigma=9.0), rng.normal(size=(BEYOND_CACHE, 60)))
    with config_context(memory_limit="1 GB"):
        multiply(gram, 1)
        assert not gram.is_stored
        multiply(gram, 1)
        assert gram.is_stored


def test_large_matrix_of_many_features_is_not_stored_beyond_the_limit():
    gram = GramOperator(Gaussian(sigma=9.0), rng.normal(size=(BEYOND_CACHE, 60)))
    with config_context(memory_limit="30 MB"):
        multiply(gram, 2)
    assert not gram.is_stored


def test_given_entries_are_stored_as_they_are():
    matrix = Gaussian(sigma=1.0)(FEW)
    for given in (matrix, scipy.sparse.csr_array(matrix)):
        with config_context(memory_limit=0):
            gram = GramOperator(Precomputed(), given)
            assert gram.is_stored
            np.testing.assert_allclose(gram @ np.ones(len(FEW)), matrix.sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("wrap", [DiffusionOperator, CenteredOperator, NormalizedOperator])
def test_an_operator_on_top_stores_by_the_same_rules(wrap):
    gram = GramOperator(Gaussian(sigma=1.0), FEW)
    operator = wrap(gram)
    assert not gram.is_stored
    multiply(operator, 1)
    assert not gram.is_stored
    multiply(operator, 1)
    assert gram.is_stored
    with config_context(memory_limit=0):
        gram = GramOperator(Gaussian(sigma=1.0), FEW)
        multiply(wrap(gram), 4)
        assert not gram.is_stored


def test_storing_does_not_alias_the_answer():
    gram = GramOperator(Gaussian(sigma=1.0), FEW)
    multiply(gram, 3)
    gram.diagonal()
    first = gram.to_dense()
    first[:] = 0
    np.testing.assert_array_equal(gram.to_dense(), Gaussian(sigma=1.0)(FEW))
