"""Places in arrays of any library: which entries are not zero, which are least, and how entries are sorted.

NumPy arrays take NumPy's own functions; tensors those of their library, whose names and answers differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, is_tensor, namespace


def as_indices(values: Any, reference: Array) -> Array:
    """Whole numbers as an array of places, of another array's library and device."""
    if not is_tensor(reference):
        return np.asarray(values, dtype=np.intp)
    xp = namespace(reference)
    return xp.asarray(values, dtype=xp.int64, device=reference.device)


def places(count: int, reference: Array) -> Array:
    """The places 0 … count - 1, in another array's library."""
    if not is_tensor(reference):
        return np.arange(count)
    xp = namespace(reference)
    return xp.arange(count, dtype=xp.int64, device=reference.device)


def flatnonzero(values: Array) -> Array:
    """The places of the entries that are not zero, or not false, in rising order."""
    return values.nonzero(as_tuple=True)[0] if is_tensor(values) else np.flatnonzero(values)


def appended(first: Array, second: Array) -> Array:
    """Two vectors as one."""
    return namespace(first).concat([first, second])


def without(values: Array, place: int) -> Array:
    """A vector without one of its entries."""
    return namespace(values).concat([values[:place], values[place + 1 :]])


def stable_order(values: Array) -> Array:
    """The places in the order of rising values, equal ones in the order they have."""
    return namespace(values).argsort(values, stable=True)


def lexicographic_order(keys: Sequence[Array]) -> Array:
    """The places in the order of the last key, equal ones by the key before it, and so on, as ``numpy.lexsort``."""
    if not is_tensor(keys[0]):
        return np.lexsort(keys)
    order = stable_order(keys[0])
    for key in keys[1:]:
        order = order[stable_order(key[order])]
    return order


def least(values: Array, count: int) -> Array:
    """The places of the ``count`` least entries, in no order."""
    if count >= values.shape[0]:
        return places(values.shape[0], values)
    if not is_tensor(values):
        return np.argpartition(values, count)[:count]
    return values.topk(count, largest=False, sorted=False).indices


def among(values: Array, others: Array) -> Array:
    """Whether each entry is one of the others."""
    if not is_tensor(values):
        return np.isin(values, others)
    import torch

    return torch.isin(values, others)


def as_integers(indices: Any) -> list[int]:
    """Places as whole numbers of Python, for records that the host keeps: one transfer from a device."""
    return [int(index) for index in (indices.cpu() if is_tensor(indices) else indices)]


def totals(where: Array, weights: Array | None = None) -> Array:
    """The sum of the weights at each place 0, 1, …, or how many entries there are at each."""
    return where.bincount(weights) if is_tensor(where) else np.bincount(where, weights)


def place_of(values: Array, ascending: Array) -> Array:
    """Where each value stands in an ascending vector, or would stand."""
    return namespace(ascending).searchsorted(ascending, values)


def equal_pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """The places of all pairs of equal entries of two vectors, found by sorting where those of the second differ."""
    if not is_tensor(first):
        order = np.argsort(second, kind="stable")
        ascending = second[order]
        if (ascending[1:] != ascending[:-1]).all():
            place = np.minimum(np.searchsorted(ascending, first), max(ascending.size - 1, 0))
            hit = np.flatnonzero(ascending[place] == first) if ascending.size else place[:0]
            return hit, order[place[hit]]
    found: tuple[Array, Array] = namespace(first).nonzero(first[:, None] == second)
    return found
