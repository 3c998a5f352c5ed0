"""Kernels with a length for each column, of some columns, of categories, and what is known of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import (
    DiffusionMaps,
    FromDistance,
    Gaussian,
    GramOperator,
    GraphLaplacian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    SelfTuning,
    Sobolev,
)
from mercer.backends.arrays import to_numpy
from mercer.kernels import Categories, ChiSquared, Mixed
from mercer.kernels.properties import EVERYTHING

LONG = np.longdouble
SCALES = np.array([0.3, 1000.0, 1.7, 0.01, 40.0, 2.0, 3.0, 0.9])


def points(n, d, dtype=np.float64, seed=0):
    """Points whose columns have the units of SCALES, and are far from the origin."""
    X = np.random.default_rng(seed).normal(size=(n, d)) * SCALES[:d] + 3 * SCALES[:d]
    return X.astype(dtype)


def scaled(X, lengths):
    X = X.astype(LONG)
    return (X[:, None] - X[None]) / np.asarray(lengths, LONG)


REFERENCE = {
    Gaussian: lambda off: np.exp(-(off**2).sum(2)),
    Laplacian: lambda off: np.exp(-np.abs(off).sum(2)),
    Matern: lambda off: (1 + np.sqrt(3 * (off**2).sum(2))) * np.exp(-np.sqrt(3 * (off**2).sum(2))),
    Categories: lambda off: np.exp(-off.sum(2)),
}


def truth(kind, X, lengths):
    if kind is Categories:
        return REFERENCE[kind]((X[:, None] != X[None]) / np.asarray(lengths, LONG))
    return REFERENCE[kind](scaled(X, lengths))


def of(kind, lengths):
    return kind(1.5, lengths) if kind is Matern else kind(lengths)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("spread", [1.0, 1e-3])  # of lengths: by inner products, and by differences
@pytest.mark.parametrize("d", [2, 4, 8])
@pytest.mark.parametrize("kind", REFERENCE)
@pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="long double is double on this platform")
def test_entries_of_lengths_lie_within_their_stated_error(kind, d, spread, library, dtype):
    X = points(60, d, dtype)
    X[30:] = X[:30] + (X[:30] * np.random.default_rng(1).normal(size=(30, d)) * spread / 8).astype(dtype)
    if kind is Categories:
        X = np.random.default_rng(d).integers(0, 3, (60, d)).astype(dtype)
    lengths = (spread * SCALES[:d] * np.sqrt(d) * 1.1).tolist()
    gram = GramOperator(of(kind, lengths), X if library == "numpy" else pytest.importorskip("torch").as_tensor(X))
    exact, error = truth(kind, X, lengths), gram.entry_error
    allowed = error.relative * exact + error.scaled + error.absolute
    distance = np.abs(to_numpy(gram.to_dense()) - exact)
    assert np.all(distance <= allowed)
    assert error.relative < (1e-3 if dtype == np.float32 else 1e-11)
    np.testing.assert_array_equal(to_numpy(gram.to_dense()), to_numpy(gram.to_dense()).T)
    V = np.random.default_rng(2).normal(size=(60, 3)).astype(dtype)
    assert_allclose(to_numpy(gram @ V), exact @ V, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-4)


def test_equal_lengths_are_one_length_to_the_last_bit():
    for kind, d in [(Gaussian, 3), (Gaussian, 8), (Laplacian, 4), (Matern, 6)]:
        X = points(50, d)
        assert_array_equal(of(kind, [2.3] * d)(X), of(kind, 2.3)(X))


def test_lengths_are_a_division_of_the_columns():
    X, lengths = points(300, 5), SCALES[:5] * 2
    for kind in (Gaussian, Laplacian, Matern):
        assert_allclose(of(kind, lengths)(X), of(kind, 1.0)(X / lengths), rtol=1e-12)
    assert_allclose(Sobolev(4.0, lengths)(X), Sobolev(4.0, 1.0)(X / lengths), rtol=1e-11)


@pytest.mark.parametrize("kind", [Gaussian, Laplacian])
def test_differences_keep_their_digits_whatever_the_offset_of_a_column(kind):
    """Time stamps in seconds, compared in thirds of seconds: a product with 1/σ would lose seven digits."""
    X = np.array([[1.6e9, 0.0], [1.6e9 + 1, 0.0], [1.7e9, 0.0], [1.7e9 + 1, 0.0]])
    values = kind([3.0, 1.0])(X)
    exact = truth(kind, X, [3.0, 1.0]).astype(float)
    assert_allclose(values, exact, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("kind", [Gaussian, Laplacian, Matern])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_very_unlike_sizes(kind, dtype, on):
    """Each column has its own power of two: the largest numbers of one do not take the digits of another."""
    size = np.array([1e30, 1e-30]) if dtype == np.float32 else np.array([1e250, 1e-250])
    X = np.array([[0.5, 1.0], [1.0, 1.0], [1.0, 2.5], [9.0, 30.0]])
    values = on(of(kind, (2 * size.astype(dtype)).astype(float).tolist()))((X * size.astype(dtype)).astype(dtype))
    rtol = 2e-5 if dtype == np.float32 else 1e-13
    assert_allclose(values, truth(kind, X, [2.0, 2.0]).astype(float), rtol=rtol, atol=1e-35)
    far = on(of(kind, [1e-300, 1.0]))(np.array([[0.0, 0.0], [1e300, 0.0]], np.float64))
    assert_array_equal(far, np.eye(2))


def test_the_error_of_an_entry_counts_the_weights_of_columns():
    """A length that is a column's own is rounded, squared, and multiplies: no entry may have the bound of one length."""
    X = points(2, 3) * 1e5  # far apart: by differences
    one, several = (GramOperator(Laplacian(length), X).entry_error for length in (1e5, [1e5, 1.1e5, 1e5]))
    assert several.relative > one.relative


