"""The bounds of a robust regression in extended precision.

The bases of the game divide by small eigenvalues, so its integrals are differences of large numbers: with targets far
from zero, or a wide kernel, double precision leaves four digits of them. The solver can live with that, a proof cannot.
Here the same two bounds are formed from the coefficients of one function and one density, by the closed forms of
:mod:`mercer.kernels.loss_integrals` in ``numpy.longdouble``: 64 bits of mantissa on x86, elsewhere sometimes no more
than double precision. What rounding leaves is estimated: each bound is computed a second time with every factor
disturbed in its last digit, and moved outwards by four times the difference.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.kernels.loss_integrals import SectionIntegrals
from mercer.problems.robust_regression import Adversary, RobustRegression

Array = np.ndarray[Any, np.dtype[Any]]

_SAFETY = 4.0  # times the change that a disturbance in the last digit makes


@final
class PreciseRegression:
    """The worst case of a function and the best response to a distribution, as the game has them but for rounding.

    A function is given by its coefficients α, f = Σ α_a k(·, ξ_a), not by β: at the size they can have, α = Uβ rounded
    to double precision is another function.

    Parameters
    ----------
    game : RobustRegression
        The game.
    sections : SectionIntegrals
        The integrals on the game's support.
    density_basis, function_basis, whitening : arrays of shape (m, s), (m, l) and (m, q)
        T, U and the orthonormal coordinates of the projected space: the bases of C, of β and of y.

    Notes
    -----
    Cost: m⁴ operations a bound without help from BLAS, a second at m = 100. Memory: O(m²).
    """

    def __init__(
        self,
        game: RobustRegression,
        sections: SectionIntegrals,
        density_basis: Array,
        function_basis: Array,
        whitening: Array,
    ) -> None:
        self.game, self._sections, self._shaken = game, sections, sections.shaken(np.random.default_rng(0))
        self.order, self.regularization = game.order, game.regularization
        self._T, self._U, self._whitening = (
            basis.astype(np.longdouble) for basis in (density_basis, function_basis, whitening)
        )
        self._gram = _rounded(self._U.T @ sections.gram @ self._U)  # the identity, but for rounding in U

    def admissible(self, matrix: Array, share: float) -> Adversary:
        """As :meth:`RobustRegression.admissible`."""
        return self.game.admissible(matrix, share)

    def squared_norm(self, alpha: Array) -> float:
        """‖f‖²."""
        return float(alpha @ self._sections.gram @ alpha)

    def worst_case(self, alpha: Array, y: Array) -> float:
        """A bound on ∫ (f - y)² dμ for every admissible μ, without the penalty."""
        sample_loss = self.game.sample_loss(_rounded(coordinates(self._U, alpha)))
        bounds = []
        for sections in (self._sections, self._shaken):
            slack = sections.loss_matrix(alpha) - sections.weighted_mass(self._whitening @ y)
            bounds.append(self.game.risk_bound(self._in_densities(slack), sample_loss, y))
        return bounds[0] + _SAFETY * abs(bounds[1] - bounds[0])

    def best_response(self, adversary: Adversary) -> tuple[Array, float]:
        """Ridge regression on a distribution: β, and what the objective is there, less what rounding may have added."""
        B = self._T @ adversary.matrix @ self._T.T
        (beta, value), (_, other) = (self._ridge(each, B, adversary.share) for each in (self._sections, self._shaken))
        return beta, value - _SAFETY * abs(other - value)

    def _ridge(self, sections: SectionIntegrals, B: Array, a: float) -> tuple[Array, float]:
        game = self.game
        curvature, slope, constant = sections.loss_form(B)
        H = _rounded(self._U.T @ curvature @ self._U)
        H += a * game.sample_curvature + self.regularization * self._gram
        r = _rounded(self._U.T @ slope) + a * game.sample_slope
        beta = np.linalg.solve(H, r)
        return beta, constant + a * game.sample_constant - float(r @ beta)

    def _in_densities(self, M: Array) -> Array:
        """A matrix of the sections in the basis of C."""
        inner = _rounded(self._T.T @ M @ self._T)
        return (inner + inner.T) / 2


def coordinates(basis: Array, coefficients: Array) -> Array:
    """The x with basis @ x nearest to some coefficients, for a basis with orthogonal columns."""
    return np.asarray((basis.T @ coefficients) / np.sum(basis**2, axis=0).reshape(-1, *[1] * (coefficients.ndim - 1)))


def _rounded(values: Array) -> Array:
    return np.asarray(values, np.float64)
