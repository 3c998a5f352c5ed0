"""Statistics of all cyclic shifts of one variable against another, by fast Fourier transforms of diagonals.

For symmetric n × n matrices A and B, of which B has its rows and columns moved on in a circle,

    T(s) = Σᵢⱼ aᵢⱼ b_{i+s,j+s} = Σ_d Σᵢ a_{i,i+d} b_{i+s,i+s+d}

is a sum over diagonals of circular cross-correlations. One transform of each diagonal gives T for all n shifts at
once: O(n² log n) instead of O(n³), with every entry of A and B made once and a panel of diagonals in memory. A diagonal
and its mirror image have the same part in the sum, so half of them are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import fft

from mercer.backends.arrays import Array
from mercer.backends.chunks import panel_bytes, row_chunks
from mercer.backends.rounding import UNIT
from mercer.backends.threads import run_chunks
from mercer.dependence.centred_gram import CentredGram
from mercer.journal import entry

_PANEL_BYTES, _PANEL_SHARE = 2**28, 1 / 8  # of all diagonals and their transforms at a time
_TRANSFORM = 10  # roundings of a term for each of the log₂ n steps of a transform, with room to spare
_TRANSFORMED = 2**18  # entries in one call
_FREQUENCIES = 4096  # of which products are summed in one call
_LEAST_ROWS = 64  # of a block from which diagonals are read
_IN_ONE_CALL = 2**19  # entries of such a block that are not worth a thread of their own


class ShiftSums(NamedTuple):
    """The statistics of shifts.

    Attributes
    ----------
    values : array of shape (p, q, m, n)
        T of each kernel of X and of Y, for each order of Y and each shift.
    roundings : array of shape (p, q)
        How far two values that are equal in exact arithmetic may lie apart, at most.
    """

    values: Array
    roundings: Array


def shift_sums(
    x: Sequence[CentredGram],
    y: Sequence[CentredGram],
    x_order: Array,
    y_orders: Sequence[Array],
    report: Callable[[float], None] | None = None,
    wanted: Sequence[tuple[int, int]] | None = None,
) -> ShiftSums:
    """T(s) for s = 0 … n - 1, of the rows of X in one order against those of Y in several.

    Parameters
    ----------
    x, y : sequences of CentredGram
        p matrices of X and q of Y.
    x_order, y_orders : array of shape (n,), and m of them
        The rows in order.
    report : callable, optional
        Called with the fraction done.
    wanted : sequence of pairs of int, optional
        Numbers of the matrices of X and Y whose sums are computed, those of the others being zero; all if left out.

    Notes
    -----
    O((p + m q) n² log n + m p q n²) flops, (p + m q)n²/2 kernel evaluations, memory linear in n.
    """
    n = x[0].size
    wanted = list(product(range(len(x)), range(len(y)))) if wanted is None else wanted
    room = panel_bytes(_PANEL_BYTES, _PANEL_SHARE) // (16 * n * (len(x) + len(y)) + 32 * n)
    totals = np.zeros((len(y_orders), len(x), len(y), n // 2 + 1), np.complex128)
    of_x, of_y = np.zeros(len(x)), np.zeros(len(y))  # squares of Frobenius norms
    with entry("shifts") as kept:
        begun, width, totals, of_x, of_y = kept.result or kept.state or (0, max(1, int(room)), totals, of_x, of_y)
        panels = row_chunks(n // 2 + 1, width)
        for done in range(begun, len(panels)):
            part = panels[done]
            mirrored = np.array([1.0 if d in (0, n / 2) else 2.0 for d in range(part.start, part.stop)])
            first = [_transformed(gram, x_order, part, mirrored) for gram in x]
            of_x += [squares.sum() for _, squares in first]
            for place, order in enumerate(y_orders):
                second = [_transformed(gram, order, part) for gram in y]
                of_y += [squares @ mirrored / len(y_orders) for _, squares in second]
                _add_products(totals[place], [values for values, _ in first], [values for values, _ in second], wanted)
            if report is not None:
                report((done + 1) / len(panels))
            kept.offer(partial(tuple, (done + 1, width, totals, of_x, of_y)))
        kept.finish((len(panels), width, totals, of_x, of_y))
    values = np.moveaxis(fft.irfft(totals, n, axis=-1), 0, 2)
    return ShiftSums(values, sum_roundings(x, y, np.sqrt(of_x), np.sqrt(of_y), len(panels)))


def sum_roundings(
    x: Sequence[CentredGram], y: Sequence[CentredGram], of_x: Array, of_y: Array, panels: int = 1
) -> Array:
    """How far equal sums Σ aᵢⱼ b_{π(i)π(j)} may lie apart, for each pair, from the Frobenius norms of A and of B."""
    n = x[0].size
    steps = 2 * (_TRANSFORM * np.log2(n + 1) + n / panels + panels)
    x_errors, y_errors = (np.array([gram.error() for gram in grams]) for grams in (x, y))
    return 2 * (steps * UNIT * np.outer(of_x, of_y) + np.outer(x_errors, of_y) + np.outer(of_x, y_errors))


def _transformed(gram: CentredGram, order: Array, part: slice, counts: Array | None = None) -> tuple[Array, Array]:
    """The transforms of some diagonals, and the sums of their squares; with counts, their conjugates so many times."""
    lines = _diagonals(gram, order, part)
    squares = np.einsum("di,di->d", lines, lines)
    if counts is not None:
        lines *= counts[:, None]
        squares *= counts
    out = np.empty((lines.shape[0], gram.size // 2 + 1), np.complex128)

    def fill(rows: slice) -> None:
        out[rows] = fft.rfft(lines[rows], axis=1)
        if counts is not None:
            np.conjugate(out[rows], out=out[rows])

    run_chunks(fill, row_chunks(lines.shape[0], max(1, _TRANSFORMED // gram.size)))
    return out, squares


def _diagonals(gram: CentredGram, order: Array, part: slice) -> Array:
    """a_{i,i+d} for all i and some d, rows in the order given."""
    n, count = gram.size, part.stop - part.start
    out = np.empty((count, n))

    def fill(rows: slice) -> None:
        width = rows.stop - rows.start + count - 1
        far = order[(rows.start + part.start + np.arange(width)) % n]
        block = np.ascontiguousarray(gram.block(order[rows], far))
        down, right = block.strides
        out[:, rows] = np.lib.stride_tricks.as_strided(block, (rows.stop - rows.start, count), (down + right, right)).T

    at_once = n if n * (n + count) <= _IN_ONE_CALL else max(_LEAST_ROWS, count // 4)
    run_chunks(fill, row_chunks(n, at_once))
    return out


def _add_products(
    totals: Array, of_x: Sequence[Array], of_y: Sequence[Array], wanted: Sequence[tuple[int, int]]
) -> None:
    """Add Σ_d â_d b̂_d of the wanted pairs, frequency by frequency."""

    def add(some: slice) -> None:
        for p, q in wanted:
            totals[p, q, some] += np.einsum("dk,dk->k", of_x[p][:, some], of_y[q][:, some])

    run_chunks(add, row_chunks(totals.shape[-1], _FREQUENCIES))
