"""Every allowance in the proof of a worst expectation, against seventy digits or exact fractions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import Gaussian, MeanEmbedding, Polynomial, worst_case_expectation
from mercer.certificates import supremum
from mercer.certificates.kernel_sums import KernelSum
from mercer.certificates.supremum import bound_supremum
from mercer.certificates.worst_case import BallAround
from mercer.robust import worst_case_solve

mpf = mpmath.mpf


def _kernel(sigma, x, y):
    squared = sum((mpf(float(a)) - mpf(float(b))) ** 2 for a, b in zip(x, y, strict=True))
    return mpmath.exp(-squared / mpf(sigma) ** 2)


def _gram(sigma, X, Y):
    with mpmath.workdps(70):
        return np.array([[_kernel(sigma, x, y) for y in Y] for x in X], object)


@pytest.fixture(params=[0.0, 1e4], ids=["near", "far from the origin"])
def case(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2)) + request.param
    return X, rng.normal(size=9) * 10 ** rng.uniform(-3, 3, 9)


def test_values_of_a_kernel_sum_are_within_their_errors(case):
    """Entries at points far from the origin are wrong by more than the rounding of sums."""
    X, c = case
    values, errors = KernelSum(Gaussian(0.01), X[:5] + 0.002, c[:5]).values(X)
    with mpmath.workdps(70):
        exact = _gram(0.01, X, X[:5] + 0.002).dot(np.array([mpf(x) for x in c[:5]], object))
        away = [abs(mpf(float(v)) - e) for v, e in zip(values, exact, strict=True)]
        assert all(a <= mpf(float(e)) for a, e in zip(away, errors, strict=True))
        assert max(away) > 0
    assert max(errors) < 1e-5 * np.abs(c).sum()


def test_values_of_a_polynomial_err_as_its_power_does():
    """A power of six hundred multiplies the rounding of its base, which the rounding of a sum does not hold."""
    X = np.random.default_rng(2).normal(size=(40, 40))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    values, errors = KernelSum(Polynomial(600, 1.0, 0.5), X[:1], np.ones(1)).values(X)
    with mpmath.workdps(70):
        inner = [sum(mpf(float(a)) * mpf(float(b)) for a, b in zip(x, X[0], strict=True)) for x in X]
        away = [abs(mpf(float(v)) - (dot + mpf(0.5)) ** 600) for v, dot in zip(values, inner, strict=True)]
        assert all(a <= mpf(float(e)) for a, e in zip(away, errors, strict=True))


def test_the_price_of_a_function_is_no_less_than_it_is(case):
    X, c = case
    shares = np.full(9, 1 / 9)
    for radius in (1e-3, 1e9):  # of the second the norm is all there is
        ball = BallAround(Gaussian(2.0), X, shares, radius)
        for shift in range(20):
            coefficients = np.roll(c, shift) * (1 + shift)
            price = ball.price_of(KernelSum(Gaussian(2.0), X, coefficients))
            with mpmath.workdps(70):
                a, K = np.array([mpf(x) for x in coefficients], object), _gram(2.0, X, X)
                exact = sum(K.dot(a)) / 9 + mpf(radius) * mpmath.sqrt(a.dot(K.dot(a)))
            assert mpf(price) >= exact


@pytest.mark.parametrize("at", [0.0, 0.25, -0.5, 0.3, 1.0, -1.0])
@pytest.mark.parametrize("most", [1, 500])
def test_a_supremum_is_found_on_the_seams_of_cells(at, most):
    """A cone whose tip lies where cells meet, farthest from all centres: half of a modulus would miss it."""
    found = bound_supremum(
        lambda X: -3 * np.abs(X[:, 0] - at),
        lambda sides: 3 * sides[:, 0],
        (np.array([-1.0]), np.array([1.0])),
        tolerance=1e-6,
        most=most,
    )
    assert found.bound >= 0
    assert found.bound <= (1e-6 if most > 1 else 0.2)


def test_halves_cover_their_cell():
    """In exact arithmetic, for centres and sides of any size."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(2000, 1)) * 10 ** rng.uniform(-3, 6, (2000, 1))
    sides = np.abs(centres) * 10 ** rng.uniform(-15, 1, (2000, 1))
    halves, half = supremum._halved(centres, sides)
    for number, (centre, side) in enumerate(zip(centres[:, 0], sides[:, 0], strict=True)):
        low, high = (Fraction(halves[2 * number + k, 0]) for k in (0, 1))
        reach = Fraction(half[2 * number, 0])
        assert low - reach <= Fraction(centre) - Fraction(side)
        assert high + reach >= Fraction(centre) + Fraction(side)
        assert low + reach >= high - reach


def test_points_that_are_found_outside_the_box_are_not_used(monkeypatch):
    """Centres of the least cells may lie outside by rounding; a distribution there would prove nothing of the box."""

    def outside(*args, **options):
        found = bound_supremum(*args, **options)
        return found._replace(points=found.points + 5.0)

    monkeypatch.setattr(worst_case_solve, "bound_supremum", outside)
    returns = MeanEmbedding(Gaussian(0.5), [[1.3]])
    with pytest.warns(ConvergenceWarning, match="the proof on the box ran out of cells"):
        found = worst_case_expectation(returns, [[0.0]], 0.5, box=(-2, 2), candidates=4, tol=1e-6)
    assert np.all(np.abs(found.candidates) <= 2)
    assert found.covers == "box"
