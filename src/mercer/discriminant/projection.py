"""Directions as a map of points: what new ones need of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, to_numpy
from mercer.operators.sections import KernelSections


@final
@dataclass(frozen=True, eq=False)
class Projection:
    """x ↦ Σⱼ cⱼ k(x, xⱼ) - offset, or (x - centre) c of the linear kernel.

    Attributes
    ----------
    coefficients : array of shape (m, p) or (d, p)
        c.
    offset : array of shape (p,)
        The value at the mean of the sample in the space of the kernel.
    sections : KernelSections or None
        k(·, xⱼ); None of the linear kernel.
    centre : array of shape (d,) or None
        The mean of the points, of the linear kernel.
    """

    coefficients: Array
    offset: Array
    sections: KernelSections | None = None
    centre: Array | None = None

    def __call__(self, X: Any) -> Array:
        """The coordinates of points, n × p, in double precision."""
        if self.sections is None:
            return np.asarray((to_numpy(as_double(X)) - self.centre) @ self.coefficients)
        return np.asarray(to_numpy(as_double(self.sections.against(X) @ self.coefficients)) - self.offset)

    def turned(self, signs: Array) -> Projection:
        """The same with columns multiplied by signs."""
        return replace(self, coefficients=self.coefficients * signs, offset=self.offset * signs)
