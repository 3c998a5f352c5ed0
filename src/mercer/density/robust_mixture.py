"""Mixtures of normal laws, fitted by EM beside a constant density for rows that belong to no part.

A likelihood believes every row, and the covariance of a part swells to reach one that is far from all others. So a
constant on the box of the sample, with the mass of a tenth of a row (Banfield and Raftery 1993), competes for the rows:

    p(x) = (1 - ε/n) Σ_k π_k N(x; μ_k, Σ_k) + ε/(n V),   ε = 0.1, V the volume of the box.

Under the parts themselves fewer than ε rows are expected where they are below the constant, n ∫ p dx ≤ n V ε/(n V), so
that a sample without far rows is fitted as ever; a far row counts in no mean and in no covariance.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from mercer.backends.arrays import Array

_ROWS = 0.1  # ε
_REGULAR = 1e-6  # of the variance of a column, added to covariances
_MOST_STEPS, _GAINED = 100, 1e-3  # of EM; nats a point of a step that is worth another
_FENCE = 3.0  # widths from the 5th to the 95th percentile beyond them at which a row no longer moves a scale or a seed


class NormalMixture(NamedTuple):
    """Parts of shares π (K,), means (K, d) and covariances (K, d, d), and the mean log-density of the rows fitted."""

    shares: Array
    means: Array
    covariances: Array
    score: float


def log_constant(X: Array) -> float:
    """log of ε/(n V), V the volume of the box of the rows; columns of one value count with width one."""
    widths = np.ptp(X, axis=0)
    return -float(np.log(X.shape[0] / _ROWS) + np.sum(np.log(np.where(widths > 0, widths, 1.0))))


def within_fences(X: Array) -> Array:
    """The rows with far entries brought to the fences of their columns; columns with equal percentiles have none."""
    low, high = np.percentile(X, [5.0, 95.0], axis=0)
    reach = np.where(high > low, _FENCE * (high - low), np.inf)
    return np.clip(X, low - reach, high + reach)


def fit_mixture(X: Array, count: int, seed: int, starts: int) -> NormalMixture:
    """The best of some runs of EM, each from the clusters of k-means: at most so many parts, of d + 1 rows or more.

    Cost: n K d² operations a step, at most 100 steps.
    """
    near = within_fences(X)
    centre, width = near.mean(axis=0), near.std(axis=0)
    width = np.where(width > 0, width, 1.0)
    Y, seeds = (X - centre) / width, (near - centre) / width
    inside = (near == X).all(axis=1)
    inside = inside if inside.any() else ~inside
    runs = [
        _run(Y, _clusters(seeds, min(count, X.shape[0]), seed + start) * inside[:, None], log_constant(Y))
        for start in range(starts)
    ]
    shares, means, covariances, score = max(runs, key=lambda run: run.score)
    scaled = covariances * width[:, None] * width
    return NormalMixture(shares, means * width + centre, scaled, score - float(np.sum(np.log(width))))


def _clusters(Y: Array, count: int, seed: int) -> Array:
    """Responsibilities of zero and one, of shape (n, K)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of points that are equal
        labels = KMeans(count, n_init=1, random_state=seed).fit(Y).labels_
    return np.eye(count)[labels]


def _run(Y: Array, parts: Array, constant: float) -> NormalMixture:
    """EM from responsibilities, to a gain of a thousandth of a nat a point."""
    score = -np.inf
    for _ in range(_MOST_STEPS):
        parts = _with_rows(parts, Y.shape[1] + 1)
        shares, means, covariances = _maximised(Y, parts)
        before, (parts, score) = score, _expected(Y, shares, means, covariances, constant)
        if score - before < _GAINED:
            break
    return NormalMixture(shares, means, covariances, score)


def _with_rows(parts: Array, least: int) -> Array:
    """The parts of at least so many rows, which have a covariance; the largest where none has."""
    weights = parts.sum(axis=0)
    return parts[:, weights >= min(least, float(weights.max()))]


def _maximised(Y: Array, parts: Array) -> tuple[Array, Array, Array]:
    weights = parts.sum(axis=0)
    means = (parts.T @ Y) / weights[:, None]
    covariances = np.empty((weights.size, Y.shape[1], Y.shape[1]))
    for k, mean in enumerate(means):
        apart = Y - mean
        covariances[k] = (apart.T * parts[:, k]) @ apart / weights[k] + _REGULAR * np.eye(Y.shape[1])
    return weights / weights.sum(), means, covariances


def _expected(Y: Array, shares: Array, means: Array, covariances: Array, constant: float) -> tuple[Array, float]:
    """Responsibilities of the parts, the constant left out, and the mean log-density."""
    n, d = Y.shape
    logs = np.empty((n, shares.size + 1))
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        root = np.linalg.cholesky(covariance)
        squares = np.sum(solve_triangular(root, (Y - mean).T, lower=True, check_finite=False) ** 2, axis=0)
        height = np.log(shares[k] * (1.0 - _ROWS / n)) - 0.5 * d * np.log(2 * np.pi)
        logs[:, k] = height - float(np.sum(np.log(np.diag(root)))) - 0.5 * squares
    logs[:, -1] = constant
    total = logsumexp(logs, axis=1, keepdims=True)
    return np.exp(logs[:, :-1] - total), float(total.mean())
