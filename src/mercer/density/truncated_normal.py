"""Normal laws of one standard deviation cut off at an interval: masses, moments, draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from mercer.backends.arrays import Array


def mass_between(means: Array, std: float, lower: Any, upper: Any) -> Array:
    """What N(mean, std²) has in [lower, upper]; in the upper tail as accurate as in the lower."""
    low, high = (lower - means) / std, (upper - means) / std
    mirrored = low > 0
    return np.asarray(ndtr(np.where(mirrored, -low, high)) - ndtr(np.where(mirrored, -high, low)))


def moments_between(means: Array, std: float, lower: float, upper: float) -> tuple[Array, Array]:
    """Mean and variance of N(mean, std²) given [lower, upper]; the nearer end, and 0, where it has no mass to see."""
    low, high = (lower - means) / std, (upper - means) / std
    mass = mass_between(means, std, lower, upper)
    seen = mass > 0
    scale = np.where(seen, mass, 1.0)
    at_low, at_high = _bell(low), _bell(high)
    shift = np.where(seen, (at_low - at_high) / scale, np.clip(0.0, low, high))
    spread = np.where(seen, 1.0 + (_times(low, at_low) - _times(high, at_high)) / scale - shift**2, 0.0)
    return means + std * shift, std**2 * np.maximum(spread, 0.0)


def draw_between(means: Array, std: float, lower: Array, upper: Array, rng: np.random.Generator) -> Array:
    """A draw from each N(mean, std²) given [lower, upper], by inversion in the tail that is nearer."""
    if not np.any(np.isfinite(lower) | np.isfinite(upper)):
        return np.asarray(means + std * rng.standard_normal(means.shape))
    low, high = (lower - means) / std, (upper - means) / std
    sign = np.where(low > 0, -1.0, 1.0)
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    levels = ndtr(low) + rng.uniform(0, 1, means.shape) * (ndtr(high) - ndtr(low))
    return np.asarray(np.clip(means + std * sign * np.clip(ndtri(levels), low, high), lower, upper))


def _bell(x: Array) -> Array:
    return np.asarray(np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi))


def _times(x: Array, bell: Array) -> Array:
    """x φ(x), 0 at infinity."""
    return np.where(np.isfinite(x), x, 0.0) * bell
