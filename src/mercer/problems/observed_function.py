"""A convex function that a person wrote, watched while it is used: what it returns, and whether it contradicts itself.

A bound on an optimum that comes from values and gradients is worth what they are. Each pair of evaluations is held
against F(v) ≥ F(u) + ⟨∇F(u), v - u⟩, which every convex function obeys with its own gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array

_REMEMBERED = 60  # evaluations that a new one is held against
_ROUNDING = 1e-9  # of the terms of the inequality: a contradiction below may be rounding
_STEPS = (1e-4, 1e-6)  # of a segment, for differences of values
_FITS = 1e-3
_NEAR = 1e-5  # of the range of an entry, for differences of gradients


class NotConvexError(ValueError):
    """Values and gradients contradict the inequality that every convex function obeys."""


@final
class ObservedFunction:
    """F, ∇F and ∇²F of u ∈ R^q.

    Parameters
    ----------
    value, gradient : callables
        Of a vector of shape (q,): a number, and a vector of shape (q,).
    hessian : callable, optional
        A symmetric matrix of shape (q, q); left out, it is made of differences of gradients, 2q of them.
    ranges : array of shape (q,)
        How large the entries of u can be.
    """

    def __init__(
        self,
        value: Callable[[Array], Any],
        gradient: Callable[[Array], Any],
        hessian: Callable[[Array], Any] | None,
        ranges: Array,
    ) -> None:
        self._value, self._gradient, self._hessian = value, gradient, hessian
        self._ranges = ranges
        self._seen: list[tuple[Array, float, Array]] = []

    def value(self, u: Array) -> float:
        """F(u); infinity where it has no finite value."""
        try:
            with np.errstate(all="ignore"):
                number = float(self._value(u.copy()))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"value must return one number for a vector of {u.size} entries; it failed with: {error}"
            ) from error
        return number if np.isfinite(number) else np.inf

    def gradient(self, u: Array) -> Array:
        """∇F(u), finite."""
        slope = self._slope(u)
        if not np.all(np.isfinite(slope)):
            place = int(np.argmin(np.isfinite(slope)))
            raise ValueError(f"gradient returns {slope[place]} in entry {place}, at u[{place}] = {u[place]:.6g}.")
        return slope

    def _slope(self, u: Array) -> Array:
        with np.errstate(all="ignore"):
            slope = np.asarray(self._gradient(u.copy()), np.float64)
        if slope.shape != u.shape:
            raise ValueError(
                f"gradient must return {u.size} numbers, one for each entry of u, not shape {slope.shape}."
            )
        return slope

    def hessian(self, u: Array) -> Array:
        """∇²F(u), its negative part cut off: a model for steps, and no part of any proof."""
        H = self._differences(u) if self._hessian is None else np.asarray(self._hessian(u.copy()), np.float64)
        if H.shape != (u.size, u.size):
            raise ValueError(f"hessian must return a matrix of order {u.size}, not shape {H.shape}.")
        levels, vectors = np.linalg.eigh((H + H.T) / 2)
        return np.asarray((vectors * np.maximum(levels, 0.0)) @ vectors.T)

    def _differences(self, u: Array) -> Array:
        rows = [self._difference(u, j) for j in range(u.size)]
        return np.array(rows).reshape(u.size, u.size)

    def _difference(self, u: Array, j: int) -> Array:
        """∂∇F/∂u_j; where a step leaves the domain of F, by a shorter one."""
        for length in (_NEAR * self._ranges[j], _NEAR * abs(u[j])):
            if length > 0:
                ahead, behind = u.copy(), u.copy()
                ahead[j] += length
                behind[j] -= length
                slope = (self._slope(ahead) - self._slope(behind)) / (ahead[j] - behind[j])
                if np.all(np.isfinite(slope)):
                    return np.asarray(slope)
        return np.zeros(u.size)

    def seen(self, u: Array) -> tuple[float, Array]:
        """F(u) and ∇F(u), remembered and held against what was seen before.

        Raises
        ------
        NotConvexError
            If two evaluations contradict each other.
        """
        value, slope = self.value(u), self.gradient(u)
        for other, level, tilt in self._seen[-_REMEMBERED:]:
            _require_above(other, level, tilt, u, value)
            _require_above(u, value, slope, other, level)
        self._seen.append((u.copy(), value, slope))
        return value, slope

    def require_gradient(self, u: Array, towards: Array) -> None:
        """Refuse a gradient that does not say how the value changes along a segment."""
        along = towards - u
        said = float(self.gradient(u) @ along)
        found = []
        for step in _STEPS:
            ahead, behind = self.value(u + step * along), self.value(u - step * along)
            noise = 1e-14 * (abs(ahead) + abs(behind)) / step
            found.append((ahead - behind) / (2 * step))
            if abs(found[-1] - said) <= _FITS * (abs(said) + abs(found[-1])) + noise:
                return
        if np.all(np.isfinite(found)):
            raise ValueError(
                f"gradient does not fit value: along a segment value changes by {found[-1]:.6g} a unit, and gradient "
                f"says {said:.6g}."
            )


def _require_above(u: Array, level: float, tilt: Array, v: Array, value: float) -> None:
    """F(v) ≥ F(u) + ⟨∇F(u), v - u⟩, to rounding."""
    if value == np.inf:
        return
    least = level + float(tilt @ (v - u))
    size = abs(level) + abs(value) + float(np.abs(tilt) @ (np.abs(u) + np.abs(v)))
    if least - value > _ROUNDING * size:
        raise NotConvexError(
            f"The functional is not convex, or gradient is not that of value: its tangent at one density is "
            f"{least:.9g} at another, where value is {value:.9g}. No bound on the optimum can be proved of it."
        )
