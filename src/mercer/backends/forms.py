"""The vocabulary in which a kernel declares how it is evaluated.

A form is data, not code: a pairing of two points (a distance or an inner product) followed by a scalar profile, and
sums, products, multiples, powers and normalisations of forms. A backend compiles a form for its own device;
:mod:`mercer.backends.tiles` does so for CPU threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mercer.backends.profiles import Profile

Metric = Literal["sqeuclidean", "cityblock", "chi2", "dot", "cosine"]


class Form:
    """Base of all forms."""


@dataclass(frozen=True)
class Pairing(Form):
    """k(x, y) = profile(metric(x / length, y / length)); inner products take no length."""

    metric: Metric
    profile: Profile
    length: float = 1.0


@dataclass(frozen=True)
class Stored(Form):
    """The entries are given: the points are rows of the matrix itself."""

    new_diagonal: float | None = None


@dataclass(frozen=True)
class SumOf(Form):
    """Entrywise sum."""

    left: Form
    right: Form


@dataclass(frozen=True)
class ProductOf(Form):
    """Entrywise product."""

    left: Form
    right: Form


@dataclass(frozen=True)
class MultipleOf(Form):
    """A positive multiple."""

    factor: float
    inner: Form


@dataclass(frozen=True)
class PowerOf(Form):
    """Entrywise power."""

    inner: Form
    exponent: float


@dataclass(frozen=True)
class NormalizedOf(Form):
    """k(x, y) / sqrt(k(x, x) k(y, y)); zero where a diagonal entry is zero."""

    inner: Form
