"""The quadratic programmes of quadrature sparsification (QUAD 3.1, 3.2, 5.5, 5.7).

    D(v) = ½ (ω - v)ᵀ S (ω - v),   S = K ∘ K,   0 ≤ v ≤ c      (or S = K, section 10)

with a penalty α dᵀv (regularised) or under dᵀv = ϰ (constrained), and a ridge ½ Σ ρᵢ vᵢ² where one is asked for. With
A = S + Diag(ρ) the gradient is A v - Sω (+ α d): the vector Sω, the *distortion*, is the one product with S that is
computed in full; everything else needs the columns of the nodes alone.

Weights, penalties and nodes are arrays of one library, that of the points behind S, and so is all that comes back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

from mercer.backends.arrays import Array, as_double, like, namespace
from mercer.backends.chunks import panel_columns
from mercer.backends.ordering import as_indices, places, stable_order
from mercer.journal import remembered
from mercer.kernels.checks import checked_nodes, checked_weights
from mercer.kernels.integrals.law_sections import LawSections
from mercer.linalg.dense_products import add_product
from mercer.operators import LinearMap
from mercer.problems.problem import Problem

CAPS, RIDGE = "caps", "a ridge"
PENALTY, CONSTRAINT = "a penalty on the trace", "a trace constraint"
_ABOVE_CAPS = 1e-9  # of ϰ: what rounding may put it above what the caps allow
_NEGATIVE = 1e-5  # of D(0), below which rounding takes no discrepancy, not even in float32


@dataclass(frozen=True, eq=False)
class SparseMeasure:
    """A measure v by its nodes and their positive weights, with its gradient A v - Sω at every point."""

    nodes: Array
    values: Array
    gradient: Array


@dataclass(frozen=True, eq=False)
class TargetLaw:
    """A law by its sections under the squared kernel, and ∫ k(x, x) dμ."""

    sections: LawSections
    trace: float


@final
class Discrepancy(Problem):
    """Minimise the discrepancy to a measure ω by a sparse measure v, that of the squared kernel or of another.

    Parameters
    ----------
    squared : LinearMap
        S, symmetric, N × N, without negative entries: the Gram matrix of the squared kernel, or of the kernel itself.
    weights : array of shape (N,)
        ω > 0.
    penalty : array of shape (N,)
        d > 0.
    caps : array of shape (N,), optional
        c > 0, upper bounds of v; infinite if left out.
    ridge : array of shape (N,), optional
        ρ ≥ 0; zero if left out.
    distortion : array of shape (N,), optional
        Sω where it is known already; one product with S otherwise.
    errors : (float, float), default=(0, 0)
        Bounds on the relative errors of ω and d: of weights that are normalised, of a diagonal that is evaluated.
    covariance : LinearMap, optional
        Σ of QUAD (5.7), symmetric and positive semi-definite, for the term ½ vᵀΣv: ``squared`` is then S + Σ, and the
        sample comes as a law, for its own product is with S alone.
    law : TargetLaw, optional
        A law μ in place of Σ ωₖ δ(xₖ), on points that are candidates for the nodes and no part of it: ω is zero then,
        Sω is ∫ k²(xᵢ, y) dμ(y), ωᵀSω is ∬ k² dμ dμ, and dᵀω is ∫ k(x, x) dμ (QUAD section 2).

    Attributes
    ----------
    n_columns : int
        Columns of S evaluated so far, the product Sω not counted.
    """

    _made_from: ClassVar = {
        name: name
        for name in ["squared", "weights", "penalty", "caps", "ridge", "distortion", "errors", "law", "covariance"]
    }

    def __init__(
        self,
        squared: LinearMap,
        weights: Array,
        penalty: Array,
        *,
        caps: Array | None = None,
        ridge: Array | None = None,
        distortion: Array | None = None,
        errors: tuple[float, float] = (0.0, 0.0),
        law: TargetLaw | None = None,
        covariance: LinearMap | None = None,
    ) -> None:
        self.squared, self.law, self.covariance = squared, law, covariance
        self.size = squared.shape[0]
        self.penalty = penalty
        if law is not None:
            weights, distortion = namespace(weights).zeros_like(weights), law.sections.values
        self.weights = weights
        if distortion is None:
            distortion = remembered("distortion", lambda: squared @ weights, squared=squared, weights=weights)
        self.distortion = as_double(distortion)
        nothing = namespace(self.distortion).zeros_like(self.distortion)
        self.caps = nothing + math.inf if caps is None else caps
        self.ridge = nothing if ridge is None else ridge
        self.errors = self.weight_error, self.penalty_error = errors

    @property
    def needs(self) -> frozenset[str]:
        """Caps, and a ridge, where there are any."""
        xp = namespace(self.distortion)
        found = {CAPS: xp.any(self.caps < math.inf), RIDGE: xp.any(self.ridge > 0)}
        return frozenset(name for name, there in found.items() if there)

    def at(self, *, alpha: float | None = None, kappa: float | None = None) -> TraceProblem:
        """The regularised programme if α is given, the constrained one if ϰ is."""
        if (alpha is None) == (kappa is None):
            raise ValueError("A discrepancy is minimised for either alpha or kappa: give one of the two.")
        return TraceProblem(self, alpha, kappa)

    def regularised(self, alpha: float) -> TraceProblem:
        """The programme with the penalty α dᵀv."""
        return self.at(alpha=alpha)

    def constrained(self, kappa: float) -> TraceProblem:
        """The programme under dᵀv = ϰ."""
        return self.at(kappa=kappa)

    @property
    def panel_width(self) -> int:
        """Columns that :meth:`gradient` makes at a time."""
        return panel_columns(self.size)

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of A."""
        return as_double(self.squared.diagonal()) + self.ridge

    @property
    def constant(self) -> float:
        """D(0) = ½ ωᵀSω."""
        if self.law is not None:
            return 0.5 * self.law.sections.energy
        return 0.5 * float(self.weights @ self.distortion)

    @property
    def total(self) -> float:
        """dᵀω, the trace of the operator of ω if d = diag K: the largest ϰ that makes sense (Lemma 3.3)."""
        return self.law.trace if self.law is not None else float(self.penalty @ self.weights)

    @property
    def largest_alpha(self) -> float:
        """α₀ = max (Sω)ₖ/dₖ, from which on the solution is the empty measure (Lemma 3.2)."""
        return float((self.distortion / self.penalty).max())

    def filled(self, gain: Array, kappa: float, caps: Array | None = None) -> tuple[Array, Array]:
        """A measure with dᵀv = ϰ: the points of largest gain, each filled up to its cap or to what is left of it."""
        xp, caps = namespace(gain), self.caps if caps is None else caps
        room = caps * self.penalty
        order = stable_order(-gain) if xp.any(room < kappa) else as_indices([int(xp.argmax(gain))], gain)
        zero = xp.zeros_like(gain[:1])
        before = xp.concat([zero, xp.cumulative_sum(room[order])[:-1]])
        taken = xp.minimum(xp.maximum(kappa - before, zero), room[order])
        nodes, taken = order[taken > 0], taken[taken > 0]
        return nodes, xp.where(taken < room[nodes], xp.minimum(taken / self.penalty[nodes], caps[nodes]), caps[nodes])

    def columns(self, nodes: Array) -> Array:
        """Columns of A, N × m."""
        nodes = as_indices(nodes, self.distortion)
        nodes = nodes[None] if nodes.ndim == 0 else nodes
        self.spend(int(nodes.shape[0]))
        block = as_double(self.squared.block(nodes, slice(None))).T  # long rows are made faster than short ones
        block[nodes, places(int(nodes.shape[0]), nodes)] += self.ridge[nodes]
        return block

    def block(self, rows: Array, cols: Array) -> Array:
        """Some entries of A, given by index arrays."""
        block = as_double(self.squared.block(rows, cols))
        if namespace(block).any(self.ridge[cols] > 0):
            block += self.ridge[cols] * (rows[:, None] == cols)
        return block

    def gradient(self, nodes: Array, values: Array) -> Array:
        """A v - Sω at every point, for v with these values on m nodes: N·m kernel evaluations, a panel at a time."""
        total = -self.distortion
        width = self.panel_width
        for lo in range(0, nodes.shape[0], width):
            add_product(total, self.columns(nodes[lo : lo + width]), values[lo : lo + width])
        return total

    def value(self, nodes: Array, values: Array, gradient: Array | None = None) -> float:
        """D(v) + ½ Σ ρᵢ vᵢ² from the gradient A v - Sω at every point (computed if it is not handed in).

        It is ½ ⟨v - ω, S(v - ω)⟩ + ½ Σ ρᵢ vᵢ² written with the gradient, which is small where v is close to ω: the sum
        keeps its digits where a difference of ½ ωᵀSω and its like would not.
        """
        gradient = self.gradient(nodes, values) if gradient is None else gradient
        on_nodes = gradient[nodes] + self.ridge[nodes] * self.weights[nodes]
        value = 0.5 * float(values @ on_nodes) - 0.5 * self.mean_of(nodes, values, gradient)
        if value < -_NEGATIVE * self.constant:
            raise ValueError(
                f"The discrepancy of a measure is negative, {value:.1e} where that of the empty one is "
                f"{self.constant:.1e}: the kernel must be positive semi-definite."
            )
        return max(value, 0.0)

    def mean_of(self, nodes: Array, values: Array, gradient: Array) -> float:
        """ωᵀ(Sv - Sω): the mean under the measure of the function whose values at the points the gradient has."""
        if self.law is None:
            return float(self.weights @ gradient)
        return float(self.distortion[nodes] @ values) - self.law.sections.energy

    def trace(self, nodes: Array, values: Array) -> float:
        """dᵀv."""
        return float(self.penalty[nodes] @ values)

    def multiplier(self, nodes: Array, values: Array, gradient: Array) -> float:
        """The α for which v solves the regularised programme if it solves the constrained one (QUAD Lemma 3.3).

        It is read off the nodes below their caps; where there are none, it is the largest that keeps them all there,
        and α₀ for the empty measure.
        """
        below = values < self.caps[nodes]
        weight = self.trace(nodes[below], values[below])
        if weight > 0:
            return -float(gradient[nodes[below]] @ values[below]) / weight
        return -float((gradient[nodes] / self.penalty[nodes]).max()) if nodes.shape[0] else self.largest_alpha

    def slacks(self, nodes: Array, values: Array, alpha: float) -> Array:
        """ξ = max(0, -α d - g) with g = S(v - ω), at the nodes: m² kernel evaluations, a panel at a time.

        At a solution these are the slack variables of the soft-margin machines whose duals have caps or a ridge (QUAD
        5.4, 5.6): ½‖g‖² + (g, g_ω) + cᵀξ, or + ½ Σ ξᵢ²/ρᵢ, is least under g ≥ -α d - ξ. They are ρᵢvᵢ, and more where v
        is at its cap; they vanish off the nodes, where g ≥ -α d. With a covariance they are Σv, off the nodes too.
        """
        witness, width = -self.distortion[nodes], self.panel_width
        for lo in range(0, int(nodes.shape[0]), width):
            part = slice(lo, lo + width)
            add_product(witness, as_double(self.squared.block(nodes, nodes[part])), values[part])
        witness = witness - (self.pull(nodes, values) - self.ridge[nodes] * values)
        return namespace(witness).clip(-alpha * self.penalty[nodes] - witness, min=0.0)

    def discrepancy(self, nodes: Array, values: Array, gradient: Array | None = None) -> float:
        """D(v) alone."""
        return self.value(nodes, values, gradient) - 0.5 * float(self.pull(nodes, values) @ values)

    def pull(self, nodes: Array, values: Array) -> Array:
        """ρᵢvᵢ and (Σv)ᵢ at the nodes: what the ridge adds to the gradient there."""
        pull = self.ridge[nodes] * values
        if self.covariance is None:
            return pull
        return pull + as_double(self.covariance.block(nodes, nodes)) @ values


