"""Closed forms of densities that are sums of squares of Gaussian sections, against quadrature and simulation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import kstest, norm, truncnorm

from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.truncated_normal import draw_between, mass_between, moments_between


def _density(d, seed, *, m=6, rank=3, sigma=0.8):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((m, rank))
    return GaussianSquares(rng.uniform(-1, 1, (m, d)), factor @ factor.T, sigma)


@cache
def _legendre():
    return np.polynomial.legendre.leggauss(400)


def _line(p):
    """Points and weights of the trapezoidal rule, which is accurate to rounding for sums of Gaussians on the line."""
    reach = 2 + 8 * p.sigma
    x = np.linspace(-reach, reach, 4001)
    return x, np.full(x.size, x[1] - x[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sigma", [0.05**0.5, 0.8, 10**0.5])
def test_mass_moments_and_distribution_in_one_dimension(seed, sigma):
    p = _density(1, seed, sigma=sigma)
    x, weights = _line(p)
    values = weights * p.density(x)
    assert values.sum() == pytest.approx(1, abs=1e-10)
    mean = values @ x
    assert p.mean()[0] == pytest.approx(mean, abs=1e-9)
    assert p.covariance()[0, 0] == pytest.approx(values @ (x - mean) ** 2, rel=1e-8)
    nodes, gauss = _legendre()
    for at in (-1.0, 0.2, 0.9):
        low = x[0]
        inside = low + (at - low) * (nodes + 1) / 2
        assert p.cdf([at])[0] == pytest.approx((at - low) / 2 * gauss @ p.density(inside), abs=1e-9)
    levels = np.array([0.01, 0.3, 0.5, 0.99])
    np.testing.assert_allclose(p.cdf(p.quantile(levels)), levels, atol=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_marginal_and_conditional_in_two_dimensions(seed):
    p = _density(2, seed)
    grid, step = np.linspace(-6, 6, 161, retstep=True)
    square = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    assert step**2 * p.density(square).sum() == pytest.approx(1, abs=1e-10)
    first = p.marginal([0])
    for x in (-0.5, 0.7):
        mass = step * p.density(np.column_stack([np.full(grid.size, x), grid])).sum()
        assert first.density([[x]])[0] == pytest.approx(mass, rel=1e-9)
        given = p.conditional([0], [x])
        for y in (-0.3, 0.4):
            assert given.density([[y]])[0] == pytest.approx(p.density([[x, y]])[0] / mass, rel=1e-9)
    np.testing.assert_allclose(p.marginal([1]).mean(), p.mean()[1:])
    np.testing.assert_allclose(p.marginal([1]).covariance(), p.covariance()[1:, 1:])
    np.testing.assert_allclose(p.marginal([1, 0]).density([[0.1, 0.2]]), p.density([[0.2, 0.1]]))


def test_conditional_far_from_the_points_is_finite():
    given = _density(2, 0).conditional([0], [100.0])
    assert np.isfinite(given.mean()).all()
    y, weights = _line(given)
    assert weights @ given.density(y) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_samples_follow_the_distribution(seed):
    p = _density(1, seed)
    drawn = p.sample(4000, np.random.default_rng(seed))
    assert drawn.shape == (4000, 1)
    assert kstest(drawn[:, 0], p.cdf).pvalue > 1e-3


@pytest.mark.parametrize("bounds", [(), (np.full(2, -0.5), np.array([np.inf, 0.8]))], ids=["plane", "half-open box"])
def test_both_samplers_agree_with_the_moments(monkeypatch, bounds):
    plain = _density(2, 1, m=4)
    p = GaussianSquares(plain.points, plain.mixture, plain.sigma, *bounds)
    assert 0 < p.acceptance_rate <= 1
    n = 20_000
    monkeypatch.setattr("mercer.density.gaussian_squares._LEAST_ACCEPTED", 0.0)
    by_rejection = p.sample(n, np.random.default_rng(0))
    monkeypatch.setattr("mercer.density.gaussian_squares._LEAST_ACCEPTED", 2.0)
    by_coordinates = p.sample(n, np.random.default_rng(0))
    for drawn in (by_rejection, by_coordinates):
        assert np.all((drawn >= p.lower) & (drawn <= p.upper))
        error = np.sqrt(np.diag(p.covariance()) / n)
        assert np.all(np.abs(drawn.mean(axis=0) - p.mean()) < 4.5 * error)
        np.testing.assert_allclose(np.cov(drawn.T), p.covariance(), atol=0.03)
        for k in range(2):
            assert kstest(drawn[:, k], p.marginal([k]).cdf).pvalue > 1e-3
    assert kstest(by_rejection @ [1.0, -2.0], by_coordinates @ [1.0, -2.0]).pvalue > 1e-3


@pytest.mark.parametrize("sigma", [0.05**0.5, 0.8, 10**0.5])
def test_the_distribution_function_is_that_of_the_mixture(sigma):
    """Σ Pᵢⱼ Φ(2(x - mᵢⱼ)/σ), also across a gap of a thousand bandwidths."""
    plain = _density(1, 2, sigma=sigma)
    points = plain.points + np.where(np.arange(6) < 3, 0.0, 1000 * sigma)[:, None]
    p = GaussianSquares(points, plain.mixture, sigma)
    x = np.concatenate([np.linspace(-2, 2, 41), 1000 * sigma + np.linspace(-2, 2, 41), [500 * sigma]])
    middle = 0.5 * (points + points.T)
    expected = np.einsum("ij,xij->x", p.mixture, norm.cdf(2 * (x[:, None, None] - middle) / sigma))
    np.testing.assert_allclose(p.cdf(x), expected, atol=1e-12)
    levels = np.linspace(0.001, 0.999, 57)
    np.testing.assert_allclose(p.cdf(p.quantile(levels)), levels, atol=1e-12)


def test_moments_of_cut_off_normal_laws_are_those_of_scipy():
    means = np.array([-30.0, -2.0, 0.1, 0.9, 3.0])
    for lower, upper in ((0.0, 1.0), (-np.inf, 0.5), (0.2, np.inf)):
        low, high = (lower - means) / 0.7, (upper - means) / 0.7
        mean, variance = moments_between(means, 0.7, lower, upper)
        theirs = truncnorm(low, high, loc=means, scale=0.7)
        seen = mass_between(means, 0.7, lower, upper) > 1e-200
        np.testing.assert_allclose(mass_between(means, 0.7, lower, upper), norm.cdf(high) - norm.cdf(low), atol=1e-15)
        np.testing.assert_allclose(mean[seen], theirs.mean()[seen], rtol=1e-9)
        np.testing.assert_allclose(variance[seen], theirs.var()[seen], rtol=1e-6)
        drawn = draw_between(np.broadcast_to(means, (2000, 5)), 0.7, lower, upper, np.random.default_rng(0))
        for k in np.flatnonzero(seen):
            assert kstest(drawn[:, k], truncnorm(low[k], high[k], loc=means[k], scale=0.7).cdf).pvalue > 1e-3


def test_high_dimension_stays_in_range():
    p = _density(50, 0, sigma=0.01)
    assert np.all(np.isfinite(p.score_samples(p.points)))
    drawn = p.sample(10, np.random.default_rng(0))
    assert np.all(np.isfinite(p.score_samples(drawn)))


def test_bad_input_gets_one_sentence():
    p = _density(2, 0)
    with pytest.raises(ValueError, match="take a marginal first"):
        p.cdf([0.0])
    with pytest.raises(ValueError, match="different numbers from 0 to 1"):
        p.marginal([2])
    with pytest.raises(ValueError, match="list of whole numbers"):
        p.marginal([0.5])
    with pytest.raises(ValueError, match="2 finite numbers"):
        p.conditional([0, 1], [0.0])
    with pytest.raises(ValueError, match="nothing left"):
        p.conditional([0, 1], [0.0, 0.0])
    with pytest.raises(ValueError, match="must have 2 columns"):
        p.density(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        p.marginal([0]).quantile([1.0])
    with pytest.raises(ValueError, match="no mass"):
        GaussianSquares(p.points, np.zeros((6, 6)), 1.0)
