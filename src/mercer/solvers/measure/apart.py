"""Points that lie apart: a greedy choice in which none is a near-copy of one taken before it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array, is_tensor
from mercer.backends.ordering import as_indices


def first_apart(block: Array, lengths: Array, wanted: int, alike: float) -> Array:
    """Positions of the first ``wanted`` points whose cosines with those taken before are at most ``alike``.

    Parameters
    ----------
    block : array of shape (m, m)
        The inner products of the points, in the order in which they are offered.
    lengths : array of shape (m,)
        The roots of its diagonal.
    wanted : int
        How many to take at most.
    alike : float
        The cosine above which two points are alike.
    """
    if not is_tensor(block):
        return _first_apart(block, lengths, wanted, alike)
    near = block > alike * lengths[:, None] * lengths
    taken: list[int] = []
    barred = near[0] & False if block.shape[0] else near
    for k in range(block.shape[0]):
        if len(taken) == wanted:
            break
        if not barred[k]:
            taken.append(k)
            barred = barred | near[k]
    return as_indices(taken, block)


@njit(cache=True, nogil=True)
def _first_apart(block: Any, length: Any, wanted: int, alike: float) -> Any:
    taken = np.empty(min(wanted, length.size), np.int64)
    count = 0
    for a in range(length.size):
        apart = True
        for b in range(count):
            if block[a, taken[b]] > alike * length[a] * length[taken[b]]:
                apart = False
                break
        if apart:
            taken[count] = a
            count += 1
            if count == taken.size:
                break
    return taken[:count]
