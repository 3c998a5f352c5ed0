"""Columns that depend on each other: the twenty shapes of hyppo in one dimension with noise, and two of other papers.

The formulas are those that hyppo documents (``hyppo.tools.indep_sim``, after Vogelstein et al. 2019) at p = 1 with
``noise=True``; the noise comes from a source of chance that is handed over. The number of rows of each shape is such
that good tests find about half of the dependences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from testing_settings import Array, Pair, Setting, perturbed_uniform

Rng = np.random.Generator
Shape = Callable[[int, Rng], Pair]


def curve(function: Callable[[Array], Array], noise: float, low: float = -1.0, high: float = 1.0) -> Shape:
    """y = f(x) + noise, x uniform."""

    def draw(n: int, rng: Rng) -> Pair:
        x = rng.uniform(low, high, n)
        return x, function(x) + noise * rng.standard_normal(n)

    return draw


def joint_normal(n: int, rng: Rng) -> Pair:
    x = rng.standard_normal(n)
    return x, x / 2 + np.sqrt(0.75) * rng.standard_normal(n) + 0.5 * rng.standard_normal(n)


def spiral(n: int, rng: Rng) -> Pair:
    radius = rng.uniform(0, 5, n)
    x, y = radius * np.cos(np.pi * radius), radius * np.sin(np.pi * radius)
    return x, y + 0.4 * rng.standard_normal(n)


def uncorrelated_bernoulli(n: int, rng: Rng) -> Pair:
    x = rng.integers(2, size=n) + 0.5 * rng.standard_normal(n)
    return x, (2 * rng.integers(2, size=n) - 1) * x + 0.5 * rng.standard_normal(n)


def logarithmic(n: int, rng: Rng) -> Pair:
    x = rng.standard_normal(n)
    return x, np.log(x**2) + 3 * rng.standard_normal(n)


def wave(frequency: float, noise: float) -> Shape:
    def draw(n: int, rng: Rng) -> Pair:
        x = rng.uniform(-1, 1, n) + 0.02 * rng.standard_normal(n)
        return x, np.sin(frequency * np.pi * x) + noise * rng.standard_normal(n)

    return draw


def turned_square(angle: float) -> Shape:
    def draw(n: int, rng: Rng) -> Pair:
        u, v = rng.uniform(-1, 1, (2, n))
        x = u * np.cos(angle) + v * np.sin(angle) + 0.05 * rng.standard_normal(n)
        return x, -u * np.sin(angle) + v * np.cos(angle)

    return draw


def two_parabolas(n: int, rng: Rng) -> Pair:
    x = rng.uniform(-1, 1, n)
    return x, (x**2 + 2 * rng.uniform(size=n)) * (rng.integers(2, size=n) - 0.5)


def ring(radius: float) -> Shape:
    def draw(n: int, rng: Rng) -> Pair:
        angle = np.pi * rng.uniform(-1, 1, n)
        return radius * (np.cos(angle) + 0.4 * rng.standard_normal(n)), np.sin(angle)

    return draw


def multiplicative_noise(n: int, rng: Rng) -> Pair:
    x = rng.standard_normal(n)
    return x, x * rng.standard_normal(n)


def independent_clusters(n: int, rng: Rng) -> Pair:
    x, y = rng.standard_normal((2, n)) / 3 + 2 * rng.integers(2, size=(2, n)) - 1
    return x, y


def cubic(x: Array) -> Array:
    return 128 * (x - 1 / 3) ** 3 + 48 * (x - 1 / 3) ** 2 - 12 * (x - 1 / 3) ** 3


def w_shape(x: Array) -> Array:
    return 4 * (x**2 - 0.5) ** 2  # hyppo adds a uniform variable over 125, far below its noise


# --- of other papers ------------------------------------------------------------------------------------------


def perturbed_square(n: int, scale: float = 0.5) -> Setting:
    """A square of which two cells along each axis have hills and valleys, in the signs of Schrab et al. 2022."""

    def draw(rng: Rng) -> Pair:
        z = perturbed_uniform(n, np.array([[-1, 1], [1, -1]]), scale, rng)
        return z[:, :1], z[:, 1:]

    return draw


def three_clusters(n: int, kept: float) -> Setting:
    """x from one of three normals, y from the next one round the triangle, for this share of the rows; else any."""
    centres = 4.0 * np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])

    def draw(rng: Rng) -> Pair:
        which = rng.integers(3, size=n)
        after = np.where(np.arange(n) < kept * n, which, rng.integers(3, size=n))
        X, Y = np.sqrt(5.0) * rng.standard_normal((2, n, 2))
        return X + centres[(which + 1) % 3], Y + centres[after]

    return draw


def in_columns(shape: Shape, n: int) -> Setting:
    def draw(rng: Rng) -> Pair:
        x, y = shape(n, rng)
        return x[:, None], y[:, None]

    return draw


SHAPES: dict[str, tuple[Shape, int]] = {
    "linear": (curve(lambda x: x, 1.0), 30),
    "exponential": (curve(np.exp, 10.0, 0, 3), 40),
    "cubic": (curve(cubic, 80.0), 60),
    "joint normal": (joint_normal, 40),
    "step": (curve(lambda x: (x > 0) * 1.0, 1.0), 40),
    "quadratic": (curve(np.square, 0.5), 60),
    "w-shaped": (curve(w_shape, 0.5), 60),
    "spiral": (spiral, 60),
    "uncorrelated Bernoulli": (uncorrelated_bernoulli, 40),
    "logarithmic": (logarithmic, 60),
    "fourth root": (curve(lambda x: np.abs(x) ** 0.25, 0.25), 60),
    "sine 4π": (wave(4, 1.0), 100),
    "sine 16π": (wave(16, 0.5), 300),
    "square": (turned_square(-np.pi / 8), 100),
    "two parabolas": (two_parabolas, 60),
    "circle": (ring(1.0), 60),
    "ellipse": (ring(5.0), 60),
    "diamond": (turned_square(-np.pi / 4), 60),
    "multiplicative noise": (multiplicative_noise, 40),
    "independent clusters (level)": (independent_clusters, 100),
}
INDEPENDENCE: dict[str, Setting] = {
    **{name: in_columns(shape, n) for name, (shape, n) in SHAPES.items()},
    "perturbed square": perturbed_square(400),
    "three clusters": three_clusters(500, 0.4),
}
