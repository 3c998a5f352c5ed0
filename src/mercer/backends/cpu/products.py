"""Products with a kernel matrix that is never stored: cache-sized tiles, made and used once, on all cores.

A symmetric matrix is swept by its upper triangle: a tile K_IJ serves both K_IJ V_J and K_IJᵀ V_I, which halves the
evaluations. Tiles are dealt to a number of chunks that depends on the problem and hardly on the machine; each chunk
adds into a buffer of its own in double precision, and the buffers are added in order. So a product is the same from run
to run and, as long as there are no more threads than chunks, for any number of threads.

Cost: n² d flops for the pairing, n² profile evaluations (half of both if symmetric), 2 n² r flops for the product.
Memory: a tile a thread, and n × r doubles a chunk (64 MB in all, or an eighth of the memory limit, unless one chunk a
thread needs more).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.backends.chunks import panel_bytes, row_chunks
from mercer.backends.config import get_config
from mercer.backends.cpu.evaluator import Evaluator
from mercer.backends.threads import run_chunks

Array = np.ndarray[Any, np.dtype[Any]]


_TILE_SIDE = {"float32": 512, "float64": 256}  # a tile and its panels in a second-level cache of a megabyte
_LARGE_SIDE = 768  # with many features the pairing is all the work, and BLAS wants large matrices
_MANY_FEATURES = {"float32": 128, "float64": 32}
_BUFFER_BYTES, _BUFFER_SHARE = 64 * 2**20, 1 / 8  # at most, and of the memory limit
_MOST_CHUNKS = 64
_LOG_ENTRIES = 2**21


def multiply(evaluator: Evaluator, v: Array, *, transpose: bool = False) -> Array:
    """K @ v (or Kᵀ @ v) for an n × r block v, without K."""
    v = np.ascontiguousarray(v, dtype=evaluator.dtype)
    if evaluator.symmetric:
        return _symmetric_product(evaluator, v)
    return _transposed_product(evaluator, v) if transpose else _plain_product(evaluator, v)


def row_sums(evaluator: Evaluator, *, transpose: bool = False) -> Array:
    """K @ 1 (or Kᵀ @ 1) without K."""
    from mercer.backends.cpu.compiled import add_sums

    if not evaluator.symmetric:
        ones = np.ones((evaluator.shape[0 if transpose else 1], 1), evaluator.dtype)
        return multiply(evaluator, ones, transpose=transpose)[:, 0]
    n = evaluator.shape[0]

    def use(total: Array, rows: slice, cols: slice, tile: Array) -> None:
        add_sums(tile, total[rows], total[cols], rows != cols)

    return _sum_over_chunks(evaluator, (n,), use)


def summation_depth(evaluator: Evaluator) -> int:
    """The most roundings that a term of a product goes through: those inside a tile, over tiles and over chunks."""
    side = _side(evaluator)
    return min(evaluator.shape[1], side + -(-evaluator.shape[1] // side) + max(_MOST_CHUNKS, get_config().threads))


def dense(evaluator: Evaluator) -> Array:
    """K itself, filled tile by tile on all cores."""
    n, m = evaluator.shape
    out = np.empty((n, m), evaluator.dtype)
    if evaluator.symmetric:

        def use(_: Array, rows: slice, cols: slice, tile: Array) -> None:
            out[rows, cols] = tile if rows != cols else np.triu(tile) + np.triu(tile, 1).T
            if rows != cols:
                out[cols, rows] = tile.T

        _sum_over_chunks(evaluator, (0,), use)
        return out

    columns = Panels(evaluator)

    def fill(rows: slice) -> None:
        for cols, tile in _tiles_of_row(evaluator, rows, columns):
            out[rows, cols] = tile

    run_chunks(fill, row_chunks(n, _side(evaluator)))
    return out


def block(evaluator: Evaluator, rows: Any, cols: Any, *, log: bool = False) -> Array:
    """Some rows and columns of K (or of log K), given by slices or index arrays.

    Slices of step one are passed on as slices, so that a few columns of many rows are made without gathering the rows;
    tiles are as tall as the block is narrow.
    """
    everything = isinstance(rows, slice) and isinstance(cols, slice) and rows == cols == slice(None)
    if everything and not log:
        return dense(evaluator)
    i, j = (_Selection(n, which) for n, which in zip(evaluator.shape, (rows, cols), strict=True))
    out = np.empty((i.size, j.size), evaluator.dtype)
    side = _side(evaluator)
    height = side * max(1, side // max(1, min(j.size, side)))
    if i.size * j.size > side**2:  # worth waking the other threads for
        height = max(side, min(height, -(-i.size // get_config().threads)))

    def fill(pair: tuple[slice, slice]) -> None:
        tile = np.empty((pair[0].stop - pair[0].start, pair[1].stop - pair[1].start), evaluator.dtype)
        evaluator.fill(i.part(pair[0]), j.part(pair[1]), tile, log=log)
        out[pair] = tile

    run_chunks(fill, [(p, q) for p in row_chunks(i.size, height) for q in row_chunks(j.size, side)])
    return out


class _Selection:
    """Some of n indices: a run of them, or an array."""

    def __init__(self, n: int, which: Any) -> None:
        bounds = which.indices(n) if isinstance(which, slice) else (0, 0, 0)
        self._run = bounds[2] == 1
        self._start = bounds[0]
        self._indices = None if self._run else np.arange(n)[which]
        self.size = max(0, bounds[1] - bounds[0]) if self._indices is None else int(self._indices.size)

    def part(self, which: slice) -> Any:
        """The indices of a part of the selection, as a slice where it is a run."""
        if self._indices is None:
            return slice(self._start + which.start, self._start + which.stop)
        return self._indices[which]


def scaled_product(evaluator: Evaluator, v: Array) -> tuple[Array, Array]:
    """K v = exp(scale) P, row by row; see :meth:`mercer.backends.matrix.KernelMatrix.scaled_product`."""
    n, m = evaluator.shape
    scale, product = np.zeros(n), np.zeros((n, v.shape[1]))
    rows = max(1, min(_LOG_ENTRIES, get_config().share(1 / (8 * 8 * get_config().threads))) // max(1, m))

    def fill(part: slice) -> None:
        logs = evaluator.nonnegative
        P = np.empty((part.stop - part.start, m), evaluator.dtype)
        evaluator.fill(part, slice(0, m), P, log=logs)
        P = P.astype(np.float64, copy=False)
        if logs:
            top = P.max(axis=1, initial=-np.inf)
            top[top == -np.inf] = 0.0
            P -= top[:, None]
            np.exp(P, out=P)
            scale[part] = top
        np.matmul(P, v, out=product[part])

    run_chunks(fill, row_chunks(n, rows))
    return scale, product


def _symmetric_product(evaluator: Evaluator, v: Array) -> Array:
    def use(total: Array, rows: slice, cols: slice, tile: Array) -> None:
        total[rows] += tile @ v[cols]
        if rows != cols:
            total[cols] += (v[rows].T @ tile).T  # in this order BLAS reads the tile along its rows

    return _sum_over_chunks(evaluator, (evaluator.shape[0], v.shape[1]), use)


def _plain_product(evaluator: Evaluator, v: Array) -> Array:
    out = np.empty((evaluator.shape[0], v.shape[1]), evaluator.dtype)
    columns = Panels(evaluator)

    def fill(rows: slice) -> None:
        total = np.zeros((rows.stop - rows.start, v.shape[1]))
        for cols, tile in _tiles_of_row(evaluator, rows, columns):
            total += tile @ v[cols]
        out[rows] = total

    run_chunks(fill, row_chunks(evaluator.shape[0], _side(evaluator)))
    return out


def _transposed_product(evaluator: Evaluator, v: Array) -> Array:
    side = _side(evaluator)
    shape = (evaluator.shape[1], v.shape[1])
    rows = row_chunks(evaluator.shape[0], side)
    columns = Panels(evaluator)

    def add(chunk: list[slice]) -> Array:
        total = np.zeros(shape)
        for row in chunk:
            for cols, tile in _tiles_of_row(evaluator, row, columns):
                total[cols] += (v[row].T @ tile).T
        return total

    return _added(run_chunks(add, _deal(rows, _chunk_count(shape))), shape, evaluator.dtype)


def _tiles_of_row(evaluator: Evaluator, rows: slice, columns: Panels) -> Iterator[tuple[slice, Array]]:
    scratch = np.empty(_side(evaluator) ** 2, evaluator.dtype)
    panel = evaluator.panel("rows", rows)
    for q, cols in enumerate(columns.ranges):
        yield cols, _tile(evaluator, rows, cols, panel, columns[q], scratch)


def _sum_over_chunks(evaluator: Evaluator, shape: tuple[int, ...], use: Callable[..., None]) -> Array:
    """Call use(buffer, rows, cols, tile) for every tile of the upper triangle; return the sum of the buffers."""
    columns = Panels(evaluator)
    ranges = columns.ranges
    pairs = [(p, q) for p in range(len(ranges)) for q in range(p, len(ranges))]

    def sweep(chunk: list[tuple[int, int]]) -> Array:
        total = np.zeros(shape)
        scratch = np.empty(_side(evaluator) ** 2, evaluator.dtype)
        last, panel = -1, None
        for p, q in chunk:
            if p != last:
                last, panel = p, evaluator.panel("rows", ranges[p])
            tile = _tile(evaluator, ranges[p], ranges[q], panel, columns[q], scratch)
            use(total, ranges[p], ranges[q], tile)
        return total

    return _added(run_chunks(sweep, _deal(pairs, _chunk_count(shape))), shape, evaluator.dtype)


def _tile(evaluator: Evaluator, rows: slice, cols: slice, row_panel: Any, col_panel: Any, scratch: Array) -> Array:
    height, width = rows.stop - rows.start, cols.stop - cols.start
    tile = scratch[: height * width].reshape(height, width)
    evaluator.tile(row_panel, col_panel, tile)
    evaluator.set_diagonal(rows, cols, tile)
    return tile


class Panels:
    """The prepared columns of one product: kept where they take little memory, else made again for each tile."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ranges = row_chunks(evaluator.shape[1], _side(evaluator))
        self._evaluator = evaluator
        keep = evaluator.shape[1] * evaluator.n_features * 8 <= panel_bytes()
        self._kept = [evaluator.panel("cols", cols) for cols in self.ranges] if keep else None

    def __getitem__(self, q: int) -> Any:
        """Return the panel of the q-th range of columns."""
        return self._evaluator.panel("cols", self.ranges[q]) if self._kept is None else self._kept[q]


def _side(evaluator: Evaluator) -> int:
    name = evaluator.dtype.name
    return _LARGE_SIDE if evaluator.n_features > _MANY_FEATURES[name] else _TILE_SIDE[name]


def _chunk_count(shape: tuple[int, ...]) -> int:
    affordable = get_config().share(_BUFFER_SHARE, _BUFFER_BYTES) // (8 * max(1, int(np.prod(shape))))
    return max(get_config().threads, min(_MOST_CHUNKS, affordable), 1)


def _deal(items: list[Any], count: int) -> list[list[Any]]:
    """Split items into at most count runs of nearly equal length."""
    count = min(count, len(items))
    bounds = [len(items) * i // count for i in range(count + 1)] if count else [0]
    return [items[a:b] for a, b in pairwise(bounds)]


def _added(parts: list[Array], shape: tuple[int, ...], dtype: Any) -> Array:
    total = parts[0] if parts else np.zeros(shape)
    for part in parts[1:]:
        total += part
    return total.astype(dtype, copy=False)
