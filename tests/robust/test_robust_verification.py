"""Certificates of robust regressions recomputed from the model and the data."""

import pickle
from dataclasses import replace
from functools import cache

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
        {"adversary_support": 6},
        {"radius": "sampling", "confidence": 0.9},
    ],
    ids=str,
)
@pytest.mark.parametrize(("weighted", "scale"), [(False, 1.0), (True, 1e-5)])
def test_the_certificate_of_the_fit_comes_out_again(options, weighted, scale):
    X, y = sample()
    model = fitted(X, scale * y, np.arange(1.0, N + 1) if weighted else None, **options)
    again = verify(pickle.loads(pickle.dumps(model)), X, scale * y)
    assert again.holds(1e-6)
    assert again.upper == pytest.approx(model.certificate_.upper, rel=1e-8)
    assert again.lower == pytest.approx(model.certificate_.lower, rel=1e-8)
    assert again.method == model.certificate_.method


@cache
def fitted_once(options):
    return pickle.dumps(fitted(*sample(), **dict(options)))


OTHER = {
    "dual_coef_": lambda v: 1.01 * v,
    "robust_risk_": lambda v: 0.9 * v,
    "sample_risk_": lambda v: 0.9 * v,
    "adversary_coef_": lambda v: 2 * v if np.any(v) else v + np.eye(len(v)),
    "sample_share_": lambda v: 0.5 * v,
    "price_coef_": lambda v: 0.5 * v if np.any(v) else v + 1,
    "distance_": lambda v: v + 0.01,
    "mmd_": lambda v: v + 0.01,
    "support_": lambda v: v + 1e-3,
    "target_sigma_": lambda v: 1.001 * v,
    "kernel_": lambda v: Gaussian(1.001),
    "adversary_": lambda v: None if v is not None else "one",
    "certificate_": lambda v: replace(v, lower=1.5 * v.upper, upper=2 * v.upper),
    "sample_weight_": lambda v: np.arange(1.0, N + 1),
    "radius_": lambda v: v + 0.01,
    "adversary_support_": lambda v: v[1:],
    "_bases": lambda v: tuple(basis[:, 1:] for basis in v),
}


@pytest.mark.parametrize("options", [{}, {"relaxation": "rkhs"}, {"radius": 0.0}, {"adversary_support": 6}], ids=str)
@pytest.mark.parametrize("name", OTHER)
def test_whatever_is_changed_is_refused_in_one_sentence(name, options):
    X, y = sample()
    model = pickle.loads(fitted_once(tuple(options.items())))
    setattr(model, name, OTHER[name](getattr(model, name)))
    with pytest.raises(ValueError, match=r"^The model('s| has)? .*it is damaged[^.]*\.$"):
        verify(model, X, y)


def test_other_coefficients_are_found_out():
    X, y = sample()
    model = fitted(X, y)
    honest = model.dual_coef_.copy()
    model.dual_coef_[3] += 1e-3 * np.abs(honest).max()
    with pytest.raises(ValueError, match=r"^The model's dual_coef_ lies .* outside the span .* it is damaged\.$"):
        verify(model, X, y)
    model.dual_coef_ = honest[1:]
    with pytest.raises(ValueError, match=r"^The model's dual_coef_ has shape \(14,\), .* instead of \(15,\)"):
        verify(model, X, y)
    model.dual_coef_ = honest
    model.adversary_coef_ = np.full((15, 15), np.nan)
    with pytest.raises(ValueError, match=r"^The model's adversary_coef_ has shape \(15, 15\), or entries that are no"):
        verify(model, X, y)


def test_other_data_are_found_out():
    X, y = sample()
    model = fitted(X, y)
    for other in (y[::-1], y + 1e-3):
        with pytest.raises(ValueError, match=r"^The model's .* it is damaged"):
            verify(model, X, other)


def test_what_does_not_belong_gets_one_sentence():
    X, y = sample()
    model = fitted(X, y)
    with pytest.raises(ValueError, match=r"^The model was fitted to 40 points, X has 39: pass the data of the fit\.$"):
        verify(model, X[1:], y[1:])
    with pytest.raises(ValueError, match=r"^A regression or a classifier is certified on its pairs: pass y as well\.$"):
        verify(model, X)
    with pytest.raises(ValueError, match="a regression has none"):
        verify(model, X, y, extended=True)
