"""The kernel -½d² of a squared distance, centred on training points: the survey's (51)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array, like, namespace, to_numpy
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.matrix import KernelMatrix, kernel_matrix
from mercer.backends.rounding import EntryError
from mercer.backends.threads import run_chunks
from mercer.kernels.centre import centre_rows, distinct_points
from mercer.kernels.trained import TrainedKernel, digest_of

_WORK = 2**24  # coordinates' worth of distances that a thread makes at a time: some milliseconds
_BLOCK = 2**18  # distances that a thread has in hand at most
_CHECKED = 16  # training points whose distances are looked at before any are used


@final
@dataclass(frozen=True)
class Centre:
    """The training points on which a kernel is centred.

    Attributes
    ----------
    positions : array of shape (r, f)
        Distinct points.
    weights : array of shape (r,)
        Which sum to one.
    half_mean : float
        ½ ΣᵢΣⱼ wᵢwⱼ d²(xᵢ, xⱼ).
    """

    positions: Array
    weights: Array
    half_mean: float

    @cached_property
    def digest(self) -> str:
        """What tells these points from others."""
        return digest_of(repr(self.half_mean), self.positions, self.weights)


class DistanceKernel(TrainedKernel):
    """k(x, y) = ½ (u(x) + u(y) - d²(x, y)), u(x) = Σⱼwⱼd²(x, xⱼ) - ½ΣᵢΣⱼwᵢwⱼd²(xᵢ, xⱼ) = k(x, x).

    A child says what d² is, block by block; entries are made tile by tile from points that carry u as a last column.
    """

    n_center: int | None
    _relation = "centred on"

    @abstractmethod
    def _squares(self, rows: Array, cols: Array) -> Array:
        """The block of squared distances between points, on this thread, in double precision."""

    @abstractmethod
    def _square_roundings(self, sides: list[Array]) -> EntryError:
        """How far d² between points can be from its value, in roundings: of itself, and absolute."""

    @abstractmethod
    def _cost(self, n_features: int) -> float:
        """What a distance costs, in units of one coordinate of an inner product."""

    def _learned(self, X: Any, sample_weight: Any) -> Centre:
        points, weights = distinct_points(X, sample_weight)
        rows, weights = centre_rows(weights, self.n_center)
        return self._centred_on(points if rows.size == weights.size == points.shape[0] else points[rows], weights)

    def _centred_on(self, points: Array, weights: Array) -> Centre:
        self._require_distance(self._squares(points[:_CHECKED], points[:_CHECKED]))
        centre = Centre(points, weights, 0.0)
        return Centre(points, weights, 0.5 * float(weights @ self._mean_squares(points, centre)))

    def _require_distance(self, squares: Array) -> None:
        """Refuse what is no distance at a glance: not symmetric, not zero of a point to itself, not a number."""
        size = float(np.abs(squares).max(initial=0.0))
        if not np.isfinite(size):
            raise ValueError(f"{self!r} has distances between training points that are no finite numbers.")
        if not np.allclose(squares, squares.T, rtol=1e-6, atol=1e-9 * size):
            raise ValueError(f"{self!r} is not symmetric: the distance from x to y must be that from y to x.")
        if squares.min(initial=0.0) < 0 or np.diagonal(squares).max(initial=0.0) > 1e-6 * size:
            raise ValueError(f"{self!r} is no distance: it must be zero from a point to itself, and never negative.")

    def _mean_squares(self, points: Array, centre: Centre) -> Array:
        """Σⱼ wⱼ d²(x, xⱼ) of every point, a few rows at a time."""
        entries = min(_BLOCK, int(_WORK / self._cost(points.shape[1])))
        chunks = row_chunks(points.shape[0], rows_within(entries, centre.weights.size))
        parts = run_chunks(lambda part: self._squares(points[part], centre.positions) @ centre.weights, chunks)
        return np.concatenate([np.zeros(0), *parts])

    def _points(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Points with u as their last column, in double precision."""
        sides = zip((X, Y), self._require_features((X, Y)), strict=True)
        first, second = (None if side is None else like(self._with_own(points), side) for side, points in sides)
        return first, second

    def _with_own(self, points: Array) -> Array:
        with np.errstate(invalid="ignore"):  # what is not finite is named by the callers
            return np.column_stack([points, self._mean_squares(points, self._sample) - self._sample.half_mean])

    def _form(self, n_features: int) -> forms.Form:
        return self._form_with(n_features, EntryError(0.0, 0.0, float("inf")))  # for points that are not known yet

    def _form_with(self, n_features: int, roundings: EntryError) -> forms.TileFunction:
        return forms.TileFunction(
            function=partial(_tile, self),
            diagonal=lambda points: points[:, -1],
            roundings=roundings,
            cost=self._cost(n_features),
        )

    def matrix(self, X: Any, Y: Any = None, *, dtype: Any = None) -> KernelMatrix:
        """The kernel matrix; what bounds its rounding is the largest u among the points."""
        self.form(X.shape[1])
        if dtype is None:
            dtype = X.dtype if Y is None else namespace(X).result_type(X.dtype, Y.dtype)
        points = self._points(X, Y)
        sides = [to_numpy(side) for side in points if side is not None]
        form = self._form_with(X.shape[1], centred_roundings(self._square_roundings(sides), self._sample, sides))
        return kernel_matrix(form, *points, dtype=dtype)


def centred_roundings(squares: EntryError, centre: Any, sides: list[Array]) -> EntryError:
    """How far ½(u(x) + u(y) - d²) can be from its value where d² errs by ρ roundings of itself and α absolute ones.

    d² = u(x) + u(y) - 2k, so that ρ roundings of it are no more than ρ(U + ``abs(k)``) of half of it, U the largest
    ``abs(u)``. A mean of r terms that are not negative errs by r + 3 roundings of itself, U + h at most, h = ½ΣΣ; h by
    2r + 6. Sides are points with u as their last column; the
    centre has ``weights`` and ``half_mean``.
    """
    rho, terms = squares.relative, centre.weights.size
    largest = max((float(np.abs(side[:, -1]).max()) for side in sides if side.shape[0]), default=0.0)
    absolute = (2 * terms + 2 * rho + 8) * (largest + 3 * centre.half_mean) + 3 * squares.absolute
    return EntryError(rho + 2, 0.0, 2 * absolute)


def _tile(kernel: DistanceKernel, rows: Any, cols: Any) -> Any:
    x, y = (np.asarray(to_numpy(side), np.float64) for side in (rows, cols))
    values = kernel._squares(np.ascontiguousarray(x[:, :-1]), np.ascontiguousarray(y[:, :-1]))
    np.subtract(x[:, -1:] + y[:, -1], values, out=values)
    values *= 0.5
    return like(values, rows, dtype=rows.dtype)
