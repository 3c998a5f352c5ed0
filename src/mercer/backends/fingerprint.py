"""A few digits that tell one set of points from another, the same on every array library and device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mercer.backends.arrays import Array, as_double, is_source, is_sparse_tensor, is_tensor, namespace
from mercer.backends.chunks import source_rows

_STEP, _FIRST, _SECOND = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB  # of splitmix64, odd
_MODULUS = 2**64
_CACHED, _ON_DEVICE = 2**15, 2**22  # numbers at a time: what a cache holds, and what keeps a device busy


class DataSeen(NamedTuple):
    """What a fitted model remembers of its data.

    Attributes
    ----------
    rows, columns : int
        Of the points.
    fingerprint : str
        16 digits, of all numbers and their places; see :func:`fingerprint`.
    """

    rows: int
    columns: int
    fingerprint: str

    @classmethod
    def of(cls, X: Any) -> DataSeen:
        """Of points as a fit sees them, or of a kernel matrix, dense or sparse."""
        return cls(int(X.shape[0]), int(X.shape[1]), fingerprint(X))


def fingerprint(X: Any) -> str:
    """16 hexadecimal digits of the numbers of an array, as doubles, and of their places.

    It finds out slips, such as rows in another order, and no forgeries. Arrays and tensors of the same numbers have the
    same, for whole numbers are all it calculates with. Cost: a pass over the numbers, no copy of them.
    """
    if is_source(X):
        return finished(_of_source(X), X.shape)
    total = 0
    for part in _parts(X):
        flat = as_double(part).reshape((-1,))
        size = _ON_DEVICE if is_tensor(flat) else _CACHED
        for start in range(0, int(flat.shape[0]), size):
            total += int(_mixed(flat[start : start + size], start).sum())
        total = total * _STEP + int(flat.shape[0])
    return _with_shape(total, X.shape)


def finished(total: int, shape: Sequence[int]) -> str:
    """The fingerprint of a dense array of n × d numbers, from the sum of :func:`mixed_in` over its blocks of rows."""
    return _with_shape(total * _STEP + int(shape[0]) * int(shape[1]), shape)


def _with_shape(total: int, shape: Iterable[int]) -> str:
    for count in shape:
        total = total * _STEP + int(count)
    return f"{total % _MODULUS:016x}"


def mixed_in(block: Array, first: int) -> int:
    """What some rows add to the sum, whose first number is so many numbers from the first of all."""
    flat, total = as_double(block).reshape(-1), 0
    for start in range(0, flat.shape[0], _CACHED):
        total += int(_mixed(flat[start : start + _CACHED], first + start).sum())
    return total % _MODULUS


def _of_source(rows: Any) -> int:
    """The sum over rows that come a block at a time."""
    width = rows.shape[1]
    return sum(mixed_in(block, where.start * width) for where, block in rows.blocks(source_rows(3 * width)))


def _parts(X: Any) -> tuple[Array, ...]:
    """The array, or values, row and column numbers of a sparse one, row by row."""
    if is_sparse_tensor(X):
        entries = X.to_sparse_coo().coalesce()
        return entries.values(), *entries.indices()
    if hasattr(X, "tocsr"):
        rows = X.tocsr(copy=True)
        rows.sum_duplicates()
        entries = rows.tocoo()
        return entries.data, entries.row, entries.col
    return (X,)


def _mixed(values: Array, start: int) -> Array:
    """The bits of numbers and of their places, stirred (splitmix64, modulo 2⁶⁴)."""
    xp = namespace(values)
    bits = (values + 0.0).view(xp.int64)  # zero has one sign
    place = xp.arange(start + 1, start + 1 + values.shape[0], dtype=xp.int64, device=values.device)
    bits = bits + place * _STEP
    bits = (bits ^ ((bits >> 30) & 0x3FFFFFFFF)) * _FIRST
    bits = (bits ^ ((bits >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return bits ^ ((bits >> 31) & 0x1FFFFFFFF)
