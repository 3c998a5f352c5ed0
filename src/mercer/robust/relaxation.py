"""Penalised least squares: an adversary with a whole ball of the Hilbert space, or none where its radius is zero."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, namespace
from mercer.certificates.certificate import RegressionCertificate
from mercer.certificates.strong_convexity import certify_strongly_convex
from mercer.kernels import Gaussian
from mercer.problems.hilbert_ball_regression import HilbertBallRegression
from mercer.robust.formulation import Coefficients, Effort, Formulation, Terms, coordinates
from mercer.robust.pairs import Pairs
from mercer.solvers.game.newton import Newton
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Solution

_SAFE = 1e-3  # of the gap to reach; the last step gains as much
_LEAST_TOL = 1e-14  # no gap below this is more than rounding


@final
class Relaxation(Formulation):
    """See :mod:`mercer.problems.hilbert_ball_regression`; at ε = 0 it is ridge regression on the sample."""

    n_bases = 1

    def __init__(self, pairs: Pairs, terms: Terms, bases: tuple[Array, ...] | None = None) -> None:
        super().__init__(pairs, terms, bases)
        middle = Gaussian(sigma=float(np.sqrt(2) * pairs.support.sigma))
        self.problem = HilbertBallRegression(
            as_double(middle(pairs.support.inputs)),
            self.functions,
            self.sample,
            radius=terms.radius,
            regularization=terms.regularization,
        )

    def solve(self, effort: Effort) -> Solution[Array]:
        goal = Goal(max(_SAFE * effort.tol, _LEAST_TOL), max_iter=effort.max_iter)
        return solve(
            self.problem,
            Newton(),
            goal=goal,
            callbacks=effort.callbacks,
            shown=effort.shown,
            certify=lambda beta: self.certify(self.coefficients(beta)),
        )

    def coefficients(self, point: Array) -> Coefficients:
        xp, dual = namespace(point), self.pairs.size * (self.functions @ point)
        nothing = xp.zeros([self.pairs.density_size] * 2, dtype=dual.dtype, device=dual.device)
        return Coefficients(dual, xp.zeros_like(dual), nothing, 1.0)

    def certify(self, coefficients: Coefficients) -> RegressionCertificate:
        size, (radius, regularization, *_) = self.pairs.size, self.terms
        beta = coordinates(self.functions, coefficients.dual / size)
        found = certify_strongly_convex(self.enclosures, beta, radius=radius, regularization=regularization)
        return found.in_units(size**2)

    def described(self, coefficients: Coefficients) -> dict[str, Any]:
        return {"distance_": 0.0, "mmd_": 0.0, "adversary_": None}

    def require_distribution(self, coefficients: Coefficients) -> None:
        _, price, adversary, share = coefficients
        if bool((price != 0).any()) or bool((adversary != 0).any()) or share != 1.0:
            raise ValueError("The model has prices or an adversary where there are none in its problem: it is damaged.")
