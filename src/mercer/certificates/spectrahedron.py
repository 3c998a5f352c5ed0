"""How far a sum of squares can be from the best one: the bound of the spectrahedron's linear oracle, recomputed.

f is convex, so f(C') ≥ f(C) + ⟨∇f(C), C' - C⟩ for every C' ≽ 0 of trace one, and the least right-hand side is attained
at the projector of an extreme eigenvector: f* ≥ f(C) - (⟨∇f(C), C⟩ - λ_min(∇f(C))). Nothing is believed of the solver
but C itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from mercer.certificates.certificate import Certificate
from mercer.problems.sum_of_squares import SumOfSquares

Array = np.ndarray[Any, np.dtype[Any]]
_EIGENVALUES = 6


def certify_spectrahedron(problem: SumOfSquares, factor: Array) -> Certificate:
    """Bound the optimum over the spectrahedron from C = F Fᵀ / ‖F‖².

    Parameters
    ----------
    problem : SumOfSquares
        The programme.
    factor : array of shape (s, r)
        F; it is brought to Frobenius norm one.

    Returns
    -------
    Certificate
        ``upper`` is f(C), ``lower`` the bound, with the rounding error s·ε·‖∇f‖ of a dense eigenvalue taken off, and an
        estimate of that of f(C) itself (:meth:`SumOfSquares.rounding`), which counts where W is ill-conditioned;
        ``least_eigenvalues`` those of ∇f(C) - ⟨∇f(C), C⟩ I, which vanish on the range of an optimal C, and
        ``complementarity`` is ‖(∇f(C) - λ_min I) C‖ relative to ‖∇f(C)‖.

    Notes
    -----
    Cost: five residuals, one gradient and the eigenvalues of a symmetric matrix of order s.
    """
    factor = factor / np.linalg.norm(factor)
    residual = problem.residual(factor)
    value = problem.value(factor, residual)
    G = problem.gradient(residual)
    along = G @ factor
    level = float(np.sum(factor * along))
    count = min(_EIGENVALUES, G.shape[0])
    least = eigh(G, eigvals_only=True, subset_by_index=[0, count - 1])
    size = float(np.linalg.norm(G))
    rounding = G.shape[0] * float(np.finfo(np.float64).eps) * size + problem.rounding(factor, residual)
    lower = value - (level - float(least[0])) - rounding
    slack = (along - float(least[0]) * factor) @ factor.T
    return Certificate(
        lower=min(max(lower, 0.0), value),
        upper=value,
        failure_probability=0.0,
        method="linear oracle of the spectrahedron",
        n_products=6,
        least_eigenvalues=least - level,
        complementarity=float(np.linalg.norm(slack)) / size if size > 0 else 0.0,
        minimised=True,
    )
