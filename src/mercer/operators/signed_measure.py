"""Signed measures on points: the difference of two weighted samples, and its squared norm under a kernel."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, as_double, is_tensor, namespace, unique_rows
from mercer.kernels.base import Kernel
from mercer.operators.gram import GramOperator


def difference(X: Array, x_weights: Array, Y: Array, y_weights: Array) -> tuple[Array, Array]:
    """The signed measure μ - ν: its distinct points, and their weights other than zero.

    Weights of equal points are added up, so what two samples have in common leaves no rounding error behind.
    """
    both = namespace(X).concat([X, Y]) + 0.0  # which turns -0.0 into 0.0
    first, where = unique_rows(both)
    n, count = X.shape[0], first.shape[0]
    signed = _added(where[:n], x_weights, count) - _added(where[n:], y_weights, count)
    kept = signed != 0
    return both[first][kept], signed[kept]


def energy(kernel: Kernel, points: Array, signed: Array) -> float:
    """wᵀKw ≥ 0 for a signed measure w on some points: one symmetric product, in tiles."""
    if not signed.shape[0]:
        return 0.0
    product = as_double(GramOperator(kernel, points) @ signed)
    return max(float(signed @ product), 0.0)


def _added(where: Array, weights: Array, count: int) -> Array:
    """The sum of the weights at each place, the same whatever their order: at each place the least are added first."""
    if is_tensor(where):
        order = weights.argsort(stable=True)
        order = order[where[order].argsort(stable=True)]
        return where[order].bincount(weights[order], minlength=count)
    order = np.lexsort((weights, where))
    return np.bincount(where[order], weights[order], minlength=count)
