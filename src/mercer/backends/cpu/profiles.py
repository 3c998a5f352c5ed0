"""The profiles of :mod:`mercer.backends.profiles` on NumPy arrays, in place, with their logarithms.

The two that most products spend their time in, exp(-t) and (1 + a s + b s²) exp(-s), are compiled loops of
:mod:`mercer.backends.cpu.compiled`; the others run as NumPy expressions.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from mercer.backends.profiles import (
    BesselMatern,
    Exponential,
    Identity,
    PowerOfAffine,
    Profile,
    RootExponential,
    TanhOfAffine,
)

Array = np.ndarray[Any, np.dtype[Any]]

_SERIES_BELOW = 1e-3
_DEBYE_FROM = 100.0
_DEBYE_BEYOND = 1e6


def log_in_place(values: Array) -> None:
    """Replace values by their logarithm, minus infinity where they are zero or negative."""
    with np.errstate(divide="ignore"):
        np.log(np.maximum(values, 0, out=values), out=values)


@singledispatch
def apply(profile: Profile, t: Array) -> None:
    """Replace t by f(t), in place; t has two axes."""
    raise TypeError(f"No profile {type(profile).__name__} on the CPU.")


@singledispatch
def apply_log(profile: Profile, t: Array) -> None:
    """Replace t by log f(t), in place, finite where f underflows; minus infinity where f is zero or negative."""
    apply(profile, t)
    log_in_place(t)


@apply.register
def _(profile: Exponential, t: Array) -> None:
    from mercer.backends.cpu import compiled

    compiled.exponential(t)


@apply_log.register
def _(profile: Exponential, t: Array) -> None:
    np.negative(t, out=t)


@apply.register
def _(profile: RootExponential, t: Array) -> None:
    from mercer.backends.cpu import compiled

    compiled.root_exponential(t, t.dtype.type(profile.linear), t.dtype.type(profile.quadratic))


@apply_log.register
def _(profile: RootExponential, t: Array) -> None:
    s = np.sqrt(t)
    a, b = s.dtype.type(profile.linear), s.dtype.type(profile.quadratic)
    np.log(1 + s * (a + b * s), out=t)
    t -= s


@apply.register
def _(profile: Identity, t: Array) -> None:
    pass


@apply.register
def _(profile: PowerOfAffine, t: Array) -> None:
    t *= t.dtype.type(profile.gamma)
    t += t.dtype.type(profile.coef0)
    if profile.degree % 1 and np.any(t < 0):
        raise ValueError(f"degree={profile.degree:g} must be a whole number: γ x · y + c is negative on this data.")
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
    from scipy.special import gammaln

    nu = profile.order
    s = np.sqrt(t.astype(np.float64))
    tiny = s**2 < _SERIES_BELOW * max(nu - 1, 0.0)
    safe = np.where(s > 0, s, 1.0)
    value = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(safe) + _log_bessel(nu, safe)
    if nu > 4:  # three terms of the series hold below the first order that is not analytic, s^(2ν)
        u = np.where(tiny, s**2 / 4, 0.0)
        series = -u / (nu - 1) * (1 - u / (2 * (nu - 2)) * (1 - u / (3 * (nu - 3))))
        value = np.where(tiny, np.log1p(series), value)
    t[...] = np.where(s > 0, np.minimum(value, 0.0), 0.0)


def _log_bessel(nu: float, s: Array) -> Array:
    """log K_ν(s), s > 0."""
    if nu > _DEBYE_FROM:
        return _debye(nu, s)
    from scipy.special import kve

    near = np.minimum(s, _DEBYE_BEYOND)
    with np.errstate(divide="ignore", over="ignore"):
        value = np.log(kve(nu, near)) - near
    return np.where(s > near, _debye(nu, np.maximum(s, _DEBYE_BEYOND)), value)


def _debye(nu: float, s: Array) -> Array:
    """Four terms of DLMF 10.41.4; for large s they are those of the expansion in 1/s."""
    z = s / nu
    root = np.hypot(1.0, z)
    eta = root + np.log(z / (1 + root))
    p = 1 / root
    p2 = p * p
    terms = (  # u_k(p) of DLMF 10.41.10, with the sign (-1)^k of K_ν
        -p * (3 - 5 * p2) / 24,
        p2 * (81 - 462 * p2 + 385 * p2**2) / 1152,
        -p * p2 * (30375 - 369603 * p2 + 765765 * p2**2 - 425425 * p2**3) / 414720,
        p2**2 * (4465125 - 94121676 * p2 + 349922430 * p2**2 - 446185740 * p2**3 + 185910725 * p2**4) / 39813120,
    )
    tail = sum(term / nu ** (k + 1) for k, term in enumerate(terms))
    return np.asarray(0.5 * np.log(np.pi / (2 * nu)) - nu * eta - 0.5 * np.log(root) + np.log1p(tail))
