"""Whole sweeps over the tiles of a kernel matrix, compiled, that never take the interpreter's lock.

Several threads call :func:`sweep` at once and take tasks from a counter they share until none is left; a task is a tile
or a run of tiles. Pairing, profile and product with the columns happen four rows at a time in the first-level cache
(:mod:`mercer.backends.cpu.rows`); tiles are added up in double precision.

A symmetric matrix is swept by its upper triangle: a tile K_IJ serves both K_IJ V_J and K_IJᵀ V_I. Tiles are played like
a tournament: in every round each panel of points meets one other panel, so that no two tasks of a round add to the same
rows, and a task waits until both its panels have finished the round before. So every row adds up the same numbers in
the same order whatever the number of threads, and no thread needs a sum of its own. A task's panels were busy half a
round of tasks ago: with more panels than twice the threads no thread waits.

Views of arrays that threads share are made once a task and not inside loops: they touch reference counters, for which
threads would queue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mercer.backends.cpu.blocks import any_block, gaussian_block, pair_strip
from mercer.backends.cpu.exponential import exp_negative
from mercer.backends.cpu.native import atomic_add, atomic_read, gemm, let_others_run
from mercer.backends.cpu.panels import load, load_scales, transpose
from mercer.backends.cpu.row_sums import add_columns, add_rows
from mercer.backends.cpu.rows import BLOCK

SYMMETRIC, PRODUCT, SCALED, FILL, FILL_SYMMETRIC, BOTH_WAYS = range(6)  # what a sweep does
_PATIENCE = 2000  # looks at a busy panel before other threads may run
_N, _T = ord("N"), ord("T")


class Sizes(NamedTuple):
    """How the matrix is cut.

    Attributes
    ----------
    side : int
        Rows and columns of a tile.
    strip : int
        Rows of a tile that BLAS pairs at a time; four where pairings are loops of ours.
    height : int
        Rows of a task of a product.
    width : int
        Columns of a task of a product.
    fused : bool
        Whether the product with the columns is made four rows at a time, or by BLAS.
    """

    side: int
    strip: int
    height: int
    width: int
    fused: bool


@njit(nogil=True, cache=True)
def pairing_of(task, panels):  # type: ignore[no-untyped-def]
    """The round of a task of the tournament, and the two panels that meet; a panel may meet none (the last plus one).

    Round 0 is each panel with itself; then the circle method: one place stays, the others turn.
    """
    if task < panels:
        return 0, task, task
    players = panels + panels % 2
    half = players // 2
    turn, place = (task - panels) // half, (task - panels) % half
    first = (turn + place) % (players - 1)
    second = players - 1 if place == 0 else (turn - place) % (players - 1)
    return turn + 1, min(first, second), max(first, second)


@njit(nogil=True, cache=True)
def match_of(task, players):  # type: ignore[no-untyped-def]
    """The round of a task between two teams of as many players, and who meets whom; a team may lack its last ones."""
    turn, first = task // players, task % players
    return turn, first, (first + turn) % players


@njit(nogil=True, cache=True)
def _wait(progress, panel, turn, yield_address):  # type: ignore[no-untyped-def]
    looks = 0
    while atomic_read(progress, panel) < turn:
        looks += 1
        if looks > _PATIENCE and yield_address:
            let_others_run(yield_address)


@njit(nogil=True, cache=True)
def _wait_for_panels(mode, first, second, turn, panels, players, progress, yield_address):  # type: ignore[no-untyped-def]
    """Until both panels of a task have finished the round before."""
    if mode in (BOTH_WAYS, SYMMETRIC):
        _wait(progress, first, turn, yield_address)
    if mode == BOTH_WAYS:
        _wait(progress, players + second, turn, yield_address)
    elif mode == SYMMETRIC and second < panels:
        _wait(progress, second, turn, yield_address)


@njit(nogil=True, cache=True)
def _finish(mode, first, second, panels, players, progress):  # type: ignore[no-untyped-def]
    """Say that the panels of a task have finished its round."""
    if mode in (BOTH_WAYS, SYMMETRIC):
        atomic_add(progress, first, 1)
    if mode == BOTH_WAYS:
        atomic_add(progress, players + second, 1)
    elif mode == SYMMETRIC and first != second and second < panels:
        atomic_add(progress, second, 1)


@njit(nogil=True, cache=True)
def _task_of(mode, task, n, m, panels, players, sizes):  # type: ignore[no-untyped-def]
    """The round and the panels of a task; its chunk, first row and rows, and its first and last column."""
    side = sizes.side
    if mode in (SYMMETRIC, FILL_SYMMETRIC):
        turn, first, second = pairing_of(task, panels)
        start = second * side
    elif mode == BOTH_WAYS:
        turn, first, second = match_of(task, players)
        start = second * side if first * side < n else m
    else:
        chunk, lo, h, start, stop = _rectangle(mode, task, n, m, sizes)
        return 0, 0, 0, chunk, lo, h, start, stop
    lo = first * side
    return turn, first, second, 0, lo, min(side, n - lo), start, min(start + side, m)


@njit(nogil=True, cache=True)
def _rectangle(mode, task, n, m, sizes):  # type: ignore[no-untyped-def]
    """The chunk, the first row, the rows, the first and the last column of a task that is not in a tournament."""
    side, height = sizes.side, sizes.height
    if mode == FILL:
        lanes = (m + side - 1) // side
        lo, start = task // lanes * height, task % lanes * side
        return 0, lo, min(height, n - lo), start, min(start + side, m)
    strips = (n + height - 1) // height
    chunk, lo = task // strips, task % strips * height
    start = chunk * sizes.width
    return chunk, lo, min(height, n - lo), start, min(start + sizes.width, m)


@njit(nogil=True, cache=True)
def _load_v(v, lo, h, rows):  # type: ignore[no-untyped-def]
    """Rows of v as they are, and zeros up to a multiple of four."""
    for i in range((h + BLOCK - 1) // BLOCK * BLOCK):
        for c in range(v.shape[1]):
            rows[i, c] = v[lo + i, c] if i < h else 0


@njit(nogil=True, cache=True)
def _load_vt(v, lo, w, cols):  # type: ignore[no-untyped-def]
    """Rows of v transposed."""
    for j in range(w):
        for c in range(v.shape[1]):
            cols[c, j] = v[lo + j, c]


@njit(nogil=True, cache=True)
def _set_diagonal(diagonal, row, height, col, w, logs, e):  # type: ignore[no-untyped-def]
    """The exact diagonal in four rows of entries; where it underflows, the logarithm that was found stays."""
    for at in range(max(row, col), min(row + min(BLOCK, height), col + w, diagonal.size)):
        if not logs:
            e[at - row, at - col] = diagonal[at]
        elif diagonal[at] > 0:
            e[at - row, at - col] = np.log(diagonal[at])


@njit(nogil=True, cache=True)
def _add_to(out, lo, h, total):  # type: ignore[no-untyped-def]
    for i in range(h):
        for c in range(total.shape[1]):
            out[lo + i, c] += total[i, c]


@njit(nogil=True, cache=True)
def _add_transposed_to(out, lo, w, total):  # type: ignore[no-untyped-def]
    for j in range(w):
        for c in range(total.shape[0]):
            out[lo + j, c] += total[c, j]


@njit(nogil=True, cache=True, fastmath={"contract"})
def _exponentials(tile, i, w, least, p):  # type: ignore[no-untyped-def]
    """p = exp(row - top) with top the largest of the row, or ``least`` if that is larger; returns top."""
    top = least
    for j in range(w):
        top = max(top, np.float64(tile[i, j]))
    if top > -np.inf:
        for j in range(w):
            p[j] = exp_negative(top - np.float64(tile[i, j]))
    return top


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _weighted_sum(p, w, vt, c):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(w):
        total += p[j] * vt[c, j]
    return total


@njit(nogil=True, cache=True)
def _add_scaled(tile, lo, h, w, vt, p, scales, out):  # type: ignore[no-untyped-def]
    """Add exp(tile) v to exp(scales) out: a row is rescaled whenever a larger entry turns up."""
    for i in range(h):
        top = _exponentials(tile, i, w, scales[lo + i], p)
        if top > scales[lo + i]:
            factor = np.exp(scales[lo + i] - top)
            scales[lo + i] = top
            for c in range(vt.shape[0]):
                out[lo + i, c] *= factor
        if top > -np.inf:
            for c in range(vt.shape[0]):
                out[lo + i, c] += _weighted_sum(p, w, vt, c)


@njit(nogil=True, cache=True)
def _put(e, height, w, row, col, out):  # type: ignore[no-untyped-def]
    """Some of four rows of entries into out."""
    for b in range(height):
        for j in range(w):
            out[row + b, col + j] = e[b, j]


@njit(nogil=True, cache=True)
def _write(tile, lo, h, col, w, out):  # type: ignore[no-untyped-def]
    """A tile of entries of a symmetric matrix into out, and its transpose across the diagonal."""
    for i in range(h):
        for j in range(w):
            if col != lo or j >= i:
                out[lo + i, col + j] = tile[i, j]
    for j in range(w):
        for i in range(h):
            if col != lo or j >= i:
                out[col + j, lo + i] = tile[i, j]


@njit(nogil=True, cache=True)
def _clear_below(e, height, w):  # type: ignore[no-untyped-def]
    """Zeros in those of four rows that are beyond the last one."""
    for b in range(height, BLOCK):
        for j in range(w):
            e[b, j] = 0


@njit(nogil=True, cache=True)
def _keep(e, w, i, tile):  # type: ignore[no-untyped-def]
    """Four rows of entries as rows of a tile."""
    for b in range(BLOCK):
        for j in range(w):
            tile[i + b, j] = e[b, j]


@njit(nogil=True, cache=True)
def _add_products(  # type: ignore[no-untyped-def]
    fused, both, tile, lo, h, col, w, v_rows, vt, total, total_t, part, blas, out, chunk
):
    """Add what a tile makes of the columns, and for the other side; where it is not made yet, by BLAS and by rows."""
    r, side = vt.shape
    if not fused:  # total = tile vtᵀ and part = tileᵀ v_rows
        gemm(blas, _T, _N, r, h, w, vt, 0, side, tile, 0, side, total, 0, r)
    _add_to(out[chunk], lo, h, total)
    if both and fused:
        _add_transposed_to(out[0], col, w, total_t)
    elif both:
        gemm(blas, _N, _T, r, w, h, v_rows, 0, r, tile, 0, side, part, 0, r)
        _add_to(out[0], col, w, part)


@njit(nogil=True, cache=True)
def _padded(sizes):  # type: ignore[no-untyped-def]
    return (max(sizes.side, sizes.height) + BLOCK - 1) // BLOCK * BLOCK


@njit(nogil=True, cache=True)
def _points_at_work(program, rows, sizes, turned):  # type: ignore[no-untyped-def]
    """Room for prepared rows and columns with their norms, columns transposed, scales, pairings and steps."""
    leaves, _, d = rows[0].shape
    side, padded, real = sizes.side, _padded(sizes), rows[0].dtype
    normalised = program.row_scales.shape[0]
    x, row_norms = np.zeros((leaves, padded if turned else 1, d), real), np.zeros((leaves, padded), real)
    y, col_norms = np.zeros((leaves, side if turned else 1, d), real), np.zeros((leaves, side), real)
    yt = np.zeros((leaves, d, side if turned else 1), real)
    row_scales, col_scales = np.zeros((normalised, padded), real), np.zeros((normalised, side), real)
    g, stack = np.empty((leaves, sizes.strip, side), real), np.zeros((program.depth, BLOCK, side), real)
    return x, row_norms, y, col_norms, yt, row_scales, col_scales, g, stack


@njit(nogil=True, cache=True)
def _columns_at_work(mode, rows, r, sizes):  # type: ignore[no-untyped-def]
    """Room for columns on either side, in both precisions, for sums, for a tile where BLAS multiplies, for a row."""
    side, padded, real = sizes.side, _padded(sizes), rows[0].dtype
    v_rows, vt, vt_double = np.zeros((padded, r), real), np.zeros((r, side), real), np.zeros((r, side))
    total, total_t = np.zeros((padded, r), real), np.zeros((r, side), real)
    tile = np.zeros((padded if not sizes.fused and mode != FILL else 1, side), real)
    part, p = np.zeros((side if not sizes.fused else 1, r), real), np.zeros(side)
    return v_rows, vt, vt_double, total, total_t, tile, part, p


@njit(nogil=True, cache=True)
def sweep(  # type: ignore[no-untyped-def]
    mode, logs, general, program, rows, cols, v, sizes, tasks, most, counters, addresses, scales, out
):
    """Take up to ``most`` tasks from the counter and do them; returns how many were done.

    What fills a tile stands here and not in functions of its own, because every compiled function is optimised again
    inside each that calls it: cut into the tasks it consists of, it took a minute to compile instead of ten seconds.

    Parameters
    ----------
    mode : int
        SYMMETRIC: K v by the upper triangle. PRODUCT: K v by rows. SCALED: exp(-scales) K v by rows. FILL,
        FILL_SYMMETRIC: entries. BOTH_WAYS: K v and Kᵀ v, those of the rows above those of the columns in v and in out.
    logs : bool
        Whether the program makes logarithms of entries.
    general : int or None
        None for exp(-t) of a squared distance, so that only what that needs is compiled.
    program : Program
        What an entry is.
    rows, cols : pairs of arrays of shape (l, n, d) and (l, n), and of (l, m, d) and (l, m)
        The points prepared for every leaf, and their squared norms.
    v : array of shape (m, r)
        The columns.
    sizes : Sizes
        How the matrix is cut.
    tasks, most : int
        Tasks in all, and how many at most to do before returning.
    counters : pair of arrays of int
        Shared: of tasks taken, and of rounds that each panel has finished.
    addresses : pair of int
        Of the matrix product of BLAS, and of the function that lets others run.
    scales : array of shape (chunks, n)
        Of SCALED: the logarithms of the scales, minus infinity at first.
    out : array of shape (chunks, n, r), or of the shape of the entries with a leading one
        What is added to, or filled.
    """
    control, progress = counters
    blas, yield_address = addresses
    n, m, r = rows[0].shape[1], cols[0].shape[1], v.shape[1]
    side, strip, panels = sizes.side, sizes.strip, (n + sizes.side - 1) // sizes.side
    players, below = max(panels, (m + side - 1) // side), n if mode == BOTH_WAYS else 0
    turned = strip == BLOCK or strip < side or not program.by_products
    x, row_norms, y, col_norms, yt, row_scales, col_scales, g, stack = _points_at_work(program, rows, sizes, turned)
    v_rows, vt, vt_double, total, total_t, tile, part, p = _columns_at_work(mode, rows, r, sizes)
    e = stack[0]
    for done in range(most):
        task = atomic_add(control, 0, 1)
        if task >= tasks:
            return done
        turn, first, second, chunk, lo, h, start, stop = _task_of(mode, task, n, m, panels, players, sizes)
        both = mode == BOTH_WAYS or (mode == SYMMETRIC and first != second)
        _wait_for_panels(mode, first, second, turn, panels, players, progress, yield_address)
        if start < m:
            load(rows[0], rows[1], lo, h, x, row_norms, turned)
            load_scales(program.row_scales, lo, h, row_scales)
            if both:
                _load_v(v, lo, h, v_rows)
        for col in range(start, stop, side):
            w, at = min(side, stop - col), below + col
            load(cols[0], cols[1], col, w, y, col_norms, turned)
            load_scales(program.col_scales, col, w, col_scales)
            if turned:
                transpose(y, w, yt)
            if mode == SCALED:
                _load_vt(v, col, w, vt_double)
            else:
                _load_vt(v, at, w, vt)
            total[:] = 0
            total_t[:] = 0
            for i in range(0, h, BLOCK):
                if i % strip == 0:
                    pair_strip(program, rows[0], lo + i, cols[0], col, x, yt, i, min(strip, h - i), w, g, blas)
                if general is None:
                    gaussian_block(program, x, row_norms, yt, col_norms, g, i, strip, w, logs, e)
                else:
                    any_block(
                        program, x, row_norms, yt, col_norms, g, row_scales, col_scales, i, strip, w, BLOCK, stack
                    )
                _set_diagonal(program.diagonal, lo + i, h - i, col, w, logs, e)
                _clear_below(e, h - i, w)
                if sizes.fused:
                    add_rows(e, w, vt, i, total)
                    if both:
                        add_columns(e, w, v_rows, i, total_t)
                elif mode == FILL:
                    _put(e, min(BLOCK, h - i), w, lo + i, col, out[0])
                else:
                    _keep(e, w, i, tile)
            if mode == SCALED:
                _add_scaled(tile, lo, h, w, vt_double, p, scales[chunk], out[chunk])
            elif mode == FILL_SYMMETRIC:
                _write(tile, lo, h, col, w, out[0])
            elif mode != FILL:
                _add_products(sizes.fused, both, tile, lo, h, at, w, v_rows, vt, total, total_t, part, blas, out, chunk)
        _finish(mode, first, second, panels, players, progress)
    return most
