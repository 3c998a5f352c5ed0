"""Exchanges inside a block of points whose matrix is in memory (QUAD 7.1): the inner loop of a block step.

NumPy arrays run it compiled; tensors take the same exchanges, a handful of operations of their library each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array, is_tensor, namespace

FLAT = 1e-12  # of the two diagonal entries: a smaller curvature is rounding, as between copies of one point


def exchange_inside(
    block: Array, price: Array, mass: Array, ceiling: Array, most: int, part: float, rounding: float
) -> float:
    """Exchange mass by the second-order rule, in place, until the bound of the block is a part of its first.

    Parameters
    ----------
    block : array of shape (m, m)
        Curvatures.
    price, mass, ceiling : arrays of shape (m,)
        Prices and masses, which change, and the ceilings of masses.
    most : int
        Exchanges at most.
    part : float
        Of the first bound: where the exchanges stop.
    rounding : float
        Differences of prices below this mean nothing.

    Returns
    -------
    float
        What the objective lost.
    """
    if is_tensor(block):
        return _on_tensors(block, price, mass, ceiling, most, part, rounding)
    return float(_compiled(block, price, mass, ceiling, most, part, rounding))


def _on_tensors(
    block: Array, price: Array, mass: Array, ceiling: Array, most: int, part: float, rounding: float
) -> float:
    xp = namespace(block)
    diagonal = xp.linalg.diagonal(block) + 0.0
    gain, target = 0.0, -1.0
    for _ in range(most):
        open_price = xp.where(mass < ceiling, price, math.inf)
        i = int(xp.argmin(open_price))
        low = float(open_price[i])
        if low == math.inf:
            break
        row = block[i]
        excess = xp.where((mass > 0) & (price - low > rounding), price - low, 0.0)
        ends = diagonal[i] + diagonal
        curvature = xp.maximum(ends - 2.0 * row, FLAT * ends)
        j = int(xp.argmax(excess * excess / curvature))
        gap, over = float(mass @ excess), float(excess[j])
        target = part * gap if target < 0 else target
        if over <= 0 or gap <= target:
            break
        bend, room, there = float(curvature[j]), float(ceiling[i] - mass[i]), float(mass[j])
        amount = min(over / bend, there, room)
        gain += amount * (over - 0.5 * amount * bend)
        mass[i] = mass[i] + amount if amount < room else ceiling[i]
        mass[j] = there - amount
        price += amount * (row - block[j])
    return gain


@njit(cache=True, nogil=True)
def _compiled(block: Any, price: Any, mass: Any, ceiling: Any, most: int, part: float, rounding: float) -> float:
    m = price.size
    diagonal = np.diag(block).copy()
    gain, target = 0.0, -1.0
    for _ in range(most):
        i, low = -1, np.inf
        for k in range(m):
            if price[k] < low and mass[k] < ceiling[k]:
                i, low = k, price[k]
        if i < 0:
            return gain
        row = block[i]
        gap, best, j = 0.0, 0.0, -1
        for k in range(m):
            excess = price[k] - low
            if mass[k] > 0 and excess > rounding:
                gap += mass[k] * excess
                ends = diagonal[i] + diagonal[k]
                promised = excess * excess / max(ends - 2 * row[k], FLAT * ends)
                if promised > best:
                    best, j = promised, k
        if target < 0:
            target = part * gap
        if j < 0 or gap <= target:
            return gain
        excess = price[j] - low
        ends = diagonal[i] + diagonal[j]
        curvature = max(ends - 2 * row[j], FLAT * ends)
        amount = min(excess / curvature, mass[j], ceiling[i] - mass[i])
        gain += amount * (excess - 0.5 * amount * curvature)
        mass[i] = mass[i] + amount if amount < ceiling[i] - mass[i] else ceiling[i]
        mass[j] -= amount
        other = block[j]
        for k in range(m):
            price[k] += amount * (row[k] - other[k])
    return gain