def test_the_error_of_an_entry_counts_the_division_of_coordinates():
    """Two coordinates that are divided by a length before they are subtracted err by parts of their own sizes."""
    X = np.array([[100.0, 100.0], [100.0, 101.0]])
    one, several = (GramOperator(Laplacian(length), X).entry_error for length in (1.0, [1.0, np.nextafter(1.0, 2.0)]))
    assert several.relative - one.relative > 3.9 * np.finfo(float).eps / 2 * 201
    thirds = GramOperator(Laplacian([1.0, 3.0]), np.random.default_rng(0).normal(size=(400, 2)) + 50)
    exact = truth(Laplacian, thirds.points, [1.0, 3.0])
    assert np.all(np.abs(thirds.to_dense() - exact) <= thirds.entry_error.relative * exact)


# --- kernels on columns -------------------------------------------------------------------------------------------


def test_a_kernel_on_columns_is_the_kernel_of_these_columns(on):
    X, Y = points(70, 6), points(40, 6, seed=1)
    for kernel, columns in [(Gaussian(3.0), [4, 1]), (Linear(), 2), (Matern(0.3, 1.0), (0, 5)), (Polynomial(2), [-1])]:
        chosen = np.atleast_1d(columns)
        assert_allclose(on(kernel.on(columns))(X, Y), on(kernel)(X[:, chosen], Y[:, chosen]), rtol=1e-12)
        assert_allclose(on(kernel.on(columns)).diag(X), on(kernel).diag(X[:, chosen]), rtol=1e-13)
        assert_allclose(on(kernel.on(columns)).log(X, Y), on(kernel).log(X[:, chosen], Y[:, chosen]), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [5, 700])
def test_leaves_of_several_widths_share_one_product(n, dtype, on):
    """Nine columns by BLAS, two by loops, one by an inner product: the fused product is that of the dense matrix."""
    rng = np.random.default_rng(n)
    X = np.hstack([rng.normal(size=(n, 10)), rng.integers(0, 3, (n, 2))]).astype(dtype)
    lengths = np.linspace(2, 5, 9)
    kernel = Gaussian(lengths).on(range(1, 10)) * Categories(1.5).on([10, 11]) + 0.5 * Linear().on(0)
    Z = X.astype(np.float64)
    alike = (Z[:, None, 10:] != Z[None, :, 10:]).sum(2) / 1.5
    K = np.exp(-(((Z[:, None, 1:10] - Z[None, :, 1:10]) / lengths) ** 2).sum(2) - alike) + 0.5 * np.outer(
        Z[:, 0], Z[:, 0]
    )
    tolerance = {"rtol": 1e-4, "atol": 1e-4 * n} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    assert_allclose(on(kernel)(X), K, **tolerance)
    V = rng.normal(size=(n, 20)).astype(dtype)
    for r in (1, 20):
        assert_allclose(GramOperator(kernel, X) @ V[:, :r], K @ V[:, :r], **tolerance)
    assert_allclose(GramOperator(kernel, X, X[:3]) @ V[:3], K[:, :3] @ V[:3], **tolerance)


def test_columns_of_columns_and_of_wide_tables():
    X = points(40, 8)
    assert_array_equal(Gaussian(2.0).on([1, 0]).on([5, 3, 2])(X), Gaussian(2.0)(X[:, [3, 5]]))
    wide = np.random.default_rng(0).normal(size=(500, 60))  # so many columns have larger tiles, three of them do not
    gram, few, v = GramOperator(Gaussian(1.0).on([0, 30, 59]), wide), wide[:, [0, 30, 59]], np.ones((500, 1))
    assert_allclose(gram @ v, Gaussian(1.0)(few) @ v, rtol=1e-12)
    depths = gram.kernel.matrix(wide).summation_depth, Gaussian(1.0).matrix(few).summation_depth
    assert depths[0] == depths[1]


