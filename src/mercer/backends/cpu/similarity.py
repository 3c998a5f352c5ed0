"""Compiled structural similarity of images: moments of windows, and means over windows of all pairs of two sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mercer.backends.arrays import Array


class Windows(NamedTuple):
    """The windows of images, and what keeps ratios of their moments finite.

    Attributes
    ----------
    weights : array of shape (p,)
        Of the p × p window in each direction, which sum to one.
    c1, c2 : float
        The constants beside means and variances.
    """

    weights: Array
    c1: float
    c2: float


def mean_similarities(rows: Array, cols: Array, windows: Windows) -> tuple[Array, Array]:
    """Means over windows of S₁S₂ and of S₁ + S₂ for all pairs of images, on this thread.

    S₁ = (2μν + c₁)/(μ² + ν² + c₁) of the means of two windows, S₂ = (2σₓᵧ + c₂)/(σₓ² + σᵧ² + c₂) of their covariance
    and variances (Wang et al. 2004); windows that lie inside the images count.

    Parameters
    ----------
    rows, cols : arrays of shape (s, c, h, w) and (t, c, h, w)
        Images of c channels.
    windows : Windows
        Their windows.

    Returns
    -------
    products, sums : arrays of shape (s, t)
        Cost: c·p·(h w + (h - p + 1)(w - p + 1)) multiplications a pair at most, some 4 µs for 28 × 28 and p = 11.
    """
    products, sums = np.empty((rows.shape[0], cols.shape[0])), np.empty((rows.shape[0], cols.shape[0]))
    rows, cols = (np.ascontiguousarray(side, np.float64) for side in (rows, cols))
    _fill(rows, cols, windows.weights, windows.c1, windows.c2, products, sums)
    return products, sums


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _smooth(image: Array, weights: Array, line: Array, out: Array) -> None:
    """Weighted means of the windows inside an image, down the columns and then along the rows."""
    for r in range(out.shape[0]):
        line[:] = 0.0
        for p in range(weights.shape[0]):
            weight, row = weights[p], image[r + p]
            for q in range(line.shape[0]):
                line[q] += weight * row[q]
        means = out[r]
        means[:] = 0.0
        for p in range(weights.shape[0]):
            weight, row = weights[p], line[p : p + means.shape[0]]
            for q in range(means.shape[0]):
                means[q] += weight * row[q]


@njit(nogil=True, cache=True)
def _multiply(first: Array, second: Array, out: Array) -> None:
    for r in range(out.shape[0]):
        for q in range(out.shape[1]):
            out[r, q] = first[r, q] * second[r, q]


@njit(nogil=True, cache=True)
def _moments(images: Array, weights: Array, means: Array, variances: Array) -> None:
    square, line = np.empty(images.shape[2:]), np.empty(images.shape[3])
    for i in range(images.shape[0]):
        for c in range(images.shape[1]):
            _smooth(images[i, c], weights, line, means[i, c])
            _multiply(images[i, c], images[i, c], square)
            _smooth(square, weights, line, variances[i, c])
            variances[i, c] = np.maximum(variances[i, c] - means[i, c] * means[i, c], 0.0)


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _ratios(xy: Array, mx: Array, my: Array, vx: Array, vy: Array, c1: float, c2: float) -> tuple[float, float]:
    product = total = 0.0
    for r in range(xy.shape[0]):
        for q in range(xy.shape[1]):
            shared = mx[r, q] * my[r, q]
            first = (2 * shared + c1) / (mx[r, q] * mx[r, q] + my[r, q] * my[r, q] + c1)
            second = (2 * (xy[r, q] - shared) + c2) / (vx[r, q] + vy[r, q] + c2)
            product += first * second
            total += first + second
    return product, total


@njit(nogil=True, cache=True)
def _fill(rows: Array, cols: Array, weights: Array, c1: float, c2: float, products: Array, sums: Array) -> None:
    height, width = rows.shape[2] - weights.shape[0] + 1, rows.shape[3] - weights.shape[0] + 1
    mx, vx = np.empty((2, rows.shape[0], rows.shape[1], height, width))
    my, vy = np.empty((2, cols.shape[0], cols.shape[1], height, width))
    _moments(rows, weights, mx, vx)
    _moments(cols, weights, my, vy)
    image, line, xy = np.empty(rows.shape[2:]), np.empty(rows.shape[3]), np.empty((height, width))
    count = rows.shape[1] * height * width
    for i in range(rows.shape[0]):
        for j in range(cols.shape[0]):
            product = total = 0.0
            for c in range(rows.shape[1]):
                _multiply(rows[i, c], cols[j, c], image)
                _smooth(image, weights, line, xy)
                first, second = _ratios(xy, mx[i, c], my[j, c], vx[i, c], vy[j, c], c1, c2)
                product += first
                total += second
            products[i, j], sums[i, j] = product / count, total / count
