"""Hostile data: points, bandwidths, weights and matrices, all drawn from one generator."""

from __future__ import annotations

import numpy as np

from mercer import Gaussian, Laplacian, Linear, Matern, Polynomial


def precision_of(rng):
    """The dtype of the configuration, both equally often."""
    return "float32" if rng.random() < 0.5 else "float64"


def points(rng, dtype, n):
    """n points, numbers of the precision of the fit: clouds, clusters, grids, near repetitions, far from the origin."""
    d = int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    shape = rng.integers(8)
    if shape == 1:
        X = np.round(2 * X)
    elif shape == 2:
        X = X[rng.integers(0, n, n)]  # repetitions
    elif shape == 3:
        X = X[rng.integers(0, max(2, n // 2), n)] + 10 ** rng.uniform(-9, -2) * rng.normal(size=(n, d))
    elif shape == 4:
        X = X + 10 ** rng.uniform(0, 5)
    elif shape == 5:
        X = X * 10 ** (rng.uniform(-12, 12) if dtype == "float32" else rng.uniform(-140, 140))
    elif shape == 6:
        X[0] = X[0] + 10 ** rng.uniform(0, 3)
    elif shape == 7:
        X = np.sort(np.abs(X), axis=0)
    return np.asarray(X.astype(dtype), np.float64)


def spread(X):
    """The median of the positive distances, one where there are none."""
    unit = max(float(np.max(np.abs(X))), 1e-300)
    distances = unit * np.sqrt(np.sum((X[:, None] / unit - X / unit) ** 2, axis=2))
    positive = distances[distances > 0]
    return float(np.median(positive)) if positive.size else 1.0


def stationary(rng, X):
    """A kernel of the distance, its bandwidth from far too small to far too large."""
    size = spread(X) * 10 ** rng.choice([rng.uniform(-0.7, 0.7), rng.uniform(-1.5, 4)])
    kind = rng.integers(8)
    if kind < 4:
        return Gaussian(size)
    if kind == 4:
        return Laplacian(size)
    if kind == 5:
        return Matern(float(rng.choice([0.5, 1.5, 2.5])), size)
    if kind == 6:
        return float(10 ** rng.uniform(-6, 6)) * Gaussian(size)
    return Gaussian(size) + float(10 ** rng.uniform(-3, 3)) * Laplacian(3 * size)


def kernel_for(rng, X):
    """A kernel with positive row sums on X."""
    if rng.random() < 0.1 and np.all(X > 0) and np.max(X) < 1e3:
        return Linear() if rng.random() < 0.5 else Polynomial(int(rng.integers(2, 4)), 0.5, 1.0)
    return stationary(rng, X)


def weights(rng, n):
    """None, mild ones, or weights over up to twelve decades."""
    kind = rng.integers(6)
    if kind < 2:
        return None
    if kind == 2:
        return rng.uniform(0.2, 3, n)
    if kind == 3:
        return 10 ** rng.uniform(-12, 0, n)
    if kind == 4:
        w = np.ones(n)
        w[rng.integers(n)] = 10 ** rng.uniform(-12, 12)
        return w
    return 10.0 ** rng.integers(-4, 1, n) * 10 ** rng.uniform(-200, 150)


def matrix(rng, dtype, n):
    """A symmetric matrix for Precomputed: psd, nearly singular, indefinite, a graph's, or not quite symmetric."""
    kind = int(rng.integers(7))
    F = np.abs(rng.normal(size=(n, int(rng.integers(1, n + 1))))) + 0.1
    K = F @ F.T
    if kind == 1:
        K = K + 10 ** rng.uniform(-12, -3) * np.diag(rng.uniform(0, 1, n))
    elif kind == 2:
        E = rng.normal(size=(n, n))
        K = np.abs(K + 10 ** rng.uniform(-6, 1) * (E + E.T))
    elif kind == 3:
        K = np.abs(rng.normal(size=(n, n)))
        K = K + K.T
        K[np.diag_indices(n)] = 10 ** rng.uniform(-1, 1)
    elif kind == 4:
        K = (rng.random((n, n)) < 0.7) * 1.0
        K = np.maximum(np.maximum(K, K.T), np.eye(n) * rng.integers(0, 3))
    elif kind == 5:
        s = 10 ** rng.uniform(-4, 4, n)
        K = s[:, None] * K * s
    K = (K + K.T) / 2
    K = np.asarray(K.astype(dtype), np.float64)
    if kind == 6:
        i, j = rng.integers(n), rng.integers(n)
        K[i, i] *= 10 ** rng.uniform(0, 12)
        K[i, j] *= 1 + 10 ** rng.uniform(-16, -1)
        K = np.asarray(K.astype(dtype), np.float64)
    return K
