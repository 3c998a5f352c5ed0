"""The regression against the worst distribution of a ball: spans, integrals, the problem, and its proof."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, norm
from mercer.backends.config import require_free_memory
from mercer.certificates.certificate import RegressionCertificate
from mercer.certificates.game import certify_saddle_point
from mercer.density.gaussian_squares import GaussianSquares
from mercer.kernels.integrals.squared_loss import SquaredLosses, SquaredLossIntegrals
from mercer.kernels.integrals.squared_loss_forms import SquaredLossForms
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.problems.robust_regression import Adversary, RobustRegression, SaddlePoint
from mercer.problems.sum_of_squares import Spans
from mercer.robust.ball import make_ball
from mercer.robust.formulation import Coefficients, Effort, Formulation, Span, Terms, coordinates
from mercer.robust.pairs import Pairs
from mercer.solvers.game.barrier import Barrier
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Solution, Status
from mercer.solvers.spectrahedron.low_rank import LowRank

_NEAREST = 1e-10
_SLACK = 1e-6
_MATRICES = 60  # of order m, at the same time; a ball takes three, and a product of balls a dozen of them
_ALWAYS = 20_000_000  # bytes of panels that do not depend on the support
_WHOLE = 2.0  # above √2, the largest distance of two distributions: a larger ball holds no more
_MARGIN = 0.5  # of the gap to reach, the rest is for rounding
_MOST_OPERATIONS = 4e9  # in extended precision, a quarter of a minute
_MASS = 1e-6


@final
class Game(Formulation):
    """See :mod:`mercer.problems.robust_regression`: the spans are those of functions, densities and prices."""

    n_bases = 3

    def __init__(self, pairs: Pairs, terms: Terms, bases: tuple[Array, ...] | None = None) -> None:
        super().__init__(pairs, terms, bases)
        self.ball = make_ball(pairs, terms.truncation, None if bases is None else Spans(*bases[1:]))
        self.bases = (self.functions, self.ball.basis, self.ball.whitening)

    def spans(self) -> list[Span]:
        truncation, gram = self.terms.truncation, self.pairs.kernel(self.pairs.joint_support)
        return [
            *super().spans(),
            Span("densities", "adversary_coef_", self.ball.integrals.mass(), self.ball.basis, truncation),
            Span("prices", "price_coef_", gram, self.ball.whitening, truncation),
        ]

    @cached_property
    def problem(self) -> RobustRegression:
        """The saddle-point problem."""
        return self.problem_in(np.float64)

    def problem_in(self, dtype: Any) -> RobustRegression:
        """The saddle-point problem, whose integrals of the loss are formed in some precision."""
        radius = min(self.terms.radius, _WHOLE)
        return RobustRegression(
            self.ball,
            self._losses(dtype),
            self.sample,
            radius=radius,
            regularization=self.terms.regularization,
            anchor=None if self.terms.keep_sample else _nearest_density(self.ball, radius),
        )

    def _losses(self, dtype: Any) -> SquaredLosses:
        """The integrals of the loss, stored where they are formed in more than double precision, once."""
        pairs, T, U, q = self.pairs, self.ball.basis, self.functions, self.ball.goal.shape[0]
        (m, l), (r, s) = U.shape, T.shape
        stored = dtype != np.float64
        entries = (l * s) ** 2 if stored else 2 * r**2 * (m + l)
        require_free_memory(
            8 * (entries + 8 * (l + q) * s**2 + _MATRICES * m**2) + _ALWAYS,
            f"The integrals of the loss on {m} support points take",
            "take a smaller support",
        )
        if stored:
            return SquaredLossIntegrals(pairs.support, T, U, dtype, chosen=pairs.chosen)
        return SquaredLossForms(pairs.support, pairs.chosen_rows, T, U)

    def solve(self, effort: Effort) -> Solution[SaddlePoint]:
        """The saddle point; where rounding spoils its proof, that of integrals in extended precision if it is better.

        The status is ``STALLED`` where rounding, and nothing else, keeps the proof from the tolerance.
        """
        found = self._solved(self.problem, effort)
        (m, l), r = self.functions.shape, self.pairs.density_size
        if _is_spoilt(found, effort.tol) and l * (m * r) ** 2 <= _MOST_OPERATIONS:
            again = self._solved(self.problem_in(np.longdouble), effort)
            found = min(found, again, key=lambda solution: solution.certificate.relative_gap)
        return found.ended(Status.STALLED) if _is_spoilt(found, effort.tol) else found

    def _solved(self, problem: RobustRegression, effort: Effort) -> Solution[SaddlePoint]:
        return solve(
            problem,
            Barrier(),
            goal=Goal(_MARGIN * effort.tol, max_iter=effort.max_iter),
            callbacks=effort.callbacks,
            shown=effort.shown,
            certify=lambda point: self._certified(problem, self.coefficients(point)),
        )

    def coefficients(self, point: SaddlePoint) -> Coefficients:
        size, ball = self.pairs.size, self.ball
        return Coefficients(
            size * (self.functions @ point.beta),
            size**2 * (ball.whitening @ point.prices),
            ball.basis @ point.adversary.matrix @ ball.basis.T,
            float(point.adversary.share),
        )

    def certify(self, coefficients: Coefficients) -> RegressionCertificate:
        return self._certified(self.problem, coefficients)

    def _certified(self, problem: RobustRegression, coefficients: Coefficients) -> RegressionCertificate:
        (dual, price, B, share), size, ball = coefficients, self.pairs.size, self.ball
        C = coordinates(ball.basis, coordinates(ball.basis, B).T)
        point = SaddlePoint(
            coordinates(self.functions, dual / size),
            coordinates(ball.whitening, price) / size**2,
            Adversary(C, share),
        )
        return certify_saddle_point(problem, self.enclosures, point).in_units(size**2)

    def described(self, coefficients: Coefficients) -> dict[str, Any]:
        B, moved = coefficients.adversary, 1.0 - coefficients.share
        displacement = self.ball.whitening.T @ self.ball.comparison.probes.embed(B) - moved * self.ball.goal
        density, distance = None, 0.0
        if bool((B != 0).any()):
            density = GaussianSquares(self.pairs.density_support, B, self.pairs.support.sigma)
            distance = self._exact_distance(B, moved)
        return {"distance_": norm(displacement), "adversary_": density, "mmd_": distance}

    def _exact_distance(self, B: Array, moved: float) -> float:
        """‖w_p - moved·w‖ without projection, w the embedding of the sample and w_p that of the density part."""
        norm = self.ball.integrals.squared_norm(B)
        if norm is None:
            return float("nan")
        joint, weights = self.pairs.joint, self.pairs.weights
        sample = float(weights @ as_double(GramOperator(self.pairs.kernel, joint) @ weights))
        cross = float(weights @ self.ball.integrals.embed(B, joint))
        return float(np.sqrt(max(norm - 2 * moved * cross + moved**2 * sample, 0.0)))

    def require_distribution(self, coefficients: Coefficients) -> None:
        share = coefficients.share
        mass = share + float((coefficients.adversary * self.ball.integrals.mass()).sum())
        if not (0 <= share <= 1 and abs(mass - 1) <= _MASS):
            raise ValueError(
                f"The model's adversary has the mass {mass:.9g} with sample_share_, not one: it is damaged."
            )


def _is_spoilt(found: Solution[SaddlePoint], tol: float) -> bool:
    """Whether rounding, and nothing else, keeps the proof from the tolerance."""
    return found.status in (Status.CONVERGED, Status.STALLED) and not found.certificate.holds(tol)


def _nearest_density(ball: SumOfSquares, radius: float) -> Adversary:
    """The density nearest to the sample, which must lie inside the ball."""
    goal = Goal(0.0, absolute=_NEAREST * ball.constant)
    factor = solve(ball, LowRank(goal), goal=goal).point
    least = norm(ball.residual(factor))
    if radius <= least * (1 + _SLACK):
        raise ValueError(
            f"radius={radius:.6g} is not above {least:.6g}, the distance of the nearest density from the sample: raise "
            "radius, or leave keep_sample=True."
        )
    return Adversary(factor @ factor.T, 0.0)
