"""How accurate kernels of distances are in floating point, on any device: distances, and profiles of them."""

from __future__ import annotations

import math

import numpy as np

from mercer.backends.profiles import BesselMatern, Exponential, Profile, RootExponential
from mercer.backends.rounding import EntryError, unit_of

DIRECT_UP_TO = 4  # coordinates: differences are then as fast as inner products, and accurate for any points
EXPONENT_ERROR = {"float32": 2e-6, "float64": 2e-13}  # beyond this inner products are not accurate enough
COORDINATE_LIMIT = {"float32": 1e17, "float64": 1e150}  # squares and their sums stay finite
LARGEST_DISTANCE = {"float32": 1e34, "float64": 1e300}  # any kernel has long been zero
SUBTRACTIONS = 8  # roundings of a squared difference, of its scale and of the sum, beside one for each term
PRODUCTS = 24  # of |x|² + |y|² - 2 x·y in units of the largest norm: points, norms, sums, beside those of x·y

_CUT = {"float32": 87.0, "float64": 708.0}  # exponents beyond are taken as zero
_EXPONENTIAL = 8.0  # roundings of exp(-t): argument reduction, polynomial, powers of two
_POLYNOMIAL = 16.0  # of (1 + a s + b s²) exp(-s), s = √t
_AT_THE_CUT = 1e6  # (1 + a s + b s²) at s = 708, and more
_BESSEL = 1e-12  # of s^ν K_ν(s), by SciPy's functions and the expansions beyond them


def power_of_two_below(value: float, limit: float, largest: float) -> float:
    """A power of two of about value, or less where its product with largest would exceed the limit."""
    exponents = [math.frexp(min(value, 1e300))[1] - 1]
    if largest > 0:
        exponents.append(math.frexp(limit)[1] - math.frexp(largest)[1] - 1)
    return math.ldexp(1.0, max(min(exponents), -1000))


def profile_error(profile: Profile, name: str, relative: float, absolute: float, most: float) -> EntryError:
    """The error of f(t), in the precision of this name, where t ≤ ``most`` is known to |Δt| ≤ relative·t + absolute.

    d log f/dt is -1 for exp(-t); for the Matérn profiles it is at least -1/2 where f is smooth at zero, and for
    exp(-√t) an error e of t ≈ 0 becomes √e.
    """
    unit, cut = unit_of(name), _CUT[name]
    lost = float(np.exp(1 - cut))
    if isinstance(profile, Exponential):
        exponent = relative * min(most, cut) + absolute
        return EntryError(_expm1(exponent) + _EXPONENTIAL * unit, lost)
    if isinstance(profile, (RootExponential, BesselMatern)):
        s = max(1.0, min(float(np.sqrt(most)), cut))
        exponent = s * (relative / 2 + unit) + absolute**profile.power_at_zero
        own = _POLYNOMIAL * unit if isinstance(profile, RootExponential) else _BESSEL + _POLYNOMIAL * unit
        return EntryError(_expm1(exponent) + own, _AT_THE_CUT * lost)
    return EntryError(relative + 4 * unit, 0.0, absolute)


def _expm1(exponent: float) -> float:
    return float(np.expm1(exponent)) if exponent < 1 else float("inf")
