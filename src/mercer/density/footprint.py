"""What a density of some support takes in memory beyond the data, refused before the work starts."""

from __future__ import annotations

from mercer.backends.config import require_free_memory

_MATRICES = 60  # of order m in double precision, at the same time
_ALWAYS = 16_000_000  # panels that do not depend on m
_A_ROW = 600  # bytes a point of the sample: weights, shares and partial row sums
_SPANS = 3  # matrices of the order of the projection
_GRID_FEATURES, _MOST_ROWS = 3, 50_000


def require_memory(m: int, n: int, d: int, closed: bool) -> None:
    """Refuse a support of m points whose matrices exceed the memory limit of the configuration.

    Where the MMD of the density to n points with d features may have to be projected, on up to 1 500 points and the
    support, the matrices of that order count: beyond three features, and for kernels whose integrals are ``closed`` in
    no product of pairs.

    Raises
    ------
    ValueError
        With what they would take.
    """
    projected = 0 if closed and d <= _GRID_FEATURES and n <= _MOST_ROWS else min(n, 1000) + 500 + m
    needed = _ALWAYS + n * _A_ROW + 8 * max(_MATRICES * m**2, _SPANS * projected**2)
    require_free_memory(needed, f"A density on {m} support points takes about", "take a smaller support")
