"""On all points a kernelised method is the kernel method: against scikit-learn's own, and against formulas."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as PeerKernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from mercer import Gaussian, Kernelized, Laplacian, Polynomial

rng = np.random.default_rng(3)
X = rng.normal(size=(90, 3))
NEW = rng.normal(size=(25, 3))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2
KERNELS = [Gaussian(1.5), Laplacian(2.0), Polynomial(3, 0.5, 1.0)]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


@every_kernel
@pytest.mark.parametrize("targets", [y, np.column_stack([y, X[:, 2]])], ids=["one", "two"])
def test_ridge_is_kernel_ridge(kernel, targets):
    weights = rng.uniform(0.5, 2.0, 90)
    peer = KernelRidge(alpha=0.1, kernel="precomputed").fit(kernel(X), targets, sample_weight=weights)
    ours = Kernelized(Ridge(alpha=0.1, fit_intercept=False), kernel).fit(X, targets, sample_weight=weights)
    np.testing.assert_allclose(ours.predict(NEW), peer.predict(kernel(NEW, X)), rtol=0, atol=1e-8)
    assert ours.trace_left_out_ < 1e-12 * ours.trace_


@every_kernel
def test_pca_is_kernel_pca(kernel):
    peer = PeerKernelPCA(4, kernel="precomputed").fit(kernel(X))
    ours = Kernelized(PCA(4), kernel)
    signs = np.sign(np.sum(ours.fit_transform(X) * peer.transform(kernel(X)), axis=0))
    np.testing.assert_allclose(
        signs * ours.transform(NEW), peer.transform(kernel(NEW, X)), rtol=0, atol=1e-8 * kernel.diag(X).max()
    )
    np.testing.assert_allclose(ours.estimator_.explained_variance_ * 89, peer.eigenvalues_, rtol=1e-10)
