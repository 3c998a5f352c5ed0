"""MMD² of many small sets of columns on the same relabellings of two samples, by factors of their kernel matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS, gamma
from mercer.backends.threads import run_chunks
from mercer.dependence.resampling import permutations


def contrast_statistics(
    factors: Sequence[Array],
    sizes: tuple[int, int],
    count: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> tuple[Array, Array]:
    """‖Fᵀc‖² for every factor F of a kernel matrix of the pooled rows, on the data and on random relabellings.

    c has 1/n in the rows of the first sample and -1/m in those of the second, so that it is the biased MMD². Cost: N r
    operations for each factor of rank r and each relabelling of the N rows.

    Returns
    -------
    statistics : array of shape (K, 1 + count)
        The data's before those of the relabellings, the same for all factors.
    roundings : array of shape (K,)
        How far equal statistics may lie apart.
    """
    n, m = sizes
    own = np.arange(n + m)[None]
    blocks, done = [_of_orders(factors, own, n)], 0
    for orders in permutations(n + m, count, rng):
        blocks.append(_of_orders(factors, orders, n))
        done += orders.shape[0]
        if progress is not None:
            progress(done / count)
    statistics = np.concatenate(blocks, axis=1)
    length = np.sqrt(1 / n + 1 / m)  # of c
    error = 2 * gamma(n + m + 100, EPS) * length * np.array([np.linalg.norm(factor) for factor in factors])
    return statistics, 2 * error * (np.sqrt(statistics.max(axis=1)) + error)


def _of_orders(factors: Sequence[Array], orders: Array, n: int) -> Array:
    """The statistics where the first n rows of each order are the first sample."""
    contrasts = np.full((orders.shape[1], orders.shape[0]), -1.0 / (orders.shape[1] - n))
    contrasts[orders[:, :n], np.arange(orders.shape[0])[:, None]] = 1.0 / n
    return np.stack(run_chunks(lambda factor: np.sum((factor.T @ contrasts) ** 2, axis=0), factors))
