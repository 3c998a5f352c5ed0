"""Certificates of quadratures recomputed from the model and the data."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from mercer import DiffusionMaps, Gaussian, Precomputed, QuadratureSparsifier, config_context, verify

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


def _rolled(values):
    return np.roll(values, 1, axis=0)


TAMPERED = {
    "indices_": lambda m: setattr(m, "indices_", _rolled(m.indices_)),
    "another node": lambda m: setattr(
        m, "indices_", np.r_[np.setdiff1d(np.arange(150), m.indices_)[0], m.indices_[1:]]
    ),
    "weights_": lambda m: setattr(m, "weights_", m.weights_[::-1].copy()),
    "weights_ a little": lambda m: setattr(m, "weights_", m.weights_ * (1 + 1e-6)),
    "discrepancy_": lambda m: setattr(m, "discrepancy_", m.discrepancy_ / 2),
    "kappa_": lambda m: setattr(m, "kappa_", m.kappa_ * 1.01),
    "alpha_": lambda m: setattr(m, "alpha_", m.alpha_ * 1.01 + 1e-3),
    "margin_": lambda m: setattr(m, "margin_", m.margin_ * 1.01 + 1e-3),
    "trace_fraction_": lambda m: setattr(m, "trace_fraction_", 1.1 * m.trace_fraction_),
    "components_": lambda m: setattr(m, "components_", _rolled(m.components_)),
    "components of the features": lambda m: setattr(m._features, "components", m._features.components + 1e-9),
    "sections": lambda m: setattr(m._features._sections, "components", _rolled(m.components_)),
    "kernel of the sections": lambda m: setattr(m._features._sections, "kernel", Gaussian(sigma=0.81)),
    "normalisation": lambda m: setattr(m._features, "normalization", m._features.normalization * 1.001),
    "rolled normalisation": lambda m: setattr(m._features, "normalization", _rolled(m._features.normalization)),
    "weights of the sample": lambda m: setattr(m, "_weights", m._weights[::-1] * np.linspace(0.9, 1.1, 150)),
    "points of the sample": lambda m: setattr(m, "_points", _rolled(m._points)),
    "rows of the sample": lambda m: setattr(m, "_rows", m._rows[1:]),
    "sample_weight_": lambda m: setattr(m, "sample_weight_", np.linspace(1, 2, 150)),
    "kernel_": lambda m: setattr(m, "kernel_", Gaussian(sigma=0.81)),
    "lower bound": lambda m: setattr(m, "certificate_", replace(m.certificate_, lower=0.9 * m.certificate_.lower)),
    "upper bound": lambda m: setattr(m, "certificate_", replace(m.certificate_, upper=1.1 * m.certificate_.upper)),
}


@pytest.mark.parametrize("what", TAMPERED)
@pytest.mark.parametrize("options", [{"trace_fraction": 0.6}, {"n_nodes": 12}], ids=["fraction", "nodes"])
def test_a_model_that_was_tampered_with_is_found_out(X, what, options):
    """Whatever a person reads of it or predicts with."""
    model = QuadratureSparsifier(KERNEL, **options).fit(X)
    assert verify(model, X).holds(1e-6)
    TAMPERED[what](model)
    with pytest.raises(ValueError, match="model"):
        verify(model, X)


def test_a_path_that_was_tampered_with_is_found_out(X):
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.6, solver="path").fit(X)
    assert verify(model, X).holds(1e-6)
    model.path_.kappas = model.path_.kappas * 1.1
    with pytest.raises(ValueError, match="path_"):
        verify(model, X)
    model.path_.kappas = model.path_._kinks.kappas
    model.path_._kinks.kappas[1:] *= 1.1
    with pytest.raises(ValueError, match="path_ at"):
        verify(model, X)


def test_a_fit_in_single_precision_is_verified_in_any_configuration(X):
    with config_context(dtype="float32"):
        model = QuadratureSparsifier(KERNEL, n_nodes=12).fit(X)
        inside = verify(model, X)
    outside = verify(model, X)
    assert (inside.lower, inside.upper) == (outside.lower, outside.upper)
    assert outside.holds(1e-6)
    with config_context(dtype="float32"):
        assert verify(QuadratureSparsifier(KERNEL, alpha=1e-3).fit(X), X).holds(1e-3)


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
        verify(DiffusionMaps(KERNEL).fit(X), X)
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.4, max_weight=0.02).fit(X)
    model.weights_ = model.weights_ * 2
    with pytest.raises(ValueError, match="above max_weight"):
        verify(model, X)
