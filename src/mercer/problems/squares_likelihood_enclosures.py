"""The numbers of a likelihood's programme with proved errors: what its certificate is made of.

The programme is fixed by the range of T, by the points, the weights, the sections and the measure:

    minimise -Σ_i a_i log p(x_i) + λ Tr(B K̃)   over   B = T C Tᵀ,  C ≽ 0,  Tr(B W) = 1
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.kernels.integrals.sections import SquareSections
from mercer.problems.sum_of_squares_enclosures import Sample, exact_shares, scaled_strength

_LOG2 = Ball(6.931471805599452862e-01, 2.319046813846299558e-17, 2.0**-105)


class ObservedRows(NamedTuple):
    """Sections at some points, k(x_i, z_p) 2^e_i, so that the largest of a row is near one."""

    values: Ball
    powers: Array
    shares: Ball


@final
class LikelihoodEnclosures:
    """W, K̃, λ and the sections of the sample as balls.

    Parameters
    ----------
    sections : SquareSections
        Whose enclosures are asked for.
    basis : array of shape (m, s)
        T, taken as exact.
    sample : Sample
        The data. Points of weight zero are left out.
    regularization : float
        λ ≥ 0.

    Notes
    -----
    Balls are NumPy's: tensors are brought over once, when the proof begins. Cost: n m exponentials of twice the double
    precision each time the sections are gone through, and n m² operations for a matrix of all of them.
    """

    def __init__(self, sections: SquareSections, basis: Array, sample: Sample, regularization: float) -> None:
        self._integrals = sections.enclosures()
        self.basis = ball(to_numpy(basis))
        points = np.asarray(to_numpy(sample.points), np.float64)
        weights = None if sample.weights is None else np.asarray(to_numpy(sample.weights), np.float64)
        kept = slice(None) if weights is None else weights > 0
        self._points = points[kept]
        self._shares = exact_shares(None if weights is None else weights[kept], self._points.shape[0])
        self.strength = scaled_strength(regularization, sections.unit_log_scale, self._points.shape[1])
        self.log_scale = Ball(sections.log_scale, 0.0, sections.log_scale_error)

    @cached_property
    def mass(self) -> Ball:
        """W."""
        return self._integrals.mass()

    @cached_property
    def gram(self) -> Ball:
        """K̃."""
        return self._integrals.gram()

    @cached_property
    def constraint(self) -> Ball:
        """TᵀWT: Tr(B W) = ⟨C, TᵀWT⟩."""
        return self.in_basis(self.mass)

    def in_basis(self, M: Ball) -> Ball:
        """TᵀMT."""
        return self.basis.T @ (M @ self.basis)

    def observed(self) -> Iterator[ObservedRows]:
        """The sections at some points of the sample at a time."""
        for rows, values in self._integrals.sections(self._points):
            powers = -np.frexp(np.max(np.abs(values.hi), axis=1))[1]
            yield ObservedRows(values.scaled(powers[:, None]), powers, self._shares[rows])

    @staticmethod
    def powers_of_two(powers: Array) -> Ball:
        """The logarithms of powers of two."""
        return _LOG2 * powers.astype(np.float64)
