"""Kernels of non-negative data such as counts and histograms (RKHS (47))."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

from mercer.backends import forms, profiles
from mercer.kernels.base import Kernel
from mercer.kernels.checks import first_place, positive_number
from mercer.kernels.properties import EVERYTHING, Properties


@final
class ChiSquared(Kernel):
    """k(x, y) = exp(-γ Σᵢ (xᵢ - yᵢ)² / (xᵢ + yᵢ)) for x, y ≥ 0; a coordinate where both vanish counts zero.

    Parameters
    ----------
    gamma : float, default=1
        Positive.
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _form(self, n_features: int) -> forms.Form:
        return forms.Pairing("chi2", profiles.Exponential(), 1 / positive_number(self.gamma, "gamma"))

    def _checked(self, X: Any, Y: Any) -> tuple[Any, Any]:
        X, Y = super()._checked(X, Y)
        for name, points in (("X", X), ("Y", Y)):
            if points is not None and (points < 0).any():
                row, col = first_place(points < 0)
                raise ValueError(
                    f"{name} is negative in row {row}, column {col}: the chi-squared kernel takes data ≥ 0 only."
                )
        return X, Y

    @property
    def properties(self) -> Properties:
        """All but stationary, on the points with coordinates ≥ 0.

        k(x, y) = f(x)f(y) exp(4γ Σᵢ xᵢyᵢ/(xᵢ + yᵢ)), and xy/(x + y) = ∫ xe^(-tx) ye^(-ty) dt has one-to-one continuous
        features: universal by Christmann and Steinwart 2010, theorem 2.2. A measure μ with ∬ k dμ dμ = 0 has
        ∫ f ∏ᵢ xᵢe^(-tᵢxᵢ) dμ = 0 for all t > 0 and all products of coordinates, the empty one included. These are
        Laplace transforms, so μ = 0.
        """
        return replace(EVERYTHING, stationary=False)
