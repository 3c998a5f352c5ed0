"""A convex loss against the worst distribution of an MMD ball on finitely many pairs (SOS 17).

    min_f max_μ  Σ_j μ_j ℓ(f(x_j), y_j) + λ‖f‖²      over weights μ of the candidates with ‖w_μ - w_μ̂‖ ≤ ε

w the mean embedding of a measure on the candidates (x_j, y_j), which contain the sample. f may be any function of the
Hilbert space: of all that have the same values at the candidates, the one in the span of their sections has the least
norm. The loss is linear in μ and convex in f, so minimum and maximum may be exchanged, and each player has a bound.

The dual of the ball's constraint is a function of pairs g, a price that the adversary pays for what it moves:

    max_μ Σ μ_j ℓ_j ≤ max_j (ℓ_j - g_j) + Σ μ̂_j g_j + ε‖g‖

for every g. For a fixed μ each loss lies above its tangents, ℓ_j ≥ p_j f(x_j) + d(p_j, y_j), and the least of these
over all f of the Hilbert space is known:

    min_f Σ μ_j ℓ_j + λ‖f‖² ≥ Σ μ_j d(p_j, y_j) - ‖Σ μ_j p_j k(·, x_j)‖²/(4λ)

At ε = 0 the sample is the only distribution, and no price is needed.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, norm
from mercer.problems.losses import Loss
from mercer.problems.problem import Problem


class Play(NamedTuple):
    """What both players do: f by β, g by its coordinates, the weights μ of the candidates, and slopes p for them."""

    beta: Array
    prices: Array
    weights: Array
    slopes: Array


class Strategies(NamedTuple):
    """Orthonormal functions at the candidates.

    Attributes
    ----------
    functions : array of shape (N, l)
        f(x_j) = (this β)_j with ‖f‖ = ‖β‖.
    prices : array of shape (N, q)
        g(x_j, y_j) = (this c)_j with ‖g‖ = ‖c‖.
    """

    functions: Array
    prices: Array


class Stakes(NamedTuple):
    """The loss, ε ≥ 0 and λ > 0."""

    loss: Loss
    radius: float
    regularization: float


@final
class CandidateGame(Problem):
    """The saddle-point problem in β and μ.

    Parameters
    ----------
    strategies : Strategies
        What f and g are made of. A span that leaves some functions out costs optimality, never the truth of a bound.
    targets, shares : arrays of shape (N,)
        y_j, and the weights μ̂_j of the sample, which sum to one; zero for other candidates.
    stakes : Stakes
        The loss, the radius and the regularisation.

    Notes
    -----
    Cost of a bound: N (l + q) operations.
    """

    def __init__(self, strategies: Strategies, targets: Array, shares: Array, stakes: Stakes) -> None:
        self.functions, self.price_functions = strategies
        self.targets, self.shares = targets, shares
        self.loss, self.radius, self.regularization = stakes

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"candidates"})

    @property
    def has_adversary(self) -> bool:
        """Whether the ball holds more than the sample."""
        return self.radius > 0

    def losses(self, beta: Array) -> Array:
        """ℓ_j."""
        return self.loss.values(self.functions @ beta, self.targets)

    def upper_bound(self, beta: Array, prices: Array) -> float:
        """What this learner risks at most, plus λ‖f‖², but for rounding."""
        losses, penalty = self.losses(beta), self.regularization * float(beta @ beta)
        if not self.has_adversary:
            return float(self.shares @ losses) + penalty
        g = self.price_functions @ prices
        return float(np.max(losses - g)) + float(self.shares @ g) + self.radius * norm(prices) + penalty

    def lower_bound(self, weights: Array, slopes: Array) -> float:
        """What no learner can go below against an admissible μ, by admissible slopes, but for rounding."""
        pull = self.functions.T @ (weights * slopes)
        intercepts = self.loss.intercepts(slopes, self.targets)
        return float(weights @ intercepts) - float(pull @ pull) / (4 * self.regularization)

    def admissible(self, weights: Array) -> Array:
        """A distribution of the ball near to these weights: cut at zero, of mass one, and drawn to the sample."""
        weights = np.maximum(weights, 0.0)
        mass = float(weights.sum())
        if not self.has_adversary or not 0 < mass < np.inf:
            return self.shares
        weights = weights / mass
        away = self.distance(weights)
        return weights if away <= self.radius else self.shares + self.radius / away * (weights - self.shares)

    def distance(self, weights: Array) -> float:
        """‖w_μ - w_μ̂‖."""
        return norm(self.price_functions.T @ (weights - self.shares))
