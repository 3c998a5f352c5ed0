"""Convex losses of a prediction and a target: their pieces, their tangents, and both as balls with proved errors.

A loss is the largest of its tangents,

    ℓ(f, y) = max_p  p f + d(p, y),      d(p, y) = -ℓ*(p)

over slopes p of an interval. So any slope bounds the loss from below, whatever f is. A solver sees a loss as the larger
of one or two smooth pieces. Labels are y = ±1, and q = -y p lies between 0 and 1 for both losses of labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, ball, exponential, logarithm

_NOTHING = 1e-100  # a share q below is taken for zero, whose entropy is zero


class Pieces(NamedTuple):
    """The smooth pieces of a loss, their slopes and curvatures in f: arrays of shape (pieces, n)."""

    values: Array
    slopes: Array
    curvatures: Array


class Loss(ABC):
    """A convex function of f for every y.

    Attributes
    ----------
    degree : int
        The loss of c f, c y is c to this power that of f, y, where its own parameters are scaled too; 0 for labels.
    """

    degree: ClassVar[int]

    @abstractmethod
    def pieces(self, f: Array, y: Array) -> Pieces:
        """What the loss is the larger of."""

    @abstractmethod
    def admissible(self, slopes: Array, y: Array) -> Array:
        """The nearest slopes that tangents have."""

    @abstractmethod
    def intercepts(self, slopes: Array, y: Array) -> Array:
        """d(p, y) for admissible slopes."""

    @abstractmethod
    def enclosed(self, f: Ball, y: Array) -> Ball:
        """The loss of predictions that are known as balls."""

    @abstractmethod
    def enclosed_intercepts(self, slopes: Array, y: Array) -> Ball:
        """d(p, y) for admissible slopes that are exact."""

    def values(self, f: Array, y: Array) -> Array:
        """ℓ(f, y)."""
        return np.asarray(np.max(self.pieces(f, y).values, axis=0))

    def scaled(self, size: float) -> Loss:
        """The same loss for targets that were divided by some size."""
        return self


@final
class SquaredLoss(Loss):
    """(f - y)²."""

    degree = 2

    def pieces(self, f: Array, y: Array) -> Pieces:
        rest = (f - y)[None]
        return Pieces(rest**2, 2 * rest, np.full_like(rest, 2.0))

    def admissible(self, slopes: Array, y: Array) -> Array:
        return slopes

    def intercepts(self, slopes: Array, y: Array) -> Array:
        return -slopes * (y + slopes / 4)

    def enclosed(self, f: Ball, y: Array) -> Ball:
        return (f - y).squared()

    def enclosed_intercepts(self, slopes: Array, y: Array) -> Ball:
        return _quadratic_intercepts(slopes, y)


@final
class HuberLoss(Loss):
    """(f - y)² up to a distance δ, and the tangent 2δ ``abs(f - y)`` - δ² beyond.

    Parameters
    ----------
    threshold : float
        δ > 0.
    """

    degree = 2

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def pieces(self, f: Array, y: Array) -> Pieces:
        rest = (f - y)[None]
        near = np.clip(rest, -self.threshold, self.threshold)
        return Pieces(near * (2 * rest - near), 2 * near, np.where(near == rest, 2.0, 0.0))

    def admissible(self, slopes: Array, y: Array) -> Array:
        return np.clip(slopes, -2 * self.threshold, 2 * self.threshold)

    def intercepts(self, slopes: Array, y: Array) -> Array:
        return -slopes * (y + slopes / 4)

    def enclosed(self, f: Ball, y: Array) -> Ball:
        rest = _magnitude(f - y)
        beyond = _positive_part(rest - self.threshold)
        return (rest - beyond).squared() + (beyond * self.threshold).scaled(1)

    def enclosed_intercepts(self, slopes: Array, y: Array) -> Ball:
        return _quadratic_intercepts(slopes, y)

    def scaled(self, size: float) -> Loss:
        return HuberLoss(self.threshold / size)


@final
class AbsoluteLoss(Loss):
    """The distance of f from y."""

    degree = 1

    def pieces(self, f: Array, y: Array) -> Pieces:
        rest = f - y
        values = np.stack([rest, -rest])
        slopes = np.stack([np.ones_like(rest), -np.ones_like(rest)])
        return Pieces(values, slopes, np.zeros_like(values))

    def admissible(self, slopes: Array, y: Array) -> Array:
        return np.clip(slopes, -1.0, 1.0)

    def intercepts(self, slopes: Array, y: Array) -> Array:
        return -slopes * y

    def enclosed(self, f: Ball, y: Array) -> Ball:
        return _magnitude(f - y)

    def enclosed_intercepts(self, slopes: Array, y: Array) -> Ball:
        return -(ball(slopes) * y)


@final
class LogisticLoss(Loss):
    """log(1 + exp(-y f)); its intercepts are the entropy of q."""

    degree = 0

    def pieces(self, f: Array, y: Array) -> Pieces:
        margin = y * f
        small = np.exp(-np.abs(margin))
        share = np.where(margin > 0, small, 1.0) / (1 + small)  # 1/(1 + exp(margin))
        values = np.maximum(-margin, 0.0) + np.log1p(small)
        return Pieces(values[None], (-y * share)[None], (small / (1 + small) ** 2)[None])

    def admissible(self, slopes: Array, y: Array) -> Array:
        share = np.clip(-y * slopes, 0.0, 1.0)
        return -y * np.where(share < _NOTHING, 0.0, share)

    def intercepts(self, slopes: Array, y: Array) -> Array:
        share = -y * slopes
        inside = np.where((share > 0) & (share < 1), share, 0.5)
        entropy = -inside * np.log(inside) - (1 - inside) * np.log1p(-inside)
        return np.where(inside == share, entropy, 0.0)

    def enclosed(self, f: Ball, y: Array) -> Ball:
        cost = -(f * y)
        return _positive_part(cost) + logarithm(exponential(-_magnitude(cost)) + 1.0)

    def enclosed_intercepts(self, slopes: Array, y: Array) -> Ball:
        share = -y * slopes
        inside = ball(np.where((share > 0) & (share < 1), share, 0.5))
        rest = 1.0 - inside
        entropy = -(inside * logarithm(inside) + rest * logarithm(rest))
        mixed = inside.hi == share
        return Ball(*(np.where(mixed, part, 0.0) for part in (entropy.hi, entropy.lo, entropy.radius)))


@final
class HingeLoss(Loss):
    """The positive part of 1 - y f."""

    degree = 0

    def pieces(self, f: Array, y: Array) -> Pieces:
        values = np.stack([1 - y * f, np.zeros_like(f)])
        return Pieces(values, np.stack([-y, np.zeros_like(f)]), np.zeros_like(values))

    def admissible(self, slopes: Array, y: Array) -> Array:
        return -y * np.clip(-y * slopes, 0.0, 1.0)

    def intercepts(self, slopes: Array, y: Array) -> Array:
        return -y * slopes

    def enclosed(self, f: Ball, y: Array) -> Ball:
        return _positive_part(1.0 - f * y)

    def enclosed_intercepts(self, slopes: Array, y: Array) -> Ball:
        return ball(-y * slopes)  # y = ±1: without rounding


def _quadratic_intercepts(slopes: Array, y: Array) -> Ball:
    p = ball(slopes)
    return -(p * (p.scaled(-2) + y))


def _magnitude(x: Ball) -> Ball:
    """Absolute values, which move no further than their numbers."""
    sign = np.where(x.hi < 0, -1.0, 1.0)
    return Ball(sign * x.hi, sign * x.lo, x.radius)


def _positive_part(x: Ball) -> Ball:
    """The larger of x and zero, which moves no further than x."""
    positive = x.hi > 0
    return Ball(np.where(positive, x.hi, 0.0), np.where(positive, x.lo, 0.0), x.radius)
