"""The logarithm of a sum of squares ‖Fᵀk_x‖², far from the support too."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, namespace, norm
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import EPS
from mercer.backends.threads import run_chunks_of
from mercer.kernels import Kernel


def log_squares(kernel: Kernel, X: Array, support: Array, factor: Array) -> tuple[Array, Array]:
    """log ‖Fᵀk_x‖² at the rows of X, and log (ε² ‖F‖² max_p k(x, z_p)²), below which it is rounding.

    Where the kernel is known to be positive, the largest k(x, z_p) is taken out first, so that the logarithm stays
    finite at any distance; where all of them vanish both are minus infinity. Cost: n m (d + r).
    """
    matrix, xp = kernel.matrix(X, support), namespace(X)
    scale, product = matrix.scaled_product(factor)
    squares = xp.sum(product**2, axis=1)
    if not matrix.nonnegative:
        tops = _largest(matrix, scale)
    else:  # a row of zeros has no scale
        tops = xp.where(squares > 0, scale, xp.full_like(scale, -np.inf))
    with np.errstate(divide="ignore"):
        logs = 2.0 * scale + xp.log(squares)
    return logs, 2.0 * (tops + float(np.log(EPS) + np.log(norm(factor))))


def _largest(matrix: KernelMatrix, like_it: Array) -> Array:
    """log max_p of the absolute entries of every row."""
    xp, out = namespace(like_it), namespace(like_it).empty_like(like_it)

    def fill(rows: slice) -> None:
        out[rows] = xp.max(xp.abs(matrix.block(rows, slice(None))), axis=1)

    run_chunks_of(like_it, fill, row_chunks(matrix.shape[0], panel_rows(matrix.shape[1])))
    with np.errstate(divide="ignore"):
        return xp.log(out)
