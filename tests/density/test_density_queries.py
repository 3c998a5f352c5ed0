"""Samples, moments and distribution functions of fitted densities, on R^d, on boxes and with a Gaussian reference."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.base import BaseEstimator, clone

from mercer import MeanEmbedding, SumOfSquaresDensity, verify
from mercer.datasets import two_moons
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.queries import DensityQueries
from mercer.density.tabulated import TabulatedDensity
from mercer.kernels import Gaussian, Laplacian
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue


@cache
def _legendre():
    return np.polynomial.legendre.leggauss(600)


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
    assert model.sampling_error_ < (1e-12 if kernel == "gaussian" else 0.02)


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


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_marginals_and_conditionals_of_every_kind(measure, kernel):
    model = _Fitted(2, KERNELS[kernel], MEASURES[measure](2))
    low, high = (-1.2, 1.0) if measure == "box" else (-8.0, 8.0)
    nodes, weights = _legendre()
    axis, weights = low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2
    accuracy = 1e-3 if kernel == "gaussian" else 0.02
    for swapped in (False, True):
        for x in (-0.4, 0.6):
            line = np.column_stack([np.full(axis.size, x), axis])[:, :: -1 if swapped else 1]
            mass = weights @ model.density(line)
            assert model.marginal([int(swapped)]).density([[x]])[0] == pytest.approx(mass, rel=accuracy)
            given = model.conditional([int(swapped)], [x])
            y = axis[np.abs(axis) < 0.9][::20]
            at_y = np.column_stack([np.full(y.size, x), y])[:, :: -1 if swapped else 1]
            np.testing.assert_allclose(given.density(y), model.density(at_y) / mass, rtol=accuracy)
            assert given.mean()[0] == pytest.approx(weights @ (axis * model.density(line)) / mass, abs=accuracy)
    both = model.marginal([1, 0])
    np.testing.assert_allclose(both.density([[0.1, -0.2]]), model.density([[-0.2, 0.1]]), rtol=0.02)


@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_quantiles_invert_the_distribution_function(measure, kernel):
    model = _Fitted(1, KERNELS[kernel], MEASURES[measure](1))
    levels = np.array([1e-6, 0.02, 0.5, 0.9, 1 - 1e-6])
    at = model.quantile(levels)
    assert np.all(np.diff(at) > 0)
    np.testing.assert_allclose(model.cdf(at), levels, atol=1e-12)
    with pytest.raises(ValueError, match="strictly between"):
        model.quantile([0.0])


def test_questions_that_have_no_answer_say_so():
    for model in (_Fitted(2, KERNELS["gaussian"], MEASURES["box"](2)), _Fitted(2, KERNELS["laplacian"], Lebesgue())):
        with pytest.raises(ValueError, match="take a marginal first"):
            model.cdf([0.0])
        with pytest.raises(ValueError, match="different numbers from 0 to 1"):
            model.marginal([2])
        with pytest.raises(ValueError, match="nothing left"):
            model.conditional([0, 1], [0.0, 0.0])
        with pytest.raises(ValueError, match="1 finite numbers"):
            model.conditional([0], [np.nan])
    with pytest.raises(ValueError, match="outside the box"):
        _Fitted(2, KERNELS["gaussian"], MEASURES["box"](2)).conditional([0], [1.1])
    with pytest.raises(ValueError, match="up to 3 dimensions, not 4"):
        TabulatedDensity(lambda X: np.ones(len(X)), np.zeros(4), np.ones(4), np.zeros((1, 4)))
    with pytest.raises(ValueError, match="no mass"):
        TabulatedDensity(lambda X: np.zeros(len(X)), np.zeros(1), np.ones(1), np.zeros((1, 1)))


def test_a_table_states_how_far_it_is_from_the_density():
    """For a linear density on [0, 1] the distance in total variation is known: a quarter of the slope a cell."""
    table = TabulatedDensity(lambda X: 2 * X[:, 0], np.zeros(1), np.ones(1), np.zeros((1, 1)))
    assert table.mass == pytest.approx(1, abs=1e-12)
    assert table.sampling_error == pytest.approx(0.25 / 8192, rel=0.01)


def test_draws_of_a_box_in_a_far_tail_follow_the_density():
    """Nothing is thrown away: the mass inside is 1e-60 of that on the whole line."""
    model = _Fitted(1, Gaussian(sigma=0.1), Box(np.array([1.8]), np.array([1.9])))
    weights = model.cell * model.density(model.grid)
    drawn = model.sample(4000, random_state=0)[:, 0]
    mean = weights @ model.grid[:, 0]
    deviation = np.sqrt(weights @ (model.grid[:, 0] - mean) ** 2)
    assert abs(drawn.mean() - mean) < 4.5 * deviation / 60
    assert model.mean()[0] == pytest.approx(mean, abs=1e-4)
    assert kstest(drawn, model.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("sigma", "regularization"), [(0.3, None), (1.0, 1e-3), (3.0, 0.0)])
def test_draws_of_fitted_moons_pass_a_two_sample_test(sigma, regularization):
    """Wide kernels cancel in all but one of 1e4 to 1e8 proposals; MMD of draws against the density itself, exact."""
    X, _ = two_moons(200, noise=0.1, random_state=0)
    model = SumOfSquaresDensity(Gaussian(sigma), support=50, regularization=regularization, random_state=0).fit(X)
    n = 4000
    drawn = model.sample(n, random_state=1)
    target = MeanEmbedding.of_density(model)
    squared = MeanEmbedding(model.kernel_, drawn).distance(target) ** 2
    assert squared < 6.0 * (1.0 - target @ target) / n  # its expectation is (1 - ‖w_p‖²)/n
    centred = drawn - model.mean()
    products = np.einsum("ni,nj->nij", centred, centred)
    for found, expected in ((drawn, model.mean()), (products, model.covariance())):
        assert np.all(np.abs(found.mean(axis=0) - expected) < 4.5 * found.std(axis=0) / np.sqrt(n))


def test_a_law_that_is_not_the_density_fails_the_two_sample_test():
    X, _ = two_moons(200, noise=0.1, random_state=0)
    model = SumOfSquaresDensity(Gaussian(0.3), support=50, random_state=0).fit(X)
    target = MeanEmbedding.of_density(model)
    moved = model.sample(4000, random_state=1) + 0.05
    assert MeanEmbedding(model.kernel_, moved).distance(target) ** 2 > 6.0 * (1.0 - target @ target) / 4000


def test_a_box_in_five_dimensions_has_all_answers():
    rng = np.random.default_rng(0)
    X = rng.beta(2, 3, (150, 5))
    model = SumOfSquaresDensity(Gaussian(1.0), support=30, box=(0, 1), random_state=0).fit(X)
    drawn = model.sample(3000, random_state=0)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert np.all(np.abs(drawn.mean(axis=0) - model.mean()) < 4.5 * np.sqrt(np.diag(model.covariance()) / 3000))
    np.testing.assert_allclose(np.cov(drawn.T), model.covariance(), atol=0.006)
    assert kstest(drawn[:, 2], model.marginal([2]).cdf).pvalue > 1e-3


# --- the closed form or table is made once ------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch):
    """How many laws were made."""
    counted = []
    for kind in (GaussianSquares, TabulatedDensity):
        first = kind.__init__
        monkeypatch.setattr(
            kind, "__init__", lambda self, *a, first=first, **k: counted.append(1) or first(self, *a, **k)
        )
    return counted


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Laplacian(0.5)], ids=str)
def test_all_questions_are_answered_by_one_law_which_is_no_part_of_a_pickle(kernel, made):
    X = np.random.default_rng(0).standard_normal((60, 1))
    model = SumOfSquaresDensity(kernel, support=10, box=(-5, 5), random_state=0).fit(X)
    mean = model.mean()
    assert len(made) == 1
    size = len(pickle.dumps(SumOfSquaresDensity(kernel, support=10, box=(-5, 5), random_state=0).fit(X)))
    model.covariance(), model.cdf([0.0]), model.quantile([0.5]), model.sample(3, 0), model.sampling_error_
    assert len(made) == 1
    assert len(pickle.dumps(model)) == size
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.mean(), mean)
    assert len(made) == 2
    np.testing.assert_array_equal(clone(model).fit(X).mean(), mean)


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Laplacian(0.5)], ids=str)
def test_no_answer_is_that_of_an_earlier_fit(kernel):
    X = np.random.default_rng(0).standard_normal((60, 1))
    model = SumOfSquaresDensity(kernel, support=10, random_state=0).fit(X)
    earlier, left = model.mean(), model._law()
    before = left.density([[0.3]])
    model.fit(X + 3)
    np.testing.assert_allclose(model.mean(), earlier + 3, atol=1e-3)
    np.testing.assert_array_equal(left.density([[0.3]]), before)  # what was asked before does not follow the new fit
    model.set_params(kernel__sigma=1.1)
    np.testing.assert_allclose(model.mean(), earlier + 3, atol=1e-3)  # not fitted yet
    model.fit(X)
    np.testing.assert_array_equal(model.mean(), clone(model).fit(X).mean())


def test_numbers_changed_by_hand_change_the_answers_and_are_not_believed():
    X = np.random.default_rng(0).standard_normal((60, 1))
    model = SumOfSquaresDensity(Gaussian(0.8), support=10, random_state=0).fit(X)
    mean, support = model.mean(), model.support_.copy()
    assert verify(model, X).upper == model.certificate_.upper
    model.support_ += 1.0
    np.testing.assert_allclose(model.mean(), mean + 1.0)
    with pytest.raises(ValueError, match="support_ has points that X does not have"):
        verify(model, X)
    model.support_[:] = support
    model.kernel_.set_params(sigma=1.6)
    assert model.mean() != pytest.approx(mean, abs=1e-12)
    with pytest.raises(ValueError, match="kernel_ is"):
        verify(model, X)


def test_a_law_that_was_put_in_its_place_is_not_asked_by_verify():
    X = np.random.default_rng(0).standard_normal((60, 1))
    model = SumOfSquaresDensity(Gaussian(0.8), support=10, random_state=0).fit(X)
    model.mean()
    model._kept_law = (model._kept_law[0], None)
    assert verify(model, X).upper == model.certificate_.upper


def test_a_kernel_that_no_module_has_is_tabulated_each_time():
    class Local(Laplacian):
        """A kernel that cannot be pickled."""

    X = np.random.default_rng(0).standard_normal((40, 1))
    model = SumOfSquaresDensity(Local(0.5), support=6, random_state=0).fit(X)
    np.testing.assert_array_equal(model.mean(), model.mean())
