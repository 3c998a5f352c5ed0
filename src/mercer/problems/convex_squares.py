"""A convex function of finitely many linear functionals of a density that is a sum of squares (SOS 6, 8, 15).

    minimise F(u) + λ Tr(B K̃)   over   p(x) = k_xᵀ B k_x,  B ≽ 0,  Tr(B W) = 1,   lower ≤ u ≤ upper,

u_j = ⟨B, M_j⟩, such as values w_p(t_j) of the mean embedding, with M_j = ∫ k(x, t_j) k_x k_xᵀ dρ, or expectations
E_p[g_j], with M_j = ∫ g_j k_x k_xᵀ dρ. In C of :class:`~mercer.problems.SumOfSquares`, u_j = ⟨C, TᵀM_jT⟩ and Tr C = 1.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import NamedTuple, Protocol, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball
from mercer.problems.observed_function import ObservedFunction
from mercer.problems.problem import Problem
from mercer.problems.sum_of_squares import TRACE, SumOfSquares


class PricedFactor(NamedTuple):
    """A factor F of C = F Fᵀ of shape (s, r), and prices of the bounds below and above, of shape (q,), not negative."""

    factor: Array
    below: Array
    above: Array


class FunctionalEnclosures(Protocol):
    """Linear functionals of B with proved errors."""

    def values(self, factor: Ball) -> Ball:
        """⟨F Fᵀ, M_j⟩, of shape (q,), for F of shape (m, r)."""

    def combined(self, y: Ball) -> Ball:
        """Σ_j y_j M_j, of shape (m, m)."""


@final
class ConvexSquares(Problem):
    """The programme in C on the spectrahedron.

    Parameters
    ----------
    squares : SumOfSquares
        The densities, and the penalty; its target is not used.
    matrices : array of shape (q, m, m)
        M_j, scaled as the integrals of ``squares`` are.
    function : ObservedFunction
        F.
    bounds : pair of arrays of shape (q,)
        Lower and upper bounds of u, which may be infinite.
    enclosures : FunctionalEnclosures
        The functionals for the certificate.

    Notes
    -----
    Memory: q s² numbers. Cost of a gradient: q s² operations and one evaluation of ∇F.
    """

    def __init__(
        self,
        squares: SumOfSquares,
        matrices: Array,
        function: ObservedFunction,
        bounds: tuple[Array, Array],
        enclosures: FunctionalEnclosures,
    ) -> None:
        self.squares, self.function, self.functionals = squares, function, enclosures
        self.lower, self.upper = bounds
        self.dimension, self.count = squares.dimension, int(matrices.shape[0])
        self.matrices = squares.basis.T @ matrices @ squares.basis
        self.matrices = (self.matrices + self.matrices.transpose(0, 2, 1)) / 2
        self.penalty = squares.penalty

    def with_function(self, function: ObservedFunction) -> ConvexSquares:
        """Another function of the same functionals, without bounds and penalty."""
        other = copy.copy(self)
        other.function, other.penalty = function, np.zeros_like(self.penalty)
        other.lower, other.upper = np.full(self.count, -np.inf), np.full(self.count, np.inf)
        return other

    @property
    def needs(self) -> frozenset[str]:
        """Tr C = 1."""
        return frozenset({TRACE})

    @property
    def n_bounds(self) -> int:
        """How many bounds are finite."""
        return int(np.isfinite(self.lower).sum() + np.isfinite(self.upper).sum())

    @cached_property
    def ranges(self) -> Array:
        """The largest absolute value that u_j takes on the spectrahedron."""
        return ranges_of(self.matrices)

    def functional_values(self, factor: Array) -> Array:
        """u of C = F Fᵀ."""
        return np.asarray(np.sum(factor * (self.matrices @ factor), axis=(1, 2)))

    def is_inside(self, u: Array) -> bool:
        """Whether u keeps all bounds strictly."""
        return bool(np.all((self.lower < u) & (u < self.upper)))

    def adjoint(self, y: Array) -> Array:
        """Σ_j y_j TᵀM_jT."""
        return np.asarray(np.tensordot(y, self.matrices, axes=1))

    def gap(self, factor: Array, slope: Array, below: Array, above: Array) -> float:
        """How far C = F Fᵀ of trace one can be from the optimum, by convexity and the prices of the bounds.

        For every C' that keeps the bounds f(C') ≥ f(C) + ⟨∇f(C), C' - C⟩ + ⟨above, u' - upper⟩ + ⟨below, lower - u'⟩,
        linear in C' and so least at an eigenvector.
        """
        u = self.functional_values(factor)
        G = self.adjoint(slope + above - below) + self.penalty
        slack = float((factor * (G @ factor)).sum()) - float(np.linalg.eigvalsh(G)[0])
        paid = _product(above, self.upper - u) + _product(below, u - self.lower)
        return max(slack + paid, 0.0)


def ranges_of(matrices: Array) -> Array:
    """The largest absolute eigenvalue of each matrix."""
    return np.abs(np.linalg.eigvalsh(matrices)).max(axis=1) if matrices.shape[0] else np.zeros(0)


def _product(prices: Array, room: Array) -> float:
    """Σ of products, of which those without a price are zero, whatever the room."""
    return float(np.sum(np.where(prices > 0, prices * np.where(np.isfinite(room), room, 0.0), 0.0)))
