"""Cholesky factorisation with the largest pivots."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, is_tensor, like, namespace, to_numpy
from mercer.linalg.pivoted_cholesky import partial_cholesky, schur_complement
from mercer.operators import LinearMap, LowRankOperator


def greedy_cholesky(gram: LinearMap, rank: Any, *, usable: Any = None, tolerance: float = 0.0) -> LowRankOperator:
    """Approximate a positive semi-definite map by F Fᵀ from the columns with the largest residual diagonal.

    Every pivot is the row that the columns before explain worst: Cholesky with complete pivoting, without chance. Under
    a stationary kernel it is the point farthest from the chosen ones. Points far from all others come first, so that
    the largest entry of the residual falls quickly and its trace slowly; :func:`mercer.rp_cholesky` is the other way
    round.

    Parameters
    ----------
    gram : LinearMap
        Symmetric positive semi-definite, n × n.
    rank : int
        Columns wanted; fewer come back if the matrix is exhausted to rounding.
    usable : array of bool of shape (n,), optional
        The rows that may become pivots; all if left out.
    tolerance : float, default=0
        Stop as soon as the trace of the residual is at most this fraction of the trace.

    Returns
    -------
    LowRankOperator
        F Fᵀ, with the pivots in ``landmarks`` and the diagonal of K - F Fᵀ in ``residual_diagonal``.

    Notes
    -----
    Cost: n·rank kernel evaluations and n·rank² flops; memory: n·rank. A residual only falls while pivots are
    eliminated, so that of the rows with the largest ones several can be taken at a time, in the order in which one at a
    time would take them.
    """
    mask = None if usable is None else like(to_numpy(usable).astype(bool), gram.reference)

    def pivots(gram: LinearMap, factor: Array, residual: Array, size: int, noise: float) -> Array:
        return _largest(gram, factor, residual, size, noise, mask)

    return partial_cholesky(gram, rank, pivots, usable=mask, tolerance=tolerance)


def _largest(gram: LinearMap, factor: Array, residual: Array, size: int, noise: float, usable: Array | None) -> Array:
    """The next pivots, as long as they are for certain larger than the residual of every row not looked at."""
    rows, beyond = _leading(residual if usable is None else namespace(residual).where(usable, residual, -1.0), size)
    schur = to_numpy(schur_complement(gram, factor, residual, rows, noise)).copy()
    left = schur.diagonal().copy()
    kept: list[int] = []
    while len(kept) < rows.shape[0]:
        i = int(np.argmax(left))
        pivot = float(schur[i, i])
        if pivot <= noise or (kept and pivot < beyond):
            break
        kept.append(i)
        column = schur[:, i] / np.sqrt(pivot)  # divided first, so that no product of two large entries overflows
        schur -= np.outer(column, column)
        left = np.where(np.isin(np.arange(left.size), kept), -np.inf, schur.diagonal())
    return rows[kept]


def _leading(values: Array, size: int) -> tuple[Array, float]:
    """The rows of the largest values, of equal ones the first, and the largest value of the others."""
    xp, n = namespace(values), values.shape[0]
    if size >= n:
        return xp.arange(n, device=values.device), -np.inf
    beyond = float(
        values.topk(size + 1)[0][-1] if is_tensor(values) else np.partition(values, n - size - 1)[n - size - 1]
    )
    above = xp.nonzero(values > beyond)[0]
    level = xp.nonzero(values == beyond)[0][: size - above.shape[0]]
    return xp.concat([above, level]), beyond
