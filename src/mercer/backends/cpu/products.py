"""Products with a kernel matrix that is never stored: tiles, made and used once, on all cores.

Forms that are programs of compiled loops are swept by :mod:`mercer.backends.cpu.tasks`. What is left (a Bessel
function, a kernel's own function, a part that is stored) is evaluated here, tile by tile, as NumPy expressions that are
costly enough to keep every thread busy. Both add tiles up in double precision and in an order that no number of threads
changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import panel_rows, row_chunks, run_of, size_of
from mercer.backends.cpu import sweeps, tasks
from mercer.backends.cpu.program import Evaluator
from mercer.backends.threads import run_chunks


def multiply(evaluator: Evaluator, v: Array, *, transpose: bool = False) -> Array:
    """K @ v (or Kᵀ @ v) for an n × r block v, without K."""
    v = np.asarray(v, dtype=evaluator.dtype)
    if evaluator.compiled is None:
        total = _symmetric_product(evaluator, v) if evaluator.symmetric else _product(evaluator, v, transpose)
    elif evaluator.symmetric:
        total = tasks.symmetric_product(evaluator.compiled, v)
    else:
        total = tasks.product(evaluator.compiled, v, transpose=transpose)
    return total.astype(evaluator.dtype, copy=False)


def multiply_both(evaluator: Evaluator, v_rows: Array, v_cols: Array) -> tuple[Array, Array]:
    """K @ v_cols and Kᵀ @ v_rows for blocks of as many columns, in double precision, every entry made once."""
    v_rows, v_cols = np.asarray(v_rows, evaluator.dtype), np.asarray(v_cols, evaluator.dtype)
    if evaluator.compiled is not None:
        return tasks.both_products(evaluator.compiled, v_rows, v_cols)
    down, across, side = np.zeros(v_rows.shape), np.zeros(v_cols.shape), _side(evaluator)
    for first in row_chunks(v_rows.shape[0], side):
        for second in row_chunks(v_cols.shape[0], side):
            tile = _tile(evaluator, first, second)
            down[first] += tile @ v_cols[second]
            across[second] += tile.T @ v_rows[first]
    return down, across


def summation_depth(evaluator: Evaluator) -> int:
    """The most roundings that a term of a product goes through: those inside a tile, over tiles and over chunks."""
    longest = max(evaluator.shape)
    n_features = evaluator.n_features if evaluator.compiled is None else evaluator.compiled.n_features
    return min(longest, tasks.longest_sum(longest, n_features, evaluator.dtype, evaluator.symmetric))


def dense(evaluator: Evaluator) -> Array:
    """K itself, symmetric to the last bit where it is symmetric."""
    out = np.empty(evaluator.shape, evaluator.dtype)
    if not evaluator.symmetric:
        _fill(evaluator, slice(0, out.shape[0]), slice(0, out.shape[1]), out)
    elif evaluator.compiled is not None:
        tasks.fill_symmetric(evaluator.compiled, out)
    else:
        run_chunks(lambda pair: _fill_pair(evaluator, *pair, out), _pairs(evaluator))
    return out


def block(evaluator: Evaluator, rows: Any, cols: Any, *, log: bool = False) -> Array:
    """Some rows and columns of K (or of log K), given by slices or index arrays."""
    if not log and evaluator.symmetric and _everything(rows) and _everything(cols):
        return dense(evaluator)
    i, j = (_selection(n, which) for n, which in zip(evaluator.shape, (rows, cols), strict=True))
    out = np.empty((size_of(i), size_of(j)), evaluator.dtype)
    _fill(evaluator, i, j, out, log=log)
    return out


def scaled_product(evaluator: Evaluator, v: Array) -> tuple[Array, Array]:
    """K v = exp(scale) P, row by row; see :meth:`mercer.backends.matrix.KernelMatrix.scaled_product`."""
    v = np.ascontiguousarray(v, np.float64)
    logs = evaluator.nonnegative
    if logs and evaluator.compiled_log is not None:
        return tasks.scaled_product(evaluator.compiled_log, v)
    n, m = evaluator.shape
    scale, product = np.zeros(n), np.zeros((n, v.shape[1]))

    def fill(part: slice) -> None:
        P = _tile(evaluator, part, slice(0, m), log=logs).astype(np.float64, copy=False)
        if logs:
            top = P.max(axis=1, initial=-np.inf)
            top[top == -np.inf] = 0.0  # no positive entry at all: the product is zero
            P -= top[:, None]
            np.exp(P, out=P)
            scale[part] = top
        np.matmul(P, v, out=product[part])

    run_chunks(fill, row_chunks(n, min(_side(evaluator), panel_rows(2 * m))))
    return scale, product


def _everything(which: Any) -> bool:
    return isinstance(which, slice) and which == slice(None)


def _selection(n: int, which: Any) -> Any:
    """A run of n indices as a slice from start to stop, any other choice as an array of indices."""
    if isinstance(which, slice):
        start, stop, step = which.indices(n)
        if step == 1:
            return slice(start, max(start, stop))
    if isinstance(which, np.ndarray) and which.dtype.kind in "iu" and (which.size == 0 or which.min() >= 0):
        return np.ascontiguousarray(which)
    return np.ascontiguousarray(np.arange(n)[which])


def _fill(evaluator: Evaluator, rows: Any, cols: Any, out: Array, *, log: bool = False) -> None:
    """Entries of a selection into out, on all threads, with the exact diagonal."""
    compiled = evaluator.compiled_log if log else evaluator.compiled
    if compiled is not None:
        tasks.fill(compiled, rows, cols, out, log=log)
        evaluator.set_diagonal(rows, cols, out, log=log)
        return

    def fill(pair: tuple[slice, slice]) -> None:
        out[pair] = _tile(evaluator, run_of(rows, pair[0]), run_of(cols, pair[1]), log=log)

    side = _side(evaluator)
    height = side * max(1, side // max(1, min(out.shape[1], side)))  # tiles are as tall as the block is narrow
    run_chunks(fill, [(p, q) for p in row_chunks(out.shape[0], height) for q in row_chunks(out.shape[1], side)])


def _fill_pair(evaluator: Evaluator, rows: slice, cols: slice, out: Array) -> None:
    tile = _tile(evaluator, rows, cols)
    out[rows, cols] = tile if rows != cols else np.triu(tile) + np.triu(tile, 1).T
    if rows != cols:
        out[cols, rows] = tile.T


def _tile(evaluator: Evaluator, rows: Any, cols: Any, *, log: bool = False) -> Array:
    tile = np.empty((size_of(rows), size_of(cols)), evaluator.dtype)
    evaluator.fill(rows, cols, tile, log=log)
    return tile


def _side(evaluator: Evaluator) -> int:
    return tasks.SIDES[evaluator.dtype.name]


def _pairs(evaluator: Evaluator) -> list[tuple[slice, slice]]:
    return [pair for turn in _rounds(evaluator) for pair in turn]


def _rounds(evaluator: Evaluator) -> list[list[tuple[slice, slice]]]:
    """The tiles of the upper triangle in rounds: in each, no panel of points occurs twice."""
    panels = row_chunks(evaluator.shape[0], tasks.side_of(evaluator.shape[0], evaluator.n_features, evaluator.dtype))
    rounds: list[list[tuple[slice, slice]]] = [[] for _ in range(len(panels) + 1)]
    for task in range(tasks.tournament(len(panels))):
        turn, first, second = sweeps.pairing_of(task, len(panels))
        if second < len(panels):
            rounds[turn].append((panels[first], panels[second]))
    return rounds


def _symmetric_product(evaluator: Evaluator, v: Array) -> Array:
    total = np.zeros((evaluator.shape[0], v.shape[1]))

    def add(pair: tuple[slice, slice]) -> None:
        rows, cols = pair
        tile = _tile(evaluator, rows, cols)
        total[rows] += tile @ v[cols]
        if rows != cols:
            total[cols] += tile.T @ v[rows]

    for turn in _rounds(evaluator):
        run_chunks(add, turn)
    return total


def _product(evaluator: Evaluator, v: Array, transpose: bool) -> Array:
    """Tile after tile of the rows (or columns) that a chunk owns."""
    n, m = evaluator.shape[::-1] if transpose else evaluator.shape
    out = np.zeros((n, v.shape[1]))
    side = _side(evaluator)

    def fill(part: slice) -> None:
        for other in row_chunks(m, side):
            tile = _tile(evaluator, other, part).T if transpose else _tile(evaluator, part, other)
            out[part] += tile @ v[other]

    run_chunks(fill, row_chunks(n, tasks.height_of(n, evaluator.n_features, evaluator.dtype)))
    return out
