"""Affinities of new points to the training points, in logarithms, and sums over them.

Far from the data every k(x, xⱼ) underflows. Written as k(x, xⱼ) = P_j e^t with t = maxⱼ log k(x, xⱼ), the weights P
stay between 0 and 1 and one of them is 1, so directions and averages are defined arbitrarily far away, and log Σⱼ k(x,
xⱼ) is finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.backends.threads import run_chunks
from mercer.kernels import Kernel
from mercer.operators import GramOperator

Array = np.ndarray[Any, np.dtype[Any]]
_ENTRIES = 2**21


def log_degrees_and_sums(
    kernel: Kernel, X: Any, training: Any, values: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Sums over the training points, for every row of X.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X, training : arrays
        New points and training points.
    values : array of shape (n, r)
        What is summed.
    weights : array of shape (n,)
        Positive weights of the training points.

    Returns
    -------
    log_degrees : array of shape (m,)
        log Σⱼ wⱼ k(x, xⱼ).
    sums : array of shape (m, r)
        Σⱼ pⱼ valuesⱼ with pⱼ = wⱼ k(x, xⱼ) / Σ wₗ k(x, xₗ).
    log_diagonal : array of shape (m,)
        log k(x, x).
    """
    gram = GramOperator(kernel, X, training)
    rows = max(1, _ENTRIES // max(1, gram.shape[1]))
    read = _logarithmic if kernel.properties.positive else _plain
    parts = run_chunks(
        lambda lo: _chunk(gram, lo, min(lo + rows, gram.shape[0]), values, weights, read), range(0, gram.shape[0], rows)
    )
    with np.errstate(divide="ignore"):
        log_diagonal = np.log(gram.kernel_diagonal().astype(np.float64))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), log_diagonal


def log_radius(log_degrees: Array, log_diagonal: Array, log_volume: float) -> Array:
    """½ log d(x), d(x) = k(x, x)/m - m/vol = (k(x, x)/m) (1 - m²/(vol k(x, x)))."""
    ratio = np.minimum(np.exp(2 * log_degrees - log_volume - log_diagonal), 1.0)
    with np.errstate(divide="ignore"):
        return 0.5 * (log_diagonal - log_degrees + np.log1p(-ratio))


Reader = Callable[[GramOperator, int, int], tuple[Array, Array]]


def _logarithmic(gram: GramOperator, lo: int, hi: int) -> tuple[Array, Array]:
    P = gram.log_rows(lo, hi).astype(np.float64, copy=False)
    scale = P.max(axis=1)
    scale[scale == -np.inf] = 0.0  # no affinity at all: the weights are zero
    P -= scale[:, None]
    return np.exp(P, out=P), scale


def _plain(gram: GramOperator, lo: int, hi: int) -> tuple[Array, Array]:
    return gram.block(slice(lo, hi), slice(None)).astype(np.float64, copy=False), np.zeros(hi - lo)


def _chunk(gram: GramOperator, lo: int, hi: int, values: Array, weights: Array, read: Reader) -> tuple[Array, Array]:
    P, scale = read(gram, lo, hi)
    degrees = P @ weights
    if not np.all(degrees > 0):
        row = lo + int(np.argmin(degrees))
        raise ValueError(
            f"Row {row} of X has no positive affinity to the training points: it has no place in the embedding."
        )
    return np.log(degrees) + scale, (P @ (weights[:, None] * values)) / degrees[:, None]
