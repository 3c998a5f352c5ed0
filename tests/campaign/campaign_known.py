"""Certificates that were false once, each by a cause of its own, judged like all others."""

from __future__ import annotations

import mpmath
import numpy as np
from campaign_densities import Truth as DensityTruth
from campaign_embeddings import Truth as EmbeddingTruth
from campaign_measures import Truth as MeasureTruth
from campaign_runner import Trial, Verdict

import mercer
from mercer import Gaussian, Precomputed, QuadratureSparsifier, SDPEmbedding, SumOfSquaresDensity
from mercer.density.fitting_problem import make_programme
from mercer.density.setting import Setting
from mercer.problems.sum_of_squares_enclosures import Sample

TWO = np.array([[0.0], [1.0]])


def _embedded(name, kernel, X, w, dtype, *, entries=True):
    trial = Trial(name, 0, dtype)
    with mercer.config_context(dtype=dtype):
        model = trial.ask("fit", lambda: SDPEmbedding(kernel, random_state=0).fit(X, sample_weight=w))
        if model is not None:
            truth = EmbeddingTruth(kernel, X, w, dtype, entries=entries)
            trial.judge("fit", model.certificate_, *truth.brackets)
            trial.judge("verify", mercer.verify(model, X, random_state=0), *truth.brackets)
    return trial.verdicts


def light_point_in_float32():
    return _embedded("light point", Gaussian(1.0), TWO, np.array([1.0, 0.002]), "float32")


def wide_kernel_in_float32(sigma):
    X = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32).astype(np.float64)
    return _embedded("wide kernel", Gaussian(sigma), X, None, "float32", entries=False)


def light_point_in_float64():
    return _embedded("light point", Gaussian(1.0), TWO, np.array([1.0, 1e-7]), "float64")


def one_huge_entry():
    """An asymmetry that the largest entry hides is refused: no certificate can be about such a matrix."""
    K = np.array([[1.0, 0.5, 0.2], [0.1, 1.0, 0.3], [0.2, 0.3, 1e11]])
    trial = Trial("one huge entry", 0, "float64")
    for make in (
        lambda: SDPEmbedding(Precomputed()).fit(K),
        lambda: QuadratureSparsifier(Precomputed(), n_nodes=2).fit(K),
    ):
        if trial.ask("fit", make) is not None:
            trial.verdicts.append(
                Verdict("one huge entry", 0, "float64", "fit", "a matrix with K₁₂ = 5 K₂₁ was accepted")
            )
    return trial.verdicts


def indefinite_measure():
    """[[.2, 1], [1, .2]]: v = (1, 0) has D = -.24."""
    K = np.array([[0.2, 1.0], [1.0, 0.2]])
    trial = Trial("indefinite measure", 0, "float64")
    model = trial.ask("trace", lambda: QuadratureSparsifier(Precomputed(), trace_fraction=1.0).fit(K))
    if model is not None:
        with mpmath.workdps(60):
            truth = MeasureTruth(Precomputed(), K, None, "float64", penalty=None, caps=None, ridge=None)
            trial.judge("trace", model.certificate_, *truth.brackets(fraction=1.0, kappas=[]), minimised=True)
    return trial.verdicts


def measures_in_float32():
    """Twenty wide samples, whose discrepancies are far below D(0)."""
    verdicts = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6, 2)).astype(np.float32).astype(np.float64)
        trial = Trial("wide measure", seed, "float32")
        with mercer.config_context(dtype="float32"), mpmath.workdps(60):
            model = QuadratureSparsifier(Gaussian(4.0), trace_fraction=0.8).fit(X)
            truth = MeasureTruth(Gaussian(4.0), X, None, "float32", penalty=None, caps=None, ridge=None)
            brackets = truth.brackets(model.indices_, kappas=[model.kappa_], fraction=0.8)
        trial.judge("trace", model.certificate_, *brackets, minimised=True)
        verdicts += trial.verdicts
    return verdicts


def fine_truncation():
    """Fit and verification of a nearly singular density: both are judged by one truth, so they cannot be disjoint."""
    X = np.random.default_rng(0).normal(size=(12, 1))
    trial = Trial("fine truncation", 0, "float64")
    make = SumOfSquaresDensity(Gaussian(3.0), support=X[:5], truncation=1e-14)
    model = trial.ask("fit", lambda: make.fit(X))
    if model is None:
        return trial.verdicts
    shares = np.full(12, 1 / 12)
    numbers = {"regularization": model.regularization_, "truncation": 1e-14}
    problem = make_programme(Setting(model.kernel_, model.support_, model.measure_), Sample(X, shares), **numbers)
    with mpmath.workdps(80):
        truth = DensityTruth(
            3.0, model.support_, model.measure_, X, None, model.regularization_, problem.basis, problem.whitening
        )
        bracket = ("the exact integrals", truth.bracket())
    trial.judge("fit", model.certificate_, bracket, minimised=True)
    certificate = trial.ask("verify", lambda: mercer.verify(model, X))
    if certificate is not None:
        trial.judge("verify", certificate, bracket, minimised=True)
        disjoint = max(certificate.lower, model.certificate_.lower) > min(certificate.upper, model.certificate_.upper)
        assert not disjoint, "fit and verify give disjoint intervals"
    return trial.verdicts


CASES = {
    "light point, float32": light_point_in_float32,
    "wide kernel 10, float32": lambda: wide_kernel_in_float32(10.0),
    "wide kernel 50, float32": lambda: wide_kernel_in_float32(50.0),
    "light point, float64": light_point_in_float64,
    "one huge entry": one_huge_entry,
    "indefinite measure": indefinite_measure,
    "wide measures, float32": measures_in_float32,
    "fine truncation": fine_truncation,
}

# Problems of the campaign, by part and seed, that were false by causes of their own.
SEEDS = {
    "embeddings": (18, 22, 49, 66, 69, 83, 97, 128, 275),
    "levels": (25, 43, 58),
    "measures": (34, 46, 48, 55, 75, 76),
    "densities": (44, 69, 85, 153),
    "regressions": (65, 154),
}
