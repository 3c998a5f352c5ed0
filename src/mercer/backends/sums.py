"""Sums with next to no rounding, in any library."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.backends.arrays import is_tensor, namespace
from mercer.backends.balls import two_sum


def exact_sum(terms: Any) -> float:
    """Σ tᵢ of a vector of doubles, wrong by no more than u |Σ tᵢ| + u² (2 + log₂ n)² Σ |tᵢ|, u = 2⁻⁵³.

    NumPy arrays are summed by :func:`math.fsum`, whose only rounding is the last. Tensors are halved until one number
    is left, what each addition rounds away kept beside it: 20 n operations, on the device that they lie on.
    """
    if not is_tensor(terms):
        return math.fsum(terms)
    xp = namespace(terms)
    lost = xp.zeros_like(terms)
    while (n := int(terms.shape[0])) > 1:
        half = n // 2
        total, error = two_sum(terms[:half], terms[half : 2 * half])
        error = error + (lost[:half] + lost[half : 2 * half])
        terms, lost = xp.concat([total, terms[2 * half :]]), xp.concat([error, lost[2 * half :]])
    return float(terms[0]) + float(lost[0]) if terms.shape[0] else 0.0


def times_power_of_two(values: Any, power: int) -> Any:
    """Values times 2^power, exact except for what leaves the range."""
    if not is_tensor(values):
        return np.ldexp(values, power)
    if -1074 <= power <= 1023:
        return values * math.ldexp(1.0, power)
    first = math.copysign(1000, power)  # a power of two beyond is no double
    return times_power_of_two(values * 2.0**first, power - int(first))
