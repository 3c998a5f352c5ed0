"""Weights of any size: brought to a power of two near one, and what is made of them brought back."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import TINY
from mercer.backends.sums import times_power_of_two
from mercer.kernels import Kernel


def in_one_unit(*weights: Array) -> tuple[Any, ...]:
    """The same weights in units of two to a power, the largest between a half and one, and that power."""
    largest = max((float(abs(each).max()) for each in weights if each.shape[0]), default=0.0)
    power = int(np.frexp(largest)[1]) if largest > 0 else 0
    return *(times_power_of_two(each, -power) for each in weights), power


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
