"""The vocabulary in which a kernel declares how it is evaluated.

A form is data, not code: a pairing of two points (a distance or an inner product) followed by a scalar profile, and
sums, products, multiples, powers and normalisations of forms. What has no such structure gives a function of its own. A
device makes a :class:`mercer.backends.matrix.KernelMatrix` of a form and points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mercer.backends.profiles import Exponential, Profile
from mercer.backends.rounding import UNIT, EntryError

_OF_ROOT = 5  # roundings of the square of a length that was divided by a root
Metric = Literal["sqeuclidean", "cityblock", "chi2", "mismatches", "dot", "cosine"]


class Form:
    """Base of all forms."""

    @property
    def parts(self) -> tuple[Form, ...]:
        """The forms that this one is made of."""
        return tuple(part for part in vars(self).values() if isinstance(part, Form))

    @property
    def of_logarithms(self) -> bool:
        """Whether what is given are logarithms of entries."""
        return any(part.of_logarithms for part in self.parts)


@dataclass(frozen=True)
class Pairing(Form):
    """k(x, y) = profile(metric(x / length, y / length)); inner products take no length.

    A tuple has a length for each column. Columns in which x and y differ are mismatches, each counts 1 / length.

    Attributes
    ----------
    rounding : float
        How far the distance can be from that of the kernel for the rounding of the length, relative to it.
    """

    metric: Metric
    profile: Profile
    length: float | tuple[float, ...] = 1.0
    rounding: float = 0.0


@dataclass(frozen=True)
class Stored(Form):
    """The entries are given: the points are rows of the matrix itself.

    Attributes
    ----------
    new_diagonal : float or None
        k(x, x) of points that are not training points; None means that of the training points, if it is constant.
    error : EntryError
        How far an entry given, in double precision, can be from the kernel's value that it stands for.
    logarithms : bool
        Whether log k is given, of which a sparse matrix leaves out minus infinity.
    """

    new_diagonal: float | None = None
    error: EntryError = field(default=EntryError(0.0))
    logarithms: bool = False

    @property
    def of_logarithms(self) -> bool:
        return self.logarithms


@dataclass(frozen=True)
class TileFunction(Form):
    """Blocks of entries come from a function: for kernels that are no metric with a profile.

    Attributes
    ----------
    function : callable
        Of some rows and some columns of points, n × d and m × d, returns the n × m block, an array of the library of
        the points. It is called from several threads at once, for blocks of any shape, and k(x, y) = k(y, x).
    diagonal : callable
        Of some points, returns k(x, x) of each.
    roundings : EntryError
        How far an entry that the function returns can be from the kernel's value, in roundings of the precision it is
        computed in: a sum of d terms that are not negative errs by d roundings of itself, ``EntryError(d)``; one of
        terms of either sign by d roundings of √(k(x, x) k(y, y)), ``EntryError(0, d)``. Proofs rest on it.
    logarithm : callable or None
        As ``function``, log k; needed where k underflows far from the data.
    nonnegative : bool
        Whether k ≥ 0 everywhere.
    cost : float
        What an entry costs, in units of one coordinate of an inner product.
    """

    function: Callable[[Any, Any], Any]
    diagonal: Callable[[Any], Any]
    roundings: EntryError
    logarithm: Callable[[Any, Any], Any] | None = None
    nonnegative: bool = False
    cost: float = 1000.0


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


def power_of(inner: Form, exponent: float) -> Form:
    """The entrywise power of a form; that of a Gaussian is a Gaussian, whose entries take no power to make."""
    gaussian = isinstance(inner, Pairing) and inner.metric == "sqeuclidean" and isinstance(inner.profile, Exponential)
    if not gaussian:
        return PowerOf(inner, exponent)
    assert isinstance(inner, Pairing)
    root, length = math.sqrt(exponent), inner.length
    length = tuple(each / root for each in length) if isinstance(length, tuple) else length / root
    return replace(inner, length=length, rounding=inner.rounding + _OF_ROOT * UNIT)


@dataclass(frozen=True)
class OnColumns(Form):
    """A form of some columns of the points, in this order."""

    inner: Form
    columns: tuple[int, ...]


@dataclass(frozen=True)
class NormalizedOf(Form):
    """k(x, y) / sqrt(k(x, x) k(y, y)); zero where a diagonal entry is zero."""

    inner: Form


def require_block(values: Any, shape: tuple[int, ...]) -> None:
    """Refuse what a function of a kernel returned if it has another shape, which NumPy would repeat to fit."""
    if tuple(getattr(values, "shape", ())) != tuple(shape):
        raise ValueError(
            f"The function of a kernel returned an array of shape {tuple(getattr(values, 'shape', ()))} for a block "
            f"of shape {tuple(shape)}."
        )
