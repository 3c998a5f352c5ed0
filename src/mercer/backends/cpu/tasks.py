"""Compiled sweeps on our threads: how a matrix is cut into tasks, and who does them.

How it is cut depends on the matrix and the columns alone, so that a product is the same to the last bit for any number
of threads. A call of a sweep lasts some milliseconds, in which no thread needs the interpreter; between calls a thread
reports progress and sees whether the caller was interrupted.

Cost: n² d flops for the pairing, n² profile evaluations (half of both if symmetric), 2 n² r flops for the product.
Memory: a few tiles a thread, and n × r doubles; for matrices of few rows and many columns up to 16 MB more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import TALL_ROWS, panel_rows, row_chunks
from mercer.backends.cpu import panels, sweeps
from mercer.backends.cpu.native import gemm_address, yield_address
from mercer.backends.cpu.program import Compiled
from mercer.backends.cpu.rows import BLOCK
from mercer.backends.threads import run_chunks, run_workers, unwatched

SIDES = {"float32": 512, "float64": 256}  # a tile and its panels in a second-level cache of half a megabyte
_SIDES_OF_MANY = {"float32": 736, "float64": 480}  # with many features pairing is all the work, and BLAS packs less
_PANELS = 40  # at least so many, where tiles are not too low for that: then hardly a thread of sixteen waits for one
_LOWEST_SIDES, _LOWEST_MANY = {"float32": 256, "float64": 64}, 192  # of tiles, and with many features
_TASKS, _LOWEST_TASK = 48, 16  # tasks of a product by rows, at least, and rows of one
_CHUNK_BYTES = 16 * 2**20  # for sums over chunks of columns, where rows alone are too few tasks
_LOOPS_UP_TO = 8  # features: beyond, BLAS pairs faster than loops of ours
_STRIP, _MANY_FEATURES = 64, 48  # rows that BLAS pairs at a time; with many features the whole tile, packed once
_FUSED_UP_TO = 16  # columns: beyond, BLAS multiplies a tile faster than loops that make it
_ENTRIES_A_CALL = 2**23
_KEPT_BYTES, _KEPT_SHARE = 512 * 2**20, 1 / 4  # for prepared points: at most, and of the memory limit
_FEWEST_POINTS = 1024  # prepared at a time, whatever the limit
_REMEMBERED_BYTES = 2**25  # of prepared points that stay from one product to the next
_FEW_NUMBERS = 2**18  # of prepared points: not worth asking how much memory there is
_SMALL = _FILLED = 2**15  # entries that one thread makes before another is awake, and a task at least


def longest_sum(longest: int, d: int, dtype: np.dtype[Any], symmetric: bool) -> int:
    """The most roundings that a term of a product goes through: in a tile, over tiles, chunks and runs of points."""
    side = (_SIDES_OF_MANY if d >= _MANY_FEATURES else SIDES)[dtype.name]
    least = side_of(longest, d, dtype) if symmetric else SIDES[dtype.name]
    return side + -(-longest // min(side, least)) + _TASKS + -(-longest // _FEWEST_POINTS)


def side_of(n: int, d: int, dtype: np.dtype[Any]) -> int:
    """The side of the tiles of n points."""
    many = d >= _MANY_FEATURES
    most = (_SIDES_OF_MANY if many else SIDES)[dtype.name]
    least = _LOWEST_MANY if many else _LOWEST_SIDES[dtype.name]
    return int(min(most, max(least, -(-n // (16 * _PANELS)) * 16)))


def height_of(n: int, d: int, dtype: np.dtype[Any]) -> int:
    """The rows of a task of a product by rows."""
    least = _LOWEST_MANY if d >= _MANY_FEATURES and n >= 4 * _LOWEST_MANY else _LOWEST_TASK
    return int(min(SIDES[dtype.name], max(least, -(-n // (4 * _TASKS)) * 4)))


def tournament(panels: int) -> int:
    """How many tasks a tournament of so many panels has, those without a second panel counted."""
    players = panels + panels % 2
    return panels + (players - 1) * (players // 2) if panels > 1 else panels


def symmetric_product(compiled: Compiled, v: Array) -> Array:
    """K v by the upper triangle."""
    n, v = v.shape[0], _columns(v)
    runs = _runs(compiled)
    if len(runs[0]) == 1:
        side = side_of(n, compiled.n_features, compiled.work)
        out = np.zeros((1, n, v.shape[1]))
        sizes = _sizes(compiled, side, side, side, v.shape[1] <= _FUSED_UP_TO)
        _run(sweeps.SYMMETRIC, compiled, v, out, sizes)
        return out[0]
    total = np.zeros((n, v.shape[1]))
    for place, first in enumerate(runs[0]):  # points do not fit at once: some with some others, both ways
        total[first] += symmetric_product(_part(compiled, first, first), v[first])
        for second in runs[0][place + 1 :]:
            down, across = both_products(_part(compiled, first, second), v[first], v[second])
            total[first] += down
            total[second] += across
    return total


def both_products(compiled: Compiled, v_rows: Array, v_cols: Array) -> tuple[Array, Array]:
    """K v for columns of v and Kᵀ v for rows of it, every entry made once."""
    down, across = np.zeros(v_rows.shape), np.zeros(v_cols.shape)
    for first, second, part in _parts(compiled):
        height, width = first.stop - first.start, second.stop - second.start
        v, out = np.concatenate([v_rows[first], v_cols[second]]), np.zeros((1, height + width, v_rows.shape[1]))
        side = SIDES[compiled.work.name]
        _run(sweeps.BOTH_WAYS, part, _columns(v), out, _sizes(part, side, side, side, v.shape[1] <= _FUSED_UP_TO))
        down[first] += out[0, :height]
        across[second] += out[0, height:]
    return down, across


def product(compiled: Compiled, v: Array, *, transpose: bool = False) -> Array:
    """K v (or Kᵀ v) by rows."""
    compiled = _transposed(compiled) if transpose else compiled
    v = _columns(v)
    total = np.zeros((compiled.points[0].shape[0], v.shape[1]))
    for first, second, part in _parts(compiled):
        sizes, chunks = _cut(part, v.shape[1], v.shape[1] <= _FUSED_UP_TO)
        out = np.zeros((chunks, first.stop - first.start, v.shape[1]))
        _run(sweeps.PRODUCT, part, v[second], out, sizes)
        for chunk in out:
            total[first] += chunk
    return total


def scaled_product(compiled: Compiled, v: Array) -> tuple[Array, Array]:
    """K v = exp(s) P by rows; the program makes logarithms."""
    n, v = compiled.points[0].shape[0], _columns(v)
    top, total = np.full(n, -np.inf), np.zeros((n, v.shape[1]))
    for first, second, part in _parts(compiled):
        sizes, chunks = _cut(part, v.shape[1], False)
        out = np.zeros((chunks, first.stop - first.start, v.shape[1]))
        scales = np.full(out.shape[:2], -np.inf)
        _run(sweeps.SCALED, part, v[second], out, sizes, scales=scales)
        for chunk, scale in zip(out, scales, strict=True):
            add_scaled(top[first], total[first], scale, chunk)
    top[top == -np.inf] = 0.0  # no positive entry at all: the product is zero
    return top, total


def add_scaled(top: Array, total: Array, scale: Array, part: Array) -> None:
    """Add exp(scale) part to exp(top) total, row by row, in place."""
    high = np.maximum(top, scale)
    safe = np.where(high > -np.inf, high, 0.0)
    total *= np.exp(top - safe)[:, None]
    total += np.exp(scale - safe)[:, None] * part
    top[:] = high


def add_scaled_product(top: Array, total: Array, scale: Array, part: Array) -> None:
    """The same of what :meth:`mercer.backends.matrix.KernelMatrix.scaled_product` gives: zeros have no scale."""
    add_scaled(top, total, np.where((part != 0).any(axis=1), scale, -np.inf), part)


def fill(compiled: Compiled, rows: Any, cols: Any, out: Array, *, log: bool = False) -> None:
    """Entries of some rows and columns, slices or index arrays, into out."""
    for first, second, part in _parts(_part(compiled, rows, cols)):
        height, width = first.stop - first.start, second.stop - second.start
        side = min(SIDES[compiled.work.name], max(BLOCK, width))
        tall = max(height_of(height, compiled.n_features, compiled.work), _FILLED // side // BLOCK * BLOCK)
        sizes = _sizes(part, side, tall, side, False)
        _run(sweeps.FILL, part, np.empty((0, 0)), out[None, first, second], sizes, log=log)


def fill_symmetric(compiled: Compiled, out: Array) -> None:
    """All entries of a symmetric matrix, each pair made once."""
    side = side_of(out.shape[0], compiled.n_features, compiled.work)
    sizes = _sizes(compiled, side, side, side, False)
    _run(sweeps.FILL_SYMMETRIC, compiled, np.empty((0, 0)), out[None], sizes)


def _columns(v: Array) -> Array:
    """The columns in double precision, whatever that of the entries: loops are compiled for one kind of columns.

    What cannot be written to is another kind too, and copied.
    """
    v = np.ascontiguousarray(v, np.float64)
    return v if v.flags.writeable else v.copy()


def _runs(compiled: Compiled) -> tuple[list[slice], list[slice]]:
    """Rows and columns whose prepared points are kept at the same time: all of them, where memory allows."""
    width = compiled.program.pairings.size * (compiled.n_features + 1)
    n, m = (points.shape[0] for points in compiled.points)
    if (n + m) * width <= _FEW_NUMBERS:
        return [slice(0, n)], [slice(0, m)]
    copies = 1 if compiled.points[0] is compiled.points[1] else 2
    fitting = panel_rows(copies * width, compiled.work.itemsize, most=_KEPT_BYTES, share=_KEPT_SHARE)
    most = max(_FEWEST_POINTS, fitting)
    rows, cols = (row_chunks(points.shape[0], most) or [slice(0, 0)] for points in compiled.points)
    return rows, cols


def _parts(compiled: Compiled) -> Iterator[tuple[slice, slice, Compiled]]:
    """Runs of rows and columns, and the program of each pair of them."""
    rows, cols = _runs(compiled)
    for first in rows:
        for second in cols:
            yield first, second, _part(compiled, first, second)


def _part(compiled: Compiled, rows: Any, cols: Any) -> Compiled:
    """Some rows and columns; the diagonal goes with a symmetric part of a symmetric matrix alone."""
    program, points = compiled.program, compiled.points
    runs = isinstance(rows, slice) and isinstance(cols, slice)
    if runs and all(run == slice(0, len(side)) for run, side in zip((rows, cols), points, strict=True)):
        return compiled
    symmetric = runs and rows == cols and points[0] is points[1]
    left = points[0][rows]
    some = program._replace(
        diagonal=program.diagonal[rows] if symmetric else program.diagonal[:0],
        row_scales=np.ascontiguousarray(program.row_scales[:, rows]),
        col_scales=np.ascontiguousarray(program.col_scales[:, cols]),
    )
    kept = {} if symmetric else _kept_sides(compiled, rows, cols)
    return Compiled(some, (left, left if symmetric else points[1][cols]), compiled.work, kept)


def _kept_sides(compiled: Compiled, rows: Any, cols: Any) -> dict[str, Any]:
    """Points that are made ready already, for a part that has all rows, or all columns, of a small symmetric matrix.

    Few columns of such a matrix are asked for again and again, and making all points ready costs more than they do.
    """
    points = compiled.points
    whole = [isinstance(run, slice) and run == slice(0, len(points[0])) for run in (rows, cols)]
    size = compiled.program.pairings.size * len(points[0]) * compiled.n_features * compiled.work.itemsize
    if points[0] is not points[1] or not any(whole) or size > _REMEMBERED_BYTES:
        return {}
    both = _both_prepared(compiled)
    return {name: side for name, side, all_of_it in zip(("rows", "cols"), both, whole, strict=True) if all_of_it}


def _transposed(compiled: Compiled) -> Compiled:
    program = compiled.program
    turned = program._replace(row_scales=program.col_scales, col_scales=program.row_scales)
    return Compiled(turned, compiled.points[::-1], compiled.work, {})


def _cut(compiled: Compiled, r: int, fused: bool) -> tuple[sweeps.Sizes, int]:
    """Sizes of a product by rows, and how many chunks of columns it is summed over."""
    n, m = (points.shape[0] for points in compiled.points)
    side = SIDES[compiled.work.name]
    lanes = max(1, -(-m // side))
    possible = max(1, min(lanes, _CHUNK_BYTES // (8 * max(1, n * r))))
    height = height_of(n * possible, compiled.n_features, compiled.work)  # low tasks only where columns give too few
    strips = max(1, -(-n // height))
    chunks = max(1, min(-(-_TASKS // strips), possible))
    width = -(-lanes // chunks) * side
    return _sizes(compiled, side, height, width, fused), max(1, -(-m // width))


def _sizes(compiled: Compiled, side: int, height: int, width: int, fused: bool) -> sweeps.Sizes:
    d = compiled.n_features
    strip = BLOCK
    if d > _LOOPS_UP_TO and compiled.program.any_products:
        strip = _STRIP if d < _MANY_FEATURES else max(-(-side // BLOCK), -(-height // BLOCK)) * BLOCK
    return sweeps.Sizes(side, strip, height, width, fused)


def _both_prepared(compiled: Compiled) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Points of rows and columns made ready; those of a small matrix are kept for its next product."""
    if "points" in compiled.kept:
        return compiled.kept["points"]
    rows = compiled.kept.get("rows") or _prepared(compiled, compiled.points[0])
    same = compiled.points[1] is compiled.points[0]
    cols = rows if same else compiled.kept.get("cols") or _prepared(compiled, compiled.points[1])
    if rows[0].nbytes + (0 if same else cols[0].nbytes) <= _REMEMBERED_BYTES:
        compiled.kept["points"] = rows, cols
    return rows, cols


