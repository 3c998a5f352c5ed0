"""The logarithm of a sum of squares ‖Fᵀk_x‖², far from the support too."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.threads import run_chunks
from mercer.kernels import Kernel

Array = np.ndarray[Any, np.dtype[Any]]

_ENTRIES = 2**21
_TINY = 1e-250  # a sum of squares below has lost digits to underflow
_EPS = float(np.finfo(np.float64).eps)


def log_squares(kernel: Kernel, X: Array, support: Array, factor: Array) -> tuple[Array, Array]:
    """log ‖Fᵀk_x‖² at the rows of X, and log (ε² ‖F‖² max_p k(x, z_p)²), below which it is rounding.

    Where the kernel underflows and is known to be positive, the largest k(x, z_p) is taken out first, so that the
    logarithm stays finite at any distance; elsewhere both are minus infinity. Cost: n m (d + r).
    """
    values, floors = np.empty(X.shape[0]), np.empty(X.shape[0])
    rows = max(1, _ENTRIES // support.shape[0])

    def fill(lo: int) -> None:
        part = slice(lo, lo + rows)
        values[part], floors[part] = _block(kernel, X[part], support, factor)

    run_chunks(fill, range(0, X.shape[0], rows))
    return values, floors + 2.0 * (np.log(_EPS) + np.log(np.linalg.norm(factor)))


def _block(kernel: Kernel, X: Array, support: Array, factor: Array) -> tuple[Array, Array]:
    K = np.asarray(kernel(X, support), np.float64)
    squares, largest = np.sum((K @ factor) ** 2, axis=1), np.max(np.abs(K), axis=1)
    with np.errstate(divide="ignore"):
        logs, tops = np.log(squares), 2.0 * np.log(largest)
    lost = np.flatnonzero(squares < _TINY)
    if lost.size and kernel.properties.positive:
        exponents = np.asarray(kernel.log(np.ascontiguousarray(X[lost]), support), np.float64)
        top = np.max(exponents, axis=1)
        near = np.isfinite(top)
        inner = np.exp(exponents[near] - top[near, None]) @ factor
        with np.errstate(divide="ignore"):
            logs[lost[near]] = 2.0 * top[near] + np.log(np.sum(inner**2, axis=1))
        tops[lost[near]] = 2.0 * top[near]
    return logs, tops
