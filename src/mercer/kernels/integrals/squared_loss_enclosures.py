"""The integrals of :mod:`mercer.kernels.integrals.squared_loss` for one function and one density, with proved errors.

Everything is evaluated from the pairs and the bandwidths as :class:`~mercer.backends.balls.Ball`: what comes out holds
for the exact integrals of the exact kernel exp(-‖x - x'‖²/σ² - (y - y')²/τ²).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import cached_property, reduce
from typing import final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, exponential, joined
from mercer.backends.chunks import BALL_ENTRIES, row_chunks, rows_within
from mercer.kernels.integrals.integral_enclosures import GaussianForms, ScaledPoints, powered
from mercer.kernels.integrals.squared_loss import PairSupport


@final
class SquaredLossEnclosures(GaussianForms):
    """Integrals on the support (ξ, η), scaled as :class:`~mercer.kernels.integrals.squared_loss.SquaredLossIntegrals`.

    Those of the kernel of pairs alone are its forms in d + 1 dimensions: densities are made of some points of the
    support, embeddings compared on the sections of all of them.

    Parameters
    ----------
    support : PairSupport
        ξ and η, σ and τ; the proof is NumPy's, which tensors are brought to.
    chosen : array of int of shape (r,), optional
        The points that densities are made of; all where they are left out.

    Notes
    -----
    Cost: a product of r²/2 × m and m × m matrices for a loss, a second at m = r = 100; less for the others. Memory:
    O(m²), and some panels.
    """

    def __init__(self, support: PairSupport, chosen: Array | None = None) -> None:
        inputs, targets, sigma, target_sigma = to_numpy(support.inputs), to_numpy(support.targets), *support[2:]
        self._n_features = inputs.shape[1]
        self._inputs, self._targets = ScaledPoints(inputs, sigma), ScaledPoints(targets[:, None], target_sigma)
        self._variance = Ball(target_sigma).squared().scaled(-2)
        self._factors: dict[int, Ball] = {}
        self._chosen = np.arange(targets.size) if chosen is None else to_numpy(chosen)
        self._p, self._q = np.triu_indices(self._chosen.size)
        eta = Ball(targets[self._chosen])
        self._middle = (eta[self._p] + eta[self._q]).scaled(-1)
        distances = self._inputs.distances + self._targets.distances
        towards = distances[:, self._chosen]
        super().__init__(towards[self._chosen], self._n_features + 1, probes=(distances, towards))

    @cached_property
    def input_gram(self) -> Ball:
        """k(ξ_a, ξ_b)."""
        return exponential(-self._inputs.distances)

    @cached_property
    def midpoint_gram(self) -> Ball:
        """exp(-‖ξ_a - ξ_b‖²/(2σ²))."""
        return self._factor(2)

    def loss_matrix(self, alpha: Ball) -> Ball:
        """M, with ∫ (f - y)² p_B = Tr(B M), f = Σ α_a k(·, ξ_a), of shape (r, r)."""
        inner = (alpha[:, None] * alpha) * self._factor(4)
        quadratic = joined([((rows @ inner) * rows).sum(axis=1) for _, rows in self._both(4)])
        linear = joined([rows @ alpha for _, rows in self._both(3)])
        values = quadratic * self._front(4) - (linear * self._front(3) * self._middle).scaled(1) + self._constant
        return self._unpacked(values * self._overlap)

    def loss_form(self, B: Ball) -> tuple[Ball, Ball, Ball]:
        """H, r and c, with ∫ (f - y)² p_B = αᵀHα - 2 rᵀα + c, of shapes (m, m), (m,) and ()."""
        weights = B[self._p, self._q] * self._overlap
        weights = weights.scaled(np.where(self._p == self._q, 0, 1))
        fourth, third = weights * self._front(4), weights * self._front(3) * self._middle
        H = reduce(operator.add, ((rows.T * fourth[part]) @ rows for part, rows in self._both(4)))
        r = reduce(operator.add, (rows.T @ third[part] for part, rows in self._both(3)))
        return H * self._factor(4), r, (weights * self._constant).sum()

    def input_sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """k(x_i, ξ_a) for some rows at a time."""
        return self._inputs.sections(X)

    def sections(self, X: Array, y: Array) -> Iterator[tuple[slice, Ball]]:
        """The kernel of pairs between (x_i, y_i) and ζ_a, for some rows at a time."""
        for (rows, near), (_, beside) in zip(self._inputs.sections(X), self._targets.sections(y[:, None]), strict=True):
            yield rows, near * beside

    @cached_property
    def _overlap(self) -> Ball:
        """∫κ_p κ_q dy for the pairs of a density."""
        return self._pairwise(exponential(-self._targets.distances.scaled(-1)))

    @cached_property
    def _constant(self) -> Ball:
        """∫ y² of these pairs over ∫κ_p κ_q dy."""
        return self._pairwise(self._factor(2)) * (self._middle.squared() + self._variance)

    def _both(self, n: int) -> Iterator[tuple[slice, Ball]]:
        """The rows g_pa g_qa for some pairs p ≤ q of a density's points at a time, g the factors of n sections."""
        near = self._factor(n)[self._chosen]
        for part in row_chunks(self._p.size, rows_within(BALL_ENTRIES, near.shape[1])):
            yield part, near[self._p[part]] * near[self._q[part]]

    def _front(self, n: int) -> Ball:
        """What n sections have for a pair (p, q) alone."""
        return self._pairwise(self._factor(n)) * self._volume(n)

    def _pairwise(self, values: Ball) -> Ball:
        """The entries (p, q) of a matrix on the support."""
        return values[self._chosen[self._p], self._chosen[self._q]]

    def _unpacked(self, pairs: Ball) -> Ball:
        """The symmetric matrix with these entries (p, q)."""
        r = self._chosen.size
        places = np.empty((r, r), np.intp)
        places[self._p, self._q] = places[self._q, self._p] = np.arange(pairs.shape[0])
        return pairs[places]

    def _factor(self, n: int) -> Ball:
        """exp(-‖ξ_a - ξ_b‖²/(nσ²))."""
        if n not in self._factors:
            self._factors[n] = exponential(-(self._inputs.distances / float(n)))
        return self._factors[n]

    def _volume(self, n: int) -> Ball:
        """(2/n)^{d/2}."""
        return powered((Ball(2.0) / float(n)).root(), self._n_features)