@final
class TraceProblem(Problem):
    """The discrepancy with a price on the trace dᵀv of the measure (QUAD 3.1), or with that trace given (QUAD 3.2).

    Parameters
    ----------
    discrepancy : Discrepancy
        D with its ridge, d and the caps.
    alpha, kappa : float or None
        One of the two: the penalty α ≥ 0, or ϰ > 0, no more than the caps allow.
    """

    def __init__(self, discrepancy: Discrepancy, alpha: float | None, kappa: float | None) -> None:
        if kappa is not None:
            _check_level(discrepancy, kappa)
        self.discrepancy, self.alpha, self.kappa = discrepancy, alpha, kappa

    @property
    def needs(self) -> frozenset[str]:
        """Those of the discrepancy, and what is asked of the trace."""
        return self.discrepancy.needs | {CONSTRAINT if self.alpha is None else PENALTY}

    @property
    def n_columns(self) -> int:  # type: ignore[override]
        """Columns of S evaluated so far, for this level or for another."""
        return self.discrepancy.n_columns

    @contextmanager
    def within(self, columns: int | None) -> Iterator[None]:
        """Hold the discrepancy to a budget."""
        with self.discrepancy.within(columns):
            yield

    def value(self, nodes: Array, values: Array, gradient: Array) -> float:
        """D(v) with its ridge, and with α dᵀv where α is given, from the gradient A v - Sω."""
        value = self.discrepancy.value(nodes, values, gradient)
        return value if self.alpha is None else value + self.alpha * self.discrepancy.trace(nodes, values)

    def multiplier(self, nodes: Array, values: Array, gradient: Array) -> float:
        """α, or the one of the constraint (QUAD Lemma 3.3)."""
        return self.discrepancy.multiplier(nodes, values, gradient) if self.alpha is None else self.alpha


def _check_level(discrepancy: Discrepancy, kappa: float) -> None:
    if not (math.isfinite(kappa) and kappa > 0):
        raise ValueError(f"kappa={kappa!r} must be a positive number.")
    most = float(discrepancy.caps @ discrepancy.penalty)
    if most < kappa * (1 - _ABOVE_CAPS):
        raise ValueError(
            f"The caps allow dᵀv = {most:.6g} at most, but kappa = {kappa:.6g}: raise them or lower kappa."
        )


def checked_measure(nodes: Any, values: Any, size: int, reference: Any = None) -> tuple[Array, Array]:
    """Distinct nodes among ``size`` points, and their positive values, in the library of another array."""
    chosen = checked_nodes(nodes, size, reference)
    weights = like(checked_weights(values, chosen.shape[0], "values"), reference)
    if (weights == 0).any():
        raise ValueError(f"values is zero at index {int(weights.argmin())}: a node of a measure has positive weight.")
    return chosen, weights
