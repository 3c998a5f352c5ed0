"""Where a search for eigenpairs starts, what it gives beside them, and traces of functions of a map."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import CenteredOperator, Gaussian, GramOperator, Sigmoid
from mercer.linalg import leading_eigenpairs
from mercer.linalg.lanczos import BlockLanczos
from mercer.linalg.stand_in_start import start_for

_rng = np.random.default_rng(8)
X = _rng.normal(size=(600, 3))
WEIGHTS = _rng.uniform(0.5, 2.0, 600)


class Counted:
    """A centred operator that counts its products."""

    def __init__(self, kernel):
        self.operator = CenteredOperator(GramOperator(kernel, X), weights=WEIGHTS)
        self.products = 0
        multiply = self.operator._multiply

        def counted(v):
            self.products += 1
            return multiply(v)

        self.operator._multiply = counted


def test_a_stand_in_starts_near_the_eigenvectors_and_spares_products():
    near, random = Counted(Gaussian(3.0)), Counted(Gaussian(3.0))
    exact = np.linalg.eigh(near.operator.to_dense())
    start = start_for(near.operator, 3, np.random.default_rng(0))
    assert start.shape == (600, 13)
    assert near.products == 0
    basis = np.linalg.qr(start)[0]
    assert np.linalg.norm(basis.T @ exact[1][:, -3:], axis=0) == pytest.approx(1.0, abs=1e-6)
    for counted, columns in ((near, start), (random, np.random.default_rng(0).standard_normal((600, 13)))):
        values, vectors = leading_eigenpairs(
            counted.operator, 3, rng=np.random.default_rng(1), tolerance=1e-12, start=columns, more=4
        )
        np.testing.assert_allclose(values[:3], exact[0][:-4:-1], rtol=1e-12)
        np.testing.assert_allclose(np.abs(np.sum(vectors[:, :3] * exact[1][:, :-4:-1], axis=0)), 1.0, atol=1e-12)
        assert vectors.shape == (600, 7)
        np.testing.assert_allclose(values[3:], exact[0][-4:-8:-1], rtol=1e-3)
    assert near.products < random.products


def test_an_indefinite_kernel_starts_at_random():
    counted = Counted(Sigmoid())
    start = start_for(counted.operator, 2, np.random.default_rng(4))
    np.testing.assert_array_equal(start, np.random.default_rng(4).standard_normal((600, 12)))


def test_traces_of_functions_are_estimated_without_bias():
    """On the complement of two directions, the mean over many starts: exact for as many steps as it takes."""
    values = np.concatenate([np.linspace(-2, 3, 38), [50.0, 60.0]])
    basis = np.linalg.qr(_rng.standard_normal((40, 40)))[0]
    M = (basis * values) @ basis.T
    space = BlockLanczos(lambda V: M @ V, basis[:, -2:], np.random.default_rng(0), block=1)
    space.extend(38)
    start = np.random.default_rng(0).standard_normal((40, 1))
    negative = (basis * np.clip(-values, 0, None)) @ basis.T
    assert space.trace_of(lambda v: np.clip(-v, 0, None)) == pytest.approx(float((start.T @ negative @ start)[0, 0]))
    estimates = []
    for seed in range(40):
        space = BlockLanczos(lambda V: M @ V, basis[:, -2:], np.random.default_rng(seed), block=8)
        space.extend(4)
        estimates.append(space.trace_of(lambda v: np.clip(-v, 0, None)))
    truth = np.clip(-values, 0, None).sum()
    assert np.mean(estimates) == pytest.approx(truth, rel=0.05)
    assert np.std(estimates) < 0.3 * truth
