"""What a fused product needs to know of a form on its points: how they are paired, and which profile follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from mercer.backends.profiles import Exponential, Identity, PowerOfAffine, Profile, RootExponential

Tensor = Any

SQUARES, ABSOLUTE, PRODUCTS = 0, 1, 2  # PAIR of the kernel
DOT_FROM = 16  # coordinates: fewer are paired one by one, as the matrix units want sixteen
CHUNK = 32  # coordinates that are paired at a time, a multiple of DOT_FROM
_LARGEST_DEGREE = 12  # of a polynomial, which is multiplied out


@dataclass(frozen=True)
class Side:
    """The points of one side as the kernel reads them.

    Attributes
    ----------
    points : tensor of shape (d, n) or (n, D)
        Coordinate by coordinate, or row by row and padded with zeros to D coordinates, for ``tl.dot``.
    norms : tensor of shape (n,)
        Squared norms where distances come from inner products; else empty.
    """

    points: Tensor
    norms: Tensor


@dataclass(frozen=True)
class Plan:
    """A form that has a fused product, and its points as they are paired.

    Attributes
    ----------
    pair : int
        Squares of differences, absolute differences, or products of coordinates.
    norms : bool
        Whether the inner products become squared distances.
    by_dot : bool
        Whether inner products are made by ``tl.dot``.
    weights : tensor of shape (d,)
        Of the coordinates, where each has its own; else empty.
    numbers : tensor of shape (4,)
        The factor of a distance, the largest there is, and two numbers of the profile, in double precision.
    profile, degree : int
        Which profile, and the degree of a polynomial.
    rows, cols : Side
        The points.
    diagonal : tensor of shape (n,)
        k(x, x) of a symmetric matrix; else empty. Its precision is that of the entries.
    """

    pair: int
    norms: bool
    by_dot: bool
    weights: Tensor
    numbers: Tensor
    profile: int
    degree: int
    n_features: int
    symmetric: bool
    rows: Side
    cols: Side
    diagonal: Tensor


def profile_numbers(profile: Profile) -> tuple[int, int, float, float] | None:
    """The number of a profile in the kernel, its degree, and two numbers of it; None where it has no fused form."""
    if isinstance(profile, Exponential):
        return 0, 1, 0.0, 0.0
    if isinstance(profile, RootExponential):
        return 1, 1, profile.linear, profile.quadratic
    if isinstance(profile, Identity):
        return 2, 1, 0.0, 0.0
    if isinstance(profile, PowerOfAffine) and profile.degree in range(1, _LARGEST_DEGREE + 1):
        return 3, int(profile.degree), profile.gamma, profile.coef0
    return None


def pairs_by_dot(n_features: int, pair: int) -> bool:
    """Whether so many coordinates are multiplied on the matrix units."""
    return pair == PRODUCTS and n_features >= DOT_FROM


def side_of(points: Tensor, norms: Tensor | None, by_dot: bool) -> Side:
    """Prepared points, n × d, as the kernel reads them."""
    empty = points.new_empty(0)
    if not by_dot:
        return Side(points.T.contiguous(), empty if norms is None else norms)
    missing = -int(points.shape[1]) % CHUNK
    return Side(torch.nn.functional.pad(points, (0, missing)).contiguous(), empty if norms is None else norms)
