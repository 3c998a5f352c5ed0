"""Four rows of entries of a tile, by the steps of a program; compiled functions take their arrays one by one."""

from __future__ import annotations

from numba import njit

from mercer.backends.cpu import rows as r4
from mercer.backends.cpu.native import gemm
from mercer.backends.cpu.steps import (
    ADD,
    COSINE,
    DOT,
    EXPONENTIAL,
    FACTOR,
    INNER,
    LEAF,
    MOST,
    MULTIPLY,
    NORMALISE,
    RAISE,
    SCALE,
)

_N, _T = ord("N"), ord("T")


@njit(nogil=True, cache=True)
def pair_strip(program, rows, row, cols, col, x, yt, start, height, w, g, address):  # type: ignore[no-untyped-def]
    """Inner products of some rows of the tile with all its columns, for every leaf that wants them."""
    n, m, d, side = rows.shape[1], cols.shape[1], rows.shape[2], g.shape[2]
    for leaf in range(program.pairings.size):
        if program.pairings[leaf] in (INNER, DOT, COSINE):
            own = program.widths[leaf]
            if yt.shape[2] != side:  # many features: BLAS reads the points where they lie
                left, right = (leaf * m + col) * d, (leaf * n + row) * d
                gemm(address, _T, _N, w, height, own, cols, left, d, rows, right, d, g, leaf * g.shape[1] * side, side)
            elif g.shape[1] > r4.BLOCK:  # without a transpose OpenBLAS has quicker ways for small matrices
                left, right = leaf * d * side, (leaf * x.shape[1] + start) * d
                gemm(address, _N, _N, w, height, own, yt, left, side, x, right, d, g, leaf * g.shape[1] * side, side)
            else:
                r4.inner_products(x[leaf], start, yt[leaf], own, w, height, g[leaf])


@njit(nogil=True, cache=True)
def gaussian_block(program, x, row_norms, yt, col_norms, g, i, strip, w, logs, out):  # type: ignore[no-untyped-def]
    """out = exp(-t) for t a squared distance, by inner products or by differences; or -t if logs."""
    count = out.shape[0]
    if program.pairings[0] != INNER:
        factor, most = type(out[0, 0])(program.numbers[0, FACTOR]), type(out[0, 0])(program.numbers[0, MOST])
        r4.squared_differences(x[0], i, yt[0], program.widths[0], w, count, factor, most, out)
        r4.exponential(out, w, count, logs)
    elif not logs:
        r4.exponential_of_products(g[0, i % strip :], w, count, row_norms[0], i, col_norms[0], out)
    else:
        r4.distances_of_products(g[0, i % strip :], w, count, row_norms[0], i, col_norms[0], out)
        r4.exponential(out, w, count, logs)


@njit(nogil=True, cache=True)
def any_block(  # type: ignore[no-untyped-def]
    program, x, row_norms, yt, col_norms, g, row_scales, col_scales, i, strip, w, count, stack
):
    """Four rows of entries, or of their logarithms, in stack[0]."""
    top = 0
    for s in range(program.steps.shape[0]):
        step, argument, in_log = program.steps[s, 0], program.steps[s, 1], program.steps[s, 2] != 0
        if step == LEAF:
            numbers, profile = program.numbers[argument], program.profiles[argument]
            if program.pairings[argument] == INNER and profile == EXPONENTIAL and not in_log:
                r4.exponential_of_products(
                    g[argument, i % strip :], w, count, row_norms[argument], i, col_norms[argument], stack[top]
                )
            else:
                if program.pairings[argument] == INNER:
                    r4.distances_of_products(
                        g[argument, i % strip :], w, count, row_norms[argument], i, col_norms[argument], stack[top]
                    )
                elif program.pairings[argument] in (DOT, COSINE):
                    r4.copied(g[argument, i % strip :], w, count, stack[top])
                else:
                    pairing, own = program.pairings[argument], program.widths[argument]
                    left, right = x[argument], yt[argument]
                    r4.differences(
                        pairing, left, i, right, own, w, count, numbers, program.weights, argument, stack[top]
                    )
                r4.apply_profile(profile, numbers, in_log, w, count, stack[top])
            top += 1
        elif step == ADD:
            top -= 1
            r4.add(stack[top - 1], stack[top], w, count, in_log)
        elif step == MULTIPLY:
            top -= 1
            r4.multiply(stack[top - 1], stack[top], w, count, in_log)
        elif step == SCALE:
            r4.scale(stack[top - 1], w, count, program.values[s], in_log)
        elif step == RAISE:
            r4.raise_to(stack[top - 1], w, count, program.values[s], in_log)
        elif step == NORMALISE:
            r4.normalise(stack[top - 1], w, count, row_scales[argument], i, col_scales[argument], in_log)
        else:
            r4.logarithm(stack[top - 1], w, count)
