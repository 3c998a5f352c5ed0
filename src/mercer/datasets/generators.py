"""Synthetic samples, the same for the same seed on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def interval(n_points: int = 2001) -> Array:
    """Equidistant points of [-1, 1], as an n × 1 array (PSD17 section 6.2)."""
    return np.linspace(-1.0, 1.0, n_points)[:, None]


def three_clusters(n_per_cluster: int = 100, n_outliers: int = 10, random_state: Any = 0) -> tuple[Array, Array]:
    """Three Gaussian clusters in the plane with outliers between and around them (as in PSD22 Fig 1).

    The clusters have standard deviation 0.5; the outliers are uniform on a box, at least three of these deviations away
    from every centre.

    Returns
    -------
    X : array of shape (3 n_per_cluster + n_outliers, 2)
        The points.
    labels : array of int
        0, 1, 2 for the clusters and -1 for the outliers.
    """
    rng = np.random.default_rng(random_state)
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.5]])
    clusters = [center + 0.5 * rng.standard_normal((n_per_cluster, 2)) for center in centers]
    outliers = np.empty((0, 2))
    while len(outliers) < n_outliers:
        drawn = rng.uniform([-2.5, -2.5], [6.5, 6.0], (n_outliers, 2))
        distances = np.linalg.norm(drawn[:, None] - centers, axis=2).min(axis=1)
        outliers = np.concatenate([outliers, drawn[distances > 1.5]])[:n_outliers]
    labels = np.repeat([0, 1, 2, -1], [n_per_cluster] * 3 + [n_outliers])
    return np.concatenate([*clusters, outliers]), labels


def two_moons(n_points: int = 400, noise: float = 0.05, random_state: Any = 0) -> tuple[Array, Array]:
    """Two interleaved half circles with Gaussian noise.

    Returns
    -------
    X : array of shape (n_points, 2)
        The points.
    labels : array of int
        0 for the upper moon, 1 for the lower.
    """
    rng = np.random.default_rng(random_state)
    upper = n_points // 2
    angle = np.concatenate([np.linspace(0, np.pi, upper), np.linspace(0, np.pi, n_points - upper)])
    labels = np.repeat([0, 1], [upper, n_points - upper])
    sign = 1 - 2 * labels
    X = np.stack([labels + sign * np.cos(angle), 0.5 * labels + sign * np.sin(angle)], axis=1)
    return X + noise * rng.standard_normal(X.shape), labels
