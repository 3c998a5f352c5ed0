"""Bad input: correct, or one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mercer import Gaussian, Laplacian, Linear, Polynomial, Precomputed, QuadratureSparsifier, Sigmoid
from mercer.datasets import load_real

KERNEL = Gaussian(sigma=0.7)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (60, 2))


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.zeros(60), "zero everywhere"),
        (np.r_[np.ones(59), -1.0], "negative at index 59"),
        (np.r_[np.ones(59), np.nan], "NaN or an infinity at index 59"),
        (np.ones(7), "one entry for each of the 60 points"),
        (np.array(["a"] * 60), "real numbers"),
    ],
)
def test_weights(X, weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        QuadratureSparsifier(KERNEL).fit(X, sample_weight=weights)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"trace_fraction": 0}, "above 0 and not above 1"),
        ({"trace_fraction": -0.5}, "above 0 and not above 1"),
        ({"trace_fraction": 1.5}, "above 0 and not above 1"),
        ({"trace_fraction": np.nan}, "above 0 and not above 1"),
        ({"trace_fraction": "a"}, "above 0 and not above 1"),
        ({"trace_fraction": True}, "above 0 and not above 1"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"alpha": 1e9}, "the best measure is the empty one"),
        ({"alpha": 1e-3, "trace_fraction": 0.5}, "not both"),
        ({"n_nodes": 0}, "n_nodes=0 must be a whole number"),
        ({"n_nodes": -1}, "n_nodes=-1 must be a whole number"),
        ({"n_nodes": 2.5}, "n_nodes=2.5 must be a whole number"),
        ({"solver": "simplex"}, "solver='simplex' must be one of"),
        ({"merge": "weakly", "n_nodes": 5}, "merge='weakly' must be"),
        ({"merge": "strong", "trace_fraction": 0.5}, "needs n_nodes or max_increase"),
        ({"trace_fraction": 0.5, "max_increase": -1.0}, "max_increase"),
        ({"trace_fraction": 0.5, "max_weight": 0.0}, "max_weight"),
        ({"trace_fraction": 0.9, "max_weight": 1e-3}, "max_weight allows a trace fraction of 0.06"),
        ({"trace_fraction": 0.5, "ridge": -1.0}, "ridge"),
        ({"penalty": np.zeros(60)}, "zero everywhere"),
        ({"penalty": np.r_[np.ones(59), 0.0]}, "penalty is zero at index 59"),
        ({"penalty": np.ones(3)}, "one entry for each of the 60 points"),
        ({"alpha": 1e-3, "solver": "exchange"}, "give trace_fraction, not alpha"),
        ({"tol": 0.0, "trace_fraction": 0.5}, "tol"),
    ],
)
def test_parameters(X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        QuadratureSparsifier(KERNEL, **options).fit(X)


def test_caps_leave_too_few_nodes_too_little(X):
    with pytest.raises(ValueError, match="max_weight allows 5 nodes a trace fraction of 0.25, but trace_fraction=0.5"):
        QuadratureSparsifier(KERNEL, trace_fraction=0.5, n_nodes=5, max_weight=0.05).fit(X)
    with pytest.warns(UserWarning, match="n_nodes=5 were asked for, but max_weight leaves no room to merge 12"):
        QuadratureSparsifier(KERNEL, trace_fraction=0.5, n_nodes=5, max_weight=0.05, merge="weak").fit(X)


def test_a_penalty_that_leaves_nothing(X):
    top = QuadratureSparsifier(KERNEL, trace_fraction=0.1, solver="path").fit(X).path_.alphas[0]
    with pytest.raises(ValueError, match="No point has any weight.*further below α₀ = 0.195059"):
        QuadratureSparsifier(KERNEL, alpha=np.nextafter(top, 0)).fit(X)
    with pytest.raises(ValueError, match="No point has any weight.*go on for longer"):
        QuadratureSparsifier(KERNEL, trace_fraction=0.5, solver="path", max_iter=1).fit(X)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e300, 1e308])
def test_weights_of_any_size(X, scale):
    counts = np.random.default_rng(0).integers(1, 9, 60)
    plain = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X, sample_weight=counts)
    if scale == 1e308:  # the sum would overflow
        counts = counts / 8
    scaled = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X, sample_weight=scale * counts)
    np.testing.assert_array_equal(np.sort(scaled.indices_), np.sort(plain.indices_))
    np.testing.assert_allclose(np.sort(scaled.weights_), np.sort(plain.weights_), rtol=5e-4 if scale < 1e-310 else 1e-9)


@pytest.mark.parametrize("exponent", [-1000, -664, 510, 531, 1019])
@pytest.mark.parametrize("kernel", [KERNEL, None])
def test_weights_count_by_their_ratios(X, exponent, kernel):
    """Times a power of two, 2^-664 ≈ 1e-200, 2^510 ≈ 1e154, 2^531 ≈ 1e160: the same to the last bit."""
    weights = np.random.default_rng(0).uniform(0.5, 2, 60)
    plain = QuadratureSparsifier(kernel, n_nodes=9).fit(X, sample_weight=weights)
    scaled = QuadratureSparsifier(kernel, n_nodes=9).fit(X, sample_weight=np.ldexp(weights, exponent))
    np.testing.assert_array_equal(scaled.indices_, plain.indices_)
    np.testing.assert_array_equal(scaled.weights_, plain.weights_)
    assert scaled.certificate_.lower == plain.certificate_.lower
    np.testing.assert_array_equal(scaled.eigenpairs(3).eigenvalues_hat, plain.eigenpairs(3).eigenvalues_hat)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-160, 1e160, 1e300])
def test_points_of_any_size(X, scale):
    model = QuadratureSparsifier(n_nodes=6).fit(X * scale)
    plain = QuadratureSparsifier(n_nodes=6).fit(X)
    np.testing.assert_array_equal(model.indices_, plain.indices_)
    np.testing.assert_allclose(model.transform(X * scale), plain.transform(X), atol=1e-6)
    np.testing.assert_allclose(model.witness(X * scale), plain.witness(X), atol=1e-9)


def test_new_points_that_are_too_large(X):
    model = QuadratureSparsifier(Polynomial(degree=2, gamma=1.0, coef0=1.0), trace_fraction=0.7).fit(X)
    for values in (model.transform, model.witness):
        with pytest.raises(ValueError, match=r"Polynomial\(.*\) overflows at row 1 of X"):
            values(np.vstack([X[:1], X[1:2] * 1e200]))


def test_given_values_whose_squares_are_too_large(X):
    kernel = Gaussian(sigma=1.0)
    model = QuadratureSparsifier(Precomputed(), trace_fraction=0.7).fit(kernel(X))
    with pytest.raises(ValueError, match=r"Precomputed\(.*\) overflows at row 1 of X"):
        model.witness(np.vstack([kernel(X[:1], X), 1e200 * kernel(X[1:2], X)]))


def test_rows_of_huge_numbers(X):
    huge = np.repeat(X * 1e300, 2, axis=0)
    model = QuadratureSparsifier(Laplacian(sigma=1e300), n_nodes=5).fit(huge)
    assert np.all(model.indices_ % 2 == 0)  # repeated rows are one node, their first row
    plain = QuadratureSparsifier(Laplacian(sigma=1.0), n_nodes=5).fit(X)
    np.testing.assert_array_equal(np.sort(model.indices_) // 2, np.sort(plain.indices_))


def test_a_ridge_of_zeros_is_none(X):
    plain = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X)
    with_zeros = QuadratureSparsifier(KERNEL, trace_fraction=0.6, ridge=np.zeros(60)).fit(X)
    np.testing.assert_array_equal(with_zeros.weights_, plain.weights_)


@pytest.mark.parametrize("options", [{"ridge": 0.05}, {"max_weight": 0.015}])
def test_all_points_with_a_ridge_or_caps_have_the_best_weights(X, options):
    """As many nodes as points: the programme without penalty, which is not the sample itself."""
    model = QuadratureSparsifier(KERNEL, n_nodes=60, **options).fit(X)
    assert model.alpha_ == 0
    assert model.certificate_.holds(1e-8)
    fewer = QuadratureSparsifier(KERNEL, n_nodes=59, **options).fit(X)
    assert model.certificate_.upper <= fewer.certificate_.upper * (1 + 1e-9)
    with pytest.raises(ValueError, match="tol=-1"):
        QuadratureSparsifier(KERNEL, n_nodes=60, tol=-1, **options).fit(X)


def test_more_nodes_than_points_is_the_sample_itself(X):
    model = QuadratureSparsifier(KERNEL, n_nodes=1000).fit(X)
    np.testing.assert_array_equal(np.sort(model.indices_), np.arange(60))
    np.testing.assert_allclose(model.weights_, 1 / 60)
    assert model.discrepancy_ == pytest.approx(0, abs=1e-15)


def test_points_with_zero_diagonal_take_no_part():
    X = np.random.default_rng(0).standard_normal((30, 2))
    X[[3, 7]] = 0.0
    model = QuadratureSparsifier(Linear(), trace_fraction=0.7).fit(X)
    assert not set(model.indices_) & {3, 7}
    without = QuadratureSparsifier(Linear(), trace_fraction=0.7).fit(np.delete(X, [3, 7], axis=0))
    assert model.discrepancy_ == pytest.approx(without.discrepancy_ * (28 / 30) ** 2, rel=1e-9)
    with pytest.raises(ValueError, match="k\\(x, x\\) is zero at every point"):
        QuadratureSparsifier(Linear()).fit(np.zeros((5, 2)))


@pytest.mark.parametrize("options", [{"n_nodes": 5}, {"trace_fraction": 0.9}, {"alpha": 1e-4}])
def test_duplicates_by_the_thousand(options):
    places = np.random.default_rng(0).uniform(-1, 1, (7, 2))
    which = np.random.default_rng(1).integers(0, 7, 5000)
    model = QuadratureSparsifier(KERNEL, **options).fit(places[which])
    counts = np.bincount(which)
    small = QuadratureSparsifier(KERNEL, **options).fit(places, sample_weight=counts)
    np.testing.assert_allclose(model.components_, places[which[model.indices_]])
    np.testing.assert_allclose(sorted(model.weights_), sorted(small.weights_), rtol=1e-8)
    assert model.discrepancy_ == pytest.approx(small.discrepancy_, rel=1e-8)


def test_skin_colours_repeat():
    X = load_skin()[:4000]
    model = QuadratureSparsifier(Gaussian(sigma=40.0), n_nodes=30).fit(X)
    assert model.indices_.size == 30
    assert np.unique(X[model.indices_], axis=0).shape[0] == 30
    assert model.certificate_.holds(1e-5)  # D is 1e-5 of D(0): rounding of the sums makes 1e-6 of it


def load_skin():
    try:
        return load_real("skin")["X"].astype(float)
    except FileNotFoundError as reason:
        pytest.skip(str(reason))


def test_one_point_and_equal_points(X):
    for sample in (X[:1], np.repeat(X[:1], 9, axis=0)):
        model = QuadratureSparsifier(KERNEL).fit(sample)
        assert model.indices_.tolist() == [0]
        np.testing.assert_allclose(model.weights_, [1.0])
        assert model.transform(sample).shape == (len(sample), 1)


def test_kernels_of_any_scale(X):
    plain = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X)
    for c in (1e-8, 1e8, 1e100):
        scaled = QuadratureSparsifier(c * KERNEL, trace_fraction=0.6).fit(X)
        np.testing.assert_array_equal(scaled.indices_, plain.indices_)
        np.testing.assert_allclose(scaled.weights_, plain.weights_, rtol=1e-6)
        assert scaled.discrepancy_ == pytest.approx(c**2 * plain.discrepancy_, rel=1e-6, abs=0)
    with pytest.raises(ValueError, match="overflow"):
        QuadratureSparsifier(1e200 * KERNEL, trace_fraction=0.6).fit(X)
    for c in (1e-160, 1e-200, 1e-300):
        with pytest.raises(ValueError, match="vanish in float64: multiply the kernel by a constant"):
            QuadratureSparsifier(c * KERNEL, trace_fraction=0.6).fit(X)


@pytest.mark.parametrize("penalty", [None, np.ones(60), np.linspace(0.5, 2, 60)])
@pytest.mark.parametrize("max_weight", [None, 0.05])
@pytest.mark.parametrize("solver", ["active-set", "path", "exchange"])
@pytest.mark.filterwarnings("ignore:.*Precision ended the path")
def test_singular_programmes_are_solved(X, penalty, max_weight, solver):
    """Kernels of low rank, penalties of their own, caps: dependent nodes must not end at a wrong measure."""
    for kernel in (Linear(), Polynomial(degree=2, gamma=1.0, coef0=1.0)):
        for fraction in (0.3, 0.9):
            options = {"penalty": penalty, "max_weight": max_weight, "trace_fraction": fraction}
            model = QuadratureSparsifier(kernel, solver=solver, **options).fit(X)
            assert model.kappa_ == pytest.approx(fraction * model.kappa_ / model.trace_fraction_, rel=1e-9)
            whole = QuadratureSparsifier(kernel, alpha=0.0).fit(X).certificate_
            assert model.certificate_.holds(1e-7) or model.discrepancy_ <= 1e-12 * (1 + whole.upper)


def test_copies_with_penalties_of_their_own(X):
    """Of two copies the cheaper one carries the weight; where the trace is more than it needs, both do."""
    twice, penalty = np.vstack([X, X]), np.r_[np.ones(60), np.full(60, 0.5)]
    model = QuadratureSparsifier(KERNEL, alpha=1e-3, penalty=penalty).fit(twice)
    assert np.all(model.indices_ >= 60)
    assert model.certificate_.holds(1e-9)
    for solver in ("active-set", "path", "exchange"):
        rich = QuadratureSparsifier(KERNEL, trace_fraction=0.9, penalty=penalty, solver=solver).fit(twice)
        assert rich.discrepancy_ <= 1e-13
        assert rich.trace_fraction_ == pytest.approx(0.9, rel=1e-9)


def test_an_indefinite_matrix_of_the_user_is_named():
    rng = np.random.default_rng(0)
    K = rng.uniform(-1, 1, (60, 60))
    K = (K + K.T) / 2
    np.fill_diagonal(K, 0.1)
    for options in ({"trace_fraction": 0.5}, {"n_nodes": 10}):
        with pytest.raises(ValueError, match="must be positive semi-definite"):
            QuadratureSparsifier(Precomputed(), **options).fit(K)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix])
def test_a_sparse_matrix_of_the_user(kind):
    x = np.linspace(0, 10, 60)
    K = np.maximum(1 - np.abs(x[:, None] - x), 0.0)  # positive definite, mostly zero
    dense = QuadratureSparsifier(Precomputed(), trace_fraction=0.5).fit(K)
    model = QuadratureSparsifier(Precomputed(), trace_fraction=0.5).fit(kind(K))
    np.testing.assert_array_equal(model.indices_, dense.indices_)
    np.testing.assert_allclose(model.weights_, dense.weights_, rtol=1e-12)
    np.testing.assert_allclose(model.witness(kind(K)), dense.witness(K), atol=1e-14)
    np.testing.assert_allclose(model.transform(kind(K)), dense.transform(K), atol=1e-12)


def test_rank_deficient_kernels_need_few_nodes(X):
    with pytest.warns(UserWarning, match="do all that can be told apart"):
        model = QuadratureSparsifier(Polynomial(degree=1, gamma=1.0, coef0=1.0), n_nodes=40).fit(X)
    assert model.indices_.size <= 7  # the square has six features, (1, x, y)⊗(1, x, y)
    assert model.discrepancy_ < 1e-10


def test_what_is_no_sample(X):
    with pytest.raises(ValueError, match="NaN"):
        QuadratureSparsifier(KERNEL).fit(np.r_[X, [[np.nan, 0.0]]])
    with pytest.raises(TypeError, match="[Ss]parse"):
        QuadratureSparsifier(KERNEL).fit(sparse.csr_matrix(X))
    with pytest.raises(ValueError, match="square"):
        QuadratureSparsifier(Precomputed()).fit(X)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        QuadratureSparsifier(Sigmoid(gamma=1.0, coef0=-1.0)).fit(X)
    with pytest.raises(TypeError, match="must be a kernel of mercer.kernels"):
        QuadratureSparsifier(3).fit(X)