def _prepared(compiled: Compiled, points: Array) -> tuple[Array, Array]:
    """Points made ready for every leaf, and their squared norms."""
    leaves, work = compiled.program.pairings.size, compiled.work
    out = np.empty((leaves, points.shape[0], compiled.n_features), work)
    norms = np.empty((leaves, points.shape[0]), work)

    def fill(part: slice) -> None:
        panels.prepare(compiled.program, points, part.start, part.stop, out, norms)

    if points.shape[0] <= TALL_ROWS:
        fill(slice(0, points.shape[0]))
    else:
        with unwatched():
            run_chunks(fill, row_chunks(points.shape[0], TALL_ROWS))
    return out, norms


def _run(
    mode: int,
    compiled: Compiled,
    v: Array,
    out: Array,
    sizes: sweeps.Sizes,
    *,
    scales: Array | None = None,
    log: bool = False,
) -> None:
    """Let the threads do the tasks of a sweep."""
    n, m = (points.shape[0] for points in compiled.points)
    meeting, strips = -(-n // sizes.side), -(-n // sizes.height)
    players = max(meeting, -(-m // sizes.side))
    if mode in (sweeps.SYMMETRIC, sweeps.FILL_SYMMETRIC):
        tasks, entries = tournament(meeting), sizes.side**2
    elif mode == sweeps.BOTH_WAYS:
        tasks, entries = players**2, sizes.side**2
    elif mode == sweeps.FILL:
        tasks, entries = strips * -(-m // sizes.side), sizes.height * sizes.side
    else:
        tasks, entries = strips * out.shape[0], sizes.height * min(m, sizes.width)
    program = compiled.program
    rows, cols = _both_prepared(compiled)
    counters = np.zeros(1, np.int64), np.zeros(2 * players, np.int64)
    addresses = gemm_address(compiled.work.name), yield_address()
    scales = np.empty((0, 0)) if scales is None else scales
    log = log or mode == sweeps.SCALED
    general = None if program.is_gaussian else 1

    def some(most: int) -> int:
        return int(
            sweeps.sweep(
                mode, log, general, program, rows, cols, v, sizes, tasks, most, counters, addresses, scales, out
            )
        )

    blas = sizes.strip > BLOCK or (mode in (sweeps.SYMMETRIC, sweeps.PRODUCT, sweeps.BOTH_WAYS) and not sizes.fused)
    threads = tasks if tasks * entries > _SMALL else 1
    run_workers(some, tasks, most=max(1, _ENTRIES_A_CALL // max(1, entries)), workers=threads, blas=blas)