def test_a_kernel_that_learns_from_its_points_sees_its_columns_alone():
    X = points(60, 4)
    some = X[:, [0, 2]]
    for kernel in (SelfTuning(n_neighbors=5), FromDistance("manhattan"), GraphLaplacian()):
        on_some, alone = kernel.on([0, 2]).resolve(X), kernel.resolve(some)
        assert_array_equal(on_some(X), alone(some))
        assert_array_equal(on_some(X[:7] + 0.1, X), alone(some[:7] + 0.1, some))
        assert GramOperator(on_some, X).entry_error == GramOperator(alone, some).entry_error
    model = DiffusionMaps(SelfTuning().on([0, 2])).fit(X)
    assert_array_equal(model.embedding_, DiffusionMaps(SelfTuning()).fit(some).embedding_)
    assert_array_equal(model.transform(X[:3] * 1.1), DiffusionMaps(SelfTuning()).fit(some).transform(some[:3] * 1.1))


def test_rules_are_resolved_from_the_columns_of_each():
    X = points(80, 4)
    weights = np.arange(80) % 3
    kernel = (Gaussian().on([0, 1]) * Laplacian("slope").on(3)).resolve(X, weights)
    assert kernel.left.kernel.sigma == Gaussian().resolve(X[:, :2], weights).sigma
    assert kernel.right.kernel.sigma == Laplacian("slope").resolve(X[:, 3:], weights).sigma


def test_parameters_pickles_and_copies_reach_through_columns():
    kernel = Gaussian([1.0, 2.0]).on([0, 2]) + Categories(1.0).on("b")
    assert kernel.get_params()["left__kernel__sigma"] == [1.0, 2.0]
    copy = clone(kernel).set_params(left__kernel__sigma=3.0, right__columns=1)
    assert repr(copy) == "Sum(left=Gaussian(sigma=3.0).on([0, 2]), right=Categories(sigma=1.0).on(1))"
    X = np.random.default_rng(0).integers(0, 3, (9, 3)).astype(float)
    assert_array_equal(pickle.loads(pickle.dumps(copy))(X), copy(X))


def test_what_cannot_be_read_is_named():
    X = points(5, 3)
    for make, error, sentence in [
        (lambda: Gaussian(1.0).on([0, 3])(X), ValueError, "reads the column 3, but X has 3 columns"),
        (lambda: Gaussian(1.0).on([0, -3])(X), ValueError, "names a column twice"),
        (lambda: Gaussian(1.0).on([])(X), ValueError, "names no column"),
        (lambda: Gaussian(1.0).on(0.5)(X), TypeError, "must be numbers of columns or names"),
        (lambda: Gaussian(1.0).on(True)(X), TypeError, "must be numbers of columns or names"),
        (lambda: Gaussian(1.0).on("a")(X), ValueError, "the columns of X have no names: pass a data frame"),
        (lambda: Precomputed().on([0])(X), TypeError, "has no columns to choose from"),
        (lambda: ChiSquared().on([0])(-X), ValueError, "takes data ≥ 0 only"),
        (lambda: Gaussian([1.0, 2.0])(X), ValueError, "sigma has 2 numbers, but the points have 3 columns"),
        (lambda: Gaussian([1.0, 2.0]).resolve(X), ValueError, "sigma has 2 numbers, but the points have 3 columns"),
        (lambda: Gaussian([1.0, -2.0, 3.0])(X), ValueError, r"sigma\[1\]=-2.0 must be greater than 0"),
        (lambda: Matern(1.5, [1.0, np.nan, 3.0])(X), ValueError, r"length_scale\[1\]=nan must be a finite number"),
        (lambda: Categories("slope").resolve(X), ValueError, "must be a positive number or one of 'median'"),
        (lambda: Mixed()(X), ValueError, "depends on the data: call kernel = kernel.resolve"),
    ]:
        with pytest.raises(error, match=sentence):
            make()
    assert_array_equal(ChiSquared().on([0])(abs(X) * [1, -1, -1]), ChiSquared()(abs(X[:, :1])))


# --- the rule for columns -----------------------------------------------------------------------------------------


