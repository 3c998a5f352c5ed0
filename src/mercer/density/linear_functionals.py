"""Linear functionals of a density, as matrices M_j with u_j = ⟨B, M_j⟩ (SOS 15): what convex functions are made of.

Embeddings, moments, masses of cells and expectations. All are scaled as the integrals of the density are.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, to_numpy
from mercer.backends.balls import Ball, ball, joined
from mercer.kernels.checks import as_points
from mercer.kernels.integrals import GaussianIntegrals, KernelIntegrals, NodeIntegrals
from mercer.kernels.integrals.closed_form import GaussianBoxIntegrals
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue
from mercer.kernels.integrals.quadrature import MOST_FEATURES
from mercer.kernels.stationary import Gaussian
from mercer.problems.convex_squares import FunctionalEnclosures


class LinearFunctionals(ABC):
    """Some linear functionals of a density p, one number each."""

    @abstractmethod
    def matrices(self, integrals: KernelIntegrals) -> Array:
        """M_j, of shape (q, m, m), symmetric."""

    def enclosures(self, integrals: KernelIntegrals, matrices: Array) -> FunctionalEnclosures:
        """The functionals of a certificate: the given matrices taken as exact, where there is no closed form."""
        return GivenMatrices(matrices)


@final
class EmbeddingValues(LinearFunctionals):
    """The values w_p(t) = E_p[k(x, t)] of the mean embedding at some points t.

    For the Gaussian kernel with Lebesgue's measure on R^d or a normal reference, a certificate proves them with the
    rounding of all integrals.

    Parameters
    ----------
    points : array of shape (q, d)
        t.
    """

    def __init__(self, points: Any) -> None:
        self.points = np.asarray(to_numpy(as_points(points, "points")), np.float64)

    def matrices(self, integrals: KernelIntegrals) -> Array:
        _require_features(self.points, integrals, "points")
        one = np.ones(1)
        return _stacked([integrals.weighted_mass(one, point[None]) for point in self.points], integrals)

    def enclosures(self, integrals: KernelIntegrals, matrices: Array) -> FunctionalEnclosures:
        if not isinstance(integrals, GaussianIntegrals):
            return super().enclosures(integrals, matrices)
        return _ClosedValues(integrals, self.points)


@final
class Moments(LinearFunctionals):
    """The expectations E_p[x_i] of the coordinates and, of order two, E_p[x_i x_j], i ≤ j, row by row after them.

    In closed form for the Gaussian kernel on R^d; by quadrature elsewhere, in three dimensions at most.

    Parameters
    ----------
    order : {1, 2}, default=1
        The highest power.
    """

    def __init__(self, order: int = 1) -> None:
        if order not in (1, 2):
            raise ValueError(f"order={order!r} must be 1 or 2: give other powers as Expectations of a function.")
        self.order = order

    def powers(self, X: Array) -> Array:
        """The functions at the rows of X, of shape (n, q)."""
        rows, cols = np.triu_indices(X.shape[1])
        return X if self.order == 1 else np.concatenate([X, X[:, rows] * X[:, cols]], axis=1)

    def matrices(self, integrals: KernelIntegrals) -> Array:
        if not isinstance(integrals, GaussianIntegrals):
            return Expectations(self.powers).matrices(integrals)
        m, d = integrals.points.shape
        weights, means = integrals.bumps(np.ones((m, m)))
        values = self.powers(means)
        if self.order == 2:
            values[:, d:] += integrals.bump_covariance()[np.triu_indices(d)]
        i, j = np.triu_indices(m)
        shares = np.where(i == j, 1.0, 0.5) * weights
        out = np.empty((values.shape[1], m, m))
        out[:, i, j] = out[:, j, i] = (shares[:, None] * values).T
        return out


@final
class CellMasses(LinearFunctionals):
    """The masses that a density gives to boxes, such as the cells of a histogram.

    With Lebesgue's measure, on R^d or on a box that holds the cells. In closed form for the Gaussian kernel in any
    dimension; by quadrature for others, in three dimensions at most.

    Parameters
    ----------
    lower, upper : arrays of shape (q, d)
        The corners of the cells. On the line ``CellMasses.between(edges)`` makes neighbouring ones.
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = (np.asarray(to_numpy(as_points(c, "a corner")), np.float64) for c in (lower, upper))
        if self.lower.shape != self.upper.shape or not np.all(self.lower < self.upper):
            raise ValueError("Cells are given by lower and upper corners of the same shape, the lower ones below.")

    @classmethod
    def between(cls, edges: Any) -> CellMasses:
        """The cells between neighbouring numbers of a rising list."""
        edges = np.asarray(edges, np.float64).reshape(-1)
        if edges.size < 2:
            raise ValueError("edges must be at least two rising numbers.")
        return cls(edges[:-1, None], edges[1:, None])

    def matrices(self, integrals: KernelIntegrals) -> Array:
        _require_features(self.lower, integrals, "cells")
        measure = integrals.measure
        if isinstance(measure, GaussianMeasure) or not isinstance(measure, Lebesgue | Box):
            raise ValueError("CellMasses take reference='lebesgue', with or without a box: give Expectations instead.")
        if isinstance(measure, Box) and not (
            np.all(self.lower >= to_numpy(measure.lower)) and np.all(self.upper <= to_numpy(measure.upper))
        ):
            raise ValueError("Some cells reach out of the box, where the density is zero: cut them at its sides.")
        cells = zip(self.lower, self.upper, strict=True)
        return _stacked([self._mass(integrals, Box(*corners)) for corners in cells], integrals)

    def _mass(self, integrals: KernelIntegrals, cell: Box) -> Array:
        kernel, points = integrals.kernel, integrals.points
        if isinstance(kernel, Gaussian):
            inside: KernelIntegrals = GaussianBoxIntegrals(kernel, points, cell)
        else:
            _require_few(integrals)
            inside = NodeIntegrals(kernel, points, cell)
        return inside.mass() * float(np.exp(inside.log_scale - integrals.log_scale))


