"""Radial kernels k(x, y) = φ(t), t = Σᵢ (xᵢ - yᵢ)²/ℓᵢ², with the derivatives of φ, for what needs gradients.

In coordinates divided by their lengths, ∇ₓk = 2φ'(t)(x - y), ∇ᵧk is its negative, and the trace of the mixed second
derivatives is Σᵢ ∂²k/∂xᵢ∂yᵢ = -2dφ'(t) - 4tφ''(t).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.kernels.base import Kernel
from mercer.kernels.stationary import Gaussian, Matern


class RadialValues(NamedTuple):
    """φ, φ'/φ and tφ''/φ at some squared distances: ratios have digits where φ underflows."""

    value: Array
    slope: Array
    bend: Array


@dataclass(frozen=True)
class Radial:
    """A radial kernel by its profile.

    Attributes
    ----------
    lengths : array of shape (d,)
        ℓ.
    profile : callable
        φ, φ'/φ and tφ''/φ of an array of t.
    """

    lengths: Array
    profile: Callable[[Array], RadialValues]


def radial(kernel: Kernel, n_features: int) -> Radial | None:
    """The profile of a Gaussian or of a Matérn kernel of order 3/2, 5/2 or ∞; None for other kernels."""
    if isinstance(kernel, Gaussian):
        return Radial(_lengths(kernel.sigma, n_features), _gaussian)
    if not isinstance(kernel, Matern):
        return None
    lengths = _lengths(kernel.length_scale, n_features)
    if kernel.nu == np.inf:
        return Radial(np.sqrt(2) * lengths, _gaussian)
    profiles = {1.5: _matern_three_halves, 2.5: _matern_five_halves}
    return Radial(lengths, profiles[kernel.nu]) if kernel.nu in profiles else None


def inverse_multiquadric(t: Array) -> RadialValues:
    """(1 + t)^(-1/2)."""
    part = 1 / (1 + t)
    return RadialValues(np.sqrt(part), -0.5 * part, 0.75 * t * part**2)


def _lengths(lengths: Any, n_features: int) -> Array:
    return np.broadcast_to(np.asarray(lengths, np.float64), (n_features,))


def _gaussian(t: Array) -> RadialValues:
    return RadialValues(np.exp(-t), np.full_like(t, -1.0), t)


def _matern_three_halves(t: Array) -> RadialValues:
    s = np.sqrt(3 * t)
    return RadialValues((1 + s) * np.exp(-s), -1.5 / (1 + s), 0.75 * s / (1 + s))


def _matern_five_halves(t: Array) -> RadialValues:
    s = np.sqrt(5 * t)
    whole = 1 + s + s**2 / 3
    return RadialValues(whole * np.exp(-s), -5 / 6 * (1 + s) / whole, 5 / 12 * s**2 / whole)
