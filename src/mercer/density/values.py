"""The values of a density that is a sum of squares, and their logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends.arrays import Array, like, namespace, to_numpy
from mercer.backends.rounding import TINY
from mercer.density.likelihood_problem import log_density
from mercer.density.log_gradient import log_gradient, sections_gradient
from mercer.density.queries import DensityQueries
from mercer.density.squares import log_squares
from mercer.estimator import by_rows

_FLOOR, _CEILING = float(np.log(TINY)), float(np.log(np.finfo(np.float64).max))


class DensityValues(DensityQueries):
    """What is asked of a density at points, and all that :class:`DensityQueries` answers."""

    log_scale_: float

    if TYPE_CHECKING:  # the model's own

        def _new_points(self, X: Any) -> Any: ...

    @by_rows
    def density(self, X: Any) -> Array:
        """The density at the rows of X, with respect to Lebesgue's measure; zero outside the box.

        Where the data fill a tiny box of many columns it may exceed the largest number, and is refused;
        :meth:`score_samples` has its logarithm.
        """
        logs, _ = self._logarithm(X)
        xp = namespace(logs)
        high = logs > _CEILING
        if bool(high.any()):
            row = int(xp.argmax(xp.astype(high, xp.int8)))
            raise ValueError(
                f"The density at row {row} of X is e^{float(logs[row]):.0f}, which exceeds the largest number: ask "
                "score_samples for its logarithm, or multiply X by a constant before the fit."
            )
        return xp.exp(logs)

    @by_rows
    def score_samples(self, X: Any) -> Array:
        """The logarithm of the density at the rows of X.

        It is finite at any distance from the support. Where the squares cancel to rounding, as at a zero of the
        density, it is floored at log(ε² ‖F‖² max_p k(x, z_p)²), ε = 2.2e-16; where the density is zero, as outside the
        box, at the logarithm of the least normal number, -708.4.
        """
        values, floor = self._logarithm(X)
        xp = namespace(values)
        return xp.where(floor == -np.inf, xp.clip(values, _FLOOR, None), xp.maximum(values, floor))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples` over the rows of X."""
        mean = self.score_samples(X).mean()
        return float(mean.compute() if hasattr(mean, "compute") else mean)  # of Dask it is lazy

    def log_gradient(self, X: Any) -> Array:
        """The gradient of :meth:`score_samples` at the rows of X, n × d, in closed form.

        For the Gaussian kernel, also with covariances of its own, and Matérn's of order 3/2, 5/2 and ∞, with any
        reference that has a density. It needs no normalising constant, and :func:`mercer.stein_test` asks for it.
        """
        points = self._new_points(X)
        if self.sections_ is not None:
            x, F = (np.asarray(to_numpy(part), np.float64) for part in (points, self._factor))
            return like(sections_gradient(self.sections_, x, F), points)
        x, z, F = (np.asarray(to_numpy(part), np.float64) for part in (points, self.support_, self._factor))
        return like(log_gradient(self.kernel_, x, z, F, self.measure_), points)

    def _logarithm(self, X: Any) -> tuple[Array, Array]:
        """log p and what rounding leaves of it."""
        X = self._new_points(X)
        if self.sections_ is not None:
            return log_density(self.sections_, X, self._factor)
        squares, rounding = log_squares(self.kernel_, X, self.support_, self._factor)
        shift = self.measure_.log_density(X) - self.log_scale_
        return squares + shift, rounding + shift
