"""How far a sparse measure can be from the optimum of its quadratic programme: the Frank-Wolfe bound, recomputed.

For a convex objective F with gradient g at v, F(u) ≥ F(v) + gᵀ(u - v) for every feasible u; and for every m

    gᵀu = (g + m d)ᵀu - m dᵀu,

so that an m for which g + m d ≥ 0 where u is free bounds the right-hand side. Nothing is believed of the solver but v
itself: the gradient is computed anew from the columns of the nodes. What rounding can do is counted in
:mod:`mercer.certificates.measure_rounding`; the bounds hold for the exact kernel at the points and for every matrix of
entries that floating point may give in its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.backends.arrays import Array, namespace
from mercer.backends.ordering import places
from mercer.backends.rounding import TINY, UNIT
from mercer.certificates.certificate import Certificate
from mercer.certificates.measure_definiteness import SquareDefiniteness, prove_square_definite
from mercer.certificates.measure_rounding import MeasureFacts, dot
from mercer.problems.discrepancy import Discrepancy, TraceProblem

_MORE = 1 + 1e-8  # for the rounding of bounds that need no digits
_OFF_LEVEL = 1e-6  # of ϰ: a measure that misses it by more belongs to another programme
_UNPROVED = (
    "no lower bound: whether the matrix is positive semi-definite takes a factorisation that is too large for the "
    "memory limit or for 8000 points"
)


@dataclass(frozen=True, repr=False)
class MeasureCertificate(Certificate):
    """The bounds on the discrepancy programme of a measure v, and what else the proof computed of v.

    Attributes
    ----------
    discrepancy : float
        D(v).
    trace : float
        dᵀv.
    multiplier : float
        The penalty that v is optimal for: α, or that of the constraint (QUAD Lemma 3.3).
    margin : float
        γ = vᵀS(v - ω).
    unresolved : float
        How far apart the bounds are whatever the weights: by rounding, and by what is not known of ωᵀSω.
    level_width : float
        Half the width of the interval in which ωᵀSω is known to lie, where it is known by points drawn at random. All
        objectives shift with it, so that the weights are within ``upper - lower - level_width`` of the best.
    """

    discrepancy: float = math.nan
    trace: float = math.nan
    multiplier: float = math.nan
    margin: float = math.nan
    unresolved: float = 0.0
    level_width: float = 0.0

    @property
    def gap_beyond_rounding(self) -> float:
        """The relative gap without the part that no choice of weights could close."""
        width = max(self.upper - self.lower - self.unresolved, 0.0)
        return width / self.upper if width > 0 else 0.0

    @property
    def verdict(self) -> tuple[str, str]:
        """As of every certificate; but a level that is not resolved is no failure of the weights, and told in words."""
        usual = super().verdict
        if self.level_width > 0 and np.isfinite(self.lower) and usual[0] != "proved":
            off = max(self.upper - self.lower - self.level_width, 0.0)
            return "proved", f"Weights within {off:.1e} of the best on their nodes, level of D by sampling"
        if usual[0] == "far" and self.upper <= self.unresolved:
            return "proved", f"Certified zero to rounding, at most {self.upper:.1e}"
        return usual


def certify_measure(
    problem: Discrepancy,
    nodes: Array,
    values: Array,
    *,
    alpha: float | None = None,
    kappa: float | None = None,
    on_nodes: bool = False,
    definiteness: SquareDefiniteness | None = None,
) -> MeasureCertificate:
    """Bound the optimum of the regularised (α given) or the constrained programme (ϰ given) from the measure v.

    Parameters
    ----------
    problem : Discrepancy
        The programme.
    nodes, values : arrays of shape (m,)
        v: where it is positive, and what it is there. For a constrained programme dᵀv must be ϰ.
    alpha, kappa : float
        One of the two: the penalty of (3.1) or the constraint of (3.2).
    on_nodes : bool, default=False
        Compare with measures on the same nodes only: whether their weights are the best for them.
    definiteness : SquareDefiniteness, optional
        What ``mercer.certificates.measure_definiteness.prove_square_definite`` found of S where it was asked already.

    Returns
    -------
    MeasureCertificate
        ``upper`` is the objective of v, D(v) plus the ridge, plus α dᵀv where α is given, and what rounding may hide of
        it. ``lower`` is the bound.

    Notes
    -----
    Cost: N·m kernel evaluations. Sω is taken from the problem with the rounding that a product has. Where nothing is
    known of S it is factored first, N³/3 flops, or m³/3 on the nodes alone; where that is too much, the lower bound is
    minus infinity.
    """
    level = problem.at(alpha=alpha, kappa=kappa)
    before = problem.n_columns
    whole = definiteness or prove_square_definite(problem.squared)
    proved = prove_square_definite(problem.squared, nodes) if whole is None and on_nodes and nodes.shape[0] else whole
    facts = MeasureFacts(problem, nodes, values, 0.0 if proved is None else proved.asymmetry)
    upper = _upper(facts, level)
    bound = _LowerBound(facts, level, upper, on_nodes, proved, whole is not None)
    method = "Frank-Wolfe bound over measures on the same nodes" if on_nodes else "Frank-Wolfe bound"
    multiplier = level.multiplier(nodes, values, facts.gradient)
    slack = facts.gradient[nodes] + multiplier * problem.penalty[nodes]  # zero at an optimum
    return MeasureCertificate(
        lower=-np.inf if proved is None else bound.value(),
        upper=upper,
        failure_probability=0.0,
        method=_UNPROVED if proved is None else method,
        n_products=problem.n_columns - before + 1 + (0 if proved is None else proved.n_columns),
        complementarity=float(abs(slack) @ values) / upper if upper > 0 else 0.0,
        minimised=True,
        discrepancy=problem.discrepancy(nodes, values, facts.gradient),
        trace=problem.trace(nodes, values),
        multiplier=multiplier,
        margin=float((facts.gradient[nodes] - problem.pull(nodes, values)) @ values),
        unresolved=2 * _MORE * facts.objective[1],
    )


def _upper(facts: MeasureFacts, level: TraceProblem) -> float:
    """The objective of v and its rounding; for ϰ also what moving the rest of dᵀv - ϰ to one node may cost."""
    value, error = facts.objective
    if level.alpha is not None:
        value, error = value + level.alpha * facts.total[0], error + level.alpha * facts.total[1]
    else:
        assert level.kappa is not None
        off = abs(facts.total[0] - level.kappa) + facts.total[1]
        if off > _OFF_LEVEL * level.kappa + facts.total[1]:
            raise ValueError(f"dᵀv = {facts.total[0]:.9g}, but kappa={level.kappa:.9g}: the measure must meet it.")
        error += facts.cost_of_moving(off)
    return float(value + _MORE * error + 8 * UNIT * abs(value) + TINY)


class _LowerBound:
    """The Frank-Wolfe bound of one measure, rounding and definiteness counted."""

    def __init__(
        self,
        facts: MeasureFacts,
        level: TraceProblem,
        upper: float,
        on_nodes: bool,
        proved: SquareDefiniteness | None,
        whole: bool,
    ) -> None:
        self._facts, self._upper, self._alpha, self._kappa = facts, upper, level.alpha, level.kappa
        self._on_nodes, self._whole = on_nodes, whole
        self._defect = 0.0 if proved is None else proved.defect
        problem = facts.problem
        self._allowed = facts.nodes if self._on_nodes else places(problem.size, facts.nodes)
        slopes = facts.roots[self._allowed] / problem.penalty[self._allowed]
        steepest = float(slopes.max()) if slopes.shape[0] else 0.0
        self._steepest = steepest * (_MORE + 2 * facts.penalty_error)
        self._level = self._largest_total() if self._kappa is None else max(self._kappa, sum(facts.total))

    def value(self) -> float:
        """The better of the linear bound and of D ≥ 0, both less what S and its entries fall short of."""
        facts = self._facts
        linear = self._linear() - self._dip(facts.weight_of_v, facts.energy_of_v)
        if not self._whole:
            return linear
        return max(linear, -self._dip(facts.weight_of_sample, 2 * facts.constant))

    def _linear(self) -> float:
        """F(v) - gᵀv + min (g + m d)ᵀu - m dᵀu, each term with its rounding."""
        facts, problem, allowed = self._facts, self._facts.problem, self._allowed
        value, error = facts.tangent
        prices = facts.prices[allowed]
        room = problem.caps[allowed] * problem.penalty[allowed]
        marginal = self._marginal_price()
        multiplier = -marginal if self._alpha is None else max(self._alpha, -marginal)
        if self._alpha is not None and float(room.sum()) <= self._level:  # the caps alone keep dᵀu below the level
            multiplier = self._alpha
        gain = namespace(prices).where(prices < -multiplier, problem.penalty[allowed] * (prices + multiplier), 0.0)
        capped = gain < 0
        below, rounding = dot(problem.caps[allowed][capped], gain[capped])
        error += rounding + (8 * UNIT + facts.penalty_error) * abs(below)
        return float(value + below - self._price_of_level(multiplier) - _MORE * error - 8 * UNIT * abs(value))

    def _marginal_price(self) -> float:
        """The price of the last point that is filled when the cheapest points are filled up to the level."""
        problem, prices = self._facts.problem, self._facts.prices
        caps = problem.caps
        if self._on_nodes:
            caps = namespace(prices).zeros_like(prices)
            caps[self._allowed] = problem.caps[self._allowed]
        filled = problem.filled(-prices, self._level, caps)[0]
        return float(prices[filled[-1]]) if filled.shape[0] else 0.0

    def _price_of_level(self, multiplier: float) -> float:
        """The most that m dᵀu, or (m - α) dᵀu, can be."""
        if self._alpha is not None:
            return (multiplier - self._alpha) * self._level * _MORE if multiplier > self._alpha else 0.0
        assert self._kappa is not None
        total, error = self._facts.total
        ends = (min(self._kappa, total - error), max(self._kappa, total + error))
        most = max(multiplier * ends[0], multiplier * ends[1])
        return most + 4 * UNIT * abs(most)

    def _dip(self, weight: float, energy: float) -> float:
        """How far ½ (u - w)ᵀM(u - w) can be below zero, for a measure w of this weight κᵀw and this wᵀSw.

        M is S, or S with other entries as floating point gives them. With S + c Diag(κ²) ≽ 0 and entries that differ by
        ε|Sᵢⱼ| + η κᵢκⱼ it is at most ½ c ((κᵀu)² + (κᵀw)²) + ½ ε (‖u‖ + ‖w‖)² + ½ η (κᵀ(u + w))², the norms those of S.
        """
        c, entry = self._defect, self._facts.entry
        mine = self._steepest * self._level
        dip = c * (mine**2 + weight**2) + entry.scaled * (mine + weight) ** 2
        energy += c * weight**2
        dip += entry.relative * (np.sqrt(self._energy(self._level)) + np.sqrt(energy)) ** 2
        return float(0.5 * _MORE * dip) + TINY

    def _energy(self, total: float) -> float:
        """A bound on uᵀ(S + c Diag(κ²))u where dᵀu ≤ total and u is no worse than v: from D(u), or from κᵀu."""
        weight = self._steepest * total
        most = (1 + 2 * self._defect) * weight**2
        if self._whole:
            dip = self._crude_dip(total)
            most = min(most, 2 * (np.sqrt(max(self._upper, 0.0) + dip) + np.sqrt(self._facts.constant + dip)) ** 2)
        return float(most) * _MORE

    def _crude_dip(self, total: float) -> float:
        """As :meth:`_dip`, from the weights alone: Sᵢⱼ ≤ (1 + c) κᵢκⱼ."""
        share = self._defect + (1 + self._defect) * self._facts.entry.relative + self._facts.entry.scaled
        return 0.5 * _MORE * share * (self._steepest * total + self._facts.weight_of_sample) ** 2

    def _largest_total(self) -> float:
        """A bound on dᵀu over all u that are no worse than the value at hand.

        No entry of S is negative, so F(u) ≥ Σ (½ κᵢ² uᵢ² - (Sω)ᵢ uᵢ): a sum of parabolas. Where S is positive
        semi-definite, ½ uᵀSu ≤ (√D(u) + √D(0))² and uᵀSu ≥ Σ κᵢ² uᵢ²; α dᵀu is part of the objective; and an optimum
        has dᵀu ≤ dᵀω (QUAD Lemma 3.2) where ω itself may be compared with, so not on the nodes alone.
        """
        facts, problem, allowed = self._facts, self._facts.problem, self._allowed
        size, q = facts.roots[allowed], facts.most_distortion[allowed]
        reach = problem.penalty[allowed] / size
        length = float(namespace(reach).linalg.vector_norm(reach))
        upper = max(self._upper, 0.0)
        total = float(reach @ (q / size)) + length * math.sqrt(2 * upper + float(((q / size) ** 2).sum()))
        total *= 1.01
        sample = problem.weights * (_MORE + problem.weight_error)
        free = not self._on_nodes and not (problem.ridge > 0).any() and bool((problem.caps >= sample).all())
        free = free and problem.law is None  # which is no measure on the points
        for _ in range(3 if self._whole else 0):  # each bound makes what rounding may hide smaller, and so the next
            dip = self._crude_dip(total)
            ball = np.sqrt(2.0) * (np.sqrt(upper + dip) + np.sqrt(facts.constant + dip)) * length
            total = min(total, 1.01 * float(ball))
            if self._alpha is not None and self._alpha > 0:
                total = min(total, (upper + dip) / self._alpha * _MORE)
                if free:
                    total = min(total, (problem.total + dip / self._alpha) * (_MORE + 2 * facts.penalty_error))
        return total