@final
class Expectations(LinearFunctionals):
    """E_p[g(x)] for any functions g, by quadrature in three dimensions at most.

    The nodes are those that integrate products of the kernel to rounding: smooth functions are too, functions with
    steps are not. What a certificate proves is of the functional Σ w_q g(x_q) p(x_q) on these nodes.

    Parameters
    ----------
    function : callable
        g, from points of shape (n, d) to values of shape (n,) or (n, q).
    """

    def __init__(self, function: Callable[[Array], Any]) -> None:
        if not callable(function):
            raise TypeError(f"Expectations take a function of points, not {function!r}.")
        self.function = function

    def matrices(self, integrals: KernelIntegrals) -> Array:
        rule = integrals
        if not isinstance(rule, NodeIntegrals):
            _require_few(integrals)
            rule = NodeIntegrals(integrals.kernel, integrals.points, integrals.measure)
        nodes, weights, K = rule.weighted_nodes()
        values = np.asarray(to_numpy(self.function(nodes)), np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[0] != nodes.shape[0] or not np.all(np.isfinite(values)):
            raise ValueError(
                f"The function of Expectations must return finite numbers, a row for each of {nodes.shape[0]} points, "
                f"not shape {values.shape}."
            )
        weights = weights * float(np.exp(rule.log_scale - integrals.log_scale))
        return _stacked([(K.T * (weights * column)) @ K for column in values.T], integrals)


@final
class Joined(LinearFunctionals):
    """Several functionals, one after the other."""

    def __init__(self, parts: Sequence[LinearFunctionals]) -> None:
        self.parts = list(parts)

    def matrices(self, integrals: KernelIntegrals) -> Array:
        m = integrals.points.shape[0]
        return np.concatenate([np.zeros((0, m, m)), *(part.matrices(integrals) for part in self.parts)])

    def enclosures(self, integrals: KernelIntegrals, matrices: Array) -> FunctionalEnclosures:
        ends = np.cumsum([0, *(part.matrices(integrals).shape[0] for part in self.parts)])
        spans = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
        made = [part.enclosures(integrals, matrices[at]) for part, at in zip(self.parts, spans, strict=True)]
        return _JoinedEnclosures(made, spans, int(integrals.points.shape[0]))


@final
class GivenMatrices:
    """Functionals by matrices whose entries are taken as exact."""

    def __init__(self, matrices: Array) -> None:
        self._flat, self._m = matrices.reshape(matrices.shape[0], -1), matrices.shape[1]

    def values(self, factor: Ball) -> Ball:
        B = factor @ factor.T
        flat = Ball(B.hi.reshape(-1), B.lo.reshape(-1), B.radius.reshape(-1))
        return ball(self._flat) @ flat

    def combined(self, y: Ball) -> Ball:
        total = y @ ball(self._flat)
        return Ball(*(part.reshape(self._m, self._m) for part in (total.hi, total.lo, total.radius)))


@final
class _ClosedValues:
    """Values of the mean embedding at points beside the support, from the closed forms of both together."""

    def __init__(self, integrals: GaussianIntegrals, points: Array) -> None:
        support = to_numpy(integrals.points)
        self._m, self._q = support.shape[0], points.shape[0]
        self._forms = integrals.enclosures_of(np.concatenate([support, points]))

    def values(self, factor: Ball) -> Ball:
        padded = joined([factor, ball(np.zeros((self._q, factor.shape[1])))])
        return self._forms.embed(padded)[self._m :]

    def combined(self, y: Ball) -> Ball:
        padded = joined([ball(np.zeros(self._m)), y])
        return self._forms.weighted_mass(padded)[: self._m, : self._m]


@final
class _JoinedEnclosures:
    def __init__(self, parts: list[FunctionalEnclosures], spans: list[slice], m: int) -> None:
        self._parts, self._spans, self._m = parts, spans, m

    def values(self, factor: Ball) -> Ball:
        return joined([ball(np.zeros(0)), *(part.values(factor) for part in self._parts)])

    def combined(self, y: Ball) -> Ball:
        total = ball(np.zeros((self._m, self._m)))
        for part, at in zip(self._parts, self._spans, strict=True):
            total = total + part.combined(y[at])
        return total


def _stacked(matrices: list[Array], integrals: KernelIntegrals) -> Array:
    m = integrals.points.shape[0]
    out = np.array([as_double(to_numpy(M)) for M in matrices]).reshape(-1, m, m)
    return (out + out.transpose(0, 2, 1)) / 2


def _require_features(points: Array, integrals: KernelIntegrals, name: str) -> None:
    d = integrals.points.shape[1]
    if points.shape[1] != d:
        raise ValueError(f"The {name} of a functional have {points.shape[1]} features where the support has {d}.")


def _require_few(integrals: KernelIntegrals) -> None:
    d = integrals.points.shape[1]
    if d > MOST_FEATURES:
        raise ValueError(
            f"Quadrature takes {MOST_FEATURES} features at most, not {d}: give EmbeddingValues, or Moments of a "
            "Gaussian kernel on R^d."
        )
