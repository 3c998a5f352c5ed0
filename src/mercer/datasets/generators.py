"""Synthetic samples, the same for the same seed on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets.tables import standardized


def interval(n_points: int = 2001) -> Array:
    """Equidistant points of [-1, 1], as an n × 1 array (PSD17 section 6.2)."""
    return np.linspace(-1.0, 1.0, n_points)[:, None]


def halton_square(n: int = 2016) -> Array:
    """The first n points of the Halton sequence in bases 2 and 3, without the origin, on [-1, 1]² (QUAD section 8).

    They fill the square evenly: as a sample they stand for the uniform distribution.

    Parameters
    ----------
    n : int, default=2016
        How many points, the paper's by default.

    Returns
    -------
    array of shape (n, 2)
        The points, none of them twice.
    """
    from scipy.stats import qmc  # half a second that the other generators need not pay

    return np.asarray(2 * qmc.Halton(2, scramble=False).random(n + 1)[1:] - 1)


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


def radial_moons(n_per_moon: int = 200, noise: float = 1 / 6, random_state: Any = 0) -> tuple[Array, Array]:
    """Two arcs of 216° whose radius is noisy: the two moons of MATLAB's example, which PSD22 section 5.2 uses.

    Point i of both moons has the same radius 1 + noise · gᵢ, g normal: the moons are mirror images of one another. The
    arcs are wider and the noise larger than those of :func:`two_moons`, so that the moons come close.

    Parameters
    ----------
    n_per_moon : int, default=200
        Points of each moon.
    noise : float, default=1/6
        Standard deviation of the radius.
    random_state : int or generator, default=0
        The seed.

    Returns
    -------
    X : array of shape (2 n_per_moon, 2)
        The points.
    labels : array of int
        0 for the lower moon, around (1, 0), and 1 for the upper, around (0, 0).
    """
    rng = np.random.default_rng(random_state)
    radius = 1 + noise * rng.standard_normal(n_per_moon)
    angle = np.linspace(-1.1 * np.pi, 0.1 * np.pi, n_per_moon)
    lower = np.stack([1 + radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    upper = np.stack([radius * np.cos(angle), -radius * np.sin(angle)], axis=1)
    return np.concatenate([lower, upper]), np.repeat([0, 1], n_per_moon)


def swiss_roll(n_points: int = 2000, noise: float = 0.0, random_state: Any = 0) -> tuple[Array, Array]:
    """A sheet rolled up in space, each of the three coordinates standardised to zero mean and unit variance.

    The sheet is (t cos t, h, t sin t) with t uniform on [1.5π, 4.5π] and h uniform on [0, 21].

    Parameters
    ----------
    n_points : int, default=2000
        How many points.
    noise : float, default=0.0
        Standard deviation of Gaussian noise, added before the coordinates are standardised.
    random_state : int or generator, default=0
        The seed.

    Returns
    -------
    X : array of shape (n_points, 3)
        The points.
    angle : array of shape (n_points,)
        The coordinate t along the sheet.
    """
    rng = np.random.default_rng(random_state)
    angle = 1.5 * np.pi * (1 + 2 * rng.random(n_points))
    height = 21 * rng.random(n_points)
    X = np.stack([angle * np.cos(angle), height, angle * np.sin(angle)], axis=1)
    X += noise * rng.standard_normal(X.shape)
    return standardized(X), angle
