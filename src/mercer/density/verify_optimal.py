"""The certificate of an optimal density, recomputed from its factor, its prices and the functional alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends import config_context
from mercer.certificates import Certificate
from mercer.consistency import require_equal, require_meeting, require_numbers, require_spans
from mercer.density.convex_functional import ConvexFunctional
from mercer.density.optimal_problem import certified, pose
from mercer.density.setting import Setting
from mercer.problems.convex_squares import ConvexSquares, PricedFactor

if TYPE_CHECKING:
    from mercer.density.optimal import OptimalDensity

_INTEGRALS = 1e-9  # of the factor's entries and of the functionals, for the rounding of sums that cancel


def verify_optimal(density: OptimalDensity, functional: Any) -> Certificate:
    """Certify a density again, believing nothing that its solver left behind; see :func:`mercer.verify`.

    The integrals and the functionals are computed again on the span that the density keeps; that it is the one its
    truncation says is checked, and so is every number that follows from the factor.
    """
    if not isinstance(functional, ConvexFunctional):
        raise TypeError("verify takes an optimal density with the ConvexFunctional that it minimises.")
    setting = Setting(density.kernel_, density.support_, density.measure_)
    with config_context(dtype="float64"):
        problem = pose(functional, setting, density.regularization_, density._truncation, density._spans)
        require_spans(problem.squares.integrals.mass(), density._spans.basis, "densities", density._truncation)
        point = _point(density, problem)
        return require_meeting(density, certified(problem, point, functional.accuracy))


def _point(density: OptimalDensity, problem: ConvexSquares) -> PricedFactor:
    """The factor in the span and the prices, every number that a person reads held against them."""
    squares = problem.squares
    rank = int(require_numbers(density, "rank_", ()))
    factor = require_numbers(density, "_factor", (squares.size, rank))
    coordinates = squares.coordinates(factor)
    if float(np.max(np.abs(factor - squares.basis @ coordinates))) > _INTEGRALS * float(np.max(np.abs(factor))):
        raise ValueError("The model's factor lies outside the span of its densities: it is damaged.")
    require_equal(density, "log_scale_", squares.integrals.log_scale, "its kernel and measure", tolerance=_INTEGRALS)
    own = factor * float(np.exp(-0.5 * squares.integrals.log_scale))
    require_equal(density, "factor_", own, "the factor that densities are computed from")
    require_equal(density, "coefficients_", own @ own.T, "its factor")
    masses, rounding = squares.integrals.square_masses(factor)
    require_equal(density, "eigenvalues_", masses, "its factor", tolerance=_INTEGRALS + rounding)
    u = problem.functional_values(coordinates / np.linalg.norm(coordinates))
    require_equal(density, "functionals_", u, "its factor", tolerance=_INTEGRALS)
    prices = require_numbers(density, "prices_", (problem.count,))
    return PricedFactor(coordinates, np.maximum(-prices, 0.0), np.maximum(prices, 0.0))
