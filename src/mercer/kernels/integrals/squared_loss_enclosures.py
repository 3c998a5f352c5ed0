"""The integrals of :mod:`mercer.kernels.integrals.squared_loss` for one function and one density, with proved errors.

Everything is evaluated from the pairs and the bandwidths as :class:`~mercer.backends.balls.Ball`: what comes out holds
for the exact integrals of the exact kernel exp(-‖x - x'‖²/σ² - (y - y')²/τ²).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, exponential, joined
from mercer.kernels.integrals.enclosed import gaussian_sections, powered, squared_distances
from mercer.kernels.integrals.squared_loss import PairSupport


@final
class SquaredLossEnclosures:
    """Integrals on the support (ξ, η), scaled as :class:`~mercer.kernels.integrals.squared_loss.SquaredLossIntegrals`.

    Parameters
    ----------
    support : PairSupport
        ξ and η, σ and τ; the proof is NumPy's, which tensors are brought to.

    Notes
    -----
    Cost: m products of m × m matrices for a loss, a second at m = 100; two for the others. Memory: O(m²).
    """

    def __init__(self, support: PairSupport) -> None:
        inputs, targets, sigma, target_sigma = to_numpy(support.inputs), to_numpy(support.targets), *support[2:]
        self._power, self._target_power = -int(np.frexp(sigma)[1]), -int(np.frexp(target_sigma)[1])
        self._d = inputs.shape[1]
        self._inputs = np.ldexp(inputs, self._power)
        self._targets = np.ldexp(targets, self._target_power)[:, None]
        self._rate = Ball(np.ldexp(sigma, self._power)).squared().inverse()
        self._target_rate = Ball(np.ldexp(target_sigma, self._target_power)).squared().inverse()
        self._distances = squared_distances(self._inputs, self._inputs) * self._rate
        self._target_distances = squared_distances(self._targets, self._targets) * self._target_rate
        self._middle = ((Ball(targets[:, None]) + Ball(targets)).scaled(-1)) * Ball(np.ones((targets.size,) * 2))
        self._variance = Ball(target_sigma).squared().scaled(-2)

    @cached_property
    def input_gram(self) -> Ball:
        """k(ξ_a, ξ_b)."""
        return exponential(-self._distances)

    @cached_property
    def midpoint_gram(self) -> Ball:
        """exp(-‖ξ_a - ξ_b‖²/(2σ²))."""
        return self._factor(2)

    def gram(self) -> Ball:
        """The kernel of pairs on the support."""
        return exponential(-(self._distances + self._target_distances))

    def mass(self) -> Ball:
        """∫ k_z k_zᵀ."""
        return self._factor(2) * self._overlap

    def embed(self, factor: Ball) -> Ball:
        """∫ ‖Fᵀk_z‖² k(z, ζ_r), of shape (m,)."""
        inner = (factor @ factor.T) * self._triples
        return ((self._triples @ inner) * self._triples).sum(axis=1) * self._volume(3, self._d + 1)

    def weighted_mass(self, c: Ball) -> Ball:
        """∫ g k_z k_zᵀ, for a function of pairs g = Σ c_r k(·, ζ_r)."""
        return ((self._triples * c) @ self._triples) * self._triples * self._volume(3, self._d + 1)

    def loss_matrix(self, alpha: Ball) -> Ball:
        """M, with ∫ (f - y)² p_B = Tr(B M), f = Σ α_a k(·, ξ_a)."""
        pairs, triples, fours = (self._factor(n) for n in (2, 3, 4))
        outer = alpha[:, None] * alpha
        quadratic = _fourfold(fours, outer) * self._volume(4, self._d)
        linear = ((triples * alpha) @ triples) * triples * self._volume(3, self._d)
        constant = pairs * (self._middle.squared() + self._variance)
        return (quadratic - (linear * self._middle).scaled(1) + constant) * self._overlap

    def loss_form(self, B: Ball) -> tuple[Ball, Ball, Ball]:
        """H, r and c, with ∫ (f - y)² p_B = αᵀHα - 2 rᵀα + c."""
        pairs, triples, fours = (self._factor(n) for n in (2, 3, 4))
        B = B * self._overlap
        H = _fourfold(fours, B) * self._volume(4, self._d)
        r = ((triples @ (B * triples * self._middle)) * triples).sum(axis=1) * self._volume(3, self._d)
        return H, r, (B * pairs * (self._middle.squared() + self._variance)).sum()

    def input_sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """k(x_i, ξ_a) for some rows at a time."""
        return gaussian_sections(X, self._inputs, self._rate, self._power)

    def sections(self, X: Array, y: Array) -> Iterator[tuple[slice, Ball]]:
        """The kernel of pairs between (x_i, y_i) and ζ_a, for some rows at a time."""
        of_targets = gaussian_sections(y[:, None], self._targets, self._target_rate, self._target_power)
        for (rows, near), (_, beside) in zip(self.input_sections(X), of_targets, strict=True):
            yield rows, near * beside

    @cached_property
    def _overlap(self) -> Ball:
        return exponential(-self._target_distances.scaled(-1))

    @cached_property
    def _triples(self) -> Ball:
        return exponential(-((self._distances + self._target_distances) / 3.0))

    def _factor(self, n: int) -> Ball:
        return exponential(-(self._distances / float(n)))

    def _volume(self, n: int, d: int) -> Ball:
        """(2/n)^{d/2}."""
        return powered((Ball(2.0) / float(n)).root(), d)


def _fourfold(g: Ball, weights: Ball) -> Ball:
    """Σ_ab weights_ab g_ab (g_pa g_pb)(g_qa g_qb) g_pq for all p and q, a row at a time."""
    inner, rows = weights * g, []
    for p in range(g.shape[0]):
        both = g[p] * g
        rows.append((g[p] * ((both @ inner) * both).sum(axis=1))[None])
    return joined(rows)
