"""The maximum mean discrepancy of two samples: three estimators, one pass."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mercer
from mercer import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    MeanEmbedding,
    Polynomial,
    Precomputed,
    mmd,
    squared_kernel_discrepancy,
)

rng = np.random.default_rng(31)
X = rng.normal(size=(40, 3))
Y = rng.normal(size=(25, 3)) + 0.3
A = rng.uniform(0.1, 2.0, 40)
B = rng.uniform(0.0, 1.0, 25)
KERNELS = [Gaussian(1.5), Laplacian(2.0), Matern(1.5, 1.0), Linear(), Polynomial(3, 0.5, 1.0)]


def dense(kernel, X, Y, a, b, *, unbiased=False):
    """The definition, with whole matrices."""
    K, L, M = kernel(X), kernel(Y), kernel(X, Y)
    if not unbiased:
        return a @ K @ a + b @ L @ b - 2 * a @ M @ b
    x_pairs, y_pairs = np.outer(a, a), np.outer(b, b)
    np.fill_diagonal(x_pairs, 0.0)
    np.fill_diagonal(y_pairs, 0.0)
    x_mean = a.sum() ** 2 * np.sum(x_pairs * K) / x_pairs.sum()
    return x_mean + b.sum() ** 2 * np.sum(y_pairs * L) / y_pairs.sum() - 2 * a @ M @ b


def between_gaussians(shift, s, t, sigma):
    """MMD² of N(0, s²I) and N(shift, t²I) under exp(-‖x-y‖²/σ²): E k(x, y) is a Gaussian integral."""
    d = shift.size

    def mean_of_kernel(variance, offset):
        width = sigma**2 + 2 * variance
        return (sigma**2 / width) ** (d / 2) * np.exp(-(offset @ offset) / width)

    zero = np.zeros(d)
    return (
        mean_of_kernel(2 * s**2, zero) + mean_of_kernel(2 * t**2, zero) - 2 * mean_of_kernel(s**2 + t**2, shift)
    )  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.filterwarnings("ignore:.* is not characteristic")
def test_it_is_the_definition(kernel, estimator):
    unbiased = estimator == "unbiased"
    value = mmd(X, Y, kernel, x_weights=A, y_weights=B, estimator=estimator)
    assert isinstance(value, float)
    np.testing.assert_allclose(value, dense(kernel, X, Y, A, B, unbiased=unbiased), rtol=1e-11)
    uniform = dense(kernel, X, Y, np.full(40, 1 / 40), np.full(25, 1 / 25), unbiased=unbiased)
    np.testing.assert_allclose(mmd(X, Y, kernel, estimator=estimator), uniform, rtol=1e-10, atol=1e-14)


def test_the_unbiased_one_is_grettons_without_weights():
    K, L, M = Gaussian(1.5)(X), Gaussian(1.5)(Y), Gaussian(1.5)(X, Y)
    expected = (K.sum() - 40) / (40 * 39) + (L.sum() - 25) / (25 * 24) - 2 * M.mean()
    np.testing.assert_allclose(mmd(X, Y, Gaussian(1.5), estimator="unbiased"), expected, rtol=1e-12)


def test_the_linear_one_is_the_mean_of_unbiased_ones():
    values = [mmd(X[6 * i : 6 * i + 6], Y[4 * i : 4 * i + 4], Gaussian(1.5), estimator="unbiased") for i in range(6)]
    value, error = mmd(X, Y, Gaussian(1.5), estimator="linear", block_size=4, return_std=True)
    np.testing.assert_allclose(value, np.mean(values), rtol=1e-12)
    np.testing.assert_allclose(error, np.std(values, ddof=1) / np.sqrt(6), rtol=1e-12)
    assert mmd(X, Y, Gaussian(1.5), estimator="linear", block_size=4) == value


def test_many_small_blocks_are_the_same_as_one_after_another():
    P, Q = rng.normal(size=(2000, 1)), rng.normal(size=(2000, 1))
    k = Gaussian(1.0)
    pairs = [
        k(P[i], P[i + 1]) + k(Q[i], Q[i + 1]) - np.mean(k(P[i : i + 2], Q[i : i + 2])) * 2 for i in range(0, 2000, 2)
    ]
    np.testing.assert_allclose(mmd(P, Q, k, estimator="linear", block_size=2), np.mean(pairs), rtol=1e-10)


def test_the_block_is_the_square_root_of_the_smaller_sample():
    P, Q = rng.normal(size=(400, 1)), rng.normal(size=(900, 1))
    assert mmd(P, Q, Gaussian(1.0), estimator="linear") == mmd(P, Q, Gaussian(1.0), estimator="linear", block_size=20)


def test_nodes_of_gauss_and_hermite_give_the_closed_form():
    """Two normal distributions as weighted samples that integrate smooth functions exactly."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    shift, s, t, sigma = np.array([0.8]), 0.7, 1.1, 1.6
    value = mmd(s * nodes[:, None], t * nodes[:, None] + shift, Gaussian(sigma), x_weights=weights, y_weights=weights)
    np.testing.assert_allclose(value, between_gaussians(shift, s, t, sigma), rtol=1e-10)
    root = mmd(
        s * nodes[:, None],
        t * nodes[:, None] + shift,
        Gaussian(sigma),
        x_weights=weights,
        y_weights=weights,
        squared=False,
    )
    np.testing.assert_allclose(root**2, value, rtol=1e-14)


