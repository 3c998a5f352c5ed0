"""The profiles of :mod:`mercer.backends.profiles` on NumPy arrays, in place, with their logarithms.

Most entries are made by the compiled loops of :mod:`mercer.backends.cpu.rows`; these are for what no loop knows (Bessel
functions), for parts of forms that are not all compiled, and for the diagonal.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.debye import log_matern_debye
from mercer.backends.profiles import (
    BesselMatern,
    Exponential,
    Identity,
    PowerOfAffine,
    Profile,
    RootExponential,
    TanhOfAffine,
)
from mercer.backends.rounding import TINY

_SERIES_BELOW = 1e-3
_DEBYE_FROM = 100.0
_DEBYE_BEYOND = 1e6


def log_in_place(values: Array) -> None:
    """Replace values by their logarithm, minus infinity where they are zero or negative."""
    with np.errstate(divide="ignore"):
        np.log(np.maximum(values, 0, out=values), out=values)


@singledispatch
def apply(profile: Profile, t: Array) -> None:
    """Replace t by f(t), in place."""
    raise TypeError(f"No profile {type(profile).__name__} on the CPU.")


@singledispatch
def apply_log(profile: Profile, t: Array) -> None:
    """Replace t by log f(t), in place, finite where f underflows; minus infinity where f is zero or negative."""
    apply(profile, t)
    log_in_place(t)


@apply.register
def _(profile: Exponential, t: Array) -> None:
    np.exp(np.negative(t, out=t), out=t)


@apply_log.register
def _(profile: Exponential, t: Array) -> None:
    np.negative(t, out=t)


@apply.register
def _(profile: RootExponential, t: Array) -> None:
    s = np.sqrt(t)
    a, b = s.dtype.type(profile.linear), s.dtype.type(profile.quadratic)
    np.exp(-s, out=t)
    t *= 1 + s * (a + b * s)


@apply_log.register
def _(profile: RootExponential, t: Array) -> None:
    s = np.sqrt(t)
    a, b = s.dtype.type(profile.linear), s.dtype.type(profile.quadratic)
    np.log(1 + s * (a + b * s), out=t)
    t -= s


@apply.register
def _(profile: Identity, t: Array) -> None:
    """Leave t as it is."""


@apply.register
def _(profile: PowerOfAffine, t: Array) -> None:
    t *= t.dtype.type(profile.gamma)
    t += t.dtype.type(profile.coef0)
    if profile.degree % 1 and np.any(t < 0):
        raise ValueError(f"degree={profile.degree:g} must be a whole number: γ x · y + c is negative on this data.")
    with np.errstate(over="ignore"):  # what is not finite is named by the callers
        np.power(t, t.dtype.type(profile.degree), out=t)


@apply.register
def _(profile: TanhOfAffine, t: Array) -> None:
    t *= t.dtype.type(profile.gamma)
    t += t.dtype.type(profile.coef0)
    np.tanh(t, out=t)


@apply.register
def _(profile: BesselMatern, t: Array) -> None:
    apply_log(profile, t)
    np.exp(t, out=t)


@apply_log.register
def _(profile: BesselMatern, t: Array) -> None:
    # log K_ν comes from scipy's scaled Bessel function up to order 100 and s = 10⁶ and from Debye's expansion beyond,
    # where K_ν overflows or scipy gives up; near s = 0 the power series of f takes over.
    nu = profile.order
    s = np.sqrt(t.astype(np.float64))
    value = log_matern_debye(s, nu) if nu > _DEBYE_FROM else _log_matern(s, nu)
    t[...] = np.where(s > 0, np.minimum(value, 0.0), 0.0)


def _log_matern(s: Array, nu: float) -> Array:
    """log f_ν(s) by scipy's Bessel function."""
    from scipy.special import gammaln, kve

    near = np.clip(s, TINY, _DEBYE_BEYOND)
    with np.errstate(divide="ignore", over="ignore"):
        bessel = np.log(kve(nu, near)) - near
    value = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(near) + bessel
    if nu > 4:  # three terms of the series hold below the first order that is not analytic, s^(2ν)
        tiny = s**2 < _SERIES_BELOW * (nu - 1)
        u = np.where(tiny, s**2 / 4, 0.0)
        series = -u / (nu - 1) * (1 - u / (2 * (nu - 2)) * (1 - u / (3 * (nu - 3))))
        value = np.where(tiny, np.log1p(series), value)
    return np.where(s > near, log_matern_debye(np.maximum(s, _DEBYE_BEYOND), nu), value)
