"""Kernel principal components beside scikit-learn's, formulas and repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA as Reference

from mercer import Gaussian, KernelPCA, Linear, Polynomial, Precomputed, Sigmoid

_rng = np.random.default_rng(5)
X = _rng.normal(size=(160, 4)) * [3.0, 2.0, 1.0, 0.5]
NEW = _rng.normal(size=(40, 4)) * [3.0, 2.0, 1.0, 0.5]
KERNELS = {
    "rbf": (Gaussian(4.0), {"kernel": "rbf", "gamma": 1 / 16}),
    "linear": (Linear(), {"kernel": "linear"}),
    "poly": (Polynomial(degree=3, gamma=0.2), {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 1.0}),
    "sigmoid": (Sigmoid(gamma=0.02, coef0=1.0), {"kernel": "sigmoid", "gamma": 0.02, "coef0": 1.0}),
}


def aligned(ours, theirs):
    """Coordinates with the signs of others."""
    return ours * np.sign(np.sum(ours * theirs, axis=0))


@pytest.mark.parametrize("name", KERNELS)
def test_coordinates_are_those_of_scikit_learn(name):
    kernel, parameters = KERNELS[name]
    theirs = Reference(n_components=3, eigen_solver="dense", **parameters).fit(X)
    ours = KernelPCA(kernel, n_components=3).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    scale = np.abs(theirs.transform(X)).max()
    np.testing.assert_allclose(aligned(ours.embedding_, theirs.transform(X)), theirs.transform(X), atol=1e-8 * scale)
    np.testing.assert_allclose(aligned(ours.transform(NEW), theirs.transform(NEW)), theirs.transform(NEW), atol=1e-8 * scale)  # fmt: skip
    K, across = kernel(X), kernel(NEW, X)
    given = KernelPCA(Precomputed(), n_components=3).fit(K)
    np.testing.assert_allclose(given.embedding_, ours.embedding_, atol=1e-8 * scale)
    np.testing.assert_allclose(given.transform(across), ours.transform(NEW), atol=1e-8 * scale)


def test_weights_are_repetitions():
    weights = 1 + np.arange(160) % 3
    kernel = Gaussian(4.0)
    weighted = KernelPCA(kernel, n_components=3).fit(X, sample_weight=weights)
    repeated = KernelPCA(kernel, n_components=3).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(aligned(weighted.transform(NEW), repeated.transform(NEW)), repeated.transform(NEW), atol=1e-9)  # fmt: skip