@pytest.mark.parametrize(("estimator", "size"), [("unbiased", None), ("linear", 4)])
def test_two_estimators_are_unbiased_and_the_third_is_not(estimator, size):
    """Means over 600 pairs of samples against the closed form, within four standard errors."""
    draw = np.random.default_rng(5)
    shift, sigma = np.array([0.5, 0.0]), 1.5
    truth = between_gaussians(shift, 1.0, 1.0, sigma)
    samples = [(draw.normal(size=(12, 2)), draw.normal(size=(16, 2)) + shift) for _ in range(600)]
    values = np.array([mmd(P, Q, Gaussian(sigma), estimator=estimator, block_size=size) for P, Q in samples])
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(600)
    biased = np.array([mmd(P, Q, Gaussian(sigma)) for P, Q in samples])
    bias = (1 - between_gaussians_diagonal(sigma)) * (1 / 12 + 1 / 16)
    assert abs(biased.mean() - truth - bias) < 4 * biased.std() / np.sqrt(600)
    assert biased.mean() - truth > 10 * biased.std() / np.sqrt(600)


def between_gaussians_diagonal(sigma):
    """E k(x, x') of two independent standard normal points of the plane."""
    return sigma**2 / (sigma**2 + 4)


def test_the_standard_error_is_one():
    """The spread of 200 linear estimates is what they say of themselves."""
    draw = np.random.default_rng(6)
    pairs = [
        mmd(
            draw.normal(size=(160, 1)),
            draw.normal(size=(160, 1)) + 1,
            Gaussian(1.0),
            estimator="linear",
            block_size=4,
            return_std=True,
        )
        for _ in range(200)
    ]
    values, errors = np.array(pairs).T
    assert 0.85 < values.std() / np.sqrt(np.mean(errors**2)) < 1.15


samples = arrays(np.float64, st.tuples(st.integers(2, 8), st.just(2)), elements=st.floats(-3, 3, width=32))


@given(samples, samples, samples)
@settings(max_examples=60, deadline=None)
def test_it_is_a_metric(P, Q, R):
    def distance(A, B):
        return mmd(A, B, Gaussian(1.2), squared=False)

    assert distance(P, Q) == distance(Q, P)
    assert distance(P, P[::-1]) == 0.0
    # what rounding leaves of a distance of zero is its square root: ε = 2e-16 gives 1e-8
    assert distance(P, R) <= distance(P, Q) + distance(Q, R) + 1e-7


@given(samples, samples)
@settings(max_examples=40, deadline=None)
def test_a_row_twice_with_half_the_weight_changes_nothing(P, Q):
    doubled = np.repeat(P, 2, axis=0)
    one = mmd(P, Q, Gaussian(1.2))
    assert mmd(doubled, Q, Gaussian(1.2)) == pytest.approx(one, abs=1e-14)
    weights = np.full(len(P), 1.0)
    halved = mmd(doubled, Q, Gaussian(1.2), x_weights=np.repeat(weights / 2, 2), y_weights=1.0)
    assert halved == mmd(P, Q, Gaussian(1.2), x_weights=weights, y_weights=1.0)


