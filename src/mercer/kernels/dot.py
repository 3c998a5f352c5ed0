"""Kernels of the inner product (RKHS (41), (44)-(46))."""

from __future__ import annotations

from numbers import Real
from typing import Any, final

import numpy as np

from mercer.backends import forms, profiles
from mercer.backends.arrays import namespace
from mercer.kernels.base import Kernel
from mercer.kernels.checks import first_place, positive_number
from mercer.kernels.properties import Properties, of_finite_rank


def _finite(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    return float(value)


def _gamma(gamma: float | None, n_features: int) -> float:
    """The number of features is the same at fit and predict, so gamma=None needs no resolving."""
    return 1.0 / n_features if gamma is None else positive_number(gamma, "gamma")


@final
class Linear(Kernel):
    """k(x, y) = x · y."""

    def __init__(self) -> None:
        pass

    def _form(self, n_features: int) -> forms.Form:
        return forms.Pairing("dot", profiles.Identity())

    @property
    def properties(self) -> Properties:
        """Positive semi-definite, unbounded, of finite rank."""
        return of_finite_rank(bounded=False, stationary=False, positive=False, positive_definite=True, continuous=True)


@final
class Polynomial(Kernel):
    """k(x, y) = (γ x · y + c)^degree.

    Parameters
    ----------
    degree : float, default=3
        Positive. A degree that is not whole needs γ x · y + c ≥ 0 on the data.
    gamma : float or None, default=None
        None means 1 / number of features.
    coef0 : float, default=1
        The constant c.
    """

    def __init__(self, degree: float = 3, gamma: float | None = None, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _form(self, n_features: int) -> forms.Form:
        degree = positive_number(self.degree, "degree")
        profile = profiles.PowerOfAffine(_gamma(self.gamma, n_features), _finite(self.coef0, "coef0"), degree)
        return forms.Pairing("dot", profile)

    @property
    def properties(self) -> Properties:
        """Of a whole degree: of finite rank, and positive semi-definite if and only if c ≥ 0.

        A negative c makes the coefficient of (x · y)^(degree - 1) negative, and monomials are linearly independent.
        """
        if not float(self.degree).is_integer():
            return Properties(bounded=False, stationary=False)
        even = self.degree % 2 == 0
        return of_finite_rank(
            bounded=False, stationary=False, positive=even, positive_definite=self.coef0 >= 0, continuous=True
        )


@final
class Sigmoid(Kernel):
    """k(x, y) = tanh(γ x · y + c), which is not positive semi-definite in general.

    Parameters
    ----------
    gamma : float or None, default=None
        None means 1 / number of features.
    coef0 : float, default=1
        The constant c.
    """

    def __init__(self, gamma: float | None = None, coef0: float = 1.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def _form(self, n_features: int) -> forms.Form:
        return forms.Pairing("dot", profiles.TanhOfAffine(_gamma(self.gamma, n_features), _finite(self.coef0, "coef0")))

    def _checked(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Points of one column may overflow, to ±1; a sum of products of more of them may have no value at all."""
        X, Y = super()._checked(X, Y)
        for name, points in (("X", X), ("Y", Y)):
            if points is not None and points.shape[1] > 1:
                with np.errstate(over="ignore"):
                    finite = namespace(points).isfinite((points * points).sum(axis=1))
                if not bool(finite.all()):
                    raise ValueError(
                        f"{self!r} overflows at row {first_place(~finite)[0]} of {name}: bring the points to a size "
                        "near one."
                    )
        return X, Y

    @property
    def properties(self) -> Properties:
        """Bounded, and indefinite for every γ and c: k(x, x) k(y, y) < k(x, y)² for some x and y = tx, t large."""
        return Properties(
            bounded=True,
            stationary=False,
            positive=False,
            positive_definite=False,
            integrally_strictly_positive_definite=False,
            continuous=True,
            finite_rank=False,
            infinitely_divisible=False,
        )


@final
class Cosine(Kernel):
    """k(x, y) = x · y / (‖x‖ ‖y‖), zero where x or y is zero."""

    def __init__(self) -> None:
        pass

    def _form(self, n_features: int) -> forms.Form:
        return forms.Pairing("cosine", profiles.Identity())

    @property
    def properties(self) -> Properties:
        """Positive semi-definite and bounded by one; not continuous at the origin."""
        return of_finite_rank(bounded=True, stationary=False, positive=False, positive_definite=True, continuous=False)
