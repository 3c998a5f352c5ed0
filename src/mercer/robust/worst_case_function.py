"""The function whose expectation is sought: its values with their errors, and how fast it changes less a dual one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.rounding import EPS
from mercer.certificates.kernel_sums import KernelSum
from mercer.certificates.worst_case import Values
from mercer.kernels import Gaussian, Kernel, Laplacian, Matern, Sobolev

_FALLING = (Gaussian, Laplacian, Matern, Sobolev)  # k(x, y) falls with the absolute value of any coordinate of x - y


class Integrand(ABC):
    """f, or -f where the least expectation is sought."""

    has_modulus: bool

    @abstractmethod
    def values(self, X: Array) -> Values:
        """f at the rows of X."""

    @abstractmethod
    def modulus(self, h: KernelSum) -> Callable[[Array], Array]:
        """How much f - h can grow from the centre of a cell, given half sides of shape (n, d)."""


@final
class PlainIntegrand(Integrand):
    """A person's function, whose values are taken as exact, with a Lipschitz constant or without."""

    def __init__(self, function: Callable[[Array], Any], kernel: Kernel, sign: float, lipschitz: float | None) -> None:
        self._function, self._kernel, self._sign, self._lipschitz = function, kernel, sign, lipschitz
        self.has_modulus = lipschitz is not None
        if self.has_modulus:
            require_falling(kernel)

    def values(self, X: Array) -> Values:
        numbers = np.asarray(to_numpy(self._function(X.copy())), np.float64)
        if numbers.shape != (X.shape[0],):
            raise ValueError(f"function must return {X.shape[0]} numbers, one for each row, not shape {numbers.shape}.")
        if not np.all(np.isfinite(numbers)):
            row = int(np.argmin(np.isfinite(numbers)))
            raise ValueError(f"function returns {numbers[row]} at {X[row].tolist()}: it must be finite.")
        return Values(self._sign * numbers, np.zeros(numbers.size))

    def modulus(self, h: KernelSum) -> Callable[[Array], Array]:
        assert self._lipschitz is not None
        slope, size = self._lipschitz, h.norm_above

        def growth(sides: Array) -> Array:
            straight = slope * np.sqrt(np.sum(sides**2, axis=1)) * (1 + 16 * EPS)
            return np.asarray((straight + size * feature_modulus(self._kernel, sides)) * (1 + 4 * EPS))

        return growth


@final
class KernelIntegrand(Integrand):
    """A function of the kernel's space."""

    has_modulus = True

    def __init__(self, sum_: KernelSum) -> None:
        self.sum = sum_
        require_falling(sum_.kernel, needed=False)
        self.has_modulus = isinstance(sum_.kernel, _FALLING)

    def values(self, X: Array) -> Values:
        return Values(*self.sum.values(X))

    def modulus(self, h: KernelSum) -> Callable[[Array], Array]:
        points = np.concatenate([self.sum.points, h.points])
        rest = KernelSum(h.kernel, points, np.concatenate([self.sum.coefficients, -h.coefficients]))
        size = rest.norm_above
        return lambda sides: np.asarray(size * feature_modulus(h.kernel, sides) * (1 + 4 * EPS))


def require_falling(kernel: Kernel, *, needed: bool = True) -> None:
    """Refuse kernels of which it is not known how far φ(x) is from φ(y) for points of a cell."""
    if needed and not isinstance(kernel, _FALLING):
        names = ", ".join(kind.__name__ for kind in _FALLING)
        raise ValueError(
            f"A proof on the whole box takes one of the kernels {names}, not {kernel!r}: leave lipschitz out."
        )


def feature_modulus(kernel: Kernel, sides: Array) -> Array:
    """A bound of ‖φ(x) - φ(c)‖ = √(2k(0) - 2k(x - c)) for x in cells with these half sides: corners are farthest."""
    origin = np.zeros((1, sides.shape[1]))
    shapes, place = np.unique(sides, axis=0, return_inverse=True)
    error = kernel.matrix(shapes, origin).entry_error
    slack = 4 * (error.relative + error.scaled + error.absolute) + 8 * EPS
    top = float(kernel.diag(origin)[0])
    apart = (
        2 * np.maximum(top - np.asarray(kernel(shapes, origin), np.float64)[:, 0], 0.0)
        + slack * top
        + 2 * error.absolute
    )
    return np.sqrt(apart)[place.reshape(-1)] * (1 + 4 * EPS)
