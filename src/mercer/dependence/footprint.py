"""What sums over pairs of points take in memory beyond the data, refused before the work starts."""

from __future__ import annotations

from mercer.backends.config import require_free_memory

_ALWAYS = 8_000_000  # tiles of two threads
_ROW_SUMS = 1000  # bytes a point: partial sums, which keep a result the same whatever the number of threads
_COPIES = 4  # of the points


def require_memory(n: int, d: int) -> None:
    """Refuse sums over pairs of n points with d features that exceed the memory limit of the configuration.

    Raises
    ------
    ValueError
        With what they would take.
    """
    needed = _ALWAYS + n * (8 * _COPIES * d + _ROW_SUMS)
    require_free_memory(needed, f"Sums over the pairs of {n} points with {d} features take about", "take fewer points")
