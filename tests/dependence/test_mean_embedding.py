"""Mean embeddings as vectors: inner products, distances, witnesses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mercer
from mercer import Gaussian, Laplacian, Linear, MeanEmbedding, Polynomial, Precomputed, mmd

rng = np.random.default_rng(41)
X = rng.normal(size=(30, 2))
Y = rng.normal(size=(20, 2)) + 0.4
Z = rng.normal(size=(7, 2))
A = rng.normal(size=30)
B = rng.uniform(0.1, 1.0, 20)
KERNELS = [Gaussian(1.5), Laplacian(2.0), Linear(), Polynomial(2, 0.5, 1.0) + Gaussian(0.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.filterwarnings("ignore:.* is not characteristic")
def test_values_inner_products_and_norms_are_those_of_whole_matrices(kernel):
    w, v = MeanEmbedding(kernel, X, A), MeanEmbedding(kernel, Y, B)
    np.testing.assert_allclose(w(Z), kernel(Z, X) @ A, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(w @ v, A @ kernel(X, Y) @ B, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(w.norm_squared, A @ kernel(X) @ A, rtol=1e-10)
    np.testing.assert_allclose(w.norm() ** 2, w @ w, rtol=1e-12)
    np.testing.assert_allclose(w.distance(v) ** 2, w @ w - 2 * (w @ v) + v @ v, rtol=1e-9, atol=1e-12)


def test_it_reproduces_means():
    """⟨f, w⟩ is the mean of f over the sample, for f a combination of kernel sections."""
    w = MeanEmbedding(Gaussian(1.5), X)
    f = MeanEmbedding(Gaussian(1.5), Y, B)
    np.testing.assert_allclose(f @ w, np.mean(f(X)), rtol=1e-12)


def test_the_embedding_of_a_normal_distribution_in_closed_form():
    """Under exp(-(x-y)²/σ²) the embedding of N(0, s²) is √(σ²/(σ²+2s²)) exp(-y²/(σ²+2s²)), and its norm as well."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    s, sigma = 0.9, 1.4
    w = MeanEmbedding(Gaussian(sigma), s * nodes[:, None], weights / weights.sum())
    y = np.linspace(-2, 2, 9)
    width = sigma**2 + 2 * s**2
    np.testing.assert_allclose(w(y[:, None]), sigma / np.sqrt(width) * np.exp(-(y**2) / width), rtol=1e-9)
    np.testing.assert_allclose(w.norm_squared, sigma / np.sqrt(sigma**2 + 4 * s**2), rtol=1e-9)


def test_the_distance_is_the_discrepancy():
    w, v = MeanEmbedding(Gaussian(1.5), X), MeanEmbedding(Gaussian(1.5), Y)
    np.testing.assert_allclose(w.distance(v) ** 2, mmd(X, Y, Gaussian(1.5)), rtol=1e-14)
    assert MeanEmbedding(Gaussian(1.5), X[::-1]).distance(w) == 0.0


def test_the_witness_has_unit_norm_and_attains_the_distance():
    k = Gaussian(1.5)
    w, v = MeanEmbedding(k, X), MeanEmbedding(k, Y)
    gap = np.mean(w.witness(v, X)) - np.mean(w.witness(v, Y))
    np.testing.assert_allclose(gap, w.distance(v), rtol=1e-10)
    for _ in range(20):  # no other function of unit norm does better
        f = MeanEmbedding(k, np.concatenate([X, Z]), rng.normal(size=37))
        assert (np.mean(f(X)) - np.mean(f(Y))) / f.norm() <= w.distance(v)
    np.testing.assert_allclose(v.witness(w, Z), -w.witness(v, Z), rtol=1e-12)
    assert np.all(w.witness(w, Z) == 0.0)


def test_embeddings_are_vectors():
    k = Gaussian(1.5)
    w, v = MeanEmbedding(k, X, A), MeanEmbedding(k, Y, B)
    np.testing.assert_allclose((2 * w - v * 0.5)(Z), 2 * w(Z) - 0.5 * v(Z), rtol=1e-10)
    np.testing.assert_allclose((w + v)(Z), w(Z) + v(Z), rtol=1e-10)
    np.testing.assert_allclose((-w)(Z), -w(Z), rtol=1e-14)
    np.testing.assert_allclose((w / 4)(Z), w(Z) / 4, rtol=1e-14)
    assert (w - w).norm() == 0.0
    assert np.all((w - w)(Z) == 0.0)
    assert (w - w) @ v == 0.0


def test_the_relaxed_adversary_is_an_embedding_with_a_negative_weight():
    """SOS section 2.1: v = φ(0) - ε φ(θ), whose squared distance to φ(0) is ε²."""
    k, centre = Gaussian(1.0), np.zeros((1, 1))
    dirac = MeanEmbedding(k, centre)
    adversary = dirac - 1.2 * MeanEmbedding(k, np.array([[0.0]]))
    np.testing.assert_allclose(adversary.distance(dirac), 1.2, rtol=1e-14)
    np.testing.assert_allclose(adversary(centre), [-0.2], rtol=1e-12)


