"""Random generators from whatever the caller holds."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from None, a seed, a Generator or a legacy RandomState (from which a seed is drawn)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        allowed = "None, a whole number ≥ 0 or a random generator"
        raise ValueError(f"random_state={random_state!r} must be {allowed}.") from None