def test_it_is_the_discrepancy_of_the_squared_kernel():
    np.testing.assert_allclose(
        mmd(X, Y, Gaussian(1.5) ** 2), squared_kernel_discrepancy(X, Y, Gaussian(1.5)), rtol=1e-14
    )


@pytest.mark.filterwarnings("ignore:.* is not characteristic")
def test_the_linear_kernel_compares_means():
    value = mmd(X, Y, Linear(), x_weights=A / A.sum(), y_weights=B / B.sum())
    gap = A @ X / A.sum() - B @ Y / B.sum()
    np.testing.assert_allclose(value, gap @ gap, rtol=1e-12)


def test_the_bandwidth_is_that_of_both_samples_together():
    fixed = Gaussian().resolve(np.concatenate([X, Y]), np.concatenate([np.full(40, 1 / 40), np.full(25, 1 / 25)]))
    assert mmd(X, Y) == mmd(X, Y, Gaussian()) == mmd(X, Y, fixed)
    assert mmd(X, Y) == pytest.approx(mmd(Y, X), rel=1e-12)
    assert mmd(np.repeat(X, 2, axis=0), Y) == pytest.approx(mmd(X, Y), rel=1e-12)


def test_a_negative_estimate_has_no_root():
    draw = np.random.default_rng(2)
    while mmd(P := draw.normal(size=(6, 1)), Q := draw.normal(size=(6, 1)), Gaussian(1.0), estimator="unbiased") >= 0:
        pass
    assert mmd(P, Q, Gaussian(1.0), estimator="unbiased", squared=False) == 0.0


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "linear"])
def test_single_precision_is_followed(estimator):
    exact = mmd(X, Y, Gaussian(1.5), estimator=estimator)
    with mercer.config_context(dtype="float32"):
        rough = mmd(X, Y, Gaussian(1.5), estimator=estimator)
    assert rough != exact
    np.testing.assert_allclose(rough, exact, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "linear"])
def test_progress_is_reported(estimator):
    seen = []
    points = rng.normal(size=(3000, 2))
    mmd(points[:1500], points[1500:], Gaussian(1.0), estimator=estimator, progress=seen.append)
    assert len(seen) > 1
    assert max(seen) == 1.0


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "linear"])
def test_no_array_between_the_samples_is_made(estimator):
    points = rng.normal(size=(8000, 2))
    mmd(points[:10], points[10:20], Gaussian(1.0), estimator=estimator)  # compiles
    tracemalloc.start()
    mmd(points[:4000], points[4000:], Gaussian(1.0), estimator=estimator)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 4000 * 4000 / 8


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((X, X, Precomputed()), {}, r"pass points, not Precomputed\(\)\.$"),
        ((X, Y[:, :2], Gaussian(1.0)), {}, r"^X has 3 features and Y has 2: they must agree\.$"),
        ((X, Y[:0], Gaussian(1.0)), {}, r"^Y has no rows: a sample needs at least one point\.$"),
        ((X, Y, Gaussian(1.0)), {"x_weights": -A}, r"^x_weights is negative at index \d+"),
        ((X, Y, Gaussian(1.0)), {"y_weights": A}, r"^y_weights has shape \(40,\)"),
        ((X, np.full((2, 3), np.nan), Gaussian(1.0)), {}, r"^Y has nan in row 0, column 0"),
        (
            (X, Y),
            {"estimator": "quadratic"},
            r"^estimator='quadratic' must be one of 'biased', 'unbiased', 'linear'\.$",
        ),
        ((X, Y), {"estimator": "linear", "x_weights": 1.0}, r'^estimator="linear" takes no weights'),
        ((X, Y), {"block_size": 4}, r'^block_size belongs to estimator="linear", not to \'biased\''),
        ((X, Y), {"estimator": "unbiased", "return_std": True}, r'^return_std belongs to estimator="linear"'),
        ((X, Y), {"estimator": "linear", "block_size": 1}, r"^block_size=1 must be a whole number of at least 2\.$"),
        ((X, Y), {"estimator": "linear", "block_size": 20}, r"^Samples of 40 and 25 rows give 1 blocks of 20 rows"),
        ((X, Y[:1], Gaussian(1.0)), {"estimator": "unbiased"}, r"^Y has one point of positive weight"),
        ((np.ones((3, 1)), np.ones((2, 1))), {}, r"^All points are equal, so sigma cannot be chosen from the data"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        mmd(*arguments, **options)


def test_a_kernel_must_be_one():
    with pytest.raises(TypeError, match=r"^kernel=3 must be a kernel"):
        mmd(X, Y, 3)


# --- weights and features of any size -------------------------------------------------------------------------------


def weighted_u_statistic(X, Y, a, b, sigma):
    """Term by term, no term of the diagonal formed."""
    from fractions import Fraction

    def total(P, Q, p, q, same):
        return sum(
            Fraction(p[i]) * Fraction(q[j]) * Fraction(float(np.exp(-np.sum((P[i] - Q[j]) ** 2) / sigma**2)))
            for i in range(len(P))
            for j in range(len(Q))
            if not (same and i == j)
        )

    out = -2 * total(X, Y, a, b, False)
    for P, p in ((X, a), (Y, b)):
        exact = [Fraction(w) for w in p]
        mass, rest = sum(exact) ** 2, sum(exact) ** 2 - sum(w * w for w in exact)
        out += total(P, P, p, p, True) * mass / rest
    return float(out)


@pytest.mark.parametrize("small", [1e-16, 1e-9, 1e-3, 1.0])
def test_a_heavy_point_leaves_the_unbiased_estimate_its_digits(small):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 2)), rng.standard_normal((5, 2)) + 0.5
    a, b = np.array([1.0] + [small] * 5), np.array([small] * 4 + [1.0])
    value = mmd(X, Y, Gaussian(1.3), estimator="unbiased", x_weights=a, y_weights=b)
    assert value == pytest.approx(weighted_u_statistic(X, Y, a, b, 1.3), rel=1e-10)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e-100, 1e100, 1e200, 1e307])