vectors = arrays(np.float64, (4, 2), elements=st.floats(-2, 2, width=32))
weights = arrays(np.float64, 4, elements=st.floats(-2, 2, width=32))


@given(vectors, vectors, weights, weights)
@settings(max_examples=50, deadline=None)
def test_the_inequalities_of_a_hilbert_space(P, Q, a, b):
    w, v = MeanEmbedding(Gaussian(1.0), P, a), MeanEmbedding(Gaussian(1.0), Q, b)
    assert w @ v == pytest.approx(v @ w, abs=1e-12)
    assert abs(w @ v) <= w.norm() * v.norm() + 1e-12
    assert (w + v).norm() <= w.norm() + v.norm() + 1e-7
    parallelogram = (w + v).norm_squared + (w - v).norm_squared
    assert parallelogram == pytest.approx(2 * w.norm_squared + 2 * v.norm_squared, abs=1e-11)


def test_a_point_twice_is_a_point_with_both_weights():
    w = MeanEmbedding(Gaussian(1.5), np.concatenate([X, X[:5]]), np.append(A, np.ones(5)))
    joined = MeanEmbedding(Gaussian(1.5), X, A + (np.arange(30) < 5))
    np.testing.assert_allclose(w(Z), joined(Z), rtol=1e-11, atol=1e-13)
    assert w.distance(joined) < 1e-7


def test_the_bandwidth_is_that_of_the_sample():
    assert MeanEmbedding(None, X).kernel.sigma == Gaussian().resolve(X).sigma
    part = np.where(np.arange(30) < 10, -1.0, 0.0)
    assert MeanEmbedding(Gaussian(), X, part).kernel.sigma == Gaussian().resolve(X[:10]).sigma
    kernel = Gaussian()
    MeanEmbedding(kernel, X)
    assert kernel.sigma == "median"


def test_single_precision_is_followed():
    exact = MeanEmbedding(Gaussian(1.5), X)(Z)
    with mercer.config_context(dtype="float32"):
        w = MeanEmbedding(Gaussian(1.5), X)
        rough = w(Z)
        assert w.parts[0].means.dtype == np.float32
    assert np.any(rough != exact)
    np.testing.assert_allclose(rough, exact, rtol=1e-4)


def test_it_says_what_it_is():
    assert (
        repr(MeanEmbedding(Gaussian(1.5), X))
        == "<MeanEmbedding of 30 points with 2 features under Gaussian(sigma=1.5)>"
    )


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: MeanEmbedding(Precomputed(), np.eye(3)),
            ValueError,
            r"^A mean embedding evaluates the kernel between points",
        ),
        (lambda: MeanEmbedding(Gaussian(1.0), X[:0]), ValueError, r"^X has no rows"),
        (lambda: MeanEmbedding(Gaussian(1.0), X, B), ValueError, r"^weights has shape \(20,\)"),
        (
            lambda: MeanEmbedding(Gaussian(1.0), X, np.full(30, np.inf)),
            ValueError,
            r"^weights has a NaN or an infinity",
        ),
        (lambda: MeanEmbedding(3, X), TypeError, r"^kernel=3 must be a kernel"),
        (lambda: MeanEmbedding(Gaussian(1.0), X) @ X, TypeError, r"^A mean embedding meets another one, not ndarray"),
        (
            lambda: MeanEmbedding(Gaussian(1.0), X).distance(MeanEmbedding(Gaussian(2.0), Y)),
            ValueError,
            r"^The embeddings lie in different spaces, of Gaussian\(sigma=1.0\) and Gaussian\(sigma=2.0\)",
        ),
        (
            lambda: MeanEmbedding(Linear(), X) - MeanEmbedding(Gaussian(1.0), X),
            ValueError,
            r"^The embeddings lie in different",
        ),
        (
            lambda: MeanEmbedding(Gaussian(1.0), X) @ MeanEmbedding(Gaussian(1.0), X[:, :1]),
            ValueError,
            r"^The embeddings are of points with 2 and 1 features",
        ),
        (lambda: MeanEmbedding(Gaussian(1.0), X)(X[:, :1]), ValueError, r"features"),
        (lambda: MeanEmbedding(Gaussian(1.0), X) * np.nan, ValueError, r"^A mean embedding times nan is no vector"),
        (lambda: MeanEmbedding(Gaussian(1.0), X) / 0, ZeroDivisionError, r"^A mean embedding is divided by zero\.$"),
        (lambda: MeanEmbedding(Gaussian(1.0), X) / X, TypeError, r"unsupported operand|not support"),
        (lambda: MeanEmbedding(Gaussian(1.0), X) * X, TypeError, r"unsupported operand|not support"),
        (lambda: X * MeanEmbedding(Gaussian(1.0), X), TypeError, r"unsupported operand|not support"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_the_embedding_of_a_frame_of_numbers_is_evaluated_at_arrays():
    pd = pytest.importorskip("pandas")
    X = np.arange(6.0).reshape(3, 2)
    w = MeanEmbedding(Gaussian(1.0), pd.DataFrame(X, columns=["a", "b"]))
    np.testing.assert_array_equal(w(X), MeanEmbedding(Gaussian(1.0), X)(X))