def test_the_lengths_of_columns_follow_their_units():
    X = points(120, 4)
    lengths = np.array(Gaussian("columns").resolve(X).sigma)
    assert_allclose(Gaussian("columns").resolve(X * [1, 10, 100, 1e-3]).sigma, lengths * [1, 10, 100, 1e-3], rtol=1e-12)
    off = X[:, None] - X[None]
    distances = np.sqrt(((off / lengths) ** 2).sum(2))[np.triu_indices(120, 1)]
    assert_allclose(np.median(distances), 1.0, rtol=1e-12)
    medians = np.median(np.abs(off)[np.triu_indices(120, 1)], axis=0)
    assert_allclose(lengths / medians, (lengths / medians)[0], rtol=1e-12)
    assert_allclose(Gaussian("columns").resolve(X[:, :1]).sigma, (Gaussian().resolve(X[:, :1]).sigma,), rtol=1e-12)


def test_the_lengths_of_columns_count_weights_as_copies_and_see_constant_columns():
    X = points(40, 3)
    X[:, 1] = 7.0
    counts = np.random.default_rng(0).integers(0, 4, 40)
    weighted = Laplacian("columns").resolve(X, counts).sigma
    assert_allclose(weighted, Laplacian("columns").resolve(np.repeat(X, counts, axis=0)).sigma, rtol=1e-12)
    torch = pytest.importorskip("torch")
    assert_allclose(Laplacian("columns").resolve(torch.tensor(X), counts).sigma, weighted, rtol=1e-12)
    with pytest.raises(ValueError, match="All points are equal"):
        Gaussian("columns").resolve(np.ones((4, 2)))


def test_sparse_columns_have_the_length_of_what_is_in_them():
    X = np.zeros((50, 2))
    X[::10, 0], X[:, 1] = 3.0, np.arange(50)
    lengths = Gaussian("columns").resolve(X).sigma
    assert_allclose(
        lengths[0] / lengths[1], 3.0 / np.median(np.abs(np.subtract.outer(X[:, 1], X[:, 1]))[np.triu_indices(50, 1)])
    )


def test_categories_choose_how_many_columns_differ():
    X = np.array([[0, 0, 0], [1, 1, 0], [2, 2, 0], [3, 3, 0]], float)
    assert Categories().resolve(X).sigma == 2.0
    assert Categories().resolve(X[:1].repeat(3, axis=0)).sigma == 1.0


# --- properties ---------------------------------------------------------------------------------------------------


def test_a_product_over_all_columns_has_what_its_factors_have():
    assert (Gaussian([1.0, 2.0]).on([0, 1]) * Categories().on([2])).properties == EVERYTHING
    assert (Gaussian().on(["a"]) * Laplacian().on(["b"])).properties == EVERYTHING
    assert Mixed().properties == EVERYTHING
    mixed = (Gaussian().on([0]) * Linear().on([1])).properties
    assert mixed.positive_definite is True
    assert (mixed.universal, mixed.characteristic, mixed.finite_rank, mixed.stationary, mixed.bounded) == (False,) * 5


def test_a_sum_over_columns_sees_no_dependence_between_them():
    """(δ₀ - δ₁) ⊗ (δ₀ - δ₁) embeds to zero, which is what the declared False says."""
    kernel = Gaussian(1.0).on([0]) + Gaussian(1.0).on([1])
    square, signs = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([1.0, -1, -1, 1])
    assert abs(signs @ kernel(square) @ signs) < 1e-15
    assert kernel.properties.characteristic is kernel.properties.universal is False
    assert kernel.properties.integrally_strictly_positive_definite is False
    whole = (Gaussian(1.0) + Gaussian(1.0).on([0])).properties
    assert whole.universal is whole.characteristic is whole.positive_definite is True
    inside = (Gaussian(1.0).on([0, 1]) * Linear().on([1])).properties
    assert inside.positive_definite is True
    assert inside.characteristic is None


def test_columns_that_cannot_be_compared_promise_nothing():
    for left, right in [([0], ["a"]), ([-1], [1]), (["a"], [0])]:
        found = (Gaussian().on(left) * Gaussian().on(right)).properties
        assert (found.universal, found.characteristic, found.positive_definite) == (None, None, True)
        assert (Gaussian().on(left) + Gaussian().on(right)).properties.universal is None


@pytest.mark.parametrize(
    "make", [lambda k: k.on([0]), lambda k: k.normalized(), lambda k: 2.0 * k], ids=["on", "normalized", "multiple"]
)
def test_what_is_made_of_a_kernel_has_its_signs(make):
    """Bounds of sums are sharper where no entry is negative: none may be claimed of a kernel that has some."""
    X = np.array([[1.0, 2.0], [-1.0, 0.5], [3.0, -2.0]])
    assert not make(Linear()).matrix(X).nonnegative
    assert make(Gaussian(1.0)).matrix(X).nonnegative
