"""Signed measures on points: the difference of two weighted samples, and its squared norm under a kernel.

Weights come in any size: :func:`mercer.kernels.checks.in_one_unit` brings them to a power of two near one, and
:func:`in_units` brings back what is made of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, as_double, is_source, is_tensor, namespace, unique_rows
from mercer.backends.config import require_free_memory
from mercer.backends.rounding import TINY
from mercer.backends.row_source import FiniteRows, JoinedRows
from mercer.kernels.base import Kernel
from mercer.operators.gram import GramOperator

_ALWAYS = 8_000_000  # bytes: tiles of two threads
_ROW_SUMS = 1000  # bytes a point: partial sums, which keep a result the same whatever the number of threads
_COPIES = 4  # of the points


def difference(X: Array, x_weights: Array, Y: Array, y_weights: Array) -> tuple[Array, Array]:
    """The signed measure μ - ν: its distinct points, and their weights other than zero.

    Weights of equal points are added up, so what two samples have in common leaves no rounding error behind; not those
    of rows that come a block at a time.
    """
    if is_source(X) or is_source(Y):
        return joined(X, Y), namespace(x_weights).concat([x_weights, -y_weights])
    both = namespace(X).concat([X, Y]) + 0.0  # which turns -0.0 into 0.0
    first, where = unique_rows(both)
    n, count = X.shape[0], first.shape[0]
    signed = _added(where[:n], x_weights, count) - _added(where[n:], y_weights, count)
    kept = signed != 0
    return both[first][kept], signed[kept]


def joined(X: Any, Y: Any) -> Any:
    """The points of both samples, those of X first; of rows that come a block at a time, such rows."""
    if not is_source(X) and not is_source(Y):
        return namespace(X).concat([X, Y])
    rows = JoinedRows(X, Y)
    return FiniteRows(rows, rows.dtype)


def energy(kernel: Kernel, points: Array, signed: Array) -> float:
    """wᵀKw ≥ 0 for a signed measure w on some points: one symmetric product, in tiles."""
    if not signed.shape[0]:
        return 0.0
    product = as_double(GramOperator(kernel, points) @ signed)
    return max(float(signed @ product), 0.0)


def require_room_for_pairs(n: int, d: int) -> None:
    """Refuse, before the work starts, sums over pairs of n points with d features beyond the memory limit."""
    needed = _ALWAYS + n * (8 * _COPIES * d + _ROW_SUMS)
    require_free_memory(needed, f"Sums over the pairs of {n} points with {d} features take about", "take fewer points")


def in_units(value: float, power: int, name: str) -> float:
    """A value times two to a power.

    Raises
    ------
    ValueError
        If that is no normal number.
    """
    with np.errstate(over="ignore", under="ignore"):
        scaled = float(np.ldexp(value, power))
    if value != 0 and not TINY <= abs(scaled) < np.inf:
        size = np.log10(abs(value)) + power * np.log10(2.0)
        raise ValueError(f"{name} is of size 1e{size:.0f}, beyond double precision: divide the weights by their sum.")
    return scaled


def overflowing(kernel: Kernel) -> str:
    """What to say where a kernel's values are no numbers."""
    return f"The values of {kernel!r} at these points leave double precision: bring the features to a scale near one."


def _added(where: Array, weights: Array, count: int) -> Array:
    """The sum of the weights at each place, the same whatever their order: at each place the least are added first."""
    if is_tensor(where):
        order = weights.argsort(stable=True)
        order = order[where[order].argsort(stable=True)]
        return where[order].bincount(weights[order], minlength=count)
    order = np.lexsort((weights, where))
    return np.bincount(where[order], weights[order], minlength=count)
