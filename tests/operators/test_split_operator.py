"""Rows that stand twice, each half: what they add up to, and the rounding of it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator
from mercer.operators import LinearMap, SplitOperator
from mercer.operators.base import MapRounding


class Exact(LinearMap):
    """The identity, which says that it does not round."""

    gram = None

    def __init__(self, n):
        super().__init__((n, n), np.float64, symmetric=True)

    def _multiply(self, v):
        return v

    def diagonal(self):
        return np.ones(self.shape[0])

    def block(self, rows, cols):
        return np.eye(self.shape[0])[rows][:, cols]

    def rounding(self):
        return MapRounding(1.0, 0.0, 0.0, np.zeros(self.shape[0]))


def test_the_sum_of_two_halves_is_counted():
    """The one thing that rounds here, by up to half a unit of the sum; the bound without it is zero."""
    split = SplitOperator(Exact(1), np.array([0]))
    bound = split.rounding()
    worst = 0.0
    for a, b in np.random.default_rng(0).uniform(0.5, 1, (50, 2)):
        v = np.array([a, b])
        off = abs((split @ v)[0].astype(np.longdouble) - (np.longdouble(a) + np.longdouble(b)) / 4)
        assert off <= bound.product * bound.norm * np.linalg.norm(v)
        worst = max(worst, float(off))
    assert worst > 0


@pytest.mark.parametrize("rows", [[], [2], [0, 4, 1]])
def test_spectrum_and_sums(rows):
    """E M Eᵀ has no larger norm than M, the quadratic form of means, and the diagonal that it says."""
    rng = np.random.default_rng(1)
    inner = DiffusionOperator(GramOperator(Gaussian(1.0), rng.normal(size=(6, 2))))
    split = SplitOperator(inner, np.array(rows, int))
    dense, whole = split.to_dense(), inner.to_dense()
    np.testing.assert_array_equal(split.diagonal(), np.diag(dense))
    assert np.linalg.norm(dense, 2) <= np.linalg.norm(whole, 2) * (1 + 1e-12)
    H = rng.normal(size=(6 + len(rows), 3))
    means = split.merged(H)
    assert np.sum(dense * (H @ H.T)) == pytest.approx(np.sum(whole * (means @ means.T)), rel=1e-12)
    np.testing.assert_array_equal(split.repeated(np.arange(6)), [*range(6), *rows])
    v = split.halved(inner.stationary)
    np.testing.assert_allclose(split.undeflated().to_dense(), dense + np.outer(v, v), atol=1e-15)
