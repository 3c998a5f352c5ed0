"""Kernels of a distance (RKHS (42), (43), of stationary ones (58))."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from mercer.backends import forms, profiles
from mercer.backends.arrays import Array
from mercer.backends.matrix import kernel_matrix
from mercer.kernels.bandwidth import COLUMN_RULES, Metric, check_rule, checked_lengths, resolve_length
from mercer.kernels.base import Kernel
from mercer.kernels.checks import as_points, positive_number
from mercer.kernels.properties import EVERYTHING, Properties


class DistanceKernel(Kernel):
    """A profile of a distance divided by a length, or by one for each column; a rule says it until it is resolved."""

    _length_name: ClassVar[str]
    _metric: ClassVar[Metric] = "sqeuclidean"
    _rules: ClassVar[tuple[str, ...]] = COLUMN_RULES

    @abstractmethod
    def _profile(self, n_features: int) -> tuple[profiles.Profile, float]:
        """The profile, and the factor that the distance over the length is multiplied by."""

    @property
    def is_resolved(self) -> bool:
        """Whether the length is a number, or numbers."""
        length = getattr(self, self._length_name)
        check_rule(length, self._length_name, self._rules)
        return not isinstance(length, str)

    def resolve(self, X: Any, sample_weight: Any = None) -> DistanceKernel:
        """Fix the length from X, whose rows may have weights."""
        X = as_points(X)
        profile, factor = self._profile(X.shape[1])

        def kernel_of(r: Array) -> Array:
            form = forms.Pairing(self._metric, profile, 1 / factor)
            return np.asarray(kernel_matrix(form, np.reshape(r, (-1, 1)), np.zeros((1, 1))).dense()[:, 0])

        params = self.get_params(deep=False)
        name = self._length_name
        check_rule(params[name], name, self._rules)
        params[name] = resolve_length(params[name], name, X, self._metric, kernel_of, sample_weight)
        return type(self)(**params)

    def _form(self, n_features: int) -> forms.Form:
        profile, factor = self._profile(n_features)
        length = checked_lengths(getattr(self, self._length_name), self._length_name, n_features)
        over = tuple(each / factor for each in length) if isinstance(length, tuple) else length / factor
        return forms.Pairing(self._metric, profile, over)

    @property
    def properties(self) -> Properties:
        """Everything one can ask for (Sriperumbudur et al. 2010, theorem 9; Wendland 2004, theorem 6.13).

        Powers that are not whole are positive semi-definite, by Schoenberg's theorem for the exponentials, and for the
        Matérn functions because they are the transforms of Student's laws, which are infinitely divisible
        (Grosswald 1976; Halgreen 1979 in several dimensions).
        """
        return EVERYTHING


@final
class Gaussian(DistanceKernel):
    """k(x, y) = exp(-‖x - y‖² / σ²), or exp(-Σᵢ (xᵢ - yᵢ)² / σᵢ²) with a bandwidth for each column.

    Note σ², not 2σ²: scikit-learn's ``rbf`` has ``gamma = 1 / σ²``.

    Parameters
    ----------
    sigma : float, array of shape (d,) or {"median", "slope", "columns"}, default="median"
        The bandwidth, one for each column, or the rule :meth:`resolve` finds it by: the median distance between points,
        the length at which the mean of the kernel matrix grows fastest, or for each column its median difference,
        brought to a median distance of one (see :mod:`mercer.kernels.bandwidth`).

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

    _length_name = "sigma"
    _elsewhere: ClassVar[dict[str, str]] = {
        "gamma": "sigma = 1/sqrt(gamma)",
        "length_scale": "sigma = sqrt(2) * length_scale",
    }

    def __init__(self, sigma: Any = "median") -> None:
        self.sigma = sigma

    def _profile(self, n_features: int) -> tuple[profiles.Profile, float]:
        return profiles.Exponential(), 1.0


