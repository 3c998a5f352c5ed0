"""The inverse that gives way to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian
from mercer.linalg.factors import damped_inverse


def test_a_well_conditioned_matrix_is_inverted_as_it_is():
    A = np.random.default_rng(0).standard_normal((30, 40))
    A = A @ A.T
    np.testing.assert_allclose(damped_inverse(A) @ A, np.eye(30), atol=1e-10)


def test_a_singular_matrix_is_damped_so_that_its_inverse_has_digits():
    K = Gaussian(sigma=2.0)(np.linspace(0, 1, 60)[:, None])
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(K)
    inverse = damped_inverse(K)
    np.testing.assert_array_equal(inverse, inverse.T)
    right = K @ np.ones(60)
    np.testing.assert_allclose(K @ (inverse @ right), right, rtol=1e-2)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="far from positive semi-definite"):
        damped_inverse(np.diag([1.0, -1.0]))
