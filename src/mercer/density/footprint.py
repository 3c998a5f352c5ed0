"""What a density of some support takes in memory beyond the data, refused before the work starts."""

from __future__ import annotations

from mercer.backends import get_config

_MATRICES = 60  # of order m in double precision, at the same time
_ALWAYS = 20_000_000  # panels that do not depend on m


def require_memory(m: int) -> None:
    """Refuse a support whose matrices exceed the memory limit of the configuration.

    Raises
    ------
    ValueError
        With the number of points that the limit allows.
    """
    needed, limit = _ALWAYS + 8 * _MATRICES * m**2, get_config().memory_bytes
    if needed > limit:
        most = int(max((limit - _ALWAYS) / (8 * _MATRICES), 0.0) ** 0.5)
        raise ValueError(
            f"A density on {m} support points takes about {needed / 1e6:.0f} MB, beyond the memory limit of "
            f"{limit / 1e6:.0f} MB, which allows {most}: take a smaller support, or raise memory_limit."
        )
