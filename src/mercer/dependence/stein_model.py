"""The density of a goodness-of-fit test: its gradient, its samples, and a fit like its own to other data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from sklearn.base import clone

from mercer.backends.arrays import Array, is_tensor, to_numpy
from mercer.kernels.integrals.measures import Box


@final
class SteinModel:
    """A density with ``log_gradient`` and ``sample``, or a function that is the gradient of its logarithm.

    Parameters
    ----------
    density : fitted density or callable
        As :func:`mercer.stein_test` takes it.
    sampler : callable or None
        Draws of a density that is a function.
    """

    def __init__(self, density: Any, sampler: Callable[[int, np.random.Generator], Any] | None = None) -> None:
        if hasattr(density, "log_gradient"):
            self._gradient = density.log_gradient
        elif callable(density):
            self._gradient = density
        else:
            raise TypeError(
                f"density={density!r} must be a fitted SumOfSquaresDensity, or a function that gives the gradient of "
                "its logarithm at points."
            )
        if sampler is not None and not callable(sampler):
            raise TypeError(f"sampler={sampler!r} must be a function of a number and a generator, or None.")
        self._density, self._sampler = density, sampler

    @property
    def draws(self) -> bool:
        """Whether samples can be drawn."""
        return self._sampler is not None or hasattr(self._density, "sample")

    @property
    def box(self) -> Box | None:
        """The box outside of which the density is zero."""
        measure = getattr(self._density, "measure_", None)
        return measure if isinstance(measure, Box) else None

    def scores(self, points: Array, name: str = "X") -> Array:
        """∇ log p at some points."""
        if self.box is not None and not bool(np.all(self.box.holds(points))):
            raise ValueError(f"{name} has points outside the box, where the density is zero: no test is needed.")
        found = self._gradient(points)
        values = np.asarray(to_numpy(found) if is_tensor(found) else found, np.float64)
        if values.shape != points.shape:
            raise ValueError(
                f"The gradient of log p has the shape {values.shape} for points of shape {points.shape}: it must have "
                "one row for each of them, of as many columns."
            )
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise ValueError(f"The gradient of log p is no finite number in row {row} of {name}.")
        return values

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws, n × d."""
        drawn = self._density.sample(n, random_state=rng) if self._sampler is None else self._sampler(n, rng)
        return np.asarray(to_numpy(drawn) if is_tensor(drawn) else drawn, np.float64)

    def refitted(self, points: Array) -> SteinModel:
        """The density of a copy that is fitted to other points."""
        return SteinModel(clone(self._density).fit(points))

    @property
    def refits(self) -> bool:
        """Whether it can be fitted again."""
        return hasattr(self._density, "fit") and hasattr(self._density, "get_params")
