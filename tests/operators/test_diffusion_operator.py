"""The diffusion operator against section 2 of the mathematics, written out entry by entry."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from mercer import DiffusionOperator, Gaussian, GramOperator, Laplacian, Linear, Matern, Polynomial, Precomputed
from mercer.operators.diffusion import DegenerateKernelError

rng = np.random.default_rng(8)
X = rng.normal(size=(60, 3))
W = rng.uniform(0.1, 4.0, 60)
SIGMA = 1.5
K = rbf_kernel(X, gamma=1 / SIGMA**2)
WEIGHTS = pytest.mark.parametrize("weights", [None, W], ids=["unit weights", "weights"])
ALPHA = pytest.mark.parametrize("alpha", [0, 0.5, 1])


def build(weights=None, points=X, kernel=None, **options):
    return DiffusionOperator(GramOperator(kernel or Gaussian(sigma=SIGMA), points, weights=weights), **options)


@WEIGHTS
def test_parts_by_their_formulas(weights):
    operator = build(weights)
    w = np.ones(60) if weights is None else weights
    m = np.array([sum(w[j] * K[i, j] for j in range(60)) for i in range(60)])
    vol = sum(w * m)
    v0 = np.sqrt(m / vol)
    np.testing.assert_allclose(operator.degrees, m, rtol=1e-13)
    assert operator.volume == pytest.approx(vol, rel=1e-13)
    np.testing.assert_allclose(operator.stationary, np.sqrt(w) * v0, rtol=1e-13)
    np.testing.assert_array_equal(operator.scale, np.ones(60))
    np.testing.assert_array_equal(operator.weights, w)
    a_bar = np.array([[K[i, j] / np.sqrt(m[i] * m[j]) - v0[i] * v0[j] for j in range(60)] for i in range(60)])
    np.testing.assert_allclose(operator.to_dense(), np.sqrt(np.outer(w, w)) * a_bar, atol=1e-15)
    d = np.array([K[i, i] / m[i] - m[i] / vol for i in range(60)])
    np.testing.assert_allclose(operator.diagonal(), w * d, rtol=1e-11)


@WEIGHTS
@ALPHA
def test_density_correction_divides_the_kernel_first(weights, alpha):
    corrected = K / np.outer((K @ (W if weights is not None else np.ones(60))) ** alpha, np.ones(60))
    corrected = corrected / ((K @ (W if weights is not None else np.ones(60))) ** alpha)[None, :]
    by_hand = DiffusionOperator(GramOperator(Precomputed(), (corrected + corrected.T) / 2, weights=weights))
    operator = build(weights, alpha=alpha)
    assert operator.alpha == alpha
    np.testing.assert_allclose(operator.degrees, by_hand.degrees, rtol=1e-12)
    np.testing.assert_allclose(operator.to_dense(), by_hand.to_dense(), atol=1e-15)
    np.testing.assert_allclose(operator.diagonal(), by_hand.diagonal(), rtol=1e-10)


@WEIGHTS
@ALPHA
@pytest.mark.parametrize("kernel", [Gaussian(sigma=0.8), Laplacian(sigma=2.0), Matern(nu=1.5, length_scale=1.0)])
def test_spectrum_lies_between_zero_and_one(weights, alpha, kernel):
    values = np.linalg.eigvalsh(build(weights, kernel=kernel, alpha=alpha).to_dense())
    assert values[0] > -1e-14
    assert values[-1] < 1 - 1e-6


@WEIGHTS
@ALPHA
def test_stationary_vector_is_a_unit_eigenvector_of_eigenvalue_one(weights, alpha):
    whole, deflated = build(weights, alpha=alpha, deflate=False), build(weights, alpha=alpha)
    assert np.linalg.norm(whole.stationary) == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(whole @ whole.stationary, whole.stationary, rtol=1e-12)
    np.testing.assert_allclose(deflated @ deflated.stationary, np.zeros(60), atol=1e-14)
    assert np.linalg.eigvalsh(whole.to_dense())[-1] == pytest.approx(1, rel=1e-13)
    difference = whole.to_dense() - deflated.to_dense()
    np.testing.assert_allclose(difference, np.outer(whole.stationary, whole.stationary), atol=1e-15)


@ALPHA
@pytest.mark.parametrize("deflate", [True, False])
def test_a_row_repeated_twice_equals_weight_two(alpha, deflate):
    w = np.ones(60)
    w[[4, 11]] = 2.0
    repeated = build(points=np.vstack([X, X[[4, 11]]]), alpha=alpha, deflate=deflate)
    weighted = build(w, alpha=alpha, deflate=deflate)
    assert repeated.volume == pytest.approx(weighted.volume, rel=1e-13)
    np.testing.assert_allclose(repeated.degrees[:60], weighted.degrees, rtol=1e-13)
    f, g = rng.normal(size=(2, 60))
    f_long, g_long = np.append(f, f[[4, 11]]), np.append(g, g[[4, 11]])
    form = (np.sqrt(w) * f) @ (weighted @ (np.sqrt(w) * g))
    assert f_long @ (repeated @ g_long) == pytest.approx(form, rel=1e-11, abs=1e-13)
    spectrum = np.linalg.eigvalsh(repeated.to_dense())[::-1][:60]
    np.testing.assert_allclose(spectrum, np.linalg.eigvalsh(weighted.to_dense())[::-1], atol=1e-13)


def test_weight_zero_equals_leaving_the_point_out():
    w = W.copy()
    w[-10:] = 0
    operator, without = build(w), build(W[:-10], points=X[:-10])
    np.testing.assert_allclose(operator.block(slice(50), slice(50)), without.to_dense(), atol=1e-15)
    np.testing.assert_array_equal(operator.block(slice(50, None), slice(None)), np.zeros((10, 60)))
    np.testing.assert_array_equal(operator.diagonal()[50:], np.zeros(10))


def test_scaling_the_weights_changes_nothing():
    np.testing.assert_allclose(build(W).to_dense(), build(7.0 * W).to_dense(), atol=1e-15)


# --- the diagonal -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 700, 2500])
@ALPHA
def test_diagonal_is_zero_for_coincident_points(dtype, n, alpha):
    points = np.tile(np.array([[0.3, -1.7, 2.1]], dtype), (n, 1))
    for weights in (None, np.random.default_rng(n).uniform(0.1, 3.0, n)):
        operator = build(weights, points=points, kernel=1.7 * Gaussian(sigma=1.3), alpha=alpha)
        np.testing.assert_array_equal(operator.diagonal(), np.zeros(n))


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    log_sigma=st.floats(-3, 9),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
    single=st.booleans(),
    weighted=st.booleans(),
)
def test_diagonal_is_never_negative(seed, n, log_sigma, alpha, single, weighted):
    draw = np.random.default_rng(seed)
    points = draw.normal(size=(n, 2)).astype(np.float32 if single else np.float64)
    weights = draw.uniform(0.1, 3.0, n) if weighted else None
    diagonal = build(weights, points=points, kernel=Gaussian(sigma=10.0**log_sigma), alpha=alpha).diagonal()
    assert np.all(diagonal >= 0)


def test_diagonal_is_positive_for_distinct_points():
    assert np.all(build().diagonal() > 0)


def test_diagonal_survives_a_wide_kernel():
    """Rounding is cut off, small values are not: d ≈ ‖x - mean‖² · 2/(n σ²) here, and far above rounding."""
    points = np.array([[-1.0], [1.0]])
    for sigma in (1e1, 1e3, 1e5):
        d = build(points=points, kernel=Gaussian(sigma=sigma)).diagonal()
        np.testing.assert_allclose(d, -np.expm1(-4 / sigma**2) / (1 + np.exp(-4 / sigma**2)) / 2, rtol=1e-4)


def test_linear_kernel_on_one_positive_feature_reaches_zero():
    operator = build(points=np.array([[1.0], [2.0], [5.0]]), kernel=Linear())
    np.testing.assert_array_equal(operator.diagonal(), np.zeros(3))


# --- what it refuses ----------------------------------------------------------------------------------------


def test_row_sums_that_are_not_positive_are_refused_in_a_sentence():
    sentence = r"^Row \d+ of the kernel matrix sums to -.*: diffusion needs positive row sums, as .*\.$"
    with pytest.raises(DegenerateKernelError, match=sentence):
        build(points=X - X.mean(axis=0), kernel=Linear())
    assert issubclass(DegenerateKernelError, ValueError)


def test_an_isolated_point_of_a_given_kernel_is_refused():
    with pytest.raises(DegenerateKernelError, match="Row 1 of the kernel matrix sums to 0"):
        DiffusionOperator(GramOperator(Precomputed(), np.diag([1.0, 0.0, 1.0])))


def test_two_sets_of_points_are_refused():
    for gram in (
        GramOperator(Gaussian(sigma=1.0), X, X[:9]),
        GramOperator(Gaussian(sigma=1.0), X, X.copy()),
        GramOperator(Gaussian(sigma=1.0), X, X + 1, weights=W),
    ):
        with pytest.raises(ValueError, match="symmetric Gram operator of one set of points"):
            DiffusionOperator(gram)


@pytest.mark.parametrize("alpha", [-0.5, np.nan, np.inf, "one", None])
def test_a_bad_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha="):
        build(alpha=alpha)


def test_a_kernel_with_positive_row_sums_need_not_be_positive():
    points = np.abs(X)
    operator = build(points=points, kernel=Polynomial(degree=2))
    values = np.linalg.eigvalsh(operator.to_dense())
    assert values[0] > -1e-14
    assert values[-1] < 1


# --- what floating point does to it ---------------------------------------------------------------------------


@pytest.mark.parametrize("run", [1, 2, 2048, 2**17])
def test_the_stationary_part_of_a_sparse_product_sums_over_all_points(run, monkeypatch):
    """Isolated points, one of them heavy: the sum v₀ᵀx rounds up with every other, and rows of one entry know nothing."""
    monkeypatch.setattr("mercer.operators.base._RUN", run)
    n, light = 2**16, 0.6 * 2.0**-23 / min(run, 2)
    weights = np.full(n, light)
    weights[0] = 1 - light * (n - 1)
    gram = GramOperator(Precomputed(), scipy.sparse.diags_array(weights.astype(np.float32)).tocsr())
    operator = DiffusionOperator(gram)
    x = operator.stationary.copy()
    exact = x.astype(float) - operator.stationary.astype(float) * float(operator.stationary.astype(float) @ x)
    off = np.linalg.norm(operator @ x - exact) / np.linalg.norm(x)
    rounding = operator.rounding()
    assert run == 2048 or off > 50 * 2.0**-24  # runs of some length lose hardly anything here
    assert off <= rounding.product * rounding.norm
    assert run != 2048 or rounding.product * rounding.norm < 5000 * 2.0**-24


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_evaluations_are_no_further_apart_than_stated(dtype):
    """Inner products of many features, by blocks of other shapes and the other triangle of them."""
    points = 1 + np.abs(np.random.default_rng(0).normal(size=(200, 60))).astype(dtype)
    operator = build(points=points, kernel=Polynomial(degree=3))
    whole = operator.to_dense().astype(float)
    pieces = np.vstack([operator.block(slice(i, i + 7), np.arange(200)) for i in range(0, 200, 7)]).astype(float)
    rounding = operator.rounding()
    for other in (pieces, pieces.T):
        assert 0 < np.linalg.norm(whole - other, 2) <= rounding.apart
    assert rounding.apart < rounding.entries


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_that_rounding_cuts_off_may_have_what_was_cut_and_one_below_zero_has_nothing(dtype):
    """Two points and a wide kernel: d = (1 - k)/(1 + k)/2 is below rounding, and so is what is stated for it."""
    for power in np.linspace(-5, -0.5, 40):
        sigma = np.finfo(dtype).eps ** power
        operator = build(points=np.array([[0.0], [1.0]], dtype), kernel=Gaussian(sigma=float(sigma)))
        d = float(-np.expm1(-(sigma**-2.0)) / (1 + np.exp(-(sigma**-2.0))) / 2)
        assert np.all(np.abs(operator.diagonal() - d) <= operator.rounding().diagonal)
    hub = np.array([[0.1, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]], dtype)
    operator = DiffusionOperator(GramOperator(Precomputed(), hub))
    assert operator.signed_diagonal()[0] < -0.1
    assert operator.diagonal()[0] == operator.rounding().diagonal[0] == 0
