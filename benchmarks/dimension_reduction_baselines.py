"""Sliced inverse regression, sliced average variance estimation, and samples whose sufficient directions are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
SLICES = 10


def sliced_inverse_regression(X: Array, y: Array, count: int) -> Array:
    """Li (1991): the leading directions of the means of whitened x in slices of y."""
    Z, back = _whitened(X)
    moments = sum(share * np.outer(mean, mean) for share, mean, _ in _slices(Z, y))
    return back @ np.linalg.eigh(moments)[1][:, ::-1][:, :count]


def sliced_average_variance(X: Array, y: Array, count: int) -> Array:
    """Cook and Weisberg (1991): those in which the covariance of whitened x in slices of y is not the identity."""
    Z, back = _whitened(X)
    eye = np.eye(Z.shape[1])
    moments = sum(share * (eye - covariance) @ (eye - covariance) for share, _, covariance in _slices(Z, y))
    return back @ np.linalg.eigh(moments)[1][:, ::-1][:, :count]


def _whitened(X: Array) -> tuple[Array, Array]:
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(centred.T, bias=True))
    back = vectors / np.sqrt(values)
    return centred @ back, back


def _slices(Z: Array, y: Array) -> list[tuple[float, Array, Array]]:
    """The share, mean and covariance of every slice: a class, or about as many rows of neighbouring y."""
    if y.dtype.kind in "US":
        parts = [np.flatnonzero(y == value) for value in np.unique(y)]
    else:
        parts = np.array_split(np.argsort(y, kind="stable"), SLICES)
    return [(len(rows) / len(y), Z[rows].mean(axis=0), np.cov(Z[rows].T, bias=True)) for rows in parts]


class Example(NamedTuple):
    """A sample of n rows, and a basis of the directions that y depends on."""

    title: str
    n: int
    count: int
    draw: Callable[[np.random.Generator, int], tuple[Array, Array]]
    basis: Array


def _rational(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, 4))
    y = X[:, 0] / (0.5 + (X[:, 1] + 1.5) ** 2) + (1 + X[:, 1]) ** 2
    return X, y + 0.4 * rng.standard_normal(n)


def _corner(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.random((20 * n, 4))
    X = X[(X > 0.7).any(axis=1)][:n]
    return X, np.sin(np.pi * X[:, 1] + 1) ** 2 + 0.2 * rng.standard_normal(n)


def _variance(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, 10))
    return X, 0.5 * (X[:, 0] - 0.5) ** 2 * rng.standard_normal(n)


def _even(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, 10))
    return X, X[:, 0] ** 2 + 0.5 * rng.standard_normal(n)


def _wave(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(-1, 1, (n, 10))
    z = (X[:, 0] + 2 * X[:, 1]) / np.sqrt(5)
    return X, z * np.sin(np.sqrt(5) * z) + 0.1 * rng.standard_normal(n)


def _polynomial(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, 10))
    a, b = (X[:, 0] + X[:, 1]) / np.sqrt(2), (X[:, 2] - X[:, 3]) / np.sqrt(2)
    return X, (a**3 + b) * (a - b**3) + 0.5 * rng.standard_normal(n)


def _classes(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, 8))
    return X, np.array(["a", "b", "c", "d"])[(X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 0] > 1)]


def _curved(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.standard_normal((n, 6))
    X[:, 1] = 0.5 * X[:, 0] ** 2 + 0.5 * X[:, 1]
    return X, np.sin(X[:, 0] + X[:, 1]) + 0.2 * rng.standard_normal(n)


def _span(d: int, *columns: dict[int, float]) -> Array:
    basis = np.zeros((d, len(columns)))
    for k, column in enumerate(columns):
        for place, value in column.items():
            basis[place, k] = value
    return basis


EXAMPLES = (
    Example("rational function (Li 1991)", 100, 2, _rational, _span(4, {0: 1}, {1: 1})),
    Example("sin², x on a box without a corner", 100, 1, _corner, _span(4, {1: 1})),
    Example("in the variance alone", 500, 1, _variance, _span(10, {0: 1})),
    Example("an even function", 300, 1, _even, _span(10, {0: 1})),
    Example("z sin(√5 z), x uniform", 300, 1, _wave, _span(10, {0: 1, 1: 2})),
    Example("polynomial of degree six", 400, 2, _polynomial, _span(10, {0: 1, 1: 1}, {2: 1, 3: -1})),
    Example("four classes, as exclusive or", 400, 2, _classes, _span(8, {0: 1}, {1: 1})),
    Example("x on a curve", 300, 1, _curved, _span(6, {0: 1, 1: 1})),
)
