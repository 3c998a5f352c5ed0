"""How far a sum of squares can be from the best one: bounds from both sides that count every rounding.

Of the programme that :mod:`mercer.problems.sum_of_squares_enclosures` states, with g = Σ c_r φ(z_r) any function of
the span that is projected on,

    ‖P(w_p - v)‖² ≥ 2⟨g, w_p - v⟩ - ‖g‖²,

so that the objective is at least ⟨G, C⟩ - 2⟨g, v⟩ - ‖g‖², G = 2A*(c) + λTᵀK̃T, and the optimum at least
θ - 2⟨g, v⟩ - ‖g‖² for every θ with G - θ TᵀWT ≽ 0. The best g is the residual of an optimal density: this is the bound
of the spectrahedron's linear oracle. With P = I any g will do, and g = w_q - v, q the density that is certified, gives
θ + ‖v‖² - ‖w_q‖² with G = 2Tᵀ(T(B_q) - V)T + λTᵀK̃T: no span is left out.

Nothing is believed of the solver but C itself, and nothing of floating point: the integrals, the sample's embedding,
the constraint and the objective are balls with proved radii, and the semi-definite matrix is proved to be one by a
factorisation.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from mercer.backends.arrays import Array, eigvalsh, norm, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.certificates.certificate import Certificate
from mercer.certificates.enclosures import inverse_form, least_ratio
from mercer.problems.sum_of_squares import SumOfSquares
from mercer.problems.sum_of_squares_enclosures import SquaresEnclosures, WholeEnclosures

_EIGENVALUES = 6
AnyCertificate = TypeVar("AnyCertificate", bound=Certificate)


def certify_spectrahedron(problem: SumOfSquares, factor: Array) -> Certificate:
    """Bound the optimum over the densities of a programme from C = F Fᵀ, brought to mass one.

    Parameters
    ----------
    problem : SumOfSquares
        The programme.
    factor : array of shape (s, r)
        F.

    Returns
    -------
    Certificate
        ``upper`` is at least the objective at C and at most a few units in the last place more; ``lower`` is the proved
        bound. ``least_eigenvalues`` are those of ∇f(C) - ⟨∇f(C), C⟩ I, which vanish on the range of an optimal C, and
        ``complementarity`` is ‖(∇f(C) - λ_min I) C‖ relative to ‖∇f(C)‖, both in double precision and no part of the
        proof.

    Raises
    ------
    ArithmeticError
        If there is no bound: the numbers of the programme leave the range of double precision.

    Notes
    -----
    Cost: some hundred products of m × m matrices, and n m exponentials of twice the double precision; for the whole
    MMD², m/2 such products and n² exponentials in double precision more. The proof is
    NumPy's, which a programme and a factor of tensors are brought to once.
    """
    factor = factor / norm(factor)
    lower, upper = _bounds(problem.enclosures, to_numpy(factor))
    gradient = problem.gradient(problem.residual(factor))
    return proved(Certificate, "linear oracle of the spectrahedron", (max(lower, 0.0), upper), gradient, factor)


def proved(
    kind: type[AnyCertificate], method: str, bounds: tuple[float, float], gradient: Array, factor: Array
) -> AnyCertificate:
    """The certificate of bounds of a minimum over the spectrahedron, with the conditions of an optimum at C = F Fᵀ.

    Raises
    ------
    ArithmeticError
        If the upper bound is no number.
    """
    require_bound(bounds[1])
    least, complementarity = optimality(gradient, factor)
    return kind(
        lower=bounds[0],
        upper=bounds[1],
        failure_probability=0.0,
        method=method,
        n_products=0,
        least_eigenvalues=least,
        complementarity=complementarity,
        minimised=True,
    )


def _bounds(programme: SquaresEnclosures | WholeEnclosures, factor: Array) -> tuple[float, float]:
    """Below the optimum, and above the objective at C = F Fᵀ over its mass."""
    if isinstance(programme, WholeEnclosures):
        return whole_bounds(programme, factor)
    y, upper = objective_bound(programme, factor)
    return oracle_bound(programme, y), upper


def whole_bounds(programme: WholeEnclosures, factor: Array) -> tuple[float, float]:
    """θ + ‖v‖² - ‖w_p‖², minus infinity where no θ is found, and ‖v‖² - 2⟨v, w_p⟩ + ‖w_p‖² with the penalty."""
    L = programme.basis @ ball(factor)
    share = (L * (programme.mass @ L)).sum().inverse()
    energy = programme.energy(L) * share
    own, cross = ((L * (M @ L)).sum() * share for M in (energy, programme.potential))
    misfit = programme.squared_norm - cross.scaled(1) + own + _penalty(programme, L, share)
    theta = least_ratio(programme.tangent(energy), programme.constraint)
    lower = (Ball(theta) + programme.squared_norm - own).lower() if np.isfinite(theta) else -np.inf
    return float(lower), float(misfit.upper())


def objective_bound(programme: SquaresEnclosures, factor: Array) -> tuple[Array, float]:
    """The coordinates in Ω of P(w_p - v) for C = F Fᵀ over its mass, and a number no less than the objective."""
    L = programme.basis @ ball(factor)
    share = (L * (programme.mass @ L)).sum().inverse()
    residual = programme.probes.embed(L) * share - programme.target
    y, misfit = inverse_form(programme.projected_gram, programme.whitening.T @ residual)
    return y, float((misfit + _penalty(programme, L, share)).upper())


def _penalty(programme: SquaresEnclosures | WholeEnclosures, L: Ball, share: Ball) -> Ball:
    """λ Tr(B K̃)."""
    if not np.any(programme.strength.hi):
        return ball(0.0)
    return (L * (programme.gram @ L)).sum() * share * programme.strength


def oracle_bound(programme: SquaresEnclosures, y: Array) -> float:
    """θ - 2⟨g, v⟩ - ‖g‖² for g with the coordinates y in Ω; minus infinity where no θ is found."""
    c = programme.whitening @ ball(y)
    theta = least_ratio(programme.tangent(c), programme.constraint)
    if not np.isfinite(theta):
        return -np.inf
    taken = (c * programme.target).sum().scaled(1) + (c * (programme.probe_gram @ c)).sum()
    return float((Ball(theta) - taken).lower())


def require_bound(upper: float) -> None:
    """Refuse a programme whose numbers leave the range of double precision."""
    if not np.isfinite(upper):
        raise ArithmeticError(
            "The density's programme is too ill-conditioned for any proof: raise truncation, or bring the features to "
            "a scale near one."
        )


def optimality(G: Array, factor: Array) -> tuple[Array, float]:
    """The least eigenvalues of ∇f - ⟨∇f, C⟩ I and the complementarity of C = F Fᵀ, to double precision."""
    along = G @ factor
    level = float((factor * along).sum())
    least = eigvalsh(G, 0, min(_EIGENVALUES, G.shape[0]))
    slack = (along - float(least[0]) * factor) @ factor.T
    size = norm(G)
    return least - level, norm(slack) / size if size > 0 else 0.0
