"""Distances and inner products of points on any device: in which arithmetic, and how accurate that is.

Squared distances come from inner products when that is accurate, and from differences otherwise. With the points
centred and divided by the bandwidth, inner products leave an error of about u·R² in the exponent, R the largest norm
and u the unit roundoff. Where u·R² is too large, float32 points are multiplied in float64, and where that is not enough
the points are subtracted. A profile that behaves like t^p at zero, p < 1, turns an error e into e^p and is held to a
stricter bound.

Differences need no centre: the points are multiplied by a power of two near 1 / length, which is exact, and the rest of
the length goes into the distance. So a difference keeps its digits whatever offset, outliers or units the points have.
Where columns have lengths of their own, each has its power of two, and the rest weighs its differences; sums of
absolute differences are weighed only where a division of the points would cost too many digits.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array, as_double, dtype_name, like, namespace, to_numpy
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.entries import FormEntries, Side
from mercer.backends.profiles import (
    BesselMatern,
    Exponential,
    Identity,
    PowerOfAffine,
    Profile,
    RootExponential,
    TanhOfAffine,
)
from mercer.backends.rounding import UNIT, EntryError, gamma, unit_of

_ROUNDINGS = 8  # of a direction and of a sum, beside one for each term
DIRECT_UP_TO = 4  # coordinates: differences are then as fast as inner products, and accurate for any points
EXPONENT_ERROR = {"float32": 2e-6, "float64": 2e-13}  # beyond this inner products are not accurate enough
COORDINATE_LIMIT = {"float32": 1e17, "float64": 1e150}  # squares and their sums stay finite
LARGEST_DISTANCE = {"float32": 1e34, "float64": 1e300}  # any kernel has long been zero
SUBTRACTIONS = 8  # roundings of a squared difference, of its scale and of the sum, beside one for each term
WEIGHTS = 5  # further ones of a length that is a column's own: the rest of it, its square, in the arithmetic of entries
DIVISIONS = 4  # of two coordinates that are divided by a length before they are subtracted, in units of their sizes
PRODUCTS = 24  # of |x|² + |y|² - 2 x·y in units of the largest norm: points, norms, sums, beside those of x·y
_CUT = {"float32": 87.0, "float64": 708.0}  # exponents beyond are taken as zero
_EXPONENTIAL = 8.0  # roundings of exp(-t): argument reduction, polynomial, powers of two
_POLYNOMIAL = 16.0  # of (1 + a s + b s²) exp(-s), s = √t
_AT_THE_CUT = 1e6  # (1 + a s + b s²) at s = 708, and more
_BESSEL = 1e-12  # of s^ν K_ν(s), by SciPy's functions and the expansions beyond them
_of_any_block: ContextVar[bool] = ContextVar("mercer_of_any_block", default=False)


@contextmanager
def of_any_block() -> Iterator[None]:
    """A block in which errors are those of entries in double precision that are made among other points too.

    Others may lie so near one another that inner products do, where these had to be subtracted.
    """
    token = _of_any_block.set(True)
    try:
        yield
    finally:
        _of_any_block.reset(token)


class PairingForm(FormEntries):
    """A profile of a pairing of two points."""

    def __init__(self, form: forms.Pairing, rows: Any, cols: Any | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self._metric, self._profile = form.metric, form.profile
        self._lengths = np.full(self.n_features, 1.0) * np.asarray(form.length, np.float64)
        self._of_length = form.rounding

    @abstractmethod
    def _profiled(self, values: Array) -> Array:
        """The profile of an array, which may be overwritten."""

    @property
    def nonnegative(self) -> bool:
        return self._profile.nonnegative


class DistanceForm(PairingForm):
    """Squared Euclidean, l1 and chi-squared distances of scaled points, and the weight of columns that differ."""

    def __init__(self, form: forms.Pairing, rows: Any, cols: Any | None, dtype: Any) -> None:
        super().__init__(form, rows, cols, dtype)
        self._name, self._work = dtype_name(self.dtype), self.dtype
        self._weighed = form.metric == "mismatches" or bool((self._lengths != self._lengths[:1]).any())
        self._has_products = form.metric == "sqeuclidean" and (self._weighed or self.n_features > DIRECT_UP_TO)
        self._by_products = (
            self._has_products and self._inner_products_hold()
        )  # a difference that is weighed costs more
        if not self._by_products:
            self._choose_scales()

    @abstractmethod
    def _center_of(self, points: Any) -> Array:
        """A point amid the others."""

    @abstractmethod
    def _largest_norm(self) -> float:
        """The largest squared norm of the points, centred and divided by the lengths."""

    def _inner_products_hold(self) -> bool:
        """Find the precision in which inner products are accurate enough, if there is one."""
        self._limit = COORDINATE_LIMIT[self._name]
        self._center = self._center_of(self._points["cols"])
        self._largest = largest = self._largest_norm()
        allowed = EXPONENT_ERROR[self._name] ** (1 / self._profile.power_at_zero)
        for work in (self.dtype, self._precision("float64")):
            self._work = work
            if 2 * unit_of(work) * largest <= allowed:
                return True
        return False

    def _choose_scales(self) -> None:
        """Points times a power of two, distances times a factor: a division by the length without rounding.

        The factor is one, and the difference of each column has a weight, where lengths are the columns' own.
        """
        self._factor, self._scales, self._lost = 1.0, np.ones(self.n_features), 0.0
        with np.errstate(over="ignore"):
            self._weights = np.minimum(1 / self._lengths, LARGEST_DISTANCE[self._name])
        if self._metric == "mismatches":
            return
        if self._weighed:  # so many numbers as there are columns
            largest = np.maximum(*(np.abs(to_numpy(ends).astype(np.float64)) for ends in self._extremes()))
        else:
            largest = np.full(self.n_features, max(float(abs(ends).max()) for ends in self._extremes()))
        if self._metric == "cityblock" and self._weighed and self._divided_at_once(largest):
            return
        limit, most = COORDINATE_LIMIT["float64"], COORDINATE_LIMIT[self._name]
        if self._weighed:
            pairs = zip(self._lengths.tolist(), largest.tolist(), strict=True)
            scales = np.array([power_of_two_below(1 / length, limit, size) for length, size in pairs])
        else:
            scales = self._scales * power_of_two_below(1 / float(self._lengths[0]), limit, float(largest.max()))
        in_range = (scales * largest < COORDINATE_LIMIT["float32"]) & (scales > 1e-30) & (scales < 1e30)
        narrow = self._name == "float32" and bool(in_range.all())
        self._work = self.dtype if narrow else self._precision("float64")
        rests = np.minimum(1 / np.maximum(self._lengths * scales, 1e-300), most)
        self._scales, self._weights = scales, rests**2 if self._metric == "sqeuclidean" else rests
        if not self._weighed:
            self._factor = float(self._weights[0])

    def _divided_at_once(self, largest: Array) -> bool:
        """Divide points by their lengths, with a rounding, where that is accurate enough: no difference is weighed."""
        with np.errstate(over="ignore"):
            scales = 1 / self._lengths
            lost = gamma(DIVISIONS, self.unit) * float((largest * scales).sum())
        if not lost <= EXPONENT_ERROR[self._name] or scales.max() > 1e30 or scales.min() < 1e-30:
            return False
        self._weighed, self._scales, self._lost = False, scales, lost
        return True

    def _extremes(self) -> tuple[Array, Array]:
        """The least and the greatest coordinates of all points, zero among them; found without a copy."""
        xp, rows = namespace(self._points["rows"]), self._points["rows"]
        low = high = xp.zeros(self.n_features, dtype=rows.dtype, device=rows.device)
        for points in (rows,) if self.symmetric else self._points.values():
            if points.shape[0]:
                low, high = xp.minimum(low, xp.min(points, axis=0)), xp.maximum(high, xp.max(points, axis=0))
        return low, high

    @property
    def cost(self) -> float:
        pairing = self.n_features if self._by_products else 4 * self.n_features
        return float(pairing + (1000 if isinstance(self._profile, BesselMatern) else 10))

    @cached_property
    def entry_error(self) -> EntryError:
        return self._error_with(0.0, 0.0)

    def _error_with(self, of_exponents: float, of_products: float) -> EntryError:
        """The error where exponents lose as much more, and inner products as much more of ‖x‖‖y‖."""
        of_exponents = of_exponents + self._of_length
        if not self._by_products:
            relative = gamma(self.n_features + SUBTRACTIONS + self._weighed * WEIGHTS, self.unit)
            error = profile_error(self._profile, self._name, relative + of_exponents, self._lost, self._most())
            return error.worse(self._error_of_products()) if _of_any_block.get() else error
        lost = (gamma(2 * self.n_features + PRODUCTS, unit_of(self._work)) + 2 * of_products) * self._largest
        return profile_error(self._profile, self._name, 4 * self.unit + of_exponents, lost, 4 * self._largest)

    def _error_of_products(self) -> EntryError:
        """The error of inner products as far from a centre as they are allowed; none where they are never taken."""
        if not self._has_products:
            return EntryError(0.0)
        largest = EXPONENT_ERROR[self._name] ** (1 / self._profile.power_at_zero) / (2 * self.unit)
        lost = gamma(2 * self.n_features + PRODUCTS, self.unit) * largest
        return profile_error(self._profile, self._name, 4 * self.unit + self._of_length, lost, 4 * largest)

    def _most(self) -> float:
        """A bound on the distances of the points; a chi-squared term is below the larger coordinate."""
        if self._metric == "mismatches":
            return float(self._weights.sum())
        with np.errstate(over="ignore"):
            low, high = (as_double(end) / like(self._lengths, end) for end in self._extremes())
            ranges = high - low
            return float((ranges**2 if self._metric == "sqeuclidean" else ranges).sum())

    def diagonal(self, side: Side = "rows") -> Array:
        at_zero = float(self._profiled(self.full((1, 1), 0.0))[0, 0])
        return self.full((self._points[side].shape[0],), at_zero)


class InnerProductForm(PairingForm):
    """Inner products of the points, or of their directions."""

    @property
    def cost(self) -> float:
        return float(self.n_features + (0 if isinstance(self._profile, Identity) else 40))

    @cached_property
    def entry_error(self) -> EntryError:
        return self._error_with(0.0)

    def _error_with(self, of_products: float) -> EntryError:
        """|Δ(x·y)| ≤ γ ‖x‖‖y‖, and (γ‖x‖‖y‖ + c)² ≤ (γ‖x‖² + c)(γ‖y‖² + c) where c ≥ 0.

        γ is that of a sum and what inner products lose beside it.
        """
        profile, unit = self._profile, self.unit
        lost = gamma(self.n_features + _ROUNDINGS, unit) + of_products
        if isinstance(profile, Identity):
            return EntryError(unit, lost)
        if isinstance(profile, PowerOfAffine) and profile.coef0 >= 0:
            return EntryError(8 * unit, math.expm1(profile.degree * math.log1p(lost + 4 * unit)))
        if isinstance(profile, PowerOfAffine):
            base = profile.gamma * self._largest_square() + abs(profile.coef0)
            return EntryError(8 * unit, 0.0, base**profile.degree * math.expm1(profile.degree * math.log1p(2 * lost)))
        if isinstance(profile, TanhOfAffine):
            return EntryError(8 * unit, 0.0, (profile.gamma * self._largest_square() + abs(profile.coef0)) * lost)
        return EntryError(8 * unit, 0.0, float("inf"))

    def _largest_square(self) -> float:
        """A bound on the largest squared norm of the points."""
        chunks = [(points, part) for points in self._points.values() for part in row_chunks(len(points), TALL_ROWS)]
        sums = (float((as_double(points[part]) ** 2).sum(axis=1).max()) for points, part in chunks)
        return max(sums, default=0.0) * (1 + 2 * gamma(self.n_features + 2, UNIT))


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