def test_weights_of_any_size(estimator, unit):
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((9, 2)), rng.standard_normal((8, 2)) + 1
    options = {"kernel": Gaussian(1.0), "estimator": estimator}
    one = mmd(X, Y, x_weights=1.0, y_weights=1.0, squared=False, **options)
    assert mmd(X, Y, x_weights=unit, y_weights=unit, squared=False, **options) / unit == pytest.approx(one, rel=1e-12)
    if 1e-150 < unit < 1e150:
        assert mmd(X, Y, x_weights=unit, y_weights=unit, **options) == pytest.approx(
            (one * unit) ** 2, rel=1e-12, abs=0
        )
    else:
        with pytest.raises(ValueError, match=r"^MMD² is of size 1e-?\d+, beyond double precision: divide the weights"):
            mmd(X, Y, x_weights=unit, y_weights=unit, **options)


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "linear"])
@pytest.mark.filterwarnings("ignore:.* is not characteristic")
def test_values_beyond_double_precision_are_refused(estimator):
    X = np.random.default_rng(2).standard_normal((9, 2))
    with pytest.raises(ValueError, match=r"Linear\(\).*scale near one\.$|Linear\(\).*size near one\.$"):
        mmd(1e200 * X, X, Linear(), estimator=estimator)


def test_embeddings_of_any_weight():
    X = np.random.default_rng(3).standard_normal((9, 2))
    w = MeanEmbedding(Gaussian(1.0), X, 1.0)
    for unit in (1e-200, 1e200):
        other = MeanEmbedding(Gaussian(1.0), X, unit)
        assert other.norm() / unit == pytest.approx(w.norm(), rel=1e-12)
        assert (w * unit).norm() / unit == pytest.approx(w.norm(), rel=1e-12)
        assert other @ w == pytest.approx(unit * w.norm_squared, rel=1e-12, abs=0)
        np.testing.assert_allclose(other.witness(0.5 * other, X), w.witness(0.5 * w, X), rtol=1e-12)
        with pytest.raises(ValueError, match=r"^The squared norm is of size 1e-?\d+, beyond double precision"):
            _ = other.norm_squared
    with pytest.raises(ValueError, match=r"^Linear\(\) overflows at row 0 of X: bring the points"):
        MeanEmbedding(Linear(), 1e200 * X).norm()
    with pytest.raises(ValueError, match=r"weights beyond double precision\.$"):
        _ = MeanEmbedding(Gaussian(1.0), X, 1e200) * 1e200
