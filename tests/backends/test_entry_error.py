"""The stated error of an entry covers what floating point does to it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Cosine, Gaussian, GramOperator, Laplacian, Linear, Matern, Polynomial, Precomputed, Sigmoid
from mercer.backends.arrays import to_numpy

LONG = np.longdouble
KERNELS = {
    "gaussian": (Gaussian(0.7), lambda r2, r1, p: np.exp(-r2 / LONG(0.7) ** 2)),
    "wide gaussian": (Gaussian(30.0), lambda r2, r1, p: np.exp(-r2 / LONG(30) ** 2)),
    "laplacian": (Laplacian(2.0), lambda r2, r1, p: np.exp(-r1 / LONG(2))),
    "matern 1/2": (Matern(0.5, 1.5), lambda r2, r1, p: np.exp(-np.sqrt(r2) / LONG(1.5))),
    "matern 3/2": (
        Matern(1.5, 1.5),
        lambda r2, r1, p: (1 + np.sqrt(3 * r2) / LONG(1.5)) * np.exp(-np.sqrt(3 * r2) / LONG(1.5)),
    ),
    "linear": (Linear(), lambda r2, r1, p: p),
    "polynomial": (Polynomial(3, gamma=0.5, coef0=1.0), lambda r2, r1, p: (p / 2 + 1) ** 3),
    "steep polynomial": (Polynomial(20, gamma=0.0625, coef0=1.0), lambda r2, r1, p: (p / 16 + 1) ** 20),
    "shifted polynomial": (Polynomial(2, gamma=0.5, coef0=-1.0), lambda r2, r1, p: (p / 2 - 1) ** 2),
    "sigmoid": (Sigmoid(gamma=0.5, coef0=-0.25), lambda r2, r1, p: np.tanh(p / 2 - LONG(0.25))),
    "square": (Gaussian(0.7) ** 2, lambda r2, r1, p: np.exp(-2 * r2 / LONG(0.7) ** 2)),
    "broken power": (Gaussian(0.7) ** 2.3, lambda r2, r1, p: np.exp(-LONG(2.3) * r2 / LONG(0.7) ** 2)),
    "sum": (
        Gaussian(0.7) * Matern(0.5, 1.5) + 3.0 * Linear(),
        lambda r2, r1, p: np.exp(-r2 / LONG(0.7) ** 2 - np.sqrt(r2) / LONG(1.5)) + 3 * p,
    ),
    "normalised": (
        Polynomial(2, gamma=0.5, coef0=1.0).normalized(),
        lambda r2, r1, p: (p / 2 + 1) ** 2 / np.outer(np.diagonal(p) / 2 + 1, np.diagonal(p) / 2 + 1),
    ),
}
pytestmark = pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="long double is double on this platform")


def exact(name, X):
    X = X.astype(LONG)
    difference = X[:, None] - X[None]
    return KERNELS[name][1](np.sum(difference**2, axis=2), np.sum(np.abs(difference), axis=2), X @ X.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 3, 10, 60])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_entries_lie_within_their_stated_error(library, name, n_features, dtype):
    X = (np.random.default_rng(n_features).standard_normal((60, n_features)) / np.sqrt(n_features) + 3).astype(dtype)
    gram = GramOperator(KERNELS[name][0], X if library == "numpy" else pytest.importorskip("torch").as_tensor(X))
    truth = exact(name, X)
    error, root = gram.entry_error, np.sqrt(np.abs(np.diagonal(truth)))
    allowed = error.relative * np.abs(truth) + error.scaled * np.outer(root, root) + error.absolute
    distance = np.abs(to_numpy(gram.to_dense()) - truth)
    assert np.all(distance <= allowed)
    if name != "sigmoid":  # which is one to all digits on these points
        assert np.max(distance[allowed > 0] / allowed[allowed > 0]) > 1e-4  # the bound is no empty one


def test_a_given_matrix_has_no_error_but_that_of_single_precision():
    K = Gaussian(1.0)(np.random.default_rng(0).standard_normal((5, 2)))
    assert GramOperator(Precomputed(), K).entry_error.relative == 0
    assert GramOperator(Precomputed(), K.astype(np.float32)).entry_error.relative == np.finfo(np.float32).eps / 2


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.5), Cosine(), Polynomial(2), Gaussian(1.0) + Linear(), Gaussian(1.0) ** 2]
)
def test_points_in_single_precision_are_multiplied_in_double_where_that_is_asked_for(kernel):
    X = np.random.default_rng(0).standard_normal((30, 6)).astype(np.float32)
    V = np.random.default_rng(1).standard_normal((30, 3))
    wide, exact = GramOperator(kernel, X, dtype=np.float64), GramOperator(kernel, X.astype(np.float64))
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide.to_dense(), exact.to_dense(), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(wide @ V, exact @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(wide.diagonal(), exact.diagonal(), rtol=1e-14)
