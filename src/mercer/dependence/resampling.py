"""Reorderings of the rows of a sample, and the p-value that counts them.

A p-value of resamples is exact where the data come from the group of reorderings as likely as any other of its members:
then the observed statistic has any rank among all of them with the same probability, and

    p = (1 + #{resamples with a statistic at least as large}) / (1 + number of resamples)

is at most α with probability at most α (Phipson and Smyth 2010; Hemerik and Goeman 2018). The observed statistic is
counted, and ties count against a rejection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.kernels.checks import as_generator
from mercer.validation import one_of, whole_number

Scheme = Literal["rows", "blocks", "shifts"]
_COPIES = 3  # of a block of reorderings that are alive at once


def permutation_pvalue(observed: float, null: Array, rounding: float = 0.0) -> float:
    """(1 + #{null ≥ observed - rounding}) / (1 + B); what is no number counts against a rejection.

    Parameters
    ----------
    observed : float
        The statistic of the data.
    null : array of shape (B,)
        The statistics of the resamples.
    rounding : float, default=0
        How far two statistics that are equal in exact arithmetic may lie apart as computed. On data with ties many
        resamples have exactly the observed statistic, and without this allowance the last bits would decide.
    """
    null = np.asarray(null)
    return float(1 + np.count_nonzero(~(null < observed - rounding))) / (1 + null.shape[0])


def permutations(
    n: int,
    count: int,
    rng: Any = None,
    *,
    scheme: Scheme = "rows",
    block_length: int | None = None,
    strata: Any = None,
) -> Iterator[Array]:
    """Random reorderings of n rows, some at a time: arrays of shape (b, n) of row numbers.

    They are the same whatever the size of the blocks that they come in, which keeps to the memory limit.

    Parameters
    ----------
    n : int
        Rows.
    count : int
        Reorderings, the order of the data not among them unless by chance.
    rng : int, Generator or None
        The source of chance.
    scheme : {"rows", "blocks", "shifts"}, default="rows"
        Rows that are exchangeable are reordered one by one. Of a series whose rows depend on their neighbours, "blocks"
        reorders blocks of consecutive rows and keeps what is left over at the end in its place; "shifts" moves all rows
        on in a circle, by another number each time: there are n - 1 of them, and no more are given.
    block_length : int, optional
        Of "blocks": rows a block, about n^(1/3) if left out.
    strata : array of shape (n,), optional
        Of "rows": groups inside which rows are reordered, by any labels.
    """
    one_of("rows", "blocks", "shifts")(scheme, "scheme")
    n, count = whole_number(n, "n", 1), whole_number(count, "n_resamples", 1)
    if block_length is not None and scheme != "blocks":
        raise ValueError(f'block_length belongs to scheme="blocks", not to {scheme!r}: leave it out.')
    if strata is not None and scheme != "rows":
        raise ValueError(f'strata belong to scheme="rows", not to {scheme!r}: leave them out.')
    generator = as_generator(rng)
    if scheme == "blocks":
        length = default_block_length(n) if block_length is None else whole_number(block_length, "block_length", 1)
        if n // length < 2:
            raise ValueError(
                f"{n} rows make {n // length} blocks of {length} rows, and reordering needs two: take a smaller "
                "block_length."
            )
        return _of_blocks(n, length, _of_rows(n // length, count, generator, n))
    if scheme == "shifts":
        return _shifts(n, count, generator)
    return _of_rows(n, count, generator, n) if strata is None else _inside(_groups(strata, n), n, count, generator)


def default_block_length(n: int) -> int:
    """About n^(1/3), the order of the best length for the variance of a mean (Künsch 1989)."""
    return max(1, round(n ** (1 / 3)))


def _chunks(count: int, width: int) -> list[slice]:
    return row_chunks(count, panel_rows(_COPIES * width))


def _of_rows(n: int, count: int, rng: np.random.Generator, width: int) -> Iterator[Array]:
    """Rows one by one, in blocks whose size suits arrays of so many columns."""
    for part in _chunks(count, width):
        yield rng.permuted(np.tile(np.arange(n), (part.stop - part.start, 1)), axis=1)


def _of_blocks(n: int, length: int, orders: Iterator[Array]) -> Iterator[Array]:
    """Orders of the blocks, written out as orders of rows."""
    inside = np.arange(length)
    for order in orders:
        rows = (length * order[:, :, None] + inside).reshape(order.shape[0], -1)
        rest = np.arange(rows.shape[1], n)
        yield np.concatenate([rows, np.broadcast_to(rest, (order.shape[0], rest.size))], axis=1)


def _shifts(n: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Different shifts in a circle, none of them by nothing."""
    steps = 1 + rng.permutation(n - 1)[:count]
    for part in _chunks(steps.size, n):
        yield (np.arange(n) + steps[part][:, None]) % n


def _groups(strata: Any, n: int) -> list[Array]:
    """The rows of each group."""
    labels = np.asarray(strata)
    if labels.shape != (n,):
        raise ValueError(f"strata has the shape {labels.shape} for {n} rows: give one label a row.")
    _, codes = np.unique(labels, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])


def _inside(groups: list[Array], n: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Rows one by one, inside groups: a reordering is drawn whole before the next, whatever the blocks."""
    for part in _chunks(count, n):
        rows = np.tile(np.arange(n), (part.stop - part.start, 1))
        for row in rows:
            for group in groups:
                row[group] = rng.permutation(group)
        yield rows
