"""Partial Cholesky factorisation, with pivots drawn at random or chosen by the caller."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, cholesky, copied, is_tensor, like, namespace, solve_triangular
from mercer.backends.chunks import row_chunks
from mercer.backends.rounding import EPS, TINY, unit_of
from mercer.backends.threads import run_chunks, single_threaded_blas
from mercer.kernels.checks import as_generator, checked_weights
from mercer.operators import LinearMap, LowRankOperator

_BLOCK, _LEAST_WIDTH = 64, 4  # pivots proposed at a time, and columns made of them at a time
_SHARE, _LEAST_BYTES = 1 / 8, 2 * 10**6  # of the memory limit, for these columns; what is not worth counting
_NOISE, _COARSER = 64.0, 64.0  # in units of rounding; and times the noise, where entries turn out to have more
_ROWS, _COLUMNS = 1024, 128  # of a chunk: a large sample has some hundred, for many threads
_LIFT = 4 * EPS  # of the trace of a pivot block, so that it factors


# Of the map, the factor so far, the residual diagonal (corrected in place where it is rounding), how many at most, and
# the noise: pivots whose Schur complement is positive definite.
Pivots = Callable[[LinearMap, Array, Array, int, float], Array]


def rp_cholesky(
    gram: LinearMap, rank: Any, random_state: Any = None, *, weights: Any = None, tolerance: float = 0.0
) -> LowRankOperator:
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
    weights : array of shape (n,), optional
        Weights of the rows, not negative: a row of weight two is drawn as the same row twice would be, one of weight
        zero never. The factor is that of the map in any case.
    tolerance : float, default=0
        Stop as soon as the trace of the residual is at most this fraction of the trace.

    Returns
    -------
    LowRankOperator
        F Fᵀ, with the pivots in ``landmarks`` and the diagonal of K - F Fᵀ in ``residual_diagonal``.

    Notes
    -----
    Cost: n·rank kernel evaluations and n·rank² flops, on all threads by chunks of rows; memory: n·rank. The factor is
    of the library of the map, and draws come from NumPy's generator, so that every library takes the same pivots.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, GramOperator, rp_cholesky
    >>> gram = GramOperator(Gaussian(sigma=1.0), np.linspace(0, 1, 200)[:, None])
    >>> low = rp_cholesky(gram, rank=8, random_state=0)
    >>> bool(np.abs(gram.to_dense() - low.to_dense()).max() < 1e-6)
    True
    """
    rng = as_generator(random_state)
    mass = None if weights is None else checked_weights(weights, gram.shape[0], "weights", reference=gram.reference)

    def pivots(gram: LinearMap, factor: Array, residual: Array, size: int, noise: float) -> Array:
        return _accepted(gram, factor, residual, _drawn(residual, mass, size, noise, rng), noise, rng)

    return partial_cholesky(gram, rank, pivots, usable=None if mass is None else mass > 0, tolerance=tolerance)


