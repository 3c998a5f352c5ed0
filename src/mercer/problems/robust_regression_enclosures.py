"""The numbers of a robust regression's bounds, with proved errors.

The bases of the game divide by small eigenvalues, so its integrals are differences of large numbers: with targets far
from zero, or a wide kernel, double precision leaves four digits of them. The solver can live with that, a proof cannot.
Here they are formed for one function and one density from the pairs and the bandwidths, as balls.

The game is fixed by three subspaces, the ranges of T (densities k_zᵀ T C Tᵀ k_z), U (functions Σ_a (Uβ)_a k(·, ξ_a))
and Ω (functions of pairs that the ball's distance is projected on), and by the pairs, weights, bandwidths, ε and λ.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.kernels.integrals.squared_loss_enclosures import SquaredLossEnclosures
from mercer.problems.sum_of_squares_enclosures import SpanEnclosures, exact_shares, weighted_sum

_KEPT = 10**6  # entries of k(x_i, ξ_a) that are kept between passes


class PairSample(NamedTuple):
    """Pairs and their weights as given, None for equal ones."""

    inputs: Array
    targets: Array
    weights: Array | None


@final
class RegressionEnclosures(SpanEnclosures):
    """Losses, prices, distances and embeddings of the game as balls.

    Parameters
    ----------
    losses : SquaredLossEnclosures
        The integrals on the game's support.
    sample : PairSample
        The data.
    function_basis, density_basis, whitening : arrays of shape (m, l), (r, s) and (m, q)
        U, T and Ω, taken as exact, T on the points that densities are made of; T and Ω may be left out where there is
        no adversary.

    Notes
    -----
    Cost: that of the losses, and n m exponentials a pass over the sample. Memory: O(m²), and n m for small samples.
    """

    def __init__(
        self,
        losses: SquaredLossEnclosures,
        sample: PairSample,
        function_basis: Array,
        density_basis: Array | None = None,
        whitening: Array | None = None,
    ) -> None:
        nothing = np.empty((function_basis.shape[0], 0))
        super().__init__(losses, *(nothing if basis is None else basis for basis in (density_basis, whitening)))
        self.losses, self.functions = losses, ball(to_numpy(function_basis))
        weights = None if sample.weights is None else to_numpy(sample.weights)
        self._sample = PairSample(to_numpy(sample.inputs), to_numpy(sample.targets), weights)
        self._shares = exact_shares(weights, sample.inputs.shape[0])
        self._kept: list[tuple[slice, Ball]] | None = None

    @cached_property
    def function_gram(self) -> Ball:
        """Uᵀk(ξ, ξ)U: ‖f‖² = βᵀ(this)β."""
        return self.functions.T @ (self.losses.input_gram @ self.functions)

    @cached_property
    def target(self) -> Ball:
        """The sample's embedding at the support."""
        return weighted_sum(self.losses.sections(self._sample.inputs, self._sample.targets), self._shares)

    def squared_norm(self, alpha: Ball) -> Ball:
        """‖f‖² of f = Σ α_a k(·, ξ_a)."""
        return (alpha * (self.losses.input_gram @ alpha)).sum()

    def sample_loss(self, alpha: Ball) -> tuple[Ball, Ball]:
        """Σ w_i (f(x_i) - y_i)², and half its gradient in α."""
        loss, slope = ball(0.0), Ball(np.zeros(alpha.shape))
        for rows, near in self._near():
            rest = near @ alpha - self._sample.targets[rows]
            weighted = rest * self._shares[rows]
            loss, slope = loss + (weighted * rest).sum(), slope + near.T @ weighted
        return loss, slope

    def _near(self) -> Iterable[tuple[slice, Ball]]:
        """k(x_i, ξ_a), some rows at a time."""
        if self._kept is not None:
            return self._kept
        parts = self.losses.input_sections(self._sample.inputs)
        if self._sample.inputs.shape[0] * self.functions.shape[0] > _KEPT:
            return parts
        self._kept = list(parts)
        return self._kept
