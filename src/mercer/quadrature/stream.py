"""Landmarks of a stream of rows by merge and reduce, with a bound on their discrepancy that is carried along.

Rows wait until a block of them is full, whatever portions they come in, and the block becomes a measure on a few of
them. Two measures of as many blocks lie side by side, and are reduced to one of as few nodes again: a binary tree, of
which one measure a level is kept, so that N rows in blocks of B go through log₂(N/B) reductions at most. The last one,
of all measures and the rows that still wait, leaves the nodes that were asked for, whenever somebody asks.
:mod:`mercer.certificates.stream` has the bound.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, distinct_rows
from mercer.backends.rounding import UNIT, exact_sum, times_power_of_two

BLOCK = 8192  # rows that become a measure at a time: all pairs of them are looked at
KEPT = 2  # times the nodes asked for, that measures on the way have
_ROUNDINGS = 16.0  # of a weight, when measures are brought to one mass and back


class Reduced(NamedTuple):
    """Some of the points given, weights for a sample of mass one, a bound on √(2D), and columns evaluated."""

    nodes: Array
    weights: Array
    distance: float
    n_columns: int


Reduce = Callable[[Array, Array, int], Reduced]  # of points, weights and a number of nodes
Roots = Callable[[Array], Array]  # of points: κ, the root of the diagonal of S


@final
@dataclass(frozen=True, eq=False)
class Summary:
    """A measure that stands for some rows of the stream.

    Attributes
    ----------
    points, weights, rows : arrays of shapes (m, d), (m,) and (m,)
        Its nodes, what they weigh, and which rows of the stream they are.
    mass : float
        The weight of the rows that it stands for.
    blocks, reductions : float
        Bounds on its distance from them: of what replaced rows, and of what replaced measures.
    level : int
        How often it was merged.
    """

    points: Array
    weights: Array
    rows: Array
    mass: float
    blocks: float = 0.0
    reductions: float = 0.0
    level: int = 0

    def beside(self, other: Summary) -> Summary:
        """Both measures as one, a level higher."""
        joined = (np.concatenate(pair) for pair in zip(self._arrays, other._arrays, strict=True))
        points, weights, rows = joined
        bounds = self.blocks + other.blocks, self.reductions + other.reductions
        return Summary(points, weights, rows, self.mass + other.mass, *bounds, max(self.level, other.level) + 1)

    @property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.points, self.weights, self.rows


class Waiting(NamedTuple):
    """Rows of the stream that are kept until their block is full, and their weights."""

    points: Array
    weights: Array

    @property
    def size(self) -> int:
        """How many rows they are."""
        return int(self.weights.shape[0])

    def before(self, other: Waiting) -> Waiting:
        """These rows and then others."""
        return Waiting(np.concatenate([self.points, other.points]), np.concatenate([self.weights, other.weights]))


@final
@dataclass(frozen=True, eq=False)
class MeasureStream:
    """What is kept of a stream.

    Attributes
    ----------
    discrepancy : str
        What its distances are of.
    n_nodes : int
        How many nodes it is to have in the end.
    n_seen, n_columns : int
        Rows so far, and columns of S evaluated.
    trace : float
        Σ w k(x, x).
    digits : int
        Of the rows, for the fingerprint.
    power : int
        Weights are in units of two to this power, so that those of the first rows are near one.
    lightest, heaviest : float
        Of the weights of the rows.
    summaries : tuple of Summary
        At most one of each level, the highest first.
    waiting : tuple of Waiting
        The newest rows, fewer than a block, in parts each of which is half as long as the one before at most: a row is
        copied a few times until its block is full, however few come at a time.
    """

    discrepancy: str
    n_nodes: int = 0
    n_seen: int = 0
    n_columns: int = 0
    trace: float = 0.0
    digits: int = 0
    power: int = 0
    lightest: float = 0.0
    heaviest: float = 0.0
    summaries: tuple[Summary, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def mass(self) -> float:
        """The weight of all rows."""
        return exact_sum([each.mass for each in self._parts()])

    @property
    def is_even(self) -> bool:
        """Whether all rows have the same weight."""
        return self.lightest == self.heaviest

    @property
    def dtype(self) -> Any:
        """The arithmetic of its points."""
        parts: tuple[Summary | Waiting, ...] = (*self.summaries, *self.waiting)
        return parts[0].points.dtype

    def in_its_unit(self, weights: Array) -> tuple[Array, MeasureStream]:
        """Weights of further rows in the unit of the stream, which its first rows decide, and the stream with it."""
        power = self.power if self.heaviest > 0 else math.frexp(float(weights.max()))[1] - 1
        with np.errstate(over="ignore"):
            weights = times_power_of_two(weights, -power)
        least, most = float(weights.min()), max(self.heaviest, float(weights.max()))
        if not math.isfinite((self.n_seen + weights.shape[0]) * most):
            raise ValueError("The weights of these rows are too large beside those of the first rows of the stream.")
        least = min(self.lightest, least) if self.n_seen else least
        return weights, replace(self, power=power, lightest=least, heaviest=most)

    @property
    def n_waiting(self) -> int:
        """How many rows wait for their block to be full."""
        return sum(each.size for each in self.waiting)

    def grown(self, points: Array, weights: Array, n_nodes: int, of: Reduction) -> MeasureStream:
        """With further rows."""
        stream = self
        while points.shape[0]:
            part = max(0, BLOCK - stream.n_waiting)
            stream = stream._with_rows(points[:part], weights[:part])
            points, weights = points[part:], weights[part:]
            if stream.n_waiting >= BLOCK:
                stream = stream._with_block(KEPT * n_nodes, of)
        return stream

    def _with_rows(self, points: Array, weights: Array) -> MeasureStream:
        """With further rows that wait; they are copied, for their owner may write others in their place."""
        waiting = [*self.waiting, Waiting(np.array(points), np.array(weights))]
        while len(waiting) > 1 and waiting[-2].size < 2 * waiting[-1].size:
            waiting[-2:] = [waiting[-2].before(waiting[-1])]
        return replace(self, waiting=tuple(waiting), n_seen=self.n_seen + points.shape[0])

    def _with_block(self, kept: int, of: Reduction) -> MeasureStream:
        """With a measure in the place of the rows that wait, and measures of as many blocks merged."""
        *summaries, block = self._parts()
        columns = self.n_columns
        if block.mass > 0:
            block, spent = of(block, kept, raw=True)
            columns += spent
            summaries.append(block)
        while len(summaries) > 1 and summaries[-1].level >= summaries[-2].level:
            merged, spent = of(summaries[-2].beside(summaries[-1]), kept)
            columns += spent
            summaries[-2:] = [merged]
        return replace(self, summaries=tuple(summaries), n_columns=columns, waiting=())

    def collapsed(self, n_nodes: int, of: Reduction) -> tuple[Summary, int]:
        """One measure of the nodes asked for, and the columns evaluated on the way."""
        return of(reduce(Summary.beside, self._parts()), n_nodes, raw=not self.summaries)

    def _parts(self) -> tuple[Summary, ...]:
        """The measures, and the rows that wait as one of their own."""
        if not self.waiting:
            return self.summaries
        points, weights = reduce(Waiting.before, self.waiting)
        rows = np.arange(self.n_seen - self.n_waiting, self.n_seen)
        return *self.summaries, Summary(points, weights, rows, exact_sum(weights))


@final
class Reduction:
    """Measures reduced to fewer nodes, and what that adds to the bound.

    Parameters
    ----------
    reduced : callable
        Of points, weights and a number of nodes, as :class:`Reduced`.
    roots : callable
        κ of points.
    """

    def __init__(self, reduced: Reduce, roots: Roots) -> None:
        self._reduced, self._roots = reduced, roots

    def __call__(self, summary: Summary, kept: int, *, raw: bool = False) -> tuple[Summary, int]:
        """The measure with at most so many nodes, and columns evaluated; ``raw`` says that its points are rows."""
        points, weights, rows, added_up = _distinct(summary)
        if added_up:
            rounding = added_up * UNIT * float(weights @ as_double(self._roots(points)))
            summary = replace(summary, reductions=summary.reductions + rounding)
        if points.shape[0] <= kept:
            return replace(summary, points=points, weights=weights, rows=rows), 0
        mass = exact_sum(weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer nodes do as well, or a solver stalls: the bound says how far it is
            found = self._reduced(points, weights, kept)
        nodes = points[found.nodes]
        rounding = _ROUNDINGS * UNIT * float((mass * found.weights) @ as_double(self._roots(nodes)))
        added = mass * found.distance + rounding
        kept_rows = {"points": nodes, "weights": mass * found.weights, "rows": rows[found.nodes]}
        if raw:
            return replace(summary, **kept_rows, blocks=summary.blocks + added), found.n_columns
        return replace(summary, **kept_rows, reductions=summary.reductions + added), found.n_columns


def _distinct(summary: Summary) -> tuple[Array, Array, Array, int]:
    """Points of positive weight, each once with all its weight, and how many weights were added up at one at most."""
    heavy = summary.weights > 0
    points, weights, rows = summary.points[heavy], summary.weights[heavy], summary.rows[heavy]
    first, place = distinct_rows(points)
    most = int(np.bincount(place).max(initial=1))
    return points[first], np.bincount(place, weights), rows[first], most if most > 1 else 0
