"""An embedding at new points: affinities to the training points, in logarithms, and sums over them.

Far from the data every k(x, xⱼ) underflows. Written as k(x, xⱼ) = P_j e^t with t = maxⱼ log k(x, xⱼ), the weights P
stay between 0 and 1 and one of them is 1, so directions and averages are defined arbitrarily far away, and log Σⱼ k(x,
xⱼ) is finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, cast, is_source, like, namespace
from mercer.backends.row_source import by_blocks
from mercer.embedding.prescribed import Prescribed, rows_among
from mercer.kernels import Kernel
from mercer.kernels.checks import first_place
from mercer.linalg.tall import row_lengths, row_products
from mercer.operators import DiffusionOperator, GramOperator, ProjectedOperator
from mercer.support import Support

_LARGEST = float(np.log(np.finfo(np.float64).max))
_SQUARED = 0.25 * _LARGEST  # a logarithm of a length whose square leaves room for others


class SolvedLevel(NamedTuple):
    """A level in the scaled weights: its operator, its coordinates with their squared lengths, and its place."""

    operator: Any  # DiffusionOperator of the first level, ProjectedOperator of the others
    coordinates: Array
    diagonal: Array
    weight: float
    across: Array
    turn: Array


@final
@dataclass(frozen=True, eq=False)
class LevelExtension:
    """What one level needs beside the sums over the training points.

    With Q the basis of the earlier levels, q(x) its row at a point x, U = (I - QQᵀ)Ξ and S = QᵀĀQ, the direction of the
    level at x is that of ā(x)ᵀU - q(x)ᵀQᵀĀU and its squared length is d(x) - 2 ā(x)ᵀQ q(x) + q(x)ᵀSq(x). The first
    level has no Q.

    Attributes
    ----------
    rank : int
        Columns of Ξ.
    weight : float
        By what the coordinates are multiplied.
    log_longest : float
        The logarithm of the largest length in the training set.
    inside : array of shape (q, rank)
        QᵀĀU.
    middle : array of shape (q, q)
        S.
    across, turn : arrays of shapes (q, rank) and (rank, rank)
        How this level widens the basis, see :class:`mercer.embedding.levels.Complement`.
    """

    rank: int
    weight: float
    log_longest: float
    inside: Array
    middle: Array
    across: Array
    turn: Array


@final
@dataclass(frozen=True)
class Extension:
    """All that new points need of a solved embedding (PSD22 (1.5), PSD17 (12)); made of solution and data alone.

    The direction of Ξ(x) is that of Σⱼ wⱼ k(x, xⱼ) βⱼ with βⱼ = Ξⱼ/√mⱼ - mean/√vol, its squared length is
    d(x) = k(x, x)/m(x) - m(x)/vol. At a training point it is that of the solution (PSD22 Theorem 3.2). Further levels
    need the same sums of the columns of their U and of Q.

    Where the user prescribes d, the squared length of every level is the user's d(x), and points of the sample have the
    coordinates that they were given: a point with ā(x, x) < 0 repels itself, so that Σⱼ ā(x, xⱼ)Ξⱼ, in which it takes
    part, need not show where it lies, and a row that is shorter than prescribed has zero there.

    Attributes
    ----------
    kernel : Kernel
        Resolved.
    points : array or sparse array
        What the problem was solved on.
    support : Support
        Which rows of X these are, and their weights w in the user's unit.
    weights : array of shape (m,)
        w over the square of the support's unit.
    slopes : array of shape (m, r)
        β, in these weights: of every level's U, then of the basis Q of all levels but the last; then the user's d, to
        be averaged.
    log_volume : float
        The logarithm of the sum of all affinities, in these weights.
    levels : tuple of LevelExtension
        What is each level's own.
    prescribed : Prescribed or None
        The user's diagonal.
    known : tuple of arrays of shape (m, rank)
        The coordinates of every level, where the diagonal is the user's.
    """

    kernel: Kernel
    points: Any
    support: Support
    weights: Array
    slopes: Array
    log_volume: float
    levels: tuple[LevelExtension, ...]
    prescribed: Prescribed | None = None
    known: tuple[Array, ...] = ()

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        points: Any,
        support: Support,
        solved: Sequence[SolvedLevel],
        prescribed: Prescribed | None = None,
    ) -> Extension:
        """The extension of solved levels of the points of a diffusion operator in the scaled weights."""
        operator: DiffusionOperator = solved[0].operator
        root = namespace(operator.weights).sqrt(as_double(operator.weights))[:, None]
        columns = [_outside(each, root) / root for each in solved]
        if len(solved) > 1:
            columns.append(solved[-1].operator.basis / root)
        xp = namespace(root)
        slopes = _slopes(operator, xp.concat(columns, axis=1))
        levels = tuple(_own(each, root) for each in solved)
        known: tuple[Array, ...] = ()
        if prescribed is not None:
            slopes = xp.concat([slopes, cast(prescribed.values, slopes.dtype)[:, None]], axis=1)
            known = tuple(each.coordinates for each in solved)
        volume = math.log(operator.volume)
        return cls(kernel, points, support, as_double(operator.weights), slopes, volume, levels, prescribed, known)

    def novelty(self, X: Any) -> Array:
        """-log Σⱼ wⱼ k(x, xⱼ) for every row of X, in the user's weights."""
        return -self._sums(X, self.slopes[:, :0])[0] - 2 * math.log(self.support.unit)

    def coordinates(self, X: Any, *, capped: bool) -> Array:
        """Ξ(x) of all levels, weighed and side by side, for every row of X, in the unit of the user's weights."""
        if is_source(X):
            width = 4 * int(self.slopes.shape[1]) + X.shape[1]
            return by_blocks(lambda block: self.coordinates(block, capped=capped), X, width)
        return self.weighed(self.level_coordinates(X, capped=capped))

    def weighed(self, coordinates: Sequence[Array]) -> Array:
        """The coordinates of all levels side by side, each multiplied by its weight."""
        parts = [
            part if own.weight == 1 else own.weight * part for own, part in zip(self.levels, coordinates, strict=True)
        ]
        return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=1)

    def level_coordinates(self, X: Any, *, capped: bool) -> list[Array]:
        """Ξ(x) of every level, not weighed, in the unit of the user's weights."""
        log_degrees, averages = self._sums(X, self.slopes)
        xp, log_diagonal = namespace(averages), log_degrees
        first, ranks = self.levels[0], [level.rank for level in self.levels]
        if self.prescribed is not None:
            radius, averages = _half_logarithm(self.prescribed.elsewhere(X, averages[:, -1])), averages[:, :-1]
        else:
            log_diagonal = self._log_diagonal(X)
            radius = log_radius(log_degrees, log_diagonal, self.log_volume)
            self._refuse_overflow(radius, capped)
        found = [_of_length(averages[:, : first.rank], radius, first, capped)]
        if len(self.levels) > 1:
            affinities = xp.exp(0.5 * log_degrees)[:, None] * averages  # ā(x)ᵀU of every level, and ā(x)ᵀQ
            squares = _signed_squares(log_degrees, log_diagonal, self.log_volume)
            basis, along = averages[:, :0], affinities[:, sum(ranks) :]
            at = first.rank
            for before, level in pairwise(self.levels):
                basis = xp.concat([basis, (found[-1] - basis @ before.across) @ before.turn], axis=1)
                q = basis.shape[1]
                towards = affinities[:, at : at + level.rank] - basis @ level.inside
                if self.prescribed is None:
                    left = squares - 2 * row_products(along[:, :q], basis) + row_products(basis @ level.middle, basis)
                    radius = _half_logarithm(left)
                found.append(_of_length(towards, radius, level, capped))
                at += level.rank
        return self._as_known(X, found) if self.known else [self.support.lengths(part) for part in found]

    def _refuse_overflow(self, radius: Array, capped: bool) -> None:
        """Refuse a length that no number is; further levels need its square too, in the scaled weights."""
        room = 0.5 * _LARGEST + math.log(self.support.unit)
        if not capped and (radius > (min(room, _SQUARED) if len(self.levels) > 1 else room)).any():
            row = int(namespace(radius).argmax(radius))
            raise ValueError(f"Row {row} of X is so far from the data that its radius overflows: use radius='capped'.")

    def prescribed_at(self, X: Any) -> Prescribed | None:
        """The user's diagonal at other points, where there is one; rows of the sample have what they were given."""
        if self.prescribed is None:
            return None
        values = self.prescribed.elsewhere(X, self._sums(X, self.slopes[:, -1:])[1][:, 0])
        at, which = rows_among(self.support.columns(X, self.kernel), self.points)
        values[like(at, values)] = self.prescribed.values[like(which, values)]
        return self.prescribed.on(values)

    def _as_known(self, X: Any, found: list[Array]) -> list[Array]:
        """The coordinates of all levels, those of points of the sample as they were solved."""
        at, which = rows_among(self.support.columns(X, self.kernel), self.points)
        for part, known in zip(found, self.known, strict=True):
            part[like(at, part)] = cast(known[like(which, part)], part.dtype)
        return found

    def _sums(self, X: Any, values: Array) -> tuple[Array, Array]:
        columns = self.support.columns(X, self.kernel)
        return log_degrees_and_sums(self.kernel, columns, self.points, values, self.weights)

    def _log_diagonal(self, X: Any) -> Array:
        """log k(x, x)."""
        gram = GramOperator(self.kernel, self.support.columns(X, self.kernel), self.points)
        values = as_double(gram.kernel_diagonal())
        with np.errstate(divide="ignore", over="ignore"):
            return namespace(values).log(values)


