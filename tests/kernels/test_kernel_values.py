"""Values against scikit-learn, and Bessel kernels against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import pairwise_kernels

from mercer.kernels import ChiSquared, Cosine, Gaussian, Laplacian, Linear, Matern, Polynomial, Sigmoid, Sobolev

# n, m (None: square), d: single points, fewer and more coordinates than the direct loops take, more than one tile.
SHAPES = [(1, None, 1), (1, 3, 2), (9, 4, 3), (30, None, 4), (30, 33, 5), (25, 18, 41), (345, 330, 3), (650, None, 7)]
TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-12, "atol": 1e-14}}

PAIRWISE = {
    "rbf": (Gaussian(2.3), {"gamma": 1 / 2.3**2}),
    "laplacian": (Laplacian(3.1), {"gamma": 1 / 3.1}),
    "linear": (Linear(), {}),
    "poly": (Polynomial(3, 0.2, 0.7), {"degree": 3, "gamma": 0.2, "coef0": 0.7}),
    "sigmoid": (Sigmoid(0.2, -0.4), {"gamma": 0.2, "coef0": -0.4}),
    "cosine": (Cosine(), {}),
    "chi2": (ChiSquared(0.6), {"gamma": 0.6}),
}
PROCESSES = {
    "rbf": (Matern(np.inf, 1.6), gp.RBF(1.6)),
    **{f"matern-{nu}": (Matern(nu, 1.6), gp.Matern(1.6, nu=nu)) for nu in (0.3, 0.5, 1.5, 2.5, 3.7, 10, np.inf)},
}


def two_sides(shape, dtype, nonnegative=False):
    n, m, d = shape
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d)).astype(dtype)
    Y = None if m is None else rng.normal(size=(m, d)).astype(dtype)
    if nonnegative:
        X[rng.random(X.shape) < 0.2] = 0.0
        X, Y = abs(X), None if Y is None else abs(Y)
    return X, Y


def in_double(X):
    return None if X is None else X.astype(np.float64)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PAIRWISE)
def test_agrees_with_pairwise_kernels(name, shape, dtype, on):
    kernel, parameters = PAIRWISE[name]
    X, Y = two_sides(shape, dtype, name == "chi2")
    want = pairwise_kernels(in_double(X), in_double(Y), metric=name, **parameters)
    scale = max(1.0, abs(want).max()) if name in ("linear", "poly") else 1.0  # rounding of sums with cancellation
    tolerance = TOLERANCE[np.dtype(dtype).name]
    assert_allclose(on(kernel)(X, Y) / scale, want / scale, **tolerance)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROCESSES)
def test_agrees_with_gaussian_process_kernels(name, shape, dtype):
    kernel, reference = PROCESSES[name]
    X, Y = two_sides(shape, dtype)
    want = reference(in_double(X), in_double(Y))
    assert_allclose(kernel(X, Y), want, **TOLERANCE[np.dtype(dtype).name])


def test_gaussian_is_sigma_squared_not_two_sigma_squared():
    assert_allclose(Gaussian(3.0)([[0.0]], [[6.0]]), np.exp(-4.0), rtol=1e-15)


@pytest.mark.parametrize("kernel", [Polynomial(2), Sigmoid()])
def test_gamma_none_is_one_over_the_number_of_features(kernel, dtype):
    X, Y = two_sides((6, 5, 8), dtype)
    explicit = type(kernel)(**{**kernel.get_params(), "gamma": 1 / 8})
    assert np.array_equal(kernel(X, Y), explicit(X, Y))


def test_cosine_of_zero_rows_is_zero(dtype, on):
    X, Y = two_sides((6, 5, 3), dtype)
    X[2] = 0
    block, gram = on(Cosine())(X, Y), on(Cosine())(X)
    assert np.array_equal(block[2], np.zeros(5))
    assert np.array_equal(gram[2], np.zeros(6))
    assert gram[3, 3] == 1
    assert_allclose(gram, pairwise_kernels(X, metric="cosine"), **TOLERANCE[np.dtype(dtype).name])


def test_chi_squared_counts_a_coordinate_where_both_vanish_as_zero(on):
    X = np.array([[0.0, 1.0], [0.0, 3.0]])
    assert_allclose(on(ChiSquared(0.5))(X)[0, 1], np.exp(-0.5 * 4 / 4), rtol=1e-15)


def test_composites_combine_entries():
    X, Y = two_sides((5, 4, 3), np.float64)
    g, p = Gaussian(1.3), Polynomial(3)
    assert_allclose((g + p)(X, Y), g(X, Y) + p(X, Y), rtol=1e-15)
    assert_allclose((g * p)(X, Y), g(X, Y) * p(X, Y), rtol=1e-15)
    assert_allclose((2.5 * g)(X, Y), 2.5 * g(X, Y), rtol=1e-15)
    assert_allclose((g * np.float64(2.5))(X, Y), 2.5 * g(X, Y), rtol=1e-15)
    assert_allclose((p**2)(X, Y), p(X, Y) ** 2, rtol=1e-15)
    assert_allclose((g**0.5)(X, Y), Gaussian(1.3 * np.sqrt(2))(X, Y), rtol=1e-13)
    norm = np.sqrt(np.outer(p.diag(X), p.diag(Y)))
    assert_allclose(p.normalized()(X, Y), p(X, Y) / norm, rtol=1e-14)


def test_normalized_is_zero_where_the_diagonal_is(on):
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    assert np.array_equal(on(Linear().normalized())(X), np.diag([0.0, 1.0]))
    assert_allclose(on(Linear().normalized())(X), on(Cosine())(X), atol=1e-15)


def log_matern(nu, s):
    """log of 2^(1-ν)/Γ(ν) s^ν K_ν(s) in 30 digits; K_ν by its recurrence in ν, which is stable upwards."""
    with mpmath.workdps(30):
        nu, s = mpmath.mpf(nu), mpmath.mpf(float(s))
        order = nu % 1
        below, bessel = mpmath.besselk(order - 1, s), mpmath.besselk(order, s)
        while order < nu:
            below, bessel = bessel, below + 2 * order / s * bessel
            order += 1
        return float((1 - nu) * mpmath.log(2) - mpmath.loggamma(nu) + nu * mpmath.log(s) + mpmath.log(bessel))


@pytest.mark.parametrize("nu", [0.01, 0.3, 1.0, 2.0, 3.999, 4.001, 7.3, 99.0, 101.0, 300.0, 1000.0])
def test_matern_of_any_order_against_mpmath(nu):
    # The argument of K_ν runs from where its series takes over to where K_ν underflows.
    s = np.array([1e-60, 1e-8, 1e-3, 0.05, 0.3, 1.0, 4.0, 12.0, 60.0, 300.0, 700.0])
    distances = s / np.sqrt(2 * nu)
    want = np.array([log_matern(nu, r * np.sqrt(2 * nu)) for r in distances])
    kernel = Matern(nu, 1.0)
    X, Y = np.zeros((1, 1)), distances[:, None]
    tolerance = max(5e-14, 4e-15 * nu)  # the logarithm adds and subtracts terms of size ν log ν
    assert_allclose(kernel.log(X, Y)[0], want, rtol=tolerance, atol=tolerance)
    assert_allclose(kernel(X, Y)[0], np.exp(want), rtol=2 * tolerance * max(1.0, -want.min()), atol=1e-300)


def test_matern_never_exceeds_one_however_near(on):
    Y = np.geomspace(1e-200, 1e-3, 60)[:, None]
    for nu in (0.01, 0.3, 1.0, 3.7, 4.5, 50.0, 99.0, 101.0, 1000.0):
        values = on(Matern(nu, 1.0))(np.zeros((1, 1)), Y)[0]
        assert values.max() <= 1
        assert np.all(np.diff(values) <= 1e-12), nu


@pytest.mark.parametrize(("smoothness", "d"), [(0.51, 1), (2.0, 1), (2.0, 3), (3.4, 2), (101.0, 4), (302.0, 3)])
def test_sobolev_against_mpmath(smoothness, d):
    nu = smoothness - d / 2
    r = np.array([1e-30, 1e-6, 0.01, 0.7, 5.0, 40.0, 500.0])
    Y = np.zeros((r.size, d))
    Y[:, 0] = 2.5 * r
    want = np.array([log_matern(nu, s) for s in Y[:, 0] / 2.5])
    tolerance = max(5e-14, 4e-15 * nu)
    log = Sobolev(smoothness, 2.5).log(np.zeros((1, d)), Y)[0]
    assert_allclose(log, want, rtol=tolerance, atol=tolerance)


def test_the_reference_is_the_bessel_function_of_mpmath():
    for nu, s in ((0.01, 0.3), (3.7, 1e-3), (99.0, 4.0), (12.0, 300.0)):
        with mpmath.workdps(30):
            value = 2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * mpmath.mpf(s) ** nu * mpmath.besselk(nu, s)
        assert_allclose(log_matern(nu, s), float(mpmath.log(value)), rtol=1e-14)


def test_sobolev_is_matern_with_another_length():
    X, Y = two_sides((12, 9, 3), np.float64)
    assert_allclose(Sobolev(3.0, 0.8)(X, Y), Matern(1.5, 0.8 * np.sqrt(3.0))(X, Y), rtol=1e-13)


def test_matern_of_high_order_tends_to_the_gaussian():
    X, Y = two_sides((12, 9, 3), np.float64)
    assert_allclose(Matern(1e4, 1.1)(X, Y), Matern(np.inf, 1.1)(X, Y), rtol=5e-3)
    assert_allclose(Matern(np.inf, 1.1)(X, Y), Gaussian(1.1 * np.sqrt(2))(X, Y), rtol=1e-14)
