"""A convex function of a density as a person gives it: linear functionals, value, gradient, bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.density.linear_functionals import Joined, LinearFunctionals
from mercer.validation import function_of, positive_number

_ACCURACY = 1e-13


@final
class ConvexFunctional:
    """F(u) with bounds on u, for linear functionals u of a density (SOS 6, 8, 15).

    Parameters
    ----------
    of : LinearFunctionals or list of them
        What u consists of, one after the other: ``EmbeddingValues``, ``Moments``, ``CellMasses``, ``Expectations`` of
        ``mercer.density``.
    value : callable, default=None
        F, a convex and differentiable function of an array of shape (q,) that returns a number; it may be infinite or
        nan where no density's u lies. None means F = 0.
    gradient : callable, default=None
        ∇F, which returns an array of shape (q,).
    hessian : callable, default=None
        ∇²F, of shape (q, q), for the steps alone; None means differences of gradients.
    lower, upper : numbers or arrays of shape (q,), default=None
        lower ≤ u ≤ upper, entries may be infinite; moments with a tolerance are bounds around their values. A density
        that keeps all of them strictly must exist.
    accuracy : float, default=1e-13
        To what part floating point evaluates value and gradient; a certificate allows for it.
    """

    def __init__(
        self,
        of: LinearFunctionals | Sequence[LinearFunctionals],
        value: Callable[[Array], Any] | None = None,
        gradient: Callable[[Array], Any] | None = None,
        *,
        hessian: Callable[[Array], Any] | None = None,
        lower: Any = None,
        upper: Any = None,
        accuracy: float = _ACCURACY,
    ) -> None:
        parts = [of] if isinstance(of, LinearFunctionals) else list(of)
        if not parts or not all(isinstance(part, LinearFunctionals) for part in parts):
            raise TypeError(
                "of must be linear functionals, such as Moments() or EmbeddingValues(points), or a list of them."
            )
        if (value is None) != (gradient is None):
            raise TypeError("value and gradient go together: give both, or neither for F = 0.")
        for name, function in (("value", value), ("gradient", gradient), ("hessian", hessian)):
            function_of("an array of shape (q,)")(function, name)
        self.of = Joined(parts)
        self.value, self.gradient, self.hessian = value, gradient, hessian
        self.lower, self.upper = lower, upper
        self.accuracy = positive_number(accuracy, "accuracy")

    def bounds(self, count: int) -> tuple[Array, Array]:
        """The bounds as arrays of shape (q,)."""
        lower, upper = _bound(self.lower, -np.inf, count, "lower"), _bound(self.upper, np.inf, count, "upper")
        if not np.all(lower < upper):
            place = int(np.argmin(upper - lower))
            raise ValueError(
                f"lower[{place}] = {lower[place]:g} is not below upper[{place}] = {upper[place]:g}: leave a tolerance "
                "between them."
            )
        return lower, upper


def _bound(given: Any, absent: float, count: int, name: str) -> Array:
    try:
        numbers = np.asarray(absent if given is None else to_numpy(given), np.float64)
        values = np.broadcast_to(numbers, (count,)).copy()
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, or one for each of the {count} functionals.") from None
    if np.any(np.isnan(values)):
        raise ValueError(f"{name} has entries that are no numbers.")
    return values
