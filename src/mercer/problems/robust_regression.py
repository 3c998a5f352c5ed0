"""Least squares against the worst distribution of an MMD ball (SOS 17, 18).

    min_f max_μ  ∫ (f(x) - y)² dμ(x, y) + λ‖f‖²      over   MMD(μ, μ̂) ≤ ε

The learner chooses f = βᵀu in the span of some kernel sections, ‖f‖ = ‖β‖. The adversary chooses

    μ = a μ̂ + p_C,   p_C(z) = e(z)ᵀ C e(z),   C ≽ 0,  a ≥ 0,  a + Tr C = 1

a share a of the sample, left where it is, and a kernel sum of squares for the rest, e orthonormal in L². With a = 0
this is SOS (18); with a free the sample itself is admissible, so that the ball is never empty, and ε = 0 is ridge
regression. With A(C) the mean embedding of p_C and b that of the sample, both projected on the span of the support (SOS
Lemma 3), the ball is ‖A(C) - (1 - a) b‖ ≤ ε: the projection shortens vectors, so it contains every such μ with
MMD(μ, μ̂) ≤ ε.

The loss is linear in (C, a), ⟨N(β), C⟩ + a R̂(β), and a convex quadratic in β: minimum and maximum may be exchanged. The
dual of the ball's constraint is a vector y of the projected space, a function g(z) = ⟨y, φ(z)⟩ that the adversary pays
for:

    max_μ loss = min_y  max(λ_max(N(β) - A*y), R̂(β) - bᵀy) + bᵀy + ε‖y‖

so any β and y bound the optimum from above by one extreme eigenvalue, and any admissible (C, a) from below by the ridge
regression on μ, a linear system.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, final

from mercer.backends.arrays import Array, add_to_diagonal, eigvalsh, namespace, norm
from mercer.kernels.integrals.squared_loss import SquaredLosses
from mercer.problems.problem import Problem
from mercer.problems.sample_loss import SampleLoss
from mercer.problems.sum_of_squares import SumOfSquares


class Adversary(NamedTuple):
    """A distribution a μ̂ + p_C: C of order s, positive semi-definite, and the share a of the sample; a + Tr C = 1."""

    matrix: Array
    share: float


class SaddlePoint(NamedTuple):
    """The learner's β, the prices y that bound its worst case, and the adversary's distribution."""

    beta: Array
    prices: Array
    adversary: Adversary


@final
class RobustRegression(Problem):
    """The saddle-point problem in β and (C, a).

    Parameters
    ----------
    ball : SumOfSquares
        The embedding A of densities, its adjoint, and b.
    losses : SquaredLosses
        The integrals of the loss, in the bases of C and of β.
    sample : SampleLoss
        R̂.
    radius, regularization : float
        ε > 0 and λ > 0.
    anchor : Adversary, optional
        An admissible distribution inside the ball. Left out it is the sample itself, and the adversary may keep a share
        of it; given, the adversary has densities alone (SOS 18).

    Notes
    -----
    Memory: what the losses take, and q s² numbers for A, q being the dimension of the projected space.
    """

    def __init__(
        self,
        ball: SumOfSquares,
        losses: SquaredLosses,
        sample: SampleLoss,
        *,
        radius: float,
        regularization: float,
        anchor: Adversary | None = None,
    ) -> None:
        self.sample, self.radius, self.regularization = sample, radius, regularization
        self.keeps_sample = anchor is None
        self.goal = ball.goal
        self._losses, self._entries = losses, losses.entries
        self.order, self.n_functions = ball.dimension, sample.slope.shape[0]
        xp, options = namespace(self.goal), {"dtype": self.goal.dtype, "device": self.goal.device}
        nothing = xp.zeros((self.order, self.order), **options)
        self.anchor = Adversary(nothing, 1.0) if anchor is None else anchor
        units = xp.eye(self.goal.shape[0], **options)
        self._embedding = xp.stack([self._entries.pack(ball.adjoint(y)) for y in units])  # rows: A* of unit vectors

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"an adversary"})

    @cached_property
    def embeddings(self) -> Array:
        """A* of the unit vectors: q matrices of order s."""
        return self._entries.unpack(self._embedding)

    def packed(self, matrices: Array) -> Array:
        """Symmetric matrices of order s as vectors of s(s+1)/2 entries with the same inner products."""
        return self._entries.pack(matrices)

    def loss_matrix(self, beta: Array) -> Array:
        """N(β): the loss of p_C is ⟨N(β), C⟩."""
        return self._entries.unpack(self._losses.values(beta))

    def loss_derivatives(self, beta: Array) -> tuple[Array, Array]:
        """N(β), and ∂N/∂β_j, l matrices of order s."""
        values, slopes = self._losses.derivatives(beta)
        return self._entries.unpack(values), self._entries.unpack(slopes)

    def loss_curvature(self, C: Array) -> Array:
        """∫ u uᵀ p_C, of order l: half the Hessian of the loss of p_C in β."""
        return self._losses.curvature(self._entries.pack(C))

    def priced(self, y: Array) -> Array:
        """A*y: what the function g = ⟨y, φ⟩ takes from the loss of densities."""
        return self._entries.unpack(y @ self._embedding)

    def displacement(self, adversary: Adversary) -> Array:
        """A(C) - (1 - a) b, whose norm is the projected distance from the sample."""
        return self._embedding @ self._entries.pack(adversary.matrix) - (1.0 - adversary.share) * self.goal

    def admissible(self, adversary: Adversary) -> Adversary:
        """A distribution of the ball near to this one, brought to mass one; the anchor where there is no mass.

        What is not positive is cut off. What lies outside is drawn towards the anchor. What lies inside, and keeps a
        share of the sample, moves as much of it as the radius allows, where that hurts the learner more.
        """
        matrix = _positive_part(adversary.matrix)
        share = max(float(adversary.share), 0.0) if self.keeps_sample else 0.0
        mass = float(namespace(matrix).linalg.trace(matrix)) + share
        if mass <= 0:
            return self.anchor
        found = Adversary(matrix / mass, share / mass)
        away, least = (norm(self.displacement(which)) for which in (found, self.anchor))
        if away > self.radius:
            kept = (self.radius - least) / (away - least)
            share = kept * found.share + (1 - kept) * self.anchor.share
            return Adversary(kept * found.matrix + (1 - kept) * self.anchor.matrix, share)
        moved = 1.0 - found.share
        if not self.keeps_sample or moved <= 0 or away <= 0:
            return found
        further = min(self.radius / away, 1.0 / moved)
        stretched = Adversary(further * found.matrix, max(1.0 - further * moved, 0.0))
        return max(found, stretched, key=lambda which: self.best_response(which)[1])

    def best_response(self, adversary: Adversary) -> tuple[Array, float]:
        """Ridge regression on a distribution: β, and what the objective is there, the least the learner can have."""
        C, a = adversary
        flat = self._entries.pack(C)
        H = self._losses.curvature(flat) + a * self.sample.curvature
        add_to_diagonal(H, self.regularization)
        r = self._losses.slope(flat) + a * self.sample.slope
        beta = namespace(H).linalg.solve(H, r)
        return beta, float(self._losses.constant @ flat + a * self.sample.constant - r @ beta)

    def upper_bound(self, beta: Array, y: Array) -> float:
        """What this learner risks at most, plus λ‖β‖², but for rounding."""
        return self.worst_case(beta, y) + self.regularization * float(beta @ beta)

    def worst_case(self, beta: Array, y: Array) -> float:
        """A bound on ∫ (f - y)² dμ for every admissible μ, without the penalty λ‖β‖²."""
        slack, s = self.loss_matrix(beta) - self.priced(y), self.order
        top = float(eigvalsh(slack, s - 1, s)[0])
        if self.keeps_sample:
            top = max(top, self.sample.value(beta) - float(self.goal @ y))
        return top + float(self.goal @ y) + self.radius * norm(y)


def _positive_part(matrix: Array) -> Array:
    """The nearest positive semi-definite matrix to the symmetric part of this one."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(0.5 * (matrix + matrix.T))
    return (vectors * xp.clip(values, 0.0, None)) @ vectors.T
