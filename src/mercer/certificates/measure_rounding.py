"""What is known of a sparse measure in floating point: gradient, objective and prices, each with a bound of its error.

With S the matrix of the exact squared kernel, every computed entry obeys |Ŝᵢⱼ - Sᵢⱼ| ≤ ε Sᵢⱼ + η κᵢκⱼ, κ² = diag S. S
has no negative entry, so a product Ŝw with w ≥ 0 is a sum without cancellation, wrong by no more than

    a (Sw)ᵢ + η κᵢ κᵀw,   a ≈ ε + γ,   γ = k u/(1 - k u) for sums in which a term passes k roundings,

and the gradient Sv - Sω by the two together: a (Sv + Sω)ᵢ + η κᵢ κᵀ(v + ω). All errors are taken for twice the entry
error, so that they hold for the exact S and for any other matrix of computed entries alike. The weights ω are
normalised by a division, their own relative error added to a. Sums over the points are taken with next to no rounding
(:func:`mercer.backends.rounding.exact_sum`) of products that have one each.
"""

from __future__ import annotations

from functools import cached_property

from mercer.backends.arrays import Array, as_double, copied
from mercer.backends.rounding import TINY, UNIT, EntryError, exact_sum, gamma, unit_of
from mercer.certificates.measure_definiteness import entry_error_of
from mercer.operators import GramOperator, LinearMap
from mercer.problems.discrepancy import Discrepancy

Bounded = tuple[float, float]  # a number, and how far it can be from what it stands for

_MORE = 1.02  # for products of errors, and for the rounding of these bounds
_LOST = 0.1  # a relative error beyond which a bound bounds nothing


def dot(a: Array, b: Array) -> Bounded:
    """Σ aᵢbᵢ and its rounding error: each product is rounded once, a factor perhaps, their sum hardly at all."""
    terms = a * b
    value = exact_sum(terms)
    return value, 4 * UNIT * exact_sum(abs(terms)) + (int(terms.shape[0]) + 1) * 2.0**-1073


def sum_length(squared: LinearMap) -> int:
    """How many roundings a term of (Sw)ᵢ passes at most: in its tile, from tile to tile, from buffer to buffer."""
    if not isinstance(squared, GramOperator):
        return 4 + squared.shape[0]
    return 4 + squared.summation_depth


