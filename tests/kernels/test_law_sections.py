"""Integrals of a kernel against a law: closed forms against quadrature and exact arithmetic, and their errors."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import erf

from mercer import Box, DiscreteMeasure, Gaussian, GaussianMeasure, Laplacian, Lebesgue, Matern
from mercer.backends.balls import Ball
from mercer.backends.rounding import UNIT
from mercer.kernels.integrals import law_sections as module
from mercer.kernels.integrals.given_measure import checked_measure
from mercer.kernels.integrals.law_sections import law_sections
from mercer.kernels.integrals.normal_balls import widened

COVARIANCE = np.array([[0.5, 0.3], [0.3, 0.4]])
LAWS = {
    "box": Box(np.array([-1.0, -0.5]), np.array([0.7, 1.2])),
    "normal": GaussianMeasure(np.array([0.3, -0.2]), 0.6),
    "covariance": GaussianMeasure(np.array([0.3, -0.2]), covariance=COVARIANCE),
}
KERNELS = [
    Gaussian(0.8),
    Gaussian(0.8) ** 2,
    Matern(np.inf, 0.5) ** 3,
    (0.5 * Gaussian(0.4) + 2.0 * Gaussian(1.5)) ** 2,
    Gaussian(0.6) * Gaussian(1.1),
    Gaussian([0.5, 1.4]) ** 2,
]


def nodes_of(law, count=80):
    """A tensor rule for a law: Legendre on a box, trapezoidal in the axes of a normal law."""
    if isinstance(law, Box):
        x, w = np.polynomial.legendre.leggauss(count)
        axes = [lo + (hi - lo) * (x + 1) / 2 for lo, hi in zip(law.lower, law.upper, strict=True)]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
        return nodes, np.outer(w, w).reshape(-1) / 4
    x = np.linspace(-8, 8, count)  # the trapezoidal rule is exact to rounding
    w = np.exp(-(x**2) / 2) * (x[1] - x[0])
    root = law.std * np.eye(2) if law.covariance is None else np.linalg.cholesky(law.covariance)
    nodes = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2) @ root.T + law.mean
    return nodes, np.outer(w, w).reshape(-1) / (2 * np.pi)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_integrals_are_those_of_a_tensor_rule(kernel, name):
    X = np.random.default_rng(0).normal(size=(7, 2))
    nodes, weights = nodes_of(LAWS[name])
    found = law_sections(kernel, X, LAWS[name])
    assert np.allclose(found.values, kernel(X, nodes) @ weights, rtol=1e-10, atol=1e-12)
    inner = law_sections(kernel, nodes, LAWS[name]).values  # which the line above has compared
    assert found.energy == pytest.approx(weights @ inner, rel=1e-10)


def in_exact_arithmetic(sigma, x, law):
    """∫ k dμ and ∬ k dμ dμ for the Gaussian kernel, to forty digits."""
    rate = 1 / mpmath.mpf(sigma) ** 2
    value = energy = mpmath.mpf(1)
    if isinstance(law, Box):
        for at, a, b in zip(map(mpmath.mpf, x), map(mpmath.mpf, law.lower), map(mpmath.mpf, law.upper), strict=True):
            t, length = mpmath.sqrt(rate), b - a
            value *= mpmath.sqrt(mpmath.pi) / (2 * t * length) * (mpmath.erf(t * (b - at)) - mpmath.erf(t * (a - at)))
            s = t * length
            energy *= mpmath.sqrt(mpmath.pi) * mpmath.erf(s) / s - (1 - mpmath.exp(-s * s)) / s**2
        return value, energy
    d = len(x)
    cov = mpmath.matrix((law.std**2 * np.eye(d) if law.covariance is None else law.covariance).tolist())
    if law.covariance is None:
        cov = mpmath.mpf(law.std) ** 2 * mpmath.eye(d)
    G = mpmath.eye(d) + 2 * rate * cov
    apart = mpmath.matrix([mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(x, law.mean, strict=True)])
    value = mpmath.exp(-rate * (apart.T * mpmath.lu_solve(G, apart))[0]) / mpmath.sqrt(mpmath.det(G))
    return value, 1 / mpmath.sqrt(mpmath.det(mpmath.eye(d) + 4 * rate * cov))


@pytest.mark.parametrize("name", LAWS)
def test_stated_errors_hold_in_exact_arithmetic_and_are_small(name):
    law, rng = LAWS[name], np.random.default_rng(1)
    X = np.concatenate(
        [
            rng.normal(size=(6, 2)),
            4 * rng.normal(size=(6, 2)),
            law.mean[None] if hasattr(law, "mean") else law.upper[None],
        ]
    )
    with mpmath.workdps(40):
        for sigma in (0.05, 0.7, 30.0):
            found = law_sections(Gaussian(sigma), X, law)
            for x, value, error in zip(X, found.values, found.errors, strict=True):
                exact, energy = in_exact_arithmetic(sigma, x, law)
                assert abs(mpmath.mpf(float(value)) - exact) <= float(error) <= 60 * UNIT * max(1, sigma)
            assert abs(mpmath.mpf(found.energy) - energy) <= found.energy_error <= 60 * UNIT


@pytest.mark.parametrize("what", ["_ERF_UNITS", "slope"])
def test_errors_need_the_allowance_of_the_error_function(what, monkeypatch):
    """An error function that is wrong by its last digits, or an argument known to few, shows without the allowance."""
    box, X = Box(np.array([0.0]), np.array([1.0])), np.array([[0.3]])
    with mpmath.workdps(40):
        exact = in_exact_arithmetic(0.7, X[0], box)[0]
        if what == "_ERF_UNITS":
            monkeypatch.setattr(module, "erf", lambda z: erf(z) * (1 + 6 * UNIT))
            found = law_sections(Gaussian(0.7), X, box)
            assert abs(mpmath.mpf(float(found.values[0])) - exact) <= found.errors[0]
            monkeypatch.setattr(module, "_ERF_UNITS", 0)
            found = law_sections(Gaussian(0.7), X, box)
            assert abs(mpmath.mpf(float(found.values[0])) - exact) > found.errors[0]
        else:
            wide = module._error_function(Ball(np.array([0.0]), 0.0, np.array([1e-3])))
            assert wide.radius[0] >= 1e-3 * 2 / np.sqrt(np.pi)


def test_the_library_s_error_function_keeps_to_its_allowance():
    z = np.concatenate([np.linspace(-6.5, 6.5, 700), np.geomspace(1e-12, 6, 300)])
    with mpmath.workdps(30):
        worst = max(
            abs(
                float((mpmath.mpf(float(erf(x))) - mpmath.erf(mpmath.mpf(float(x)))) / mpmath.erf(mpmath.mpf(float(x))))
            )
            for x in z
        )
    assert worst <= 0.5 * module._ERF_UNITS * UNIT


def test_a_widened_covariance_is_inverted_to_more_than_double_precision():
    A = np.random.default_rng(2).normal(size=(6, 6))
    cov = A @ A.T * 1e4
    cov = (cov + cov.T) / 2
    found = widened(cov, Ball(1.7))
    with mpmath.workdps(60):
        G = mpmath.eye(6) + mpmath.mpf(1.7) * mpmath.matrix(cov.tolist())
        exact, det = G**-1, mpmath.det(G)
        for i in range(6):
            for j in range(6):
                ball = found.inverse[i, j]
                off = abs(mpmath.mpf(float(ball.hi)) + mpmath.mpf(float(ball.lo)) - exact[i, j])
                assert off <= float(ball.radius) < 1e-18
        height = module._height(found.pivots)
        assert abs(mpmath.mpf(float(height.hi)) + mpmath.mpf(float(height.lo)) - 1 / mpmath.sqrt(det)) <= float(
            height.radius
        )
        assert found.log_determinant() == pytest.approx(float(mpmath.log(det)), rel=1e-14)


def test_points_of_a_law_are_summed_and_come_near_it():
    """The law of large numbers, with a band of five standard errors, for every law."""
    X, rng, kernel = 0.4 * np.random.default_rng(3).normal(size=(5, 2)), np.random.default_rng(4), Gaussian(0.8) ** 2
    for law in LAWS.values():
        drawn = (
            rng.uniform(law.lower, law.upper, (1200, 2))
            if isinstance(law, Box)
            else rng.multivariate_normal(
                law.mean, law.covariance if law.covariance is not None else law.std**2 * np.eye(2), 1200
            )
        )
        exact, near = law_sections(kernel, X, law), law_sections(kernel, X, DiscreteMeasure(drawn, np.full(1200, 7.0)))
        band = 5 * kernel(X, drawn).std(axis=1) / np.sqrt(1200)
        assert np.all(np.abs(exact.values - near.values) <= band)
        plain = kernel(X, drawn).mean(axis=1)
        assert np.all(np.abs(near.values - plain) <= near.errors + 1e-15)
        assert np.all(near.errors < 1e-11)
        assert abs(near.energy - kernel(drawn).mean()) <= near.energy_error + 1e-14


def test_sums_over_points_state_an_error_that_they_need():
    """Against forty digits some sums are wrong, none by more than is stated."""
    rng = np.random.default_rng(5)
    X, points, weights = rng.normal(size=(6, 2)), rng.normal(size=(30, 2)), rng.uniform(0.1, 1.0, 30)
    found = law_sections(Gaussian(0.7) ** 2, X, DiscreteMeasure(points, weights))
    with mpmath.workdps(40):
        total = mpmath.fsum(map(mpmath.mpf, weights))

        def exact(x):
            terms = (
                mpmath.mpf(float(w))
                * mpmath.exp(
                    -2
                    * sum((mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in zip(x, y, strict=True))
                    / mpmath.mpf(0.7) ** 2
                )
                for w, y in zip(weights, points, strict=True)
            )
            return mpmath.fsum(terms) / total

        off = np.array(
            [abs(float(mpmath.mpf(float(value)) - exact(x))) for x, value in zip(X, found.values, strict=True)]
        )
        energy = mpmath.fsum(mpmath.mpf(float(w)) * exact(y) for w, y in zip(weights, points, strict=True)) / total
    assert np.any(off > 0)
    assert np.all(off <= found.errors)
    assert 0 < abs(float(mpmath.mpf(found.energy) - energy)) <= found.energy_error


@pytest.mark.parametrize(
    ("measure", "kernel", "sentence"),
    [
        (Lebesgue(), Gaussian(1.0), "is no law, for its mass is infinite"),
        (LAWS["box"], Laplacian(1.0), "have no closed form here: use Gaussian()"),
        (LAWS["normal"], Gaussian(1.0) + Laplacian(1.0), "have no closed form here"),
    ],
)
def test_what_has_no_closed_form_is_refused(measure, kernel, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        law_sections(kernel, np.zeros((2, 2)), measure)


@pytest.mark.parametrize(
    ("measure", "sentence"),
    [
        (GaussianMeasure([0, 0]), "by its std or by its covariance: give one of the two"),
        (GaussianMeasure([0, 0], 1.0, np.eye(2)), "give one of the two"),
        (GaussianMeasure([0, 0], covariance=np.eye(3)), "must be 2 × 2"),
        (GaussianMeasure([0, 0], covariance=[[1, 2], [0, 1]]), "is not symmetric"),
        (GaussianMeasure([0, 0], covariance=[[1, 1], [1, 1]]), "must be positive definite"),
        (GaussianMeasure([0, np.nan], 1.0), "must be finite"),
        (Box([0, 1], [1, 1]), "measure is empty in coordinate 1"),
        (DiscreteMeasure(np.zeros((3, 1))), "must be points with 2 features"),
        (DiscreteMeasure(np.zeros((3, 2)), [1, -1, 1]), "the weights of measure is negative at index 1"),
    ],
)
def test_measures_are_checked(measure, sentence):
    with pytest.raises(ValueError, match=sentence):
        checked_measure(measure, np.zeros((4, 2)), "measure")
