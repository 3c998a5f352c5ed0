"""Samples in which there is nothing to be found: two of one law, or pairs of independent columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

Array = np.ndarray[Any, Any]
Source = Callable[[int, np.random.Generator], Array]
_MEMORY = 0.5  # correlation of a row of a series with the row before it


def _series(n: int, rng: np.random.Generator) -> Array:
    """A stationary autoregression, n steps of it."""
    steps = rng.standard_normal(n)
    out = np.empty(n)
    out[0] = steps[0]
    for i in range(1, n):
        out[i] = _MEMORY * out[i - 1] + np.sqrt(1 - _MEMORY**2) * steps[i]
    return out[:, None]


SOURCES: dict[str, Source] = {
    "normal": lambda n, rng: rng.standard_normal((n, 2)),
    "heavy-tailed": lambda n, rng: rng.standard_t(1, (n, 2)),
    "discrete": lambda n, rng: rng.binomial(3, 0.4, (n, 1)).astype(float),
    "tied": lambda n, rng: np.round(rng.standard_normal((n, 2))),
    "d = 100": lambda n, rng: rng.standard_normal((n, 100)),
    "autocorrelated": _series,
}
WITH_TIES = ("discrete", "tied")
IN_ORDER = "autocorrelated"  # rows depend on their neighbours


def stream(*key: int | str) -> np.random.Generator:
    """A source of chance of its own for each key, the same in every process."""
    return np.random.default_rng([crc32(str(part).encode()) for part in key])


def two_samples(kind: str, n: int, m: int, seed: int) -> tuple[Array, Array]:
    """Two samples of one law."""
    rng = stream("two", kind, n, m, seed)
    return SOURCES[kind](n, rng), SOURCES[kind](m, rng)


def pairs(kind: str, n: int, seed: int) -> tuple[Array, Array]:
    """Pairs of rows that have nothing to do with each other; the second is one column."""
    rng = stream("pairs", kind, n, seed)
    return SOURCES[kind](n, rng), SOURCES[kind](n, rng)[:, :1]
