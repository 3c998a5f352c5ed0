"""Eigenvalues that are proved: below the truth always, and close to it."""

import mpmath
import numpy as np
import pytest

from mercer.backends.balls import Ball
from mercer.certificates.enclosures import inverse_form, is_positive, least_ratio

mpmath.mp.prec = 300


def exact(matrix):
    return mpmath.matrix([[mpmath.mpf(float(v)) for v in row] for row in matrix])


def least(A, S=None):
    """The least eigenvalue of A, or of A relative to S, with 300 bits."""
    A = exact(A)
    if S is not None:
        inverse = mpmath.inverse(mpmath.cholesky(exact(S)))
        A = inverse * A * inverse.T
        A = (A + A.T) / 2
    return min(mpmath.eigsy(A, eigvals_only=True))


@pytest.mark.parametrize("seed", range(12))
def test_a_ratio_is_below_the_least_one_and_near(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    scale = 10.0 ** rng.integers(-6, 6, n) if seed % 2 else np.ones(n)
    A, S = (np.diag(scale) @ M @ M.T @ np.diag(scale) for M in rng.standard_normal((2, n, n + 2)))
    A = A + A.T - 0.3 * (S + S.T)
    S = S + S.T
    true = least(A, S)
    found = least_ratio(Ball(A), Ball(S))
    assert found <= true
    assert found >= true - 1e-9 * (abs(float(true)) + 1)


def test_the_shift_of_the_factorisation_is_needed():
    """Matrices that are indefinite by less than rounding: Cholesky runs to its end on many of them."""
    passed, rng = 0, np.random.default_rng(0)
    for _ in range(200):
        M = rng.standard_normal((6, 5))
        H = M @ M.T
        H = (H + H.T) / 2
        if least(H) >= 0:
            continue
        assert not is_positive(Ball(H))
        try:
            np.linalg.cholesky(H)
            passed += 1
        except np.linalg.LinAlgError:
            pass
    assert passed > 10


def test_radii_count_against_a_matrix():
    H = np.eye(4) + 1.0
    assert is_positive(Ball(H, 0.0, 0.2))
    assert not is_positive(Ball(H, 0.0, 0.3))  # four entries of 0.3 a row, and 1 is the least eigenvalue
    rows = np.array([1e-12, 1.0, 1.0, 1.0])
    small = np.diag(rows) @ H @ np.diag(rows)
    assert is_positive(Ball(small, 0.0, 0.1 * np.outer(rows, rows)))  # in the scale of its rows
    assert not is_positive(Ball(H, 0.0, np.nan))
    assert not is_positive(Ball(-np.eye(2)))
    assert least_ratio(Ball(np.full((2, 2), np.nan))) == -np.inf


@pytest.mark.parametrize("power", [0, 6, 12])
def test_a_form_with_an_inverse_holds_the_truth(power):
    rng = np.random.default_rng(power)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    S = (Q * 10.0 ** -np.linspace(0, power, 5)) @ Q.T
    S, z = (S + S.T) / 2, rng.standard_normal(5)
    x, value = inverse_form(Ball(S), Ball(z))
    column = mpmath.matrix([mpmath.mpf(float(v)) for v in z])
    true = (column.T * mpmath.inverse(exact(S)) * column)[0]
    assert mpmath.mpf(float(value.lower())) <= true <= mpmath.mpf(float(value.upper()))
    assert float(value.upper() - value.lower()) <= 1e-3 * float(true)
    assert x.shape == (5,)
    assert np.isinf(float(inverse_form(Ball(-S), Ball(z))[1].radius))


def test_the_rest_of_a_solve_is_in_the_radius():
    """A system whose solution double precision misses: 2xᵀz - xᵀSx alone is below the truth."""
    S = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-50]])
    z = np.array([1.0, 2.0])
    _, value = inverse_form(Ball(S, 0.0, 2.0**-80), Ball(z, 0.0, 2.0**-30))
    assert float(value.upper()) >= 2.0**50  # (z₂ - z₁)² 2⁵⁰ + …
