"""A form as a list of steps for compiled loops: leaves (a pairing and a profile) and what joins them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.cpu.steps import COSINE, DOT, EXPONENTIAL, INNER, LEAF, NORMALISE, SQUARED
from mercer.backends.entries import FormEntries, Which


class Program(NamedTuple):
    """What an entry of the matrix is, in arrays that compiled loops read.

    Attributes
    ----------
    steps : array of shape (s, 3)
        Step, argument (a leaf, or a row of scales), and whether the step works on logarithms.
    values : array of shape (s,)
        The number of a step: a factor or an exponent.
    depth : int
        Blocks of entries that exist at the same time.
    pairings, profiles : arrays of shape (l,)
        Of the leaves.
    numbers : array of shape (l, 6)
        Limits, factors and parameters of the leaves.
    widths, columns : arrays of shape (l,) and (l, d)
        How many columns of the points each leaf reads, and which; d is the most that one reads.
    centers, scales, weights : arrays of shape (l, d)
        What is subtracted from points before inner products, what they are scaled by, and what differences count.
    row_scales, col_scales : arrays of shape (k, n) and (k, m)
        Of normalised kernels.
    diagonal : array of shape (n,) or (0,)
        k(x, x) of a symmetric matrix.
    by_products, any_products : bool
        Whether every leaf pairs points by inner products, and whether some leaf does.
    """

    steps: Array
    values: Array
    depth: int
    pairings: Array
    profiles: Array
    numbers: Array
    widths: Array
    columns: Array
    centers: Array
    scales: Array
    weights: Array
    row_scales: Array
    col_scales: Array
    diagonal: Array
    by_products: bool
    any_products: bool

    @property
    def is_gaussian(self) -> bool:
        """Whether an entry is exp(-t) of a squared distance and no more."""
        return self.steps.shape[0] == 1 and self.pairings[0] in (INNER, SQUARED) and self.profiles[0] == EXPONENTIAL


class Compiled(NamedTuple):
    """A program, the points it runs on, the arithmetic in which it pairs them, and what is kept between products."""

    program: Program
    points: tuple[Array, Array]
    work: np.dtype[Any]
    kept: dict[str, Any]

    @property
    def n_features(self) -> int:
        """Coordinates of a point that a leaf reads, at most."""
        return int(self.program.columns.shape[1])


class NotCompiledError(Exception):
    """A form has a part that compiled loops do not know."""


class Leaf(NamedTuple):
    """A pairing of points that are centred and scaled column by column, and its profile."""

    pairing: int
    profile: int
    numbers: list[float]
    centers: Array
    scales: Array
    weights: Array


@dataclass
class Builder:
    """Collects the steps of a form from its evaluators, which emit themselves in the order in which they run."""

    steps: list[tuple[int, int, bool]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    columns: list[Array] = field(default_factory=list)
    scales: list[tuple[Array, Array]] = field(default_factory=list)
    work: list[np.dtype[Any]] = field(default_factory=list)
    depth: int = 0
    _height: int = 0
    _read: Array | None = None

    def leaf(self, leaf: Leaf, work: np.dtype[Any], log: bool) -> None:
        """A pairing with its profile: a block of entries on top of the others."""
        self._height += 1
        self.depth = max(self.depth, self._height)
        self.step(LEAF, len(self.leaves), log)
        self.leaves.append(leaf)
        self.columns.append(np.arange(leaf.scales.size) if self._read is None else self._read)
        self.work.append(work)

    @contextmanager
    def on(self, columns: tuple[int, ...]) -> Iterator[None]:
        """What is emitted inside reads these columns of what is read outside."""
        outside, chosen = self._read, np.array(columns, np.int64)
        self._read = chosen if outside is None else outside[chosen]
        yield
        self._read = outside

    def join(self, step: int, log: bool) -> None:
        """The two topmost blocks become one."""
        self._height -= 1
        self.step(step, 0, log)

    def scaled(self, row_scales: Array, col_scales: Array, log: bool) -> None:
        """The topmost block is multiplied by scales of its rows and columns."""
        self.step(NORMALISE, len(self.scales), log)
        self.scales.append((row_scales, col_scales))

    def step(self, step: int, argument: int, log: bool, value: float = 0.0) -> None:
        """Any other step on the topmost block."""
        self.steps.append((step, argument, log))
        self.values.append(value)

    @property
    def widest(self) -> np.dtype[Any]:
        """The arithmetic that is accurate enough for every pairing."""
        return np.result_type(*self.work)

    def program(self, shape: tuple[int, int], diagonal: Array, dtype: Any) -> Program:
        """The arrays of what was emitted."""
        rows, cols = (
            np.array([pair[side] for pair in self.scales], dtype).reshape(len(self.scales), shape[side])
            for side in (0, 1)
        )
        return Program(
            np.array(self.steps, np.int64),
            np.array(self.values, np.float64),
            self.depth,
            np.array([leaf.pairing for leaf in self.leaves], np.int64),
            np.array([leaf.profile for leaf in self.leaves], np.int64),
            np.array([leaf.numbers for leaf in self.leaves], np.float64),
            np.array([columns.size for columns in self.columns], np.int64),
            _padded(self.columns, np.int64),
            _padded([leaf.centers for leaf in self.leaves]),
            _padded([leaf.scales for leaf in self.leaves], fill=1.0),
            _padded([leaf.weights for leaf in self.leaves]),
            rows,
            cols,
            diagonal,
            all(leaf.pairing in (INNER, DOT, COSINE) for leaf in self.leaves),
            any(leaf.pairing in (INNER, DOT, COSINE) for leaf in self.leaves),
        )


def _padded(rows: list[Array], dtype: Any = np.float64, fill: float = 0.0) -> Array:
    """Arrays of several lengths as rows of one."""
    out = np.full((len(rows), max(row.size for row in rows)), fill, dtype)
    for place, row in zip(out, rows, strict=True):
        place[: row.size] = row
    return out


class Evaluator(FormEntries):
    """One form on given points, evaluated block by block.

    Most forms become a program of compiled loops (:attr:`compiled`); :meth:`values` is for those that do not.
    """

    @abstractmethod
    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        """Write k (or log k) of some rows and columns into the contiguous array out."""

    def emit(self, builder: Builder, *, log: bool) -> None:
        """Add the steps of a compiled program that makes k (or log k)."""
        raise NotCompiledError

    def fill(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        """Write k (or log k) of some rows and columns into out, with the diagonal as :meth:`diagonal` has it."""
        self.values(rows, cols, out, log=log)
        self.set_diagonal(rows, cols, out, log=log)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The program of the entries; None where a part of the form is no program."""
        return self._compiled(log=False)

    @cached_property
    def compiled_log(self) -> Compiled | None:
        """The program of their logarithms."""
        return self._compiled(log=True)

    def _compiled(self, *, log: bool) -> Compiled | None:
        builder = Builder()
        try:
            self.emit(builder, log=log)
        except NotCompiledError:
            return None
        diagonal = self._diagonal if self.symmetric else np.empty(0, self.dtype)
        points = self._points["rows"], self._points["cols"]
        return Compiled(builder.program(self.shape, diagonal, self.dtype), points, builder.widest, {})