@final
class Laplacian(DistanceKernel):
    """k(x, y) = exp(-‖x - y‖₁ / σ); with a bandwidth for each column, each difference is divided by its own.

    The norm is l1; the Euclidean exponential is ``Matern(nu=0.5)``. scikit-learn's ``laplacian`` has ``gamma = 1 / σ``.

    Parameters
    ----------
    sigma : float, array of shape (d,) or {"median", "slope", "columns"}, default="median"
        The bandwidth, one for each column, or the rule it is found by.
    """

    _length_name = "sigma"
    _metric = "cityblock"
    _elsewhere: ClassVar[dict[str, str]] = {"gamma": "sigma = 1/gamma"}

    def __init__(self, sigma: Any = "median") -> None:
        self.sigma = sigma

    def _profile(self, n_features: int) -> tuple[profiles.Profile, float]:
        return profiles.Exponential(), 1.0


@final
class Matern(DistanceKernel):
    """k(x, y) = 2^(1-ν)/Γ(ν) s^ν K_ν(s), s = sqrt(2ν) ‖x - y‖ / length_scale.

    The parameters are those of scikit-learn's Gaussian processes. ν = 1/2 is exp(-r/ℓ), ν = 3/2 and 5/2 have closed
    forms, ν = ∞ is exp(-r²/(2ℓ²)); any real ν > 0 is taken.

    Parameters
    ----------
    nu : float, default=1.5
        The order ν: sample paths have ⌈ν⌉ - 1 derivatives.
    length_scale : float, array of shape (d,) or {"median", "slope", "columns"}, default="median"
        The length ℓ, one for each column, or the rule it is found by.
    """

    _length_name = "length_scale"
    _elsewhere: ClassVar[dict[str, str]] = {"sigma": "length_scale = sigma"}

    def __init__(self, nu: float = 1.5, length_scale: Any = "median") -> None:
        self.nu = nu
        self.length_scale = length_scale

    def _profile(self, n_features: int) -> tuple[profiles.Profile, float]:
        if self.nu == np.inf:
            return profiles.Exponential(), 1 / np.sqrt(2)
        nu = positive_number(self.nu, "nu")
        return matern_profile(nu), float(np.sqrt(2 * nu))


@final
class Sobolev(DistanceKernel):
    """The reproducing kernel of the Sobolev space W₂ˢ on points with d features, scaled to k(x, x) = 1.

    k(x, y) = 2^(1-ν)/Γ(ν) s^ν K_ν(s), s = ‖x - y‖ / length_scale, ν = smoothness - d/2: the kernel of the norm
    ‖(1 - ℓ²Δ)^(smoothness/2) f‖ in L². :class:`Matern` of the same ν has an equivalent norm.

    Parameters
    ----------
    smoothness : float, default=2
        The order s, any real number above half the number of features.
    length_scale : float, array of shape (d,) or {"median", "slope", "columns"}, default="median"
        The length ℓ, one for each column, or the rule it is found by.
    """

    _length_name = "length_scale"
    _elsewhere: ClassVar[dict[str, str]] = {"sigma": "length_scale = sigma", "nu": "smoothness = nu + n_features/2"}

    def __init__(self, smoothness: float = 2.0, length_scale: Any = "median") -> None:
        self.smoothness = smoothness
        self.length_scale = length_scale

    def _profile(self, n_features: int) -> tuple[profiles.Profile, float]:
        smoothness = positive_number(self.smoothness, "smoothness")
        if smoothness <= n_features / 2:
            raise ValueError(
                f"smoothness={smoothness:g} must exceed half the number of features, {n_features / 2:g}: "
                "functions of that space are not continuous, so it has no kernel."
            )
        return matern_profile(smoothness - n_features / 2), 1.0


def matern_profile(nu: float) -> profiles.Profile:
    """2^(1-ν)/Γ(ν) s^ν K_ν(s) as a function of t = s², in closed form where there is one."""
    closed = {0.5: (0.0, 0.0), 1.5: (1.0, 0.0), 2.5: (1.0, 1.0 / 3.0)}
    return profiles.RootExponential(*closed[nu]) if nu in closed else profiles.BesselMatern(nu)
