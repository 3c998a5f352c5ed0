"""Closed forms of densities that are sums of squares of Gaussian sections, against quadrature and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from mercer.density.gaussian_squares import GaussianSquares


def _density(d, seed, *, m=6, rank=3, sigma=0.8):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((m, rank))
    return GaussianSquares(rng.uniform(-1, 1, (m, d)), factor @ factor.T, sigma)


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
    for at in (-1.0, 0.2, 0.9):
        nodes, gauss = np.polynomial.legendre.leggauss(400)
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


def test_both_samplers_agree_with_the_moments(monkeypatch):
    p = _density(2, 1, m=4)
    assert 0 < p.acceptance_rate <= 1
    by_rejection = p.sample(20_000, np.random.default_rng(0))
    monkeypatch.setattr("mercer.density.gaussian_squares._LEAST_ACCEPTED", 2.0)
    by_coordinates = p.sample(200, np.random.default_rng(0))
    for drawn in (by_rejection, by_coordinates):
        error = np.sqrt(np.diag(p.covariance()) / len(drawn))
        assert np.all(np.abs(drawn.mean(axis=0) - p.mean()) < 4.5 * error)
    np.testing.assert_allclose(np.cov(by_rejection.T), p.covariance(), atol=0.03)


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
