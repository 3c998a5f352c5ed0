"""Which reorderings of Y against X a test of independence looks at: many members of a group at the cost of a few.

Rows, or blocks of them, are put in a random order first, X and Y together, which leaves the statistic as it is.
Numbered in that order, the maps i → a(i + s) mod n, with a prime to n, are a group, the *affine* one; moving Y by any
of them leaves the law of the data alone where rows (or blocks) are exchangeable and X and Y independent. So the rank of
the observed statistic among those of the group, or among random cosets of the shifts in it, gives an exact p-value
(Hemerik and Goeman 2018), and the shifts of a coset come together from one transform
(:mod:`mercer.dependence.shift_sums`).
"""

from __future__ import annotations

from itertools import islice
from itertools import permutations as all_orders
from math import factorial, gcd
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.dependence.resampling import Scheme

_EXPLICIT = 1000  # rows up to which reorderings are looked at one by one where the group is too small


class Reorderings(NamedTuple):
    """Cosets of the cyclic shifts, of rows or of blocks of rows.

    Attributes
    ----------
    x_order : array of shape (r,)
        The rows of X, at random or as they are.
    y_orders : list of arrays of shape (r,)
        Orders of Y; the first is that of X.
    step : int
        Only multiples of it are shifts: the length of a block.
    chosen : array of int
        Places of the resamples among the shifts of all orders, one order after the other, the observed one being 0.
    """

    x_order: Array
    y_orders: list[Array]
    step: int
    chosen: Array


def affine(n: int, count: int, rng: np.random.Generator, scheme: Scheme, length: int) -> Reorderings:
    """At most ``count`` members of the affine group of blocks of rows; of "shifts", the shifts as the rows stand."""
    blocks = n // length
    base = np.arange(blocks) if scheme == "shifts" else rng.permutation(blocks)
    wanted = 1 if scheme == "shifts" else -(-(count + 1) // blocks)
    factors = _multipliers(blocks, wanted, rng)
    orders = [_rows_of(base[(a * np.arange(blocks)) % blocks], length) for a in factors]
    there = len(factors) * blocks - 1
    chosen = 1 + rng.permutation(there)[:count] if there > count else np.arange(1, there + 1)
    return Reorderings(orders[0], orders, length, np.sort(chosen))


def explicit(n: int, count: int, rng: np.random.Generator, scheme: Scheme, length: int) -> Array | None:
    """Reorderings one by one, of shape (count, n), where the affine group has too few members and n is small.

    All there are, but for the order that is there, where these are no more than asked for.
    """
    blocks = n // length
    if scheme == "shifts" or n > _EXPLICIT or blocks * _prime_to(blocks) > count:
        return None
    if blocks <= 12 and factorial(blocks) <= count + 1:
        orders = np.array(list(islice(all_orders(range(blocks)), 1, None)), dtype=np.intp).reshape(-1, blocks)
    else:
        orders = rng.permuted(np.tile(np.arange(blocks), (count, 1)), axis=1)
    return np.stack([_rows_of(order, length) for order in orders]) if len(orders) else np.empty((0, n), np.intp)


def _rows_of(order: Array, length: int) -> Array:
    """The rows of blocks in some order."""
    return (length * order[:, None] + np.arange(length)).reshape(-1)


def _multipliers(n: int, wanted: int, rng: np.random.Generator) -> list[int]:
    """1 and further numbers prime to n, drawn without repetition."""
    if wanted == 1 or n <= 2:
        return [1]
    others = np.array([a for a in range(2, n) if gcd(a, n) == 1])
    return [1, *rng.permutation(others)[: wanted - 1].tolist()]


def _prime_to(n: int) -> int:
    """How many of 1 … n - 1 are prime to n."""
    return sum(gcd(a, n) == 1 for a in range(1, n))
