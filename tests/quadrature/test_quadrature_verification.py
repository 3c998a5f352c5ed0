"""Certificates of quadratures recomputed from the model and the data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mercer import DiffusionMaps, Gaussian, Precomputed, QuadratureSparsifier, verify

KERNEL = Gaussian(sigma=0.8)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (150, 2))


@pytest.mark.parametrize(
    "options",
    [
        {"trace_fraction": 0.6},
        {"alpha": 1e-3},
        {"n_nodes": 12},
        {"trace_fraction": 0.6, "n_nodes": 8, "merge": "strong"},
        {"trace_fraction": 0.5, "max_weight": 0.03, "ridge": 0.01},
        {"trace_fraction": 0.5, "penalty": np.linspace(1, 2, 150)},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_certificate_of_the_fit_comes_out_again(X, options, weighted):
    weights = np.arange(150.0) if weighted else None
    model = QuadratureSparsifier(KERNEL, **options).fit(X, sample_weight=weights)
    again = verify(pickle.loads(pickle.dumps(model)), X)
    assert again.upper == pytest.approx(model.certificate_.upper, rel=1e-9)
    assert again.lower == pytest.approx(model.certificate_.lower, rel=1e-6, abs=1e-12)
    assert again.method == model.certificate_.method


def test_a_model_that_was_tampered_with_is_found_out(X):
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X)
    assert verify(model, X).holds(1e-9)
    model.weights_ = model.weights_[::-1].copy()
    assert not verify(model, X).holds(1e-3)


def test_precomputed(X):
    K = KERNEL(X)
    model = QuadratureSparsifier(Precomputed(), trace_fraction=0.6).fit(K)
    assert verify(model, K).holds(1e-9)


def test_other_data_and_other_models_get_one_sentence(X):
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X)
    with pytest.raises(ValueError, match="fitted to 150 points, X has 149"):
        verify(model, X[1:])
    with pytest.raises(ValueError, match="nodes that X does not"):
        verify(model, np.repeat(X[:75], 2, axis=0))
    with pytest.raises(ValueError, match="a quadrature has none"):
        verify(model, X, extended=True)
    with pytest.raises(TypeError, match="not DiffusionMaps"):
        verify(DiffusionMaps().fit(X), X)
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.4, max_weight=0.02).fit(X)
    model.weights_ = model.weights_ * 2
    with pytest.raises(ValueError, match="above max_weight"):
        verify(model, X)
