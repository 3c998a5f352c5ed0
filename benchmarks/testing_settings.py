"""Samples that differ and columns that depend on each other: the settings of benchmarks/testing_power.py.

Every setting is a function of a source of chance. Sizes and strengths are such that good tests find about half of the
differences, for a setting that all tests solve compares nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(os.environ.get("MERCER_DATA", Path(__file__).parent / "data"))
Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]
Setting = Callable[[np.random.Generator], Pair]


# --- perturbed uniforms ---------------------------------------------------------------------------------------


def _bump(u: Array) -> Array:
    """A hill on (-1, -1/2) and a valley on (-1/2, 0), both smooth (Schrab et al. 2023, section 5.4)."""
    centre = np.where(u < -0.5, 3.0, 1.0)
    inside = 1 - (4 * u + centre) ** 2
    return np.where(u < -0.5, 1, -1) * np.exp(-1 / np.maximum(inside, 1e-300))


def perturbed_uniform(n: int, signs: Array, scale: float, rng: np.random.Generator) -> Array:
    """n points of the density 1 + scale·e^d·θ(cell)·∏ bump on the cube; ``signs`` are θ, p cells along each axis."""
    p, d = signs.shape[0], signs.ndim
    points: list[Array] = []
    while sum(map(len, points)) < n:
        x = rng.uniform(size=(2 * n, d))
        cell = np.minimum((x * p).astype(int), p - 1)
        density = 1 + scale * np.exp(d) * signs[tuple(cell.T)] * _bump(x * p - cell - 1).prod(axis=1)
        points.append(x[rng.uniform(0, 1 + scale, 2 * n) <= density])
    return np.concatenate(points)[:n]


def uniforms(n: int, d: int, scale: float) -> Setting:
    """A perturbed uniform sample, two perturbations along each axis of random signs, and a uniform one."""

    def draw(rng: np.random.Generator) -> Pair:
        signs = rng.choice([-1, 1], (2,) * d)
        return perturbed_uniform(n, signs, scale, rng), rng.uniform(size=(n, d))

    return draw


# --- clusters -------------------------------------------------------------------------------------------------


def four_normals(n: int, deviation: float) -> Setting:
    """Four normals at (±20, ±20), one of which has another deviation in the second sample (Biggs et al. 2023)."""

    def sample(last: float, rng: np.random.Generator) -> Array:
        which = rng.integers(4, size=n)
        centres = 20.0 * np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
        return centres[which] + np.where(which == 3, last, 1.0)[:, None] * rng.standard_normal((n, 2))

    return lambda rng: (sample(1.0, rng), sample(deviation, rng))


def blobs(n: int, ratio: float) -> Setting:
    """Nine normals on a grid, those of the second sample stretched along the diagonal (Gretton et al. 2012)."""
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)

    def sample(stretch: float, rng: np.random.Generator) -> Array:
        steps = rng.standard_normal((n, 2)) * np.sqrt([stretch, 1.0]) @ turn.T
        return 10.0 * rng.integers(3, size=(n, 2)) + steps

    return lambda rng: (sample(1.0, rng), sample(ratio, rng))


# --- normals --------------------------------------------------------------------------------------------------


def normals(n: int, d: int, mean: float = 0.0, deviation: float = 1.0, correlation: float = 0.0) -> Setting:
    """Standard normals, and normals of another mean or deviation in each column or with columns that correlate."""

    def draw(rng: np.random.Generator) -> Pair:
        common = rng.standard_normal((n, 1))
        Y = np.sqrt(1 - correlation) * rng.standard_normal((n, d)) + np.sqrt(correlation) * common
        return rng.standard_normal((n, d)), mean + deviation * Y

    return draw


# --- real data ------------------------------------------------------------------------------------------------


@lru_cache
def mnist(pooled: bool) -> tuple[Array, Array]:
    """All 70 000 images, as 7 × 7 means of 4 × 4 pixels or as they are, from 0 to 255; and their digits."""
    with np.load(DATA / "mnist.npz") as file:
        images = np.concatenate([file["x_train"], file["x_test"]])
        digits = np.concatenate([file["y_train"], file["y_test"]])
    if pooled:
        images = images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4))
    return images.reshape(len(images), -1), digits


def digits_without(n: int, missing: tuple[int, ...]) -> Setting:
    """7 × 7 images of all digits, and of all digits but some (Schrab et al. 2023, section 5.5)."""

    def draw(rng: np.random.Generator) -> Pair:
        images, labels = mnist(True)
        others = np.flatnonzero(~np.isin(labels, missing))
        return images[rng.choice(len(images), n, replace=False)] / 255, images[
            rng.choice(others, n, replace=False)
        ] / 255

    return draw


def digit_rarer(n: int, digit: int, share: float) -> Setting:
    """28 × 28 images, and such among which a digit has only this share of its frequency."""

    def draw(rng: np.random.Generator) -> Pair:
        images, labels = mnist(False)
        weights = np.where(labels == digit, share, 1.0)
        second = rng.choice(len(images), n, replace=False, p=weights / weights.sum())
        return images[rng.choice(len(images), n, replace=False)] / 255, images[second] / 255

    return draw


@lru_cache
def pulsars() -> tuple[Array, Array]:
    """Radio candidates, their eight features in units of their deviations, and which of them are pulsars."""
    with np.load(DATA / "htru2.npz") as file:
        X, y = file["X"].astype(float), file["y"]
    return (X - X.mean(0)) / X.std(0), y


def some_pulsars(n: int, share: float) -> Setting:
    """Noise, and noise with this share of pulsars."""

    def draw(rng: np.random.Generator) -> Pair:
        X, y = pulsars()
        noise = X[rng.choice(np.flatnonzero(y == 0), 2 * n, replace=False)]
        found = rng.random(n) < share
        noise[n:][found] = X[rng.choice(np.flatnonzero(y == 1), found.sum(), replace=False)]
        return noise[:n], noise[n:]

    return draw


TWO_SAMPLES: dict[str, Setting] = {
    "perturbed uniform, d = 1": uniforms(500, 1, 0.3),
    "perturbed uniform, d = 2": uniforms(500, 2, 0.6),
    "four normals": four_normals(500, 0.7),
    "blobs": blobs(250, 3.0),
    "normals, mean": normals(100, 10, mean=0.15),
    "normals, variance": normals(100, 10, deviation=1.2),
    "normals, covariance": normals(100, 5, correlation=0.4),
    "normals, mean, d = 100": normals(100, 100, mean=0.07),
    "MNIST without 6 and 8": digits_without(500, (6, 8)),
    "MNIST, zeros rarer": digit_rarer(300, 0, 0.3),
    "HTRU2, some pulsars": some_pulsars(100, 0.08),
}