def _slopes(operator: DiffusionOperator, coordinates: Array) -> Array:
    """β of every column: what is averaged over the neighbours of a new point."""
    root = namespace(coordinates).sqrt
    mean = as_double(operator.stationary * root(operator.weights)) @ as_double(coordinates)
    return coordinates / root(operator.degrees)[:, None] - mean / math.sqrt(operator.volume)


def _outside(solved: SolvedLevel, root: Array) -> Array:
    """U = (I - QQᵀ)Ξ, weighed; Ξ itself of the first level."""
    weighed = root * as_double(solved.coordinates)
    if not isinstance(solved.operator, ProjectedOperator):
        return weighed
    Q = solved.operator.basis
    return weighed - Q @ (Q.T @ weighed)


def _own(solved: SolvedLevel, root: Array) -> LevelExtension:
    operator, weighed = solved.operator, _outside(solved, root)
    longest = float(solved.diagonal.max())
    log_longest = 0.5 * math.log(longest) if longest > 0 else -math.inf
    inside, middle = weighed[:0], root[:0, :0]
    if isinstance(operator, ProjectedOperator):
        inside, middle = operator.image.T @ weighed, operator.middle
    return LevelExtension(int(weighed.shape[1]), solved.weight, log_longest, inside, middle, solved.across, solved.turn)


