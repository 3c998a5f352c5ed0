"""Kernels, weights and matrices at the edge of the arithmetic: a finite answer, or one sentence that says what to do."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import mercer
from mercer import DiffusionMaps, Gaussian, Laplacian, Linear, Matern, Precomputed, SDPEmbedding, verify
from mercer.embedding.degeneracy import RankWarning
from mercer.embedding.extension import log_degrees_and_sums
from mercer.kernels import Polynomial, Sigmoid
from mercer.operators.diffusion import DegenerateKernelError

_BOTH = pytest.mark.parametrize("Estimator", [SDPEmbedding, DiffusionMaps])


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((30, 3))


# --- kernels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [(Linear(), 1e200), (Polynomial(3), 1e160), (Polynomial(1e3), 3.0), (Linear().normalized(), 1e200)],
)
def test_a_kernel_that_overflows_says_so(kernel, scale, X):
    with pytest.raises(
        ValueError,
        match=r"(finite number of float64 at \d+ of 900 pairs|k\(x, x\) leaves floating) .* a size near one\.$",
    ):
        kernel(scale * X)
    with pytest.raises(ValueError, match="not a finite number|sums to (nan|inf) in float64|leaves floating point"):
        SDPEmbedding(kernel).fit(scale * X)


def test_a_kernel_that_saturates_is_finite(X):
    assert set(np.unique(Sigmoid()(1e200 * X[:, :1]))) <= {-1.0, 1.0}


@_BOTH
def test_points_far_beyond_each_other_in_the_largest_numbers(Estimator, X):
    wide = np.vstack([X, [[1e308, -1e308, 0.0]], [[-1e308, 1e308, 0.0]]])
    assert Gaussian().resolve(wide).sigma == pytest.approx(Gaussian().resolve(wide / 16).sigma * 16)
    with pytest.raises(ValueError, match="distances that sigma is chosen from exceed the largest number: divide X"):
        Estimator(Gaussian()).fit(np.repeat([[1.7e308, 1.7e308], [-1.7e308, -1.7e308]], 2, axis=0))


def test_a_sample_that_is_almost_constant_has_a_bandwidth():
    X = np.zeros((100_000, 2))
    X[7] = 3.0, 4.0
    assert Gaussian().resolve(X).sigma == pytest.approx(5.0)


@_BOTH
def test_points_that_single_precision_cannot_hold(Estimator, X):
    with mercer.config_context(dtype="float32"):
        with pytest.raises(ValueError, match="too large for dtype"):
            Estimator().fit(1e200 * X)
        with pytest.raises(ValueError, match="The entries of X are too small for float32: multiply X by a constant"):
            Estimator().fit(1e-200 * X)


@_BOTH
def test_points_so_far_away_that_a_kernel_overflows(Estimator, X):
    model = Estimator(Polynomial(2, coef0=5.0)).fit(X)
    with pytest.raises(ValueError, match=r"^Polynomial\(.*\) is not a finite number of float64 at 30 of 30 pairs"):
        model.transform(1e300 * X)


def test_a_density_correction_out_of_range(X):
    with pytest.raises(DegenerateKernelError, match="alpha=1000 takes row sums .* out of the range of float64: choose"):
        DiffusionMaps(Gaussian(), alpha=1000.0).fit(X)


# --- matrices -----------------------------------------------------------------------------------------------------


@_BOTH
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_matrices_of_any_unit(Estimator, scale, X):
    K = Gaussian(1.0)(X)
    near, far = (Estimator(Precomputed(), n_components=1, random_state=0).fit(c * K) for c in (1.0, scale))
    np.testing.assert_allclose(far.embedding_, near.embedding_, rtol=1e-6, atol=1e-9)


def test_small_loops_do_not_make_points_alike():
    K = np.array([[0.2, 1.0], [1.0, 0.2]])
    with pytest.raises(DegenerateKernelError, match="No point has room .* Give the affinities a larger diagonal"):
        SDPEmbedding(Precomputed()).fit(K)
    with pytest.warns(RankWarning, match="exceeds the number of dimensions, 0"):
        DiffusionMaps(Precomputed(), n_components=1).fit(K)


@_BOTH
def test_a_matrix_has_no_bandwidth_to_choose(Estimator):
    with pytest.raises(DegenerateKernelError, match="isolated under Precomputed.*: pass other affinities"):
        Estimator(Precomputed()).fit(np.eye(5))
    with pytest.raises(DegenerateKernelError, match="look alike under Precomputed.* Pass other affinities"):
        Estimator(Precomputed()).fit(np.ones((5, 5)))


# --- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(
    "ignore:The iteration budget ran out", "ignore:The iterate no longer moves"
)  # digits run out
@pytest.mark.parametrize("decades", [12, 30, 280])
def test_light_rows_have_their_prescribed_lengths(decades, X):
    """Their coordinates are not rounded to the scale of the heavy ones, so that the model can be verified."""
    w = 10.0 ** np.linspace(-decades, 0, 30)
    model = SDPEmbedding(Gaussian(2.0), max_iter=200, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-9)
    certificate = verify(model, X)
    assert certificate.lower <= model.certificate_.upper


def test_one_weight_that_drowns_all_others(X):
    w = np.ones(30)
    w[0] = 1e300
    with pytest.raises(ValueError, match="Found 1 points of more than 1e-292 of the largest weight, but"):
        SDPEmbedding(Gaussian(1.0)).fit(X, sample_weight=w)


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Matern(1.5, 1.0)])
def test_the_extension_keeps_to_the_memory_allowed(kernel):
    rng = np.random.default_rng(0)
    training, new = rng.standard_normal((4000, 2)), rng.standard_normal((2000, 2))
    values, weights = rng.standard_normal((4000, 3)), np.ones(4000)
    free = log_degrees_and_sums(kernel, new, training, values, weights)
    with mercer.config_context(memory_limit="4MB", n_threads=2):
        log_degrees_and_sums(kernel, new[:2], training, values, weights)  # compiles
        tracemalloc.start()
        tight = log_degrees_and_sums(kernel, new, training, values, weights)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4e6
    for ours, theirs in zip(tight, free, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
