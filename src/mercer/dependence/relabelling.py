"""Which rows of two pooled samples count as the first one: in the data, and in every resample.

Rows 0 … n - 1 of the pooled sample are X, the others Y. Under "the two samples have one law" any choice of n rows is as
likely as any other, which is what a permutation test of two samples rests on. A choice is a row of bits, so that a
thousand choices of 200 000 rows take 25 megabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import panel_rows
from mercer.dependence.resampling import Scheme, default_block_length, permutations
from mercer.kernels.checks import as_generator
from mercer.validation import whole_number


@final
class Relabellings:
    """The data's own labelling and those of the resamples, as rows of bits.

    Attributes
    ----------
    count : int
        Labellings, 1 + B; the first is the data's.
    n_rows : int
        Rows of the pooled sample, N.
    """

    def __init__(self, labels: Iterable[Array], n_rows: int) -> None:
        self._bits = np.concatenate([np.packbits(each, axis=1) for each in labels])
        self.count, self.n_rows = self._bits.shape[0], n_rows

    def block(self, rows: slice) -> Array:
        """Whether some rows count as X: zeros and ones of shape (1 + B, number of rows)."""
        first = rows.start // 8
        bits = np.unpackbits(self._bits[:, first : -(-rows.stop // 8)], axis=1)
        return bits[:, rows.start - 8 * first : rows.stop - 8 * first]


class Drawing(NamedTuple):
    """How resamples are drawn: the parameters of a test that say so."""

    n_resamples: int
    rng: Any
    scheme: Scheme
    block_length: int | None


def relabellings(n: int, m: int, drawing: Drawing) -> Relabellings:
    """The labelling of n and m rows, and its resamples; all there are where they are no more than was asked for."""
    N, own = n + m, _own(n, m)
    if drawing.scheme == "blocks":
        return Relabellings(_of_blocks(n, m, drawing), N)
    if drawing.scheme == "rows" and labellings_up_to(n, m, drawing.n_resamples + 1) is not None:
        return Relabellings(_all(n, m), N)
    drawn = permutations(N, drawing.n_resamples, drawing.rng, scheme=drawing.scheme, block_length=drawing.block_length)
    return Relabellings(_joined(own, (order < n for order in drawn)), N)


def labellings_up_to(n: int, m: int, most: int) -> int | None:
    """How many choices of n of n + m rows there are; None if they are more than ``most``."""
    count = 1
    for k in range(1, min(n, m) + 1):
        count = count * (n + m - k + 1) // k
        if count > most:
            return None
    return count


def relabellings_in_groups(n: int, m: int, groups: int, drawing: Drawing) -> Relabellings:
    """Of ``groups`` groups of n rows of X and m of Y, one after the other: labels move inside groups alone."""
    rng, size = as_generator(drawing.rng), n + m
    labels = np.empty((1 + drawing.n_resamples, groups * size), dtype=bool)
    labels[0] = np.tile(_own(n, m), groups)
    for k in range(groups):
        order = rng.permuted(np.tile(np.arange(size), (drawing.n_resamples, 1)), axis=1)
        labels[1:, k * size : (k + 1) * size] = order < n
    return Relabellings([labels], groups * size)


def _own(n: int, m: int) -> Array:
    return np.arange(n + m) < n


def _joined(own: Array, drawn: Iterable[Array]) -> Iterator[Array]:
    yield own[None]
    yield from drawn


def _all(n: int, m: int) -> Iterator[Array]:
    """Every choice of n rows, the data's first, which is the first that combinations come to."""
    choices = list(combinations(range(n + m), n))
    labels = np.zeros((len(choices), n + m), dtype=bool)
    labels[np.arange(len(choices))[:, None], np.array(choices)] = True
    yield labels


def _of_blocks(n: int, m: int, drawing: Drawing) -> Iterator[Array]:
    """Blocks of consecutive rows of one sample change labels as one; rows left over at the end of each keep theirs."""
    length = drawing.block_length
    length = default_block_length(min(n, m)) if length is None else whole_number(length, "block_length", 1)
    of_X, of_Y = n // length, m // length
    if not of_X or not of_Y:
        raise ValueError(
            f"block_length={length} is longer than a sample of {min(n, m)} rows: take a smaller one, so that there are "
            "several blocks in each sample."
        )
    plan = Drawing(drawing.n_resamples, drawing.rng, "rows", None)
    of_blocks, place = relabellings(of_X, of_Y, plan), np.full(n + m, -1)
    place[: of_X * length] = np.repeat(np.arange(of_X), length)
    place[n : n + of_Y * length] = of_X + np.repeat(np.arange(of_Y), length)
    labels, step = of_blocks.block(slice(0, of_X + of_Y)).astype(bool), panel_rows(n + m)
    for first in range(0, of_blocks.count, step):
        part = labels[first : first + step]
        yield np.where(place >= 0, part[:, place], _own(n, m))