def _of_length(towards: Array, radius: Array, level: LevelExtension, capped: bool) -> Array:
    """Rows of the given directions and logarithms of lengths."""
    xp, lengths = namespace(towards), row_lengths(towards)[:, None]
    if capped:
        radius = xp.clip(radius, None, level.log_longest)
    return xp.exp(radius)[:, None] * (towards / xp.where(lengths > 0, lengths, 1.0))


def _half_logarithm(squares: Array) -> Array:
    """½ log of what is positive, minus infinity elsewhere."""
    xp = namespace(squares)
    positive = squares > 0
    return xp.where(positive, 0.5 * xp.log(xp.where(positive, squares, 1.0)), -math.inf)


def embedded_rows(coordinates: Sequence[Array], extension: Extension, X: Any, *, capped: bool) -> Array:
    """All levels on their points, weighed and side by side, extended to the rows of X that they do not cover."""
    solved = extension.weighed(coordinates)
    if extension.support.indices is None:
        return solved
    everywhere = extension.coordinates(X, capped=capped)
    everywhere[extension.support.indices] = solved
    return everywhere


def log_degrees_and_sums(kernel: Kernel, X: Any, training: Any, values: Array, weights: Array) -> tuple[Array, Array]:
    """Sums over the training points, for every row of X.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X, training : arrays
        New points and training points.
    values : array of shape (n, r)
        What is summed.
    weights : array of shape (n,)
        Positive weights of the training points.

    Returns
    -------
    log_degrees : array of shape (m,)
        log Σⱼ wⱼ k(x, xⱼ).
    sums : array of shape (m, r)
        Σⱼ pⱼ valuesⱼ with pⱼ = wⱼ k(x, xⱼ) / Σ wₗ k(x, xₗ).
    """
    gram, xp = GramOperator(kernel, X, training), namespace(values)
    summed = xp.concat([weights[:, None], weights[:, None] * values], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named
        scale, products = gram.scaled_product(summed)
    degrees = products[:, 0]
    _require_affinities(degrees, kernel)
    return xp.log(degrees) + scale, products[:, 1:] / degrees[:, None]


def _require_affinities(degrees: Array, kernel: Kernel) -> None:
    """Refuse a point from which no affinity, or an infinite one, leads to the training points."""
    finite, positive = namespace(degrees).isfinite(degrees), degrees > 0
    if not finite.all():
        row = first_place(~finite)[0]
        raise ValueError(f"Row {row} of X is so far from the data that {kernel!r} overflows: it has no place.")
    if not positive.all():
        row = first_place(~positive)[0]
        raise ValueError(
            f"Row {row} of X has no positive affinity to the training points: it has no place in the embedding."
        )


def _signed_squares(log_degrees: Array, log_diagonal: Array, log_volume: float) -> Array:
    """d(x) as it is, negative where an indefinite kernel makes it so, and bounded far away."""
    xp = namespace(log_degrees)
    staying = xp.exp(xp.clip(log_diagonal - log_degrees, None, 2 * _SQUARED))
    return -staying * xp.expm1(2 * log_degrees - log_volume - log_diagonal)


def log_radius(log_degrees: Array, log_diagonal: Array, log_volume: float) -> Array:
    """½ log d(x), d(x) = k(x, x)/m - m/vol = (k(x, x)/m) (1 - m²/(vol k(x, x)))."""
    xp = namespace(log_degrees)
    ratio = xp.clip(xp.exp(2 * log_degrees - log_volume - log_diagonal), None, 1.0)
    with np.errstate(divide="ignore"):
        return 0.5 * (log_diagonal - log_degrees + xp.log1p(-ratio))
