"""The certificate of a maximum variance unfolding: any springs give an upper bound, by one eigenvalue of their matrix.

If L_w ≽ λV with λ > 0, then ⟨V, B⟩ ≤ ⟨L_w, B⟩/λ = Σₑ wₑ ‖yᵢ - yⱼ‖²/λ ≤ (Σₑ hiₑ wₑ⁺ - loₑ wₑ⁻)/λ for every B that keeps
to the bounds of the pairs. With M = Diag(m) and the unit vector q = √(m/Σm), which M^-½ L_w M^-½ takes to zero,

    M^-½ L_w M^-½ + τ qqᵀ ≽ λI,  λ ≤ τ    ⟹    L_w ≽ λV,

for xᵀVx = xᵀMx and qᵀM^½x = 0 once mᵀx = 0, and neither side of L_w ≽ λV sees a translation. The left matrix is formed
dense and factored (:mod:`mercer.certificates.factorisation`): no chance is involved, and rounding is counted. Masses
that are next to nothing are raised for it, which makes V no smaller.

The lower bound is the variance of the points as they are stored. Where they pass the bounds of the pairs by no more
than a part v of these, what is proved concerns the bounds made wider by v, which v the certificate states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS, UNIT, gamma
from mercer.certificates.certificate import Certificate
from mercer.certificates.factorisation import bound_largest_eigenvalue
from mercer.problems.unfolding import Unfolding

_BEYOND = 2.0  # τ in units of λ
_ENTRY = 16  # roundings of an entry of the scaled matrix beyond those of a sum over pairs


@dataclass(frozen=True, repr=False)
class UnfoldingCertificate(Certificate):
    """The certificate of an unfolding, with what only an unfolding has.

    Attributes
    ----------
    violation : float
        By what part the squared distance of a neighbour pair passes its bounds, at most; both bounds on the optimum
        hold for bounds of the pairs that are wider by this part. ``upper`` holds for the bounds as they are, too.
    multiplier_sum : float
        Σ hi w⁺ + lo w⁻ over λ: by how much the upper bound grows, for each part by which the bounds of pairs do.
    """

    violation: float = 0.0
    multiplier_sum: float = float("nan")

    def holds(self, tol: float) -> bool:
        """Whether no unfolding is better by more than a fraction tol, and no distance wrong by more than that."""
        return bool(self.violation <= tol and super().holds(tol))

    def __str__(self) -> str:
        """One line a person understands."""
        beyond = "" if self.violation == 0 else f"; distances pass their bounds by up to {self.violation:.1e}"
        return super().__str__() + beyond

    def in_units(self, factor: float) -> UnfoldingCertificate:
        """The same for squared lengths in other units, that is multiplied by a power of two."""
        names = ("lower", "upper", "multiplier_sum")
        return replace(self, **{name: factor * getattr(self, name) for name in names})


def certify_unfolding(
    problem: Unfolding, points: Array, multipliers: Array, *, level: float | None = None
) -> UnfoldingCertificate:
    """Prove how far points can be from the largest variance.

    Parameters
    ----------
    problem : Unfolding
        The programme.
    points : array of shape (n, r)
        Y.
    multipliers : array of shape (E,)
        w, any numbers: the better they are, the closer is the bound.
    level : float, optional
        Their :func:`connectivity`, where that is known.

    Notes
    -----
    Cost: an n × n matrix and its factorisation, n³/3 flops; a few more where the multipliers are not optimal.
    """
    violation = largest_violation(problem, points)
    upper, total = math.inf, math.inf
    level = connectivity(problem, multipliers) if level is None else level
    if level > 0 and math.isfinite(violation):
        upper, total = _dual_value(problem, multipliers, violation, level)
    return UnfoldingCertificate(
        lower=_variance_below(problem, points) * (1 - problem.mass_rounding),
        upper=upper * (1 + problem.mass_rounding) * (1 + 2 * EPS),
        failure_probability=0.0,
        method="Laplacian factorisation",
        n_products=0,
        violation=violation,
        multiplier_sum=total,
    )


def largest_violation(problem: Unfolding, points: Array) -> float:
    """By what part of a bound any squared distance passes it, at most; zero if none can."""
    squares, error = problem.squares(points), gamma(points.shape[1] + 6, UNIT)
    above = squares * (1 + error) / (problem.upper * (1 - problem.rounding) * (1 - 4 * EPS)) - 1
    held = problem.lower > 0
    below = 1 - squares[held] * (1 - error) / (problem.lower[held] * (1 + problem.rounding) * (1 + 4 * EPS))
    worst = max(float(above.max(initial=0.0)), float(below.max(initial=0.0)))
    if not math.isfinite(worst):
        return math.inf
    return worst * (1 + 8 * EPS) if worst > 0 else 0.0


def connectivity(problem: Unfolding, multipliers: Array) -> float:
    """A number λ > 0 with L_w ≽ λV, zero where none is found: that of w is near one where w is feasible."""
    if not np.all(np.isfinite(multipliers)) or not np.any(multipliers):
        return 0.0
    problem = problem.raised
    root = np.sqrt(problem.masses)
    inverse, share = 1 / root, root / math.sqrt(math.fsum(problem.masses))
    matrix = problem.laplacian(multipliers).toarray()
    matrix *= inverse[:, None] * inverse
    sizes = problem.laplacian(np.abs(multipliers))
    matrix += _BEYOND * np.outer(share, share)
    most_pairs = int(np.bincount(problem.pairs.ravel()).max())
    rows = np.abs(sizes) @ inverse * inverse + _BEYOND * share * share.sum()
    formed = gamma(most_pairs + _ENTRY, UNIT) * float(rows.max()) * (1 + 64 * EPS)
    try:
        least = -bound_largest_eigenvalue(-matrix, -1.0)
    except ArithmeticError:
        return 0.0
    return max(min(least - formed, _BEYOND) * (1 - 4 * EPS), 0.0)


def _dual_value(problem: Unfolding, multipliers: Array, violation: float, level: float) -> tuple[float, float]:
    """(Σ hi w⁺ - lo w⁻)/λ and (Σ hi w⁺ + lo w⁻)/λ, from above, the bounds wider by the violation and by rounding."""
    terms = np.where(multipliers > 0, problem.upper, -problem.lower) * np.abs(multipliers)
    total = math.fsum(np.abs(terms)) * (1 + 8 * EPS)
    wider = violation + problem.rounding + violation * problem.rounding + 8 * EPS
    value = math.fsum(terms) + total * wider * (1 + 8 * EPS)
    return value / level * (1 + 4 * EPS), total / level


def _variance_below(problem: Unfolding, points: Array) -> float:
    """The variance of the points, from below.

    Σ m‖y - ȳ‖² = Σ m‖y - c‖² - Σm ‖ȳ - c‖² for any c: that of the rounded mean leaves a second term of nearly nothing.
    """
    m, (n, r) = problem.masses, points.shape
    mass = math.fsum(m)
    centred = points - m @ points / mass
    moments = m[:, None] * centred
    total = math.fsum((moments * centred).sum(axis=1)) * (1 - (r + 16) * EPS)
    drifts = (np.abs(moments.sum(axis=0)) + (n + 16) * EPS * np.abs(moments).sum(axis=0)) / mass
    return max(total - mass * float(drifts @ drifts) * (1 + (r + 32) * EPS), 0.0)
