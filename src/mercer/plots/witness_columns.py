"""The columns of samples as a picture of a test shows them: numbers, categories, and how much each tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from mercer.backends.arrays import Array
from mercer.kernels.tables import Table, is_frame

_MOST_POINTS = 1000  # of each sample that are drawn
_BINS = 10  # of a column, to see how much of the witness it tells
_JITTER = 0.25  # of the distance of two categories, by which points of one category are spread


@dataclass(frozen=True)
class Drawn:
    """A column as it is drawn: its name, a number for each row, and what these stand for where they are codes."""

    name: str
    numbers: Array
    categories: tuple[Any, ...] = ()

    @property
    def places(self) -> Array:
        """The numbers; rows of one category are spread a little, always in the same way."""
        if not self.categories:
            return self.numbers
        rng = np.random.default_rng(crc32(self.name.encode()))
        return self.numbers + rng.uniform(-_JITTER, _JITTER, self.numbers.size)


def thinned(sample: Any) -> Any:
    """At most a thousand rows, evenly spread over the sample; a vector becomes a column."""
    sample = sample if is_frame(sample) else np.asarray(sample)
    count = len(sample)
    rows = np.unique(np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(int))
    if is_frame(sample):
        return sample.take(rows) if hasattr(sample, "take") else sample[rows]  # the latter is polars' way
    kept = sample[rows]
    return kept[:, None] if kept.ndim == 1 else kept


def drawn_columns(samples: Sequence[Any], letter: str, names: Sequence[str]) -> list[Drawn]:
    """The columns of the samples one below the other."""
    if is_frame(samples[0]):
        table = Table.of(*samples)
        numbers = np.concatenate([table.coded(sample) for sample in samples])
        return [Drawn(name, numbers[:, k], tuple(table.categories.get(k, ()))) for k, name in enumerate(table.names)]
    pooled = np.concatenate(samples)
    if pooled.dtype.kind not in "fiub":
        found, codes = np.unique(pooled, return_inverse=True)
        columns, categories = codes.reshape(pooled.shape).T, tuple(found.tolist())
    else:
        columns, categories = pooled.T.astype(np.float64), ()
    names = names or ([letter] if len(columns) == 1 else [f"{letter}[{k}]" for k in range(len(columns))])
    return [Drawn(name, column, categories) for name, column in zip(names, columns, strict=True)]


def column_number(drawn: Sequence[Drawn], column: int | str) -> int:
    """The number of a column that is given by number or name."""
    names = [part.name for part in drawn]
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and 0 <= column < len(drawn):
        return column
    raise ValueError(f"There is no column {column!r}: name two of {', '.join(map(repr, names[:12]))}.")


def telling_columns(drawn: Sequence[Drawn], values: Array, count: int) -> list[int]:
    """The columns that tell most of the witness, in their order.

    How much of its variance lies between their bins, less what chance lays there: all of it where every row is a
    category of its own.
    """
    shares = [_share(part, values) for part in drawn]
    return sorted(np.argsort(shares, kind="stable")[::-1][:count].tolist())


def _share(part: Drawn, values: Array) -> float:
    edges = np.unique(np.quantile(part.numbers, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = part.numbers.astype(int) if part.categories else np.searchsorted(edges, part.numbers)
    counts = np.maximum(np.bincount(bins), 1)
    means = np.bincount(bins, weights=values - values.mean()) / counts
    between, total = float(counts @ means**2), float(np.sum((values - values.mean()) ** 2))
    known = np.unique(bins).size
    if known == values.size:
        return -np.inf
    share = between / total if total else 0.0
    return share - (known - 1) / (values.size - known) * (1 - share)