class MeasureFacts:
    """A measure v on some nodes, and what floating point tells of it.

    Parameters
    ----------
    problem : Discrepancy
        The programme.
    nodes, values : arrays of shape (m,)
        v.
    asymmetry : float
        Of S, as :class:`mercer.certificates.measure_definiteness.SquareDefiniteness` has it.

    Attributes
    ----------
    gradient : array of shape (N,)
        A v - Sω, computed anew: N·m kernel evaluations.
    error : array of shape (N,)
        How far the gradient can be from that of the exact kernel, or of another matrix of computed entries.
    entry : EntryError
        Of the entries of S, without an absolute part.
    roots : array of shape (N,)
        Upper bounds of κ.
    """

    def __init__(self, problem: Discrepancy, nodes: Array, values: Array, asymmetry: float) -> None:
        self.problem, self.nodes, self.values = problem, nodes, values
        entry = entry_error_of(problem.squared)
        self._asymmetry = asymmetry
        self.penalty_error = problem.penalty_error + 4 * UNIT
        self.gradient = problem.gradient(nodes, values)
        diagonal = as_double(problem.squared.diagonal())
        scaled = entry.scaled + (entry.absolute / float(diagonal.min()) if entry.absolute > 0 else 0.0)
        self.entry = EntryError(entry.relative, scaled)
        self._scaled = 2 * _MORE * scaled
        if not self._relative + self._scaled < _LOST:
            raise ArithmeticError(
                f"The entries of {problem.squared!r} are not known to any digit: no bound can be proved of them."
            )
        self.roots = diagonal**0.5 * (1 + self._relative + self._scaled)
        self.error = self._gradient_error()

    @cached_property
    def _relative(self) -> float:
        """The relative error a of a product with S, of a measure and of its columns."""
        problem, squared = self.problem, self.problem.squared
        product = gamma(sum_length(squared) + 2, unit_of(squared.dtype))
        width = problem.panel_width
        columns = gamma(width + -(-int(self.nodes.shape[0]) // width) + 4, UNIT)
        return _MORE * (2 * self.entry.relative + product + columns + problem.weight_error)

    def _gradient_error(self) -> Array:
        problem = self.problem
        sums = 2 * problem.distortion + abs(self.gradient)  # at least A v + Sω
        scaled = (self._scaled + self._asymmetry) * (self.weight_of_v + self.weight_of_sample)
        own = 0.0 if problem.law is None else problem.law.sections.errors
        return _MORE * (self._relative * sums + scaled * self.roots + own) / (1 - 4 * self._relative) + TINY

    @cached_property
    def most_distortion(self) -> Array:
        """Upper bounds of Sω."""
        return 1.01 * (self.problem.distortion + self.error) / (1 - _LOST)

    @cached_property
    def weight_of_v(self) -> float:
        """κᵀv, from above."""
        return _MORE * float(self.roots[self.nodes] @ self.values)

    @cached_property
    def weight_of_sample(self) -> float:
        """κᵀω, from above; of a law the norm of its embedding under the squared kernel, as if it were one point."""
        if self.problem.law is not None:
            sections = self.problem.law.sections
            return _MORE * (sections.energy + sections.energy_error) ** 0.5
        return _MORE * float(self.roots @ self.problem.weights)

    @cached_property
    def energy_of_v(self) -> float:
        """vᵀSv, from above."""
        sums = self.gradient[self.nodes] + self.problem.distortion[self.nodes] + self.error[self.nodes]
        return _MORE * max(float(sums @ self.values), 0.0)

    @cached_property
    def constant(self) -> float:
        """D(0), from above."""
        if self.problem.law is not None:
            return _MORE * (self.problem.constant + self.problem.law.sections.energy_error)
        return _MORE * self.problem.constant + float(self.problem.weights @ self.error)

    @cached_property
    def total(self) -> Bounded:
        """dᵀv."""
        value, error = dot(self.problem.penalty[self.nodes], self.values)
        return value, error + self.penalty_error * abs(value)

    @cached_property
    def objective(self) -> Bounded:
        """D(v) + ½ Σ ρᵢvᵢ² = ½ (v - ω)ᵀg + ½ Σ ρᵢvᵢωᵢ: where v is close to ω, little of the error of g is left."""
        difference = -self.problem.weights
        difference[self.nodes] += self.values
        value, error = dot(difference, self.gradient)
        ridge, more = self._ridge_term
        error += float(abs(difference) @ self.error) * (1 + 4 * UNIT) + self._of_weights
        mean, slip = self._mean_under_law
        return 0.5 * (value - mean + ridge), 0.5 * _MORE * (error + slip + more)

    @cached_property
    def tangent(self) -> Bounded:
        """F(v) - gᵀv = -½ (v + ω)ᵀg + ½ Σ ρᵢvᵢωᵢ, which the Frank-Wolfe bound starts from."""
        both = copied(self.problem.weights)
        both[self.nodes] += self.values
        value, error = dot(both, self.gradient)
        ridge, more = self._ridge_term
        error += float(both @ self.error) + self._of_weights + 2 * UNIT * float(both @ abs(self.gradient))
        mean, slip = self._mean_under_law
        return 0.5 * (ridge - value - mean), 0.5 * _MORE * (error + slip + more)

    @cached_property
    def _mean_under_law(self) -> Bounded:
        """∫ (Sv - Sω) dμ = vᵀ(Sω) - ωᵀSω for a law, which no weight at a point counts; zero without one."""
        if self.problem.law is None:
            return 0.0, 0.0
        sections = self.problem.law.sections
        value, error = dot(sections.values[self.nodes], self.values)
        error += float(sections.errors[self.nodes] @ self.values) + sections.energy_error
        return value - sections.energy, error + 4 * UNIT * (abs(value) + sections.energy)

    @cached_property
    def _of_weights(self) -> float:
        """What the error of ω changes of ωᵀg."""
        return (self.problem.weight_error + 2 * UNIT) * float(self.problem.weights @ (abs(self.gradient) + self.error))

    @cached_property
    def _ridge_term(self) -> Bounded:
        problem, nodes = self.problem, self.nodes
        value, error = dot(problem.ridge[nodes] * self.values, problem.weights[nodes])
        return value, error + (problem.weight_error + 4 * UNIT) * abs(value)

    @cached_property
    def prices(self) -> Array:
        """Lower bounds of g/d at every point."""
        price = (self.gradient - self.error) / self.problem.penalty
        return price - (4 * UNIT + _MORE * self.penalty_error) * abs(price) - TINY

    def cost_of_moving(self, mass: float) -> float:
        """What the objective may grow by when a node takes or gives this much of dᵀv."""
        nodes, d = self.nodes, self.problem.penalty[self.nodes]
        if nodes.shape[0] == 0:
            return 0.0
        slope = float(((abs(self.gradient[nodes]) + self.error[nodes]) / d).max())
        bend = float(((self.roots[nodes] ** 2 + self.problem.ridge[nodes]) / d**2).max())
        return _MORE * (mass * slope + mass**2 * bend)
