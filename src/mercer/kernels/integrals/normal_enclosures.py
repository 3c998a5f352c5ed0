"""The closed forms of the Gaussian kernel under a normal law with a full covariance, with proved errors.

With a = 1/σ², M_n = (na I + Σ⁻¹/2)⁻¹ and G_n = I + 2na Σ, completing the square gives, for points counted from
the mean,

    ∫ Π_{i ≤ n} k(x, p_i) dρ = det(G_n)^(-1/2) exp(-a Σ_i p_iᵀG_n⁻¹p_i - a² Σ_{i<j} (p_i - p_j)ᵀM_n(p_i - p_j)),

where a² M_n = (a/n) (I - G_n⁻¹): no inverse of Σ, and no axis of it, is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, ball, exponential
from mercer.kernels.integrals.integral_enclosures import GaussianForms, ScaledPoints
from mercer.kernels.integrals.normal_balls import WidenedCovariance, widened


@final
class CovarianceEnclosures(GaussianForms):
    """Those of :class:`~mercer.kernels.integrals.gaussian.GaussianIntegrals`, from the points, σ and N(mean, Σ) alone.

    Lengths are in units of 2^e ≈ σ.
    """

    def __init__(self, points: Array, sigma: float, mean: Array, covariance: Array) -> None:
        self._scaled = scaled = ScaledPoints(points, sigma)
        self._covariance = np.ldexp(covariance, 2 * scaled.power)
        self._apart = Ball(np.ldexp(points, scaled.power)) - np.ldexp(mean, scaled.power)
        self._wide = cache(lambda order: widened(self._covariance, scaled.rate * (2.0 * order)))
        super().__init__(scaled.distances, points.shape[1])

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        return self._scaled.sections(X)

    def _heights(self) -> Ball:
        two, three = (self._of(order).pivots for order in (2, 3))
        roots, out = (two / three).root(), ball(1.0)
        for k in range(roots.shape[0]):
            out = out * roots[k]
        return out

    def _pair_factor(self, order: int) -> Ball:
        gone = np.eye(self._covariance.shape[0]) - self._of(order).inverse
        turned = self._apart @ (gone * (self._scaled.rate / float(order)))
        lengths = (turned * self._apart).sum(axis=1)
        return exponential((turned @ self._apart.T).scaled(1) - lengths[:, None] - lengths)

    def _lone_factor(self, order: int) -> Ball | None:
        away = ((self._apart @ self._of(order).inverse) * self._apart).sum(axis=1)
        return exponential(-(away * self._scaled.rate))

    def _of(self, order: int) -> WidenedCovariance:
        return self._wide(order)
