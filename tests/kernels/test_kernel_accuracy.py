"""Distances under bad conditions: offsets, outliers, far clusters, extreme units, near-duplicates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from mercer.kernels import ChiSquared, Cosine, Gaussian, Laplacian, Matern, Sobolev

DIMENSIONS = [1, 3, 10]  # differences, differences with a remainder, inner products


def exact(X, Y, sigma, norm=2):
    """(‖x - y‖ / σ)^norm in extended precision, of the values as stored."""
    X, Y = np.asarray(X, np.longdouble), np.asarray(Y, np.longdouble)
    return (abs(X[:, None] - Y) ** norm).sum(axis=2) / np.longdouble(sigma) ** norm


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    X=hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(1, 8), st.integers(1, 8)),
        elements=st.floats(-1e6, 1e6, width=32),
    ),
    sigma=st.floats(1e-3, 1e6),
    kind=st.sampled_from(
        [Gaussian, Laplacian, lambda s: Matern(0.5, s), lambda s: Matern(2.5, s), lambda s: Matern(3.7, s)]
    ),
)
def test_no_distance_is_negative(X, sigma, kind):
    kernel = kind(sigma)
    for block in (kernel(X), kernel(X, X.copy()), kernel(X[:1], X)):
        assert block.min() >= 0
        assert block.max() <= 1  # = k(x, x)
    assert np.all(kernel.log(X) <= 0)
    assert np.all(kernel(X).diagonal() == 1)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 7)), elements=st.floats(-1e3, 1e3)),
    offset=st.floats(-1e9, 1e9),
)
def test_gaussian_is_that_of_the_stored_differences(X, offset):
    X = X + offset
    assert_allclose(Gaussian(500.0)(X, X.copy()), np.exp(-exact(X, X, 500.0)).astype(float), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_offset_costs_no_digit(d, on):
    X, Y = cloud(60, d) + 1e8, cloud(50, d, seed=1) + 1e8
    t = exact(X, Y, 1.3)
    assert_allclose(on(Gaussian(1.3))(X, Y), np.exp(-t).astype(float), rtol=1e-12)
    assert_allclose(on(Gaussian(1.3)).log(X, Y), -t.astype(float), rtol=1e-12, atol=1e-12)
    assert_allclose(on(Matern(0.5, 1.3))(X, Y), np.exp(-np.sqrt(t)).astype(float), rtol=1e-12)
    assert_allclose(on(Laplacian(1.3))(X, Y), np.exp(-exact(X, Y, 1.3, norm=1)).astype(float), rtol=1e-12)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_offset_of_float32_points(d, on):
    X = (cloud(60, d) + 1e4).astype(np.float32)
    assert_allclose(on(Gaussian(1.3))(X), np.exp(-exact(X, X, 1.3)).astype(float), rtol=2e-5)
    assert_allclose(on(Matern(0.5, 1.3))(X), np.exp(-np.sqrt(exact(X, X, 1.3))).astype(float), rtol=2e-5)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("apart", [100.0, 1e7])
def test_two_far_clusters(d, apart, dtype, on):
    X = np.vstack([cloud(40, d), cloud(40, d, seed=1) + apart]).astype(dtype)
    K = on(Gaussian(1.0))(X)
    rtol = 1e-12 if dtype == np.float64 else 2e-5
    for half in (slice(0, 40), slice(40, 80)):
        assert_allclose(K[half, half], np.exp(-exact(X[half], X[half], 1.0)).astype(float), rtol=rtol)
    assert not K[:40, 40:].any()
    assert_allclose(on(Gaussian(1.0)).log(X)[:40, 40:], -exact(X[:40], X[40:], 1.0).astype(float), rtol=rtol / 10)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("far", [1e3, 1e10, 1e20, 1e37])
def test_an_outlier_does_not_disturb_the_others(d, far, dtype, on):
    X = cloud(50, d).astype(dtype)
    with_outlier = np.vstack([X, np.full((1, d), far, dtype)])
    rtol = 1e-12 if dtype == np.float64 else 2e-5
    for kernel in (Gaussian(0.9), Laplacian(0.9), Matern(0.5, 0.9), Matern(1.5, 0.9), Matern(3.7, 0.9)):
        K = on(kernel)(with_outlier)
        assert_allclose(K[:50, :50], on(kernel)(X), rtol=rtol)
        assert not K[50, :50].any()
        assert K[50, 50] == 1


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("unit", [1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize(
    "make", [Gaussian, Laplacian, lambda s: Matern(0.5, s), lambda s: Matern(3.7, s), lambda s: Sobolev(9.0, s)]
)
def test_units_cancel_between_points_and_bandwidth(make, unit, d, on):
    X, Y = cloud(20, d), cloud(15, d, seed=1)
    assert_allclose(on(make(1.2 * unit))(unit * X, unit * Y), on(make(1.2))(X, Y), rtol=1e-12)
    if 1e-30 <= unit <= 1e30:
        X32, Y32 = (unit * X).astype(np.float32), (unit * Y).astype(np.float32)
        assert_allclose(on(make(1.2 * unit))(X32, Y32), on(make(1.2))(X, Y), rtol=1e-5)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_points_of_extreme_size_against_an_ordinary_bandwidth(d, dtype, on):
    big, small = (1e300, 1e-300) if dtype == np.float64 else (1e37, 1e-37)
    X = np.arange(1.0, 6.0)[:, None] * np.ones(d)
    for kernel in (
        Gaussian(1.0),
        Laplacian(1.0),
        Matern(0.5, 1.0),
        Matern(2.5, 1.0),
        Matern(3.7, 1.0),
        ChiSquared(1.0),
    ):
        assert np.array_equal(on(kernel)((X * big).astype(dtype)), np.eye(5)), kernel
        assert np.array_equal(on(kernel)((X * small).astype(dtype)), np.ones((5, 5))), kernel
        assert np.all(np.isfinite(on(kernel).log((X * big).astype(dtype)))), kernel
    assert np.array_equal(on(Gaussian(1e-200))(X), np.eye(5))
    assert np.array_equal(on(Gaussian(1e300))(X), np.ones((5, 5)))


def test_cosine_and_chi_squared_of_any_unit(on):
    X, Y = abs(cloud(9, 6)), abs(cloud(8, 6, seed=1))
    for unit in (1e-300, 1e300):
        assert_allclose(on(Cosine())(unit * X, unit * Y), on(Cosine())(X, Y), rtol=1e-13)
        assert_allclose(on(ChiSquared(1 / unit))(unit * X, unit * Y), on(ChiSquared(1.0))(X, Y), rtol=1e-13)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("nu", [0.3, 0.5, 0.9, 1.5, 2.5])
def test_near_duplicates(d, nu, dtype, on):
    """exp(-r) turns an error e of r² into sqrt(e): inner products would leave 1e-8, in float32 1e-3."""
    X = cloud(30, d).astype(dtype)
    step = dtype(1e-4 if dtype == np.float32 else 1e-9)
    Y = X + step
    kernel = on(Matern(nu, 1.0))
    tolerance = 2e-6 if dtype == np.float32 else 1e-12
    assert_allclose(kernel(X, X.copy()).diagonal(), 1.0, atol=tolerance)
    distances = np.sqrt(exact(X, Y, 1.0).diagonal()).astype(float)
    want = kernel(np.zeros((1, 1)), distances[:, None])[0]
    assert_allclose(kernel(X, Y).diagonal(), want, atol=tolerance)
    if nu <= 0.5:
        assert want.max() < 1 - 10 * tolerance  # the step is seen
