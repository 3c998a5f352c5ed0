"""Kernels of a distance."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends import forms, profiles
from mercer.kernels.bandwidth import check_rule, resolve_length
from mercer.kernels.base import Kernel
from mercer.kernels.properties import Properties
from mercer.kernels.validation import as_points, positive_number

_EVERYTHING = Properties(True, True, True, True, True, True)


@final
class Gaussian(Kernel):
    """k(x, y) = exp(-‖x - y‖² / σ²).

    Note σ², not 2σ²: scikit-learn's ``rbf`` has ``gamma = 1 / σ²``.

    Parameters
    ----------
    sigma : float or {"median", "slope"}, default="median"
        The bandwidth, or the rule :meth:`resolve` finds it by: the median distance between points, or the length at
        which the mean of the kernel matrix grows fastest (see :mod:`mercer.kernels.bandwidth`).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Gaussian(sigma=1.0)(X).round(3)
    array([[1.   , 0.368, 0.018],
           [0.368, 1.   , 0.368],
           [0.018, 0.368, 1.   ]])
    >>> Gaussian().resolve(X)
    Gaussian(sigma=1.0)
    """

    def __init__(self, sigma: Any = "median") -> None:
        self.sigma = sigma

    @property
    def is_resolved(self) -> bool:
        """Whether sigma is a number."""
        check_rule(self.sigma, "sigma")
        return not isinstance(self.sigma, str)

    def resolve(self, X: Any) -> Gaussian:
        """Fix sigma from X."""
        return Gaussian(resolve_length(self.sigma, "sigma", X, "sqeuclidean", lambda r: np.exp(-(r**2))))

    def _form(self, n_features: int) -> forms.Form:
        return forms.Pairing("sqeuclidean", profiles.Exponential(), positive_number(self.sigma, "sigma"))

    @property
    def properties(self) -> Properties:
        """Everything one can ask for."""
        return _EVERYTHING


@final
class Laplacian(Kernel):
    """k(x, y) = exp(-‖x - y‖₁ / σ).

    The norm is l1; the Euclidean exponential is ``Matern(nu=0.5)``. scikit-learn's ``laplacian`` has ``gamma = 1 / σ``.

    Parameters
    ----------
    sigma : float or {"median", "slope"}, default="median"
        The bandwidth or the rule it is found by.
    """

    def __init__(self, sigma: Any = "median") -> None:
        self.sigma = sigma

    @property
    def is_resolved(self) -> bool:
        """Whether sigma is a number."""
        check_rule(self.sigma, "sigma")
        return not isinstance(self.sigma, str)

    def resolve(self, X: Any) -> Laplacian:
        """Fix sigma from X."""
        return Laplacian(resolve_length(self.sigma, "sigma", X, "cityblock", lambda r: np.exp(-r)))

    def _form(self, n_features: int) -> forms.Form:
        return forms.Pairing("cityblock", profiles.Exponential(), positive_number(self.sigma, "sigma"))

    @property
    def properties(self) -> Properties:
        """Everything one can ask for."""
        return _EVERYTHING


@final
class Matern(Kernel):
    """k(x, y) = 2^(1-ν)/Γ(ν) s^ν K_ν(s), s = sqrt(2ν) ‖x - y‖ / length_scale.

    The parameters are those of scikit-learn's Gaussian processes. ν = 1/2 is exp(-r/ℓ), ν = 3/2 and 5/2 have closed
    forms, ν = ∞ is exp(-r²/(2ℓ²)); any real ν > 0 is taken.

    Parameters
    ----------
    nu : float, default=1.5
        The order ν: sample paths have ⌈ν⌉ - 1 derivatives.
    length_scale : float or {"median", "slope"}, default="median"
        The length ℓ or the rule it is found by.
    """

    def __init__(self, nu: float = 1.5, length_scale: Any = "median") -> None:
        self.nu = nu
        self.length_scale = length_scale

    @property
    def is_resolved(self) -> bool:
        """Whether length_scale is a number."""
        check_rule(self.length_scale, "length_scale")
        return not isinstance(self.length_scale, str)

    def resolve(self, X: Any) -> Matern:
        """Fix length_scale from X."""
        profile, factor = self._profile()

        def kernel_of(r: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            t = (factor * r) ** 2
            profile.apply(t)
            return t

        return Matern(self.nu, resolve_length(self.length_scale, "length_scale", X, "sqeuclidean", kernel_of))

    def _profile(self) -> tuple[profiles.Profile, float]:
        """The profile of t = (factor · r / ℓ)²."""
        if self.nu == np.inf:
            return profiles.Exponential(), 1 / np.sqrt(2)
        nu = positive_number(self.nu, "nu")
        return matern_profile(nu), float(np.sqrt(2 * nu))

    def _form(self, n_features: int) -> forms.Form:
        profile, factor = self._profile()
        return forms.Pairing("sqeuclidean", profile, positive_number(self.length_scale, "length_scale") / factor)

    @property
    def properties(self) -> Properties:
        """Everything one can ask for."""
        return _EVERYTHING


@final
class Sobolev(Kernel):
    """The reproducing kernel of the Sobolev space W₂ˢ on points with d features, scaled to k(x, x) = 1.

    k(x, y) = 2^(1-ν)/Γ(ν) s^ν K_ν(s), s = ‖x - y‖ / length_scale, ν = smoothness - d/2: the kernel of the norm
    ‖(1 - ℓ²Δ)^(smoothness/2) f‖ in L². :class:`Matern` of the same ν has an equivalent norm.

    Parameters
    ----------
    smoothness : float, default=2
        The order s, any real number above half the number of features.
    length_scale : float or {"median", "slope"}, default="median"
        The length ℓ or the rule it is found by.
    """

    def __init__(self, smoothness: float = 2.0, length_scale: Any = "median") -> None:
        self.smoothness = smoothness
        self.length_scale = length_scale

    @property
    def is_resolved(self) -> bool:
        """Whether length_scale is a number."""
        check_rule(self.length_scale, "length_scale")
        return not isinstance(self.length_scale, str)

    def resolve(self, X: Any) -> Sobolev:
        """Fix length_scale from X."""
        profile = matern_profile(self._order(as_points(X).shape[1]))

        def kernel_of(r: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            t = r**2
            profile.apply(t)
            return t

        return Sobolev(self.smoothness, resolve_length(self.length_scale, "length_scale", X, "sqeuclidean", kernel_of))

    def _order(self, n_features: int) -> float:
        smoothness = positive_number(self.smoothness, "smoothness")
        if smoothness <= n_features / 2:
            raise ValueError(
                f"smoothness={smoothness:g} must exceed half the number of features, {n_features / 2:g}: "
                "functions of that space are not continuous, so it has no kernel."
            )
        return smoothness - n_features / 2

    def _form(self, n_features: int) -> forms.Form:
        length = positive_number(self.length_scale, "length_scale")
        return forms.Pairing("sqeuclidean", matern_profile(self._order(n_features)), length)

    @property
    def properties(self) -> Properties:
        """Everything one can ask for."""
        return _EVERYTHING


def matern_profile(nu: float) -> profiles.Profile:
    """2^(1-ν)/Γ(ν) s^ν K_ν(s) as a function of t = s², in closed form where there is one."""
    closed = {0.5: (0.0, 0.0), 1.5: (1.0, 0.0), 2.5: (1.0, 1.0 / 3.0)}
    return profiles.RootExponential(*closed[nu]) if nu in closed else profiles.BesselMatern(nu)
