"""Radii of robust regressions by the sampling error of the MMD and by cross-validation."""

import pickle

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold

from mercer import Gaussian, RobustKernelRidge, verify
from mercer.robust.radius import RADII, sampling_radius


def wave(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)


def ridge(radius, **options):
    settings = {"support": 40, "adversary_support": 4, "random_state": 0, "tol": 1e-4, **options}
    return RobustKernelRidge(Gaussian(1.0), radius=radius, **settings)


# --- sampling -----------------------------------------------------------------------------------------------------


def distances(shares, draws=4000, seed=0):
    """The MMD between weighted samples of two far points of equal chance and their law: √2 |p̂ - 1/2|."""
    heads = np.random.default_rng(seed).integers(0, 2, size=(draws, shares.size))
    return np.sqrt(2) * np.abs(heads @ shares - 0.5)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("shares", [np.full(50, 1 / 50), np.arange(1, 51) / 1275.0], ids=["equal", "weighted"])
def test_the_law_lies_within_the_radius_as_often_as_stated(shares, confidence):
    away = distances(shares)
    assert np.mean(away <= sampling_radius(shares, confidence)) >= confidence
    expected = np.sqrt(np.sum(shares**2))
    assert np.sqrt(np.mean(away**2)) <= expected


def test_both_terms_of_the_sampling_radius_are_needed():
    """The expected distance alone, or the deviation from it alone, is exceeded too often."""
    shares = np.full(50, 1 / 50)
    away, root = distances(shares), 1 / np.sqrt(50)
    assert np.mean(away <= root) < 0.95
    alone = root * np.sqrt(np.log(1 / 0.5))  # at confidence 1/2
    rng = np.random.default_rng(1)
    spread = [np.sqrt(np.sum(rng.multinomial(50, np.full(200, 1 / 200)) ** 2) / 2500 - 1 / 200) for _ in range(200)]
    assert np.mean(np.array(spread) <= alone) < 0.5  # two hundred far points: the distance is near its mean
    assert np.mean(np.array(spread) <= sampling_radius(shares, 0.5)) >= 0.5


def test_the_radius_of_a_fit_is_the_stated_one():
    X, y = wave()
    model = ridge("sampling").fit(X, y)
    assert model.radius_ == pytest.approx((1 + np.sqrt(np.log(20))) / np.sqrt(40))
    assert model.radius_errors_ is None
    assert model.robust_risk_ == pytest.approx(ridge(model.radius_).fit(X, y).robust_risk_, rel=1e-6)
    weights = np.arange(1.0, 41)
    weighted = ridge("sampling", confidence=0.5).fit(X, y, weights)
    shares = weights / weights.sum()
    assert weighted.radius_ == pytest.approx(np.sqrt(shares @ shares) * (1 + np.sqrt(np.log(2))))
    assert ridge(0.25, tol=1e-2).fit(X, y).radius_ == 0.25


# --- cross-validation ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen():
    return ridge("cv", adversary_support=3, support=60, tol=1e-3).fit(*wave())


def test_errors_of_cross_validation_are_those_of_kernel_ridge_without_a_ball(chosen):
    X, y = wave()
    seed = int(np.random.default_rng(0).integers(2**31))
    total = 0.0
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        plain = KernelRidge(alpha=1e-3 * len(train), kernel="rbf", gamma=1.0).fit(X[train], y[train])
        total += np.sum((plain.predict(X[test]) - y[test]) ** 2) / 40
    assert chosen.radius_errors_.shape == (6,)
    assert chosen.radius_errors_[0] == pytest.approx(total, rel=1e-6)


def test_the_radius_of_least_error_is_taken(chosen):
    assert chosen.radius_ == RADII[int(np.argmin(chosen.radius_errors_))]
    assert np.ptp(chosen.radius_errors_) > 0
    again = ridge(chosen.radius_, adversary_support=3, support=60, tol=1e-3).fit(*wave())
    np.testing.assert_allclose(chosen.predict(wave()[0]), again.predict(wave()[0]), atol=2e-2)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("radius_", 0.3, r"^The model's radius_=0.3 is not that of its least radius_errors_: it is damaged\.$"),
        ("radius_errors_", np.arange(5.0), r"^The model's radius_=.* is not that of its least radius_errors_"),
        ("radius_errors_", None, r"^The model's radius_errors_ "),
    ],
)
def test_a_radius_that_no_errors_choose_is_found_out(chosen, name, value, sentence):
    X, y = wave()
    assert verify(chosen, X, y).holds(1e-2)
    other = pickle.loads(pickle.dumps(chosen))
    setattr(other, name, value)
    with pytest.raises(ValueError, match=sentence):
        verify(other, X, y)


def test_another_radius_than_the_sampling_error_is_found_out():
    X, y = wave()
    model = ridge("sampling", tol=1e-2).fit(X, y)
    model.radius_ *= 0.9
    with pytest.raises(ValueError, match=r"^The model's radius_ differs by .* it is damaged\.$"):
        verify(model, X, y)


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"radius": "bootstrap"}, r"^radius='bootstrap' must be a number of at least 0, 'sampling' or 'cv'\.$"),
        ({"radius": "sampling", "confidence": 1.0}, r"^confidence=1.0 must lie strictly between 0 and 1\.$"),
        ({"radius": 0.1, "confidence": 0.9}, r"^confidence has no effect unless radius='sampling': leave it out\.$"),
        ({"radius": "cv", "keep_sample": False}, r"^radius='cv' tries balls that hold no density at all"),
    ],
)
def test_rules_that_are_none_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ridge(**options).fit(*wave())


def test_too_few_rows_for_cross_validation():
    X, y = wave()
    with pytest.raises(ValueError, match=r"^radius='cv' takes at least 10 rows, X has 9: give a number\.$"):
        ridge("cv").fit(X[:9], y[:9])
