"""How much is done at a time: rows a chunk, bytes a panel. Sizes depend on the problem and the memory allowed alone.

No size depends on the number of threads, so that sums over chunks come in the same order whatever the machine.
"""

from __future__ import annotations

from typing import Any

from mercer.backends.config import get_config

TALL_ROWS = 4096  # rows of a tall, narrow array: a chunk with some tens of columns stays in a second-level cache
STORED_ROWS = 512  # rows of a stored kernel matrix
ENTRY_ROWS = 256  # rows of entries that are looked at one block after the other
SECTION_ROWS = 2048  # nodes of a grid whose kernel sections are made at a time
TABLE_ROWS = 65_536  # cells of a table that are filled at a time
PANEL_ENTRIES = 2**22  # of a matrix made on one thread
THREAD_BYTES = 2**22  # of kernel values that each thread has in hand, beside as much of what it makes of them
THREAD_ENTRIES = 2**20  # that a thread makes before it turns to the next ones: milliseconds without the lock
SLAB_ENTRIES = 2**18  # of a tensor of order three
BALL_ENTRIES = 2**15  # of numbers with proved errors, of which each takes some twenty
KEPT_BYTES = 2**28  # of matrices that a method keeps between products, where it could do with fewer

_SOURCE_BYTES, _SOURCE_SHARE = 64 * 2**20, 1 / 16
_PANEL_BYTES, _PANEL_SHARE = 32 * 2**20, 1 / 8
_COLUMN_BYTES, _COLUMN_SHARE = 64 * 2**20, 1 / 16
_MOST_COLUMNS = 128  # of a panel: sums of sums have less rounding than long ones
_CALL_ENTRIES = 2**18  # read or multiplied a call: some tenths of a millisecond without the interpreter's lock


def row_chunks(n: int, rows: int) -> list[slice]:
    """The slices of ``rows`` rows that cover n of them; the last may be shorter."""
    return [slice(lo, min(lo + rows, n)) for lo in range(0, n, rows)]


def size_of(which: Any) -> int:
    """How many rows a slice of step one, or an array of indices, chooses."""
    return which.stop - which.start if isinstance(which, slice) else int(which.shape[0])


def run_of(which: Any, run: slice) -> Any:
    """A run of the rows chosen, as a slice where the choice is one."""
    return slice(which.start + run.start, which.start + run.stop) if isinstance(which, slice) else which[run]


def rows_within(entries: int, width: int) -> int:
    """How many rows of so many entries each come to a number of entries; at least one."""
    return max(1, entries // max(1, width))


def panel_bytes(most: int = _PANEL_BYTES, share: float = _PANEL_SHARE) -> int:
    """What a panel of some rows or columns of a matrix may take: so many bytes, or a part of the memory limit."""
    return get_config().share(share, most)


def panel_rows(width: int, itemsize: int = 8, *, most: int = _PANEL_BYTES, share: float = _PANEL_SHARE) -> int:
    """How many rows of so many entries fit a panel; at least one."""
    return max(1, panel_bytes(most, share) // (itemsize * max(1, width)))


def source_rows(width: int, itemsize: int = 8) -> int:
    """How many rows of a file are read at a time, where so many numbers are made of each; at least one."""
    return panel_rows(width, itemsize, most=_SOURCE_BYTES, share=_SOURCE_SHARE)


def panel_columns(length: int) -> int:
    """How many columns of so many doubles are made and added up at a time; at least one."""
    return min(_MOST_COLUMNS, panel_rows(length, most=_COLUMN_BYTES, share=_COLUMN_SHARE))


def call_chunks(n: int, cost: int, unit: int = 64) -> list[slice]:
    """Slices of n rows for calls on several threads, where a row costs so many multiplications.

    A call is long enough that threads do not queue for the interpreter; what takes less than four of them is one call,
    done before other threads are awake.
    All slices but the last have a multiple of ``unit`` rows.
    """
    rows = unit * max(1, _CALL_ENTRIES // (unit * max(1, cost)))
    return row_chunks(n, max(n, 1) if n * cost <= 4 * _CALL_ENTRIES else rows) or [slice(0, 0)]


def depth_of_sum(n: int, rows: int) -> int:
    """Roundings that a term goes through at most where chunks of so many rows of n are summed, and then their sums."""
    return n if n <= rows else rows + -(-n // rows)
