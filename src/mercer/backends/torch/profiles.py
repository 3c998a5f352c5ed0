"""Scalar profiles on tensors: f(t) and its logarithm, which stays finite where f underflows."""

from __future__ import annotations

from typing import Any

import torch

from mercer.backends.profiles import (
    BesselMatern,
    Exponential,
    Identity,
    PowerOfAffine,
    Profile,
    RootExponential,
    TanhOfAffine,
)
from mercer.backends.torch.bessel import log_matern
from mercer.backends.torch.entries import log_in_place

Tensor = Any


def applied(profile: Profile, t: Tensor, *, log: bool = False) -> Tensor:
    """f(t), or log f(t): minus infinity where f is zero or negative. The tensor t may be overwritten."""
    if log:
        return _logarithm(profile, t)
    if isinstance(profile, Identity):
        return t
    if isinstance(profile, Exponential):
        return t.neg_().exp_()
    if isinstance(profile, RootExponential):
        s = t.sqrt_()
        return _polynomial(profile, s).mul_(torch.exp(-s))
    if isinstance(profile, BesselMatern):
        return log_matern(t.double().sqrt(), profile.order).exp_().to(t.dtype)
    if isinstance(profile, PowerOfAffine):
        return _power_of_affine(profile, t)
    if isinstance(profile, TanhOfAffine):
        return t.mul_(profile.gamma).add_(profile.coef0).tanh_()
    raise TypeError(f"{type(profile).__name__} has no formula on tensors.")


def _logarithm(profile: Profile, t: Tensor) -> Tensor:
    if isinstance(profile, Exponential):
        return t.neg_()
    if isinstance(profile, RootExponential):
        s = t.sqrt_()
        return _polynomial(profile, s).log_().sub_(s)
    if isinstance(profile, BesselMatern):
        return log_matern(t.double().sqrt(), profile.order).to(t.dtype)
    return log_in_place(applied(profile, t))


def _polynomial(profile: RootExponential, s: Tensor) -> Tensor:
    return (s * profile.quadratic).add_(profile.linear).mul_(s).add_(1.0)


def _power_of_affine(profile: PowerOfAffine, t: Tensor) -> Tensor:
    t = t.mul_(profile.gamma).add_(profile.coef0)
    if profile.degree % 1 and bool((t < 0).any()):
        raise ValueError(f"degree={profile.degree:g} must be a whole number: γ x · y + c is negative on this data.")
    return t.pow_(profile.degree)
