"""Certificates of densities against the programme with 60 digits."""

import warnings

import numpy as np
import pytest
from exact_programme import ExactProgramme, mpf

import mercer.certificates.spectrahedron as spectrahedron
import mercer.problems.sum_of_squares_enclosures as precise_squares
from mercer import Gaussian, SumOfSquaresDensity, verify
from mercer.certificates import certify_spectrahedron
from mercer.density.fitting_problem import make_programme
from mercer.density.setting import Setting
from mercer.problems.sum_of_squares_enclosures import Sample


def drawn(seed):
    """A fit of the kind that people make: in one and two dimensions, λ zero and positive, with and without weights."""
    rng = np.random.default_rng(seed)
    d, n = 1 + seed % 2, int(rng.integers(8, 40))
    X = rng.standard_normal((n, d)) * rng.choice([0.01, 1.0, 300.0]) + rng.choice([0.0, 5.0])
    spread = float(np.std(X))
    options = {
        "kernel": Gaussian(float(rng.choice([0.3, 1.0, 3.0])) * spread),
        "support": int(rng.integers(2, 7)),
        "regularization": [None, 0.0][seed // 2 % 2],
        "truncation": [1e-6, 1e-10, 1e-12, 1e-14][seed % 4],
        "reference": ["lebesgue", "lebesgue", "gaussian"][seed % 3],
        "random_state": seed,
    }
    weights = rng.uniform(0, 1, n) ** 8 + 1e-9 if seed % 5 == 0 else None
    return X, weights, options


def fitted(X, weights, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SumOfSquaresDensity(**options).fit(X, sample_weight=weights)


def exact_of(model, X, weights):
    normal = (model.measure_.mean, model.measure_.std) if model.reference == "gaussian" else None
    arguments = (X, weights, model.support_, model.kernel_.sigma, model.regularization_, *model._spans)
    return ExactProgramme(*arguments, normal=normal)


def solution(model, exact):
    """B of the model's coordinates in its span, as the certificate has them."""
    basis = model._spans.basis
    F = (basis.T @ model._factor) / np.sum(basis**2, axis=0)[:, None]
    return exact.density(F / np.linalg.norm(F))


def assert_true(certificate, exact, B):
    """The bounds hold what is attained and what is proved without rounding, and are near to both."""
    value, bound = exact.value(B), exact.dual_bound(B)
    assert value <= mpf(certificate.upper)
    assert mpf(certificate.lower) <= max(bound, 0)
    assert mpf(certificate.lower) <= value
    return float(value), float(bound)


@pytest.mark.parametrize("seed", range(20))
def test_the_bounds_hold_the_truth(seed):
    X, weights, options = drawn(seed)
    model = fitted(X, weights, options)
    exact = exact_of(model, X, weights)
    value, bound = assert_true(model.certificate_, exact, solution(model, exact))
    assert model.certificate_.upper - value <= 1e-6 * abs(value) + 1e-25
    if options["truncation"] >= 1e-10:
        assert bound - model.certificate_.lower <= 1e-8 * abs(value) + 1e-12
    assert verify(model, X).lower <= model.certificate_.upper
    assert verify(model, X).upper >= model.certificate_.lower


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 220))
def test_the_bounds_hold_the_truth_of_many(seed):
    test_the_bounds_hold_the_truth(seed)


@pytest.mark.parametrize("seed", range(6))
def test_any_point_of_an_ill_conditioned_programme_is_judged_truly(seed):
    """Points of random coefficients, where B is large and cancels: double precision has no digit of some of these."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9, 1))
    setting = Setting(Gaussian(4.0), X[:5], SumOfSquaresDensity().fit(X).measure_)
    problem = make_programme(setting, Sample(X, None), regularization=0.0, truncation=1e-13)
    exact = ExactProgramme(X, None, X[:5], 4.0, 0.0, *problem.spans)
    F = rng.standard_normal((problem.dimension, 2))
    certificate = certify_spectrahedron(problem, F)
    value, _ = assert_true(certificate, exact, exact.density(F / np.linalg.norm(F)))
    assert certificate.upper == pytest.approx(value, rel=1e-9)


def worst_of(seeds, what):
    """The largest of (objective - upper) and (lower - bound) relative to the objective, over some fits."""
    worst = -np.inf
    for seed in seeds:
        X, weights, options = drawn(seed)
        model = fitted(X, weights, options)
        exact = exact_of(model, X, weights)
        B = solution(model, exact)
        if what == "upper":
            worst = max(worst, float((exact.value(B) - mpf(model.certificate_.upper)) / exact.value(B)))
        else:
            worst = max(worst, float((mpf(model.certificate_.lower) - exact.dual_bound(B)) / exact.value(B)))
    return worst


def test_the_factorisation_proves_what_a_rayleigh_quotient_does_not(monkeypatch):
    def guessed(A, S):
        values = np.linalg.eigvals(np.linalg.solve(S.hi, A.hi))
        return float(np.min(values.real))

    monkeypatch.setattr(spectrahedron, "least_ratio", guessed)
    assert worst_of(range(12), "lower") > 0


def test_rounding_of_the_objective_is_counted(monkeypatch):
    monkeypatch.setattr(spectrahedron.Ball, "upper", lambda self: self.hi)
    assert worst_of(range(12), "upper") > 0


def test_rounding_of_the_scale_is_counted(monkeypatch):
    """λ over the volume of a section is a logarithm and an exponential: wrong in its last digits."""
    X = np.random.default_rng(0).standard_normal((12, 2)) * 1e-30
    monkeypatch.setattr(precise_squares, "EPS", 0.0)
    model = SumOfSquaresDensity(Gaussian(1e-30), support=4, regularization=1e-60, random_state=0).fit(X)
    exact = exact_of(model, X, None)
    B = solution(model, exact)
    bound, value = exact.dual_bound(B), exact.value(B)
    assert value > mpf(model.certificate_.upper) or bound < mpf(model.certificate_.lower)