def partial_cholesky(
    gram: LinearMap, rank: Any, pivots: Pivots, *, usable: Array | None = None, tolerance: float = 0.0
) -> LowRankOperator:
    """The factorisation with the pivots that a rule chooses, some at a time, among the rows that may be chosen.

    It ends at the rank, at the tolerance, or when all usable rows are explained to rounding.
    """
    _check(gram, rank, tolerance)
    n, xp = gram.shape[0], namespace(gram.reference)
    residual = _cut(copied(as_double(gram.diagonal())))
    factor = xp.zeros((min(rank, n), n), dtype=xp.float64, device=gram.reference.device).T  # touched a column at a time
    chosen: list[Array] = []
    noise = max(_NOISE * 2 * unit_of(gram.dtype) * (float(xp.max(residual)) if n else 0.0), TINY)
    enough, k = tolerance * float(xp.sum(residual)), 0
    width = max(_LEAST_WIDTH, min(_BLOCK, max(get_config().share(_SHARE), _LEAST_BYTES) // (3 * 8 * n)))

    def left() -> float:
        return float(xp.max(residual if usable is None else xp.where(usable, residual, 0.0)))

    with single_threaded_blas():  # small products wake none of its threads, tall ones go to ours
        while k < factor.shape[1] and left() > noise and float(xp.sum(residual)) > enough:
            block = pivots(gram, factor[:, :k], residual, min(_BLOCK, factor.shape[1] - k), noise)
            for lo in range(0, block.shape[0], width):  # memory decides how many columns at a time
                part = block[lo : lo + width]
                try:
                    _add_columns(gram, factor, k, part, residual)
                except np.linalg.LinAlgError:  # entries of a solve are others where others are asked with them
                    noise *= _COARSER
                    break
                chosen.append(part)
                k += part.shape[0]
    landmarks = xp.concat(chosen) if chosen else like(np.empty(0, np.intp), gram.reference)
    return LowRankOperator(factor[:, :k], landmarks=landmarks, residual_diagonal=residual)


def _check(gram: LinearMap, rank: Any, tolerance: float) -> None:
    if not gram.symmetric:
        raise ValueError("A Cholesky factorisation is of a symmetric map.")
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or rank < 1:
        raise ValueError(f"rank={rank!r} must be a whole number of at least 1.")
    if isinstance(tolerance, bool) or not 0 <= tolerance < 1:
        raise ValueError(f"tolerance={tolerance!r} must lie between 0 and 1.")


def _add_columns(gram: LinearMap, factor: Array, k: int, chosen: Array, residual: Array) -> None:
    """Eliminate some pivots after k others: their columns of the factor and the residual diagonal, in place.

    Rows are independent of each other once the pivots' own block is factored, so they go to the threads in chunks. In a
    chunk nothing takes the interpreter's lock for long: a triangular solve of SciPy would, so that products with the
    inverse do it, refined once, which is as good.
    """
    n, later, known = factor.shape[0], slice(k, k + chosen.shape[0]), _rows(factor[:, :k], chosen)
    lower = cholesky(_regular(as_double(gram.block(chosen, chosen)) - known @ known.T))
    inverse = solve_triangular(lower, _identity(lower)).T

    def eliminate(rows: slice) -> None:
        columns = as_double(gram.block(rows, chosen))
        columns -= factor[rows, :k] @ known.T
        new = columns @ inverse
        new += (columns - new @ lower.T) @ inverse
        factor[rows, later] = new
        residual[rows] = _cut(residual[rows] - (new * new).sum(axis=1))

    run_chunks(eliminate, row_chunks(n, n if is_tensor(factor) else _ROWS))  # a device has threads of its own
    residual[chosen] = 0.0


def _rows(factor: Array, which: Array) -> Array:
    """Some rows of a factor stored by columns: no two entries lie together, so that memory is waited for in chunks."""
    if is_tensor(factor) or factor.shape[1] <= _COLUMNS:
        return factor[which]
    return np.hstack(run_chunks(lambda part: factor[which, part], row_chunks(factor.shape[1], _COLUMNS)))


def _accepted(
    gram: LinearMap, factor: Array, residual: Array, proposed: Array, noise: float, rng: np.random.Generator
) -> Array:
    """Of pivots proposed from the residual diagonal, those that one-by-one sampling would have drawn."""
    schur = schur_complement(gram, factor, residual, proposed, noise)
    size = proposed.shape[0]
    threshold = like(rng.random(size), residual) * residual[proposed]
    kept: list[int] = []
    for i in range(size):
        pivot = float(schur[i, i])
        if pivot > max(noise, float(threshold[i])):
            kept.append(i)
            rest = slice(i + 1, None)
            schur[rest, rest] -= (schur[rest, i] / pivot)[:, None] * schur[i, rest]
    return proposed[kept]


def schur_complement(gram: LinearMap, factor: Array, residual: Array, rows: Array, noise: float) -> Array:
    """The block of K - FFᵀ at some rows.

    A residual that turns out to be rounding is corrected: else its point would be proposed again and again, and never
    kept.
    """
    known = _rows(factor, rows)
    schur = as_double(gram.block(rows, rows)) - known @ known.T
    fresh = copied(schur.diagonal())
    rounding = fresh <= noise
    residual[rows[rounding]] = _cut(fresh[rounding])
    return schur


def _drawn(residual: Array, weights: Array | None, size: int, noise: float, rng: np.random.Generator) -> Array:
    """Indices with probability proportional to the residual above noise, as ``rng.choice`` draws them."""
    xp = namespace(residual)
    near_one = 2.0 ** -math.frexp(float(xp.max(residual)))[1]  # so that no product with a weight vanishes
    chances = xp.where(residual > noise, near_one * residual, 0.0)
    sums = (chances if weights is None else weights * chances).cumsum(0)
    return xp.searchsorted(sums / sums[-1], like(rng.random(size), residual), side="right")


def _cut(values: Array) -> Array:
    return namespace(values).clip(values, 0.0, None)


def _regular(matrix: Array) -> Array:
    """The pivot block, its diagonal lifted by rounding so that it factors."""
    lift = _LIFT * float(namespace(matrix).sum(matrix.diagonal()))
    return (matrix + matrix.T) / 2 + lift * _identity(matrix)


def _identity(matrix: Array) -> Array:
    return namespace(matrix).eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)
