"""Certificates of robust regressions recomputed from the model and the data."""

import pickle

import numpy as np
import pytest

from mercer import Gaussian, RobustKernelRidge, verify

N = 40


def sample(seed=0, d=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=N)


def fitted(X, y, weights=None, **options):
    settings = {"radius": 0.05, "support": 15, "random_state": 0, **options}
    return RobustKernelRidge(Gaussian(1.0), **settings).fit(X, y, weights)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"radius": 0.0},
        {"radius": 1.4},
        {"keep_sample": False, "radius": 0.4},
        {"relaxation": "rkhs"},
        {"support": ("kmeans", 10), "regularization": 1e-5},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-5])
def test_the_certificate_of_the_fit_comes_out_again(options, weighted, scale):
    X, y = sample()
    model = fitted(X, scale * y, np.arange(1.0, N + 1) if weighted else None, **options)
    again = verify(pickle.loads(pickle.dumps(model)), X, scale * y)
    assert again.holds(1e-6)
    assert again.upper == pytest.approx(model.certificate_.upper, rel=1e-8)
    assert again.lower == pytest.approx(model.certificate_.lower, rel=1e-8)
    assert again.method == model.certificate_.method


@pytest.mark.parametrize("options", [{}, {"relaxation": "rkhs"}, {"radius": 0.0}], ids=str)
def test_another_function_of_the_same_space_is_found_out(options):
    X, y = sample()
    model = fitted(X, y, **options)
    model.dual_coef_ = 1.01 * model.dual_coef_
    assert not verify(model, X, y).holds(1e-5)


def test_other_coefficients_are_found_out():
    X, y = sample()
    model = fitted(X, y)
    honest = model.dual_coef_.copy()
    model.dual_coef_[3] += 1e-3 * np.abs(honest).max()
    with pytest.raises(ValueError, match=r"^The model's dual_coef_ lies .* outside the span .* it is damaged\.$"):
        verify(model, X, y)
    model.dual_coef_ = honest[1:]
    with pytest.raises(ValueError, match=r"^The model's dual_coef_ has shape \(14,\), .* for 15 points"):
        verify(model, X, y)


def test_a_false_proof_proves_less():
    """Prices and an adversary made up by hand are still bounds, and wide ones."""
    X, y = sample()
    model = fitted(X, y)
    honest = verify(model, X, y)
    model.price_coef_ = 0.5 * model.price_coef_
    assert verify(model, X, y).upper > 1.001 * honest.upper
    model = fitted(X, y)
    model.adversary_coef_ = np.eye(15)
    model.sample_share_ = 0.0
    assert verify(model, X, y).lower < 0.999 * honest.lower
    model.adversary_coef_ = -np.eye(15)
    assert verify(model, X, y).lower < 0.999 * honest.lower
    model.adversary_coef_ = np.full((15, 15), np.nan)
    with pytest.raises(ValueError, match=r"^The model's adversary_coef_ has shape \(15, 15\), or entries that are no"):
        verify(model, X, y)


def test_the_risk_that_was_promised_is_checked_against_other_targets():
    X, y = sample()
    model = fitted(X, y)
    assert not verify(model, X, y[::-1]).holds(1e-2)


def test_what_does_not_belong_gets_one_sentence():
    X, y = sample()
    model = fitted(X, y)
    with pytest.raises(ValueError, match=r"^The model was fitted to 40 points, X has 39: pass the data of the fit\.$"):
        verify(model, X[1:], y[1:])
    with pytest.raises(ValueError, match=r"^A regression is certified on its pairs: pass y as well\.$"):
        verify(model, X)
    with pytest.raises(ValueError, match="a regression has none"):
        verify(model, X, y, extended=True)
