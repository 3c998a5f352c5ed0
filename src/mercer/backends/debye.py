"""The Matérn profile of large orders, or far out, by Debye's uniform expansion; on arrays of any library.

f_ν(s) = 2^(1-ν)/Γ(ν) s^ν K_ν(s). Its powers, its factorials and those of K_ν are huge and cancel: as floating-point
numbers they lose log10(ν log ν) digits, and at ν = 10⁶ the profile is left with nine. They are cancelled on paper here.
"""

from __future__ import annotations

import math
from typing import Any

from mercer.backends.arrays import Array, namespace

LARGE_ORDER = 200.0  # from here on four terms are good to 10⁻¹⁴ whatever s (from 100 on to 2·10⁻¹³), and f(0) is one


def log_matern_debye(s: Array, order: float) -> Array:
    """log f_ν(s) by four terms of DLMF 10.41.4, for ν > 100, or for s > 1000 where they are those in powers of 1/s.

    With w = √(1 + (s/ν)²) - 1 what is left is ν (log(1 + w/2) - w) - ½ log(1 + w), the expansion, and what Stirling's
    formula lacks of log Γ(ν): nothing cancels in floating point, s = 0 included.
    """
    xp = namespace(s)
    z2 = (s / order) ** 2
    w = z2 / (1 + xp.sqrt(1 + z2))
    tail = xp.log1p(_expansion(1 / (1 + w), order))
    return order * (xp.log1p(w / 2) - w) - 0.5 * xp.log1p(w) + (tail - _beyond_stirling(order))


def _expansion(p: Any, order: float) -> Any:
    """Σ_k (-1)^k u_k(p)/ν^k, k = 1, ..., 4, DLMF 10.41.10."""
    p2 = p * p
    terms = (
        -p * (3 - 5 * p2) / 24,
        p2 * (81 - 462 * p2 + 385 * p2**2) / 1152,
        -p * p2 * (30375 - 369603 * p2 + 765765 * p2**2 - 425425 * p2**3) / 414720,
        p2**2 * (4465125 - 94121676 * p2 + 349922430 * p2**2 - 446185740 * p2**3 + 185910725 * p2**4) / 39813120,
    )
    return sum(term / order ** (k + 1) for k, term in enumerate(terms))


def _beyond_stirling(order: float) -> float:
    """log Γ(ν) - (ν - ½) log ν + ν - ½ log 2π; for large ν the expansion itself at s = 0, so that f(0) is one."""
    if order > LARGE_ORDER:
        return math.log1p(_expansion(1.0, order))
    return math.lgamma(order) - (order - 0.5) * math.log(order) + order - 0.5 * math.log(2 * math.pi)
