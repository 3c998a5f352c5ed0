"""Randomly pivoted Cholesky factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mercer.backends import get_config
from mercer.backends.chunks import row_chunks
from mercer.backends.threads import run_chunks, single_threaded_blas
from mercer.linalg.random import as_generator
from mercer.operators import LinearMap, LowRankOperator

_BLOCK, _LEAST_WIDTH = 64, 4  # pivots proposed at a time, and columns made of them at a time
_SHARE, _LEAST_BYTES = 1 / 8, 2 * 10**6  # of the memory limit, for these columns; what is not worth counting
_NOISE = 64.0
_ROWS = 1024  # of a chunk: some hundred chunks of a large sample, for many threads
_COLUMNS = 128


def rp_cholesky(gram: LinearMap, rank: Any, random_state: Any = None, *, tolerance: float = 0.0) -> LowRankOperator:
    """Approximate a positive semi-definite map by F Fᵀ from randomly chosen columns.

    The pivots are drawn with probability proportional to the diagonal of what is not explained yet (Chen, Epperly,
    Tropp, Webber 2025), in blocks with rejection, which leaves the distribution as it is (Epperly, Tropp, Webber 2024).
    The residual K - F Fᵀ is positive semi-definite, and its diagonal is known.

    Parameters
    ----------
    gram : LinearMap
        Symmetric positive semi-definite, n × n.
    rank : int
        Columns wanted; fewer come back if the matrix is exhausted to rounding.
    random_state : None, int or generator
        Source of the pivots.
    tolerance : float, default=0
        Stop as soon as the trace of the residual is at most this fraction of the trace.

    Returns
    -------
    LowRankOperator
        F Fᵀ, with the pivots in ``landmarks`` and the diagonal of K - F Fᵀ in ``residual_diagonal``.

    Notes
    -----
    Cost: n·rank kernel evaluations and n·rank² flops; memory: n·rank.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, GramOperator, rp_cholesky
    >>> gram = GramOperator(Gaussian(sigma=1.0), np.linspace(0, 1, 200)[:, None])
    >>> low = rp_cholesky(gram, rank=8, random_state=0)
    >>> bool(np.abs(gram.to_dense() - low.to_dense()).max() < 1e-6)
    True
    """
    if not gram.symmetric:
        raise ValueError("rp_cholesky factors a symmetric map.")
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or rank < 1:
        raise ValueError(f"rank={rank!r} must be a whole number of at least 1.")
    if isinstance(tolerance, bool) or not 0 <= tolerance < 1:
        raise ValueError(f"tolerance={tolerance!r} must lie between 0 and 1.")
    rng = as_generator(random_state)
    n = gram.shape[0]
    original = np.maximum(gram.diagonal().astype(np.float64), 0.0)
    residual = original.copy()
    factor = np.zeros((n, min(rank, n)), order="F")  # memory is touched a column at a time
    pivots: list[int] = []
    noise = _NOISE * np.finfo(gram.dtype).eps * original.max(initial=0.0)
    enough = tolerance * original.sum()
    width = max(_LEAST_WIDTH, min(_BLOCK, max(get_config().share(_SHARE), _LEAST_BYTES) // (3 * 8 * n)))
    with single_threaded_blas():  # small products wake none of its threads, tall ones go to ours
        while len(pivots) < factor.shape[1] and residual.max() > noise and residual.sum() > enough:
            k = len(pivots)
            chosen = _accepted(gram, factor[:, :k], residual, min(_BLOCK, factor.shape[1] - k), noise, rng)
            for part in np.split(chosen, range(width, chosen.size, width)):  # memory decides how many at a time
                if part.size:
                    residual = _add_columns(gram, factor, len(pivots), part, residual)
                    pivots.extend(part.tolist())
    factor = factor[:, : len(pivots)]
    return LowRankOperator(factor, landmarks=np.array(pivots, dtype=np.intp), residual_diagonal=residual)


def _add_columns(gram: LinearMap, factor: Any, k: int, chosen: Any, residual: Any) -> Any:
    """Eliminate some pivots after k others: their columns of the factor are filled; returns the residual diagonal.

    Rows are made, and freed of what the factor explains, in chunks on our threads.
    """
    n, at, later = factor.shape[0], _rows(factor[:, :k], chosen).T, slice(k, k + chosen.size)
    columns, chunks = np.empty((n, chosen.size)), row_chunks(n, _ROWS)

    def make(rows: slice) -> None:
        columns[rows] = gram.block(rows, chosen)
        columns[rows] -= factor[rows, :k] @ at

    def keep(rows: slice) -> None:
        part = columns[rows] @ inverse
        part += (columns[rows] - part @ lower.T) @ inverse  # so refined, as good as a triangular solve
        factor[rows, later] = part
        residual[rows] = np.maximum(residual[rows] - np.einsum("ij,ij->i", part, part), 0.0)

    run_chunks(make, chunks)
    lower = np.linalg.cholesky(_regular(columns[chosen]))
    inverse = solve_triangular(lower, np.eye(chosen.size), lower=True).T  # products with it need no interpreter's lock
    run_chunks(keep, chunks)
    residual[chosen] = 0.0
    return residual


def _accepted(gram: LinearMap, factor: Any, residual: Any, size: int, noise: float, rng: np.random.Generator) -> Any:
    """Propose pivots from the residual diagonal; keep those that one-by-one sampling would have drawn.

    A residual that turns out to be rounding is corrected: proposed for ever, its point would never be kept.
    """
    mass = np.where(residual > noise, residual, 0.0)
    proposed = rng.choice(residual.size, size, p=mass / mass.sum())
    rows = _rows(factor, proposed)
    schur = gram.block(proposed, proposed).astype(np.float64) - rows @ rows.T
    start, fresh = residual[proposed], schur.diagonal()
    residual[proposed[fresh <= noise]] = np.maximum(fresh[fresh <= noise], 0.0)
    kept: list[int] = []
    for i in range(size):
        if schur[i, i] > max(noise, rng.uniform() * start[i]):
            kept.append(i)
            schur = schur - np.outer(schur[:, i] / schur[i, i], schur[i])
    return proposed[kept]


def _rows(factor: Any, which: Any) -> Any:
    """Some rows of a factor stored by columns: no two entries lie together, so that memory is waited for in chunks."""
    parts = run_chunks(lambda columns: factor[which, columns], row_chunks(factor.shape[1], _COLUMNS))
    return np.hstack(parts) if parts else factor[which]


def _regular(matrix: Any) -> Any:
    """The pivot block, its diagonal lifted by rounding so that it factors."""
    return (matrix + matrix.T) / 2 + 4 * np.finfo(np.float64).eps * np.trace(matrix) * np.eye(matrix.shape[0])
