"""Input that makes no sense gets one sentence; input that is merely awkward gets a density."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import DiffusionMaps, Gaussian, Matern, Precomputed, SumOfSquaresDensity

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 2))


def fit(points=X, weights=None, **options):
    options = {"kernel": Gaussian(1.0), "support": 10, "random_state": 0, **options}
    return SumOfSquaresDensity(**options).fit(points, sample_weight=weights)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"regularization": -1e-3}, "regularization=-0.001 must be at least 0"),
        ({"regularization": np.nan}, "regularization=nan must be a finite number"),
        ({"tol": 0}, "tol=0 must be greater than 0"),
        ({"truncation": 2.0}, "truncation=2.0 must lie strictly between 0 and 1"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number of at least 1"),
        ({"solver": "newton"}, "solver='newton' must be one of 'auto'"),
        ({"support": 0}, "support=0 must be a whole number of at least 1"),
        ({"support": "grid"}, "support=('grid', 100) must be 'kmeans'"),
        ({"support": ("kmeans", -1)}, "the number of k-means centres=-1"),
        ({"support": np.zeros((4, 3))}, "support has shape (4, 3): it must be points with 2 features"),
        ({"support": np.full((4, 2), np.nan)}, "support has nan in row 0, column 0"),
        ({"support": np.empty((0, 2))}, "support has shape (0, 2)"),
        ({"reference": "uniform"}, "reference='uniform' must be 'lebesgue', 'gaussian', a pair"),
        ({"reference": (np.zeros(3), 1.0)}, "The mean of reference has shape (3,): it must have 2 entries"),
        ({"reference": (0.0, -1.0)}, "the std of reference=-1.0 must be greater than 0"),
        ({"box": (1.0, 0.0)}, "box is empty in coordinate 0"),
        ({"box": ((-9.0, 9.0), (-9.0, 9.0))}, "not a range for each coordinate"),
        ({"regularization": 1e300}, "regularization=1e+300 is so large that nothing of the data is left"),
        ({"box": 3.0}, "box=3.0 must be a pair (lower, upper)"),
        ({"box": ([0, 0, 0], [1, 1, 1])}, "they must have 2 entries each"),
        ({"box": (-5.0, np.inf)}, "must be finite"),
        ({"box": (-5.0, 5.0), "reference": "gaussian"}, "box goes with reference='lebesgue'"),
        ({"box": (-0.5, 0.5)}, "points lie outside the box, the first at ("),
        ({"kernel": Precomputed()}, "A density is a function of points"),
        ({"kernel": 3}, "kernel=3 must be a kernel"),
        ({"random_state": "dice"}, "random_state='dice' must be"),
    ],
)
def test_a_parameter_that_makes_no_sense_gets_one_sentence(options, sentence):
    with pytest.raises((ValueError, TypeError)) as raised:
        fit(**options)
    message = str(raised.value)
    assert sentence in message
    assert message.count("\n") == 0


def test_data_that_make_no_sense_get_one_sentence():
    with pytest.raises(ValueError, match="NaN"):
        fit(np.where(np.arange(60).reshape(30, 2) == 7, np.nan, X))
    with pytest.raises(ValueError, match="sample_weight is negative at index 3"):
        fit(weights=np.where(np.arange(30) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="All points are equal .n_samples = 5., so a bandwidth cannot be chosen"):
        fit(np.ones((5, 2)), kernel=None)
    with pytest.raises(ValueError, match="All points are equal .n_samples = 5., so reference='gaussian' has no width"):
        fit(np.ones((5, 2)), reference="gaussian")
    with pytest.raises(TypeError, match="has no attribute indices_"):
        fit(support=DiffusionMaps(n_components=1))
    with pytest.raises(ValueError, match="quadrature takes 3 features at most, not 4"):
        fit(RNG.standard_normal((10, 4)), kernel=Matern(1.5, 1.0))


@pytest.mark.parametrize("rows", [[-1, 2], [0.5, 1.0], [[0, 1]], [], [30]])
def test_an_estimator_that_chose_no_rows_of_the_data_gets_one_sentence(rows):
    with pytest.raises(ValueError, match=r"has indices_ that are no list of row numbers|does not have: fit it to X"):
        fit(support=SimpleNamespace(indices_=rows))


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_data_whose_squares_are_no_numbers_are_refused(unit):
    with pytest.raises(ValueError, match="bring the features to a scale near one"):
        fit(unit * X, kernel=None)


def test_one_point_and_equal_points_have_the_density_of_one_bump():
    for points in (np.zeros((1, 2)), np.zeros((7, 2))):
        model = fit(points)
        assert model.support_.shape == (1, 2)
        assert model.density([[0.0, 0.0]])[0] == pytest.approx(2 / np.pi)
        assert model.rank_ == 1


def test_duplicates_and_more_support_than_points_are_taken_once():
    doubled = np.concatenate([X, X])
    model = fit(doubled, support=1000)
    assert model.support_.shape == (30, 2)
    once = fit(X, support=1000)
    assert np.allclose(model.density(X), once.density(X), rtol=1e-4, atol=1e-8)
    repeated = fit(support=np.concatenate([X[:5], X[:5]]))
    assert repeated.support_.shape == (5, 2)


def test_support_points_away_from_the_data_do_no_harm():
    model = fit(support=np.concatenate([X[:10], X[:2] + 1e3]))
    assert model.density(X).min() > 0
    assert model.certificate_.relative_gap < 1e-3


@pytest.mark.parametrize("sigma", [1e-4, 1e4])
def test_bandwidths_far_too_small_or_large_still_give_a_density(sigma):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = fit(kernel=Gaussian(sigma))
    assert np.all(np.isfinite(model.score_samples(X)))
    assert np.sum(model.eigenvalues_) == pytest.approx(1.0)


def test_ten_dimensions_are_fine_and_fifty_are_said_to_be_too_many():
    points = RNG.standard_normal((200, 10))
    model = SumOfSquaresDensity(support=60, random_state=0).fit(points)
    truth = -0.5 * np.sum(points**2, axis=1) - 5 * np.log(2 * np.pi)
    assert model.score(points) == pytest.approx(truth.mean(), abs=1.0)
    points = RNG.standard_normal((200, 50))
    with pytest.warns(UserWarning, match="too far apart for it in 50 dimensions"):
        model = SumOfSquaresDensity(support=60, random_state=0).fit(points)
    assert np.all(np.isfinite(model.score_samples(points)))
    assert np.all(np.isfinite(model.factor_))


def test_volumes_beyond_double_precision_are_refused_by_name():
    points = 1e-10 * RNG.standard_normal((30, 50))
    with pytest.raises(ValueError, match="beyond double precision: bring the features to a scale near one"):
        SumOfSquaresDensity(random_state=0).fit(points)


def test_constant_features_are_no_obstacle():
    points = np.column_stack([X, np.zeros(30)])
    model = SumOfSquaresDensity(random_state=0).fit(points)
    assert np.isfinite(model.score(points))


def test_points_that_the_kernel_does_not_connect():
    """The best density has as many squares as points, more than the solver carries: it says what it proved."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(ConvergenceWarning, match="the objective is proved to .* of its size"):
        model = SumOfSquaresDensity(Gaussian(1e-8), random_state=0).fit(X)
    assert np.all(np.isfinite(model.score_samples(X)))
    assert np.isfinite(model.certificate_.lower)


@pytest.mark.parametrize("regularization", [0.01, 0.1])
def test_points_that_no_section_joins_are_fitted(regularization):
    """Steps of the solver have no digits left there."""
    rng = np.random.default_rng(80)
    rng.standard_normal((25, 3))
    X = 1e8 * rng.integers(-2, 3, (25, 3))
    model = SumOfSquaresDensity(Gaussian(sigma=1e-3), regularization=regularization, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert model.fit(X).certificate_.holds(1e-6)
