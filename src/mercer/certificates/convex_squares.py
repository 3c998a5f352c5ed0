"""Lower bounds for convex functions of densities that are sums of squares, by convexity and one eigenvalue.

For every density that keeps the bounds, with functionals u', F(u') ≥ F(û) + ⟨∇F(û), u' - û⟩ at any û, and with prices
a, b ≥ 0 of the bounds the objective is at least

    F(û) - ⟨∇F(û), û⟩ + ⟨b, lower⟩ - ⟨a, upper⟩ + ⟨G, C'⟩,   G = Σ (∇F(û) + a - b)_j TᵀM_jT + λTᵀK̃T,

and ⟨G, C'⟩ ≥ θ for every θ with G - θ TᵀWT ≽ 0. û is the double nearest to the functionals of the given density.

What is proved, and of what: integrals, functionals, penalty and the semi-definite matrix are balls with proved radii.
Of F three things are assumed that no sampling proves: that it is convex, that ``gradient`` is its gradient, and that
floating point evaluates both to a relative accuracy that is stated with it (:func:`evaluation_slack`).
"""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, ball, up
from mercer.backends.rounding import EPS
from mercer.certificates.certificate import Certificate
from mercer.certificates.enclosures import least_ratio
from mercer.problems.convex_squares import ConvexSquares, PricedFactor
from mercer.problems.observed_function import NotConvexError

_EIGENVALUES = 6
_NOTHING = 1e-100


def certify_convex_squares(problem: ConvexSquares, point: PricedFactor, accuracy: float) -> Certificate:
    """Bound the optimum over the densities of a programme from C = F Fᵀ, brought to mass one.

    Parameters
    ----------
    problem : ConvexSquares
        The programme.
    point : PricedFactor
        The factor, and any prices: none is believed, and negative ones are cut off.
    accuracy : float
        Of value and gradient, see :func:`evaluation_slack`.

    Returns
    -------
    Certificate
        ``upper`` is at least the objective of the density, infinite where it is not proved to keep the bounds.

    Raises
    ------
    NotConvexError
        If the bounds cross: value and gradient are then not those of a convex function.
    """
    programme = problem.squares.enclosures
    L = programme.basis @ ball(to_numpy(point.factor) / np.linalg.norm(point.factor))
    share = (L * (programme.mass @ L)).sum().inverse()
    u = problem.functionals.values(L) * share
    at, radius = u.rounded()
    value, slope = problem.function.seen(at)
    slack = evaluation_slack(problem, at, radius, value, slope, accuracy)
    below, above = _prices(point.below, problem.lower), _prices(point.above, problem.upper)
    lower = _lower_bound(problem, ball(slope) + above - below, ball(value) - ball(slope) @ ball(at), below, above)
    penalty = (L * (programme.gram @ L)).sum() * share * programme.strength
    upper = float((ball(value) + penalty).upper()) + slack
    lower = lower - slack
    kept = bool(np.all(u.lower() >= problem.lower) and np.all(u.upper() <= problem.upper))
    if lower > upper:
        raise NotConvexError(
            f"Values and gradients of the functional prove {lower:.9g} as lower bound where the density has "
            f"{upper:.9g}: it is not convex, or its gradient is not that of its value."
        )
    least, complementarity = _conditions(problem, point, slope)
    return Certificate(
        lower=float(np.nextafter(lower, -np.inf)),
        upper=float(np.nextafter(upper, np.inf)) if kept else np.inf,
        failure_probability=0.0,
        method="convexity and an eigenvalue",
        n_products=0,
        least_eigenvalues=least,
        complementarity=complementarity,
        minimised=True,
    )


def evaluation_slack(
    problem: ConvexSquares, at: Array, radius: Array, value: float, slope: Array, accuracy: float
) -> float:
    """What is allowed for floating point in F(û) + ⟨∇F(û), u' - û⟩, and for û in the place of the density's own u.

    ``accuracy`` of the value, and of every entry of the gradient relative to itself and to what rounding of û does to
    it, over the distances that u' can have from û.
    """
    curved = np.abs(problem.function.hessian(at)) @ np.abs(at)
    reach = np.abs(at) + problem.ranges
    loose = accuracy * (abs(value) + float((np.abs(slope) + curved) @ reach))
    return float(up(loose + 2 * float((np.abs(slope) + curved) @ radius)))


def _prices(given: Array, bound: Array) -> Ball:
    """Prices without negative ones, and none of bounds that are infinite."""
    return ball(np.where(np.isfinite(bound), np.maximum(given, 0.0), 0.0))


def _lower_bound(problem: ConvexSquares, y: Ball, constant: Ball, below: Ball, above: Ball) -> float:
    """The constant, less what the bounds' prices take, plus the least ratio of G and the mass."""
    programme = problem.squares.enclosures
    M = problem.functionals.combined(y)
    if np.any(programme.strength.hi):
        M = M + programme.gram * programme.strength
    theta = _least(programme.in_basis(M), programme.constraint, abs(float(constant.hi)))
    if not np.isfinite(theta):
        return -np.inf
    lower, upper = (np.where(np.isfinite(bound), bound, 0.0) for bound in (problem.lower, problem.upper))
    return float((constant + below @ ball(lower) - above @ ball(upper) + theta).lower())


def _least(G: Ball, mass: Ball, size: float) -> float:
    """The least ratio; where G vanishes, that of G + c·mass less c, since a zero matrix has no scale to step below."""
    theta = least_ratio(G, mass)
    if np.isfinite(theta):
        return theta
    c = max(float(np.max(G.magnitude())), EPS * size, _NOTHING)
    return float(np.nextafter(least_ratio(G + mass * c, mass) - c, -np.inf))


def _conditions(problem: ConvexSquares, point: PricedFactor, slope: Array) -> tuple[Array, float]:
    """The least eigenvalues of the slack and the complementarity, to double precision."""
    F = point.factor / np.linalg.norm(point.factor)
    G = problem.adjoint(slope + point.above - point.below) + problem.penalty
    levels = np.linalg.eigvalsh(G)
    along, size = G @ F, float(np.linalg.norm(G))
    slack = (along - levels[0] * F) @ F.T
    return levels[:_EIGENVALUES] - float((F * along).sum()), float(np.linalg.norm(slack)) / size if size > 0 else 0.0
