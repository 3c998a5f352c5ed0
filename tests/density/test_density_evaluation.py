"""The logarithm of a sum of squares, by the seam's scaled products, against what is written down."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, Linear, Polynomial, config_context
from mercer.backends.arrays import like
from mercer.density.squares import log_squares

EPS = np.finfo(np.float64).eps


@pytest.fixture(params=["numpy", "torch"])
def reference(request):
    """An empty array of a library."""
    return np.empty(0) if request.param == "numpy" else pytest.importorskip("torch").empty(0)


def evaluated(kernel, X, support, factor, reference):
    return [np.asarray(part) for part in log_squares(kernel, *(like(part, reference) for part in (X, support, factor)))]


def test_near_and_far_from_the_support(reference):
    rng = np.random.default_rng(0)
    support, F = rng.standard_normal((7, 2)), rng.standard_normal((7, 3))
    X = np.concatenate([rng.standard_normal((50, 2)), 1e3 * rng.standard_normal((50, 2))])  # exp(-1e6) is no number
    exponents = -np.sum((X[:, None] - support) ** 2, axis=2) / 0.7**2
    top = exponents.max(axis=1)
    values, floors = evaluated(Gaussian(0.7), X, support, F, reference)
    expected = 2 * top + np.log(np.sum((np.exp(exponents - top[:, None]) @ F) ** 2, axis=1))
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(floors, 2 * top + 2 * np.log(EPS * np.linalg.norm(F)), rtol=1e-12)


@pytest.mark.parametrize("kernel", [Linear() ** 2, Polynomial(2, 1.0, 0.0), Linear()], ids=str)
def test_where_every_section_vanishes_both_are_minus_infinity(kernel, reference):
    support, F = np.array([[1.0, 2.0], [2.0, -1.0]]), np.array([[1.0], [0.5]])
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    K = (X @ support.T) ** (1 if isinstance(kernel, Linear) else 2)
    values, floors = evaluated(kernel, X, support, F, reference)
    assert values[0] == floors[0] == -np.inf
    assert values[1] == pytest.approx(2 * np.log(abs(K[1] @ F[:, 0])), rel=1e-13)
    assert floors[1] == pytest.approx(2 * np.log(EPS * np.linalg.norm(F) * np.max(np.abs(K[1]))), rel=1e-13)


def test_the_same_bits_for_any_number_of_threads(reference):
    rng = np.random.default_rng(1)
    support, F, X = rng.standard_normal((40, 3)), rng.standard_normal((40, 2)), rng.standard_normal((5000, 3))
    answers = []
    for threads in (1, 2, 5):
        with config_context(n_threads=threads):
            answers.append(evaluated(Gaussian(1.0), X, support, F, reference))
    assert all(
        np.array_equal(one, other) for answer in answers[1:] for one, other in zip(answer, answers[0], strict=True)
    )
