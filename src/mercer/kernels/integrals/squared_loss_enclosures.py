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
from mercer.kernels.integrals.integral_enclosures import GaussianForms, ScaledPoints, powered
from mercer.kernels.integrals.squared_loss import PairSupport


@final
class SquaredLossEnclosures(GaussianForms):
    """Integrals on the support (ξ, η), scaled as :class:`~mercer.kernels.integrals.squared_loss.SquaredLossIntegrals`.

    Those of the kernel of pairs alone are its forms in d + 1 dimensions.

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
        self._n_features = inputs.shape[1]
        self._inputs, self._targets = ScaledPoints(inputs, sigma), ScaledPoints(targets[:, None], target_sigma)
        self._middle = ((Ball(targets[:, None]) + Ball(targets)).scaled(-1)) * Ball(np.ones((targets.size,) * 2))
        self._variance = Ball(target_sigma).squared().scaled(-2)
        super().__init__(self._inputs.distances + self._targets.distances, self._n_features + 1)

    @cached_property
    def input_gram(self) -> Ball:
        """k(ξ_a, ξ_b)."""
        return exponential(-self._inputs.distances)

    @cached_property
    def midpoint_gram(self) -> Ball:
        """exp(-‖ξ_a - ξ_b‖²/(2σ²))."""
        return self._factor(2)

    def loss_matrix(self, alpha: Ball) -> Ball:
        """M, with ∫ (f - y)² p_B = Tr(B M), f = Σ α_a k(·, ξ_a)."""
        pairs, triples, fours = (self._factor(n) for n in (2, 3, 4))
        outer = alpha[:, None] * alpha
        quadratic = _fourfold(fours, outer) * self._volume(4)
        linear = ((triples * alpha) @ triples) * triples * self._volume(3)
        constant = pairs * (self._middle.squared() + self._variance)
        return (quadratic - (linear * self._middle).scaled(1) + constant) * self._overlap

    def loss_form(self, B: Ball) -> tuple[Ball, Ball, Ball]:
        """H, r and c, with ∫ (f - y)² p_B = αᵀHα - 2 rᵀα + c."""
        pairs, triples, fours = (self._factor(n) for n in (2, 3, 4))
        B = B * self._overlap
        H = _fourfold(fours, B) * self._volume(4)
        r = ((triples @ (B * triples * self._middle)) * triples).sum(axis=1) * self._volume(3)
        return H, r, (B * pairs * (self._middle.squared() + self._variance)).sum()

    def input_sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """k(x_i, ξ_a) for some rows at a time."""
        return self._inputs.sections(X)

    def sections(self, X: Array, y: Array) -> Iterator[tuple[slice, Ball]]:
        """The kernel of pairs between (x_i, y_i) and ζ_a, for some rows at a time."""
        for (rows, near), (_, beside) in zip(self._inputs.sections(X), self._targets.sections(y[:, None]), strict=True):
            yield rows, near * beside

    @cached_property
    def _overlap(self) -> Ball:
        return exponential(-self._targets.distances.scaled(-1))

    def _factor(self, n: int) -> Ball:
        return exponential(-(self._inputs.distances / float(n)))

    def _volume(self, n: int) -> Ball:
        """(2/n)^{d/2}."""
        return powered((Ball(2.0) / float(n)).root(), self._n_features)


def _fourfold(g: Ball, weights: Ball) -> Ball:
    """Σ_ab weights_ab g_ab (g_pa g_pb)(g_qa g_qb) g_pq for all p and q, a row at a time."""
    inner, rows = weights * g, []
    for p in range(g.shape[0]):
        both = g[p] * g
        rows.append((g[p] * ((both @ inner) * both).sum(axis=1))[None])
    return joined(rows)
