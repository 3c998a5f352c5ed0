"""Samples, moments and distribution functions of fitted densities, on R^d, on boxes and with a Gaussian reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.base import BaseEstimator

from mercer.density.queries import DensityQueries
from mercer.density.tabulated import TabulatedDensity
from mercer.kernels import Gaussian, Laplacian
from mercer.kernels.measures import Box, GaussianMeasure, Lebesgue


class _Fitted(DensityQueries, BaseEstimator):
    """A density with given coefficients, normalised on a fine grid."""

    def __init__(self, d, kernel, measure, seed=0):
        rng = np.random.default_rng(seed)
        self.support_ = rng.uniform(-1, 1, (5, d))
        self._factor = rng.standard_normal((5, 2))
        self.kernel_, self.measure_ = kernel, measure
        cells = 2001 if d == 1 else 301
        low, high = (measure.lower, measure.upper) if isinstance(measure, Box) else (np.full(d, -8.0), np.full(d, 8.0))
        axes = [low[k] + (np.arange(cells) + 0.5) * (high[k] - low[k]) / cells for k in range(d)]
        self.grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        self.cell = np.prod((high - low) / cells)
        self._constant = 1.0
        self._constant = 1 / (self.cell * self.density(self.grid).sum())

    def fit(self):
        return self

    def density(self, X):
        form = np.sum((self.kernel_(np.asarray(X, float), self.support_) @ self._factor) ** 2, axis=1)
        return self._constant * form * np.exp(self.measure_.log_density(np.asarray(X, float)))


MEASURES = {
    "lebesgue": lambda d: Lebesgue(),
    "gaussian": lambda d: GaussianMeasure(np.full(d, 0.3), 0.9),
    "box": lambda d: Box(np.full(d, -1.2), np.full(d, 1.0)),
}
KERNELS = {"gaussian": Gaussian(sigma=0.8), "laplacian": Laplacian(sigma=0.5)}


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_moments_and_samples_follow_the_density(d, measure, kernel):
    model = _Fitted(d, KERNELS[kernel], MEASURES[measure](d))
    weights = model.cell * model.density(model.grid)
    mean = weights @ model.grid
    covariance = (model.grid - mean).T @ (weights[:, None] * (model.grid - mean))
    accuracy = 2e-4 if kernel == "gaussian" else 2e-3  # of the grid of the test, which the kinks of the other spoil
    np.testing.assert_allclose(model.mean(), mean, atol=accuracy)
    np.testing.assert_allclose(model.covariance(), covariance, atol=accuracy)
    drawn = model.sample(4000, random_state=0)
    assert drawn.shape == (4000, d)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 4.5 * np.sqrt(np.diag(covariance) / 4000))
    np.testing.assert_allclose(np.cov(drawn.T).reshape(d, d), covariance, atol=0.06)
    assert np.all(model.density(drawn) > 0)
    exact = kernel == "gaussian"
    assert (model.sampling_error_ == 0) == exact
    assert model.sampling_error_ < 0.02


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_distribution_function_in_one_dimension(measure, kernel):
    model = _Fitted(1, KERNELS[kernel], MEASURES[measure](1))
    x = np.linspace(-1, 0.9, 7)
    weights = model.cell * model.density(model.grid)
    expected = [weights[model.grid[:, 0] <= value].sum() for value in x]
    np.testing.assert_allclose(model.cdf(x), expected, atol=0.01)
    assert kstest(model.sample(3000, random_state=1)[:, 0], model.cdf).pvalue > 1e-3


def test_a_gaussian_reference_gives_marginals_and_conditionals():
    model = _Fitted(2, KERNELS["gaussian"], MEASURES["gaussian"](2))
    axis = np.linspace(-8, 8, 801)
    for x in (-0.4, 0.6):
        line = np.column_stack([np.full(axis.size, x), axis])
        mass = (axis[1] - axis[0]) * model.density(line).sum()
        assert model.marginal([0]).density([[x]])[0] == pytest.approx(mass, rel=1e-3)
        np.testing.assert_allclose(
            model.conditional([0], [x]).density(axis[::40, None]),
            model.density(line[::40]) / mass,
            rtol=1e-3,
            atol=1e-9,
        )


def test_what_has_no_closed_form_says_so():
    for model in (_Fitted(2, KERNELS["gaussian"], MEASURES["box"](2)), _Fitted(2, KERNELS["laplacian"], Lebesgue())):
        with pytest.raises(ValueError, match="closed form for the Gaussian kernel on R\\^d only"):
            model.marginal([0])
    with pytest.raises(ValueError, match="up to 3 dimensions, not 4"):
        TabulatedDensity(lambda X: np.ones(len(X)), np.zeros(4), np.ones(4))


def test_a_table_states_how_far_it_is_from_the_density():
    """For a linear density on [0, 1] the distance in total variation is known: a quarter of the slope a cell."""
    table = TabulatedDensity(lambda X: 2 * X[:, 0], np.zeros(1), np.ones(1))
    assert table.mass == pytest.approx(1, abs=1e-12)
    assert table.error == pytest.approx(0.25 / 8192, rel=0.01)


def test_a_box_that_holds_no_mass_is_named():
    model = _Fitted(1, Gaussian(sigma=0.1), Box(np.array([1.8]), np.array([1.9])))
    with pytest.raises(ValueError, match="fell into the box"):
        model.sample(10, random_state=0)
