"""Signed measures on points: the difference of two weighted samples, and its squared norm under a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.base import Kernel
from mercer.operators.gram import GramOperator

Array = np.ndarray[Any, np.dtype[Any]]


def difference(X: Array, x_weights: Array, Y: Array, y_weights: Array) -> tuple[Array, Array]:
    """The signed measure μ - ν: its distinct points, and their weights other than zero.

    Weights of equal points are added up, so what two samples have in common leaves no rounding error behind.
    """
    points, where = np.unique(np.concatenate([X, Y]) + 0.0, axis=0, return_inverse=True)  # + 0.0 turns -0.0 into 0.0
    where = where.ravel()
    n, count = X.shape[0], points.shape[0]
    signed = _added(where[:n], x_weights, count) - _added(where[n:], y_weights, count)
    kept = signed != 0
    return points[kept], signed[kept]


def energy(kernel: Kernel, points: Array, signed: Array) -> float:
    """wᵀKw ≥ 0 for a signed measure w on some points: one symmetric product, in tiles."""
    if not signed.size:
        return 0.0
    product = np.asarray(GramOperator(kernel, points) @ signed, np.float64)
    return max(float(signed @ product), 0.0)


def _added(where: Array, weights: Array, count: int) -> Array:
    """The sum of the weights at each place, the same whatever their order: at each place the least are added first."""
    order = np.lexsort((weights, where))
    return np.bincount(where[order], weights[order], minlength=count)
