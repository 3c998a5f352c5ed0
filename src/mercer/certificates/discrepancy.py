"""How far a sparse measure can be from the optimum of its quadratic programme: the Frank-Wolfe bound, recomputed.

For a convex objective F with gradient g at v, F(u) ≥ F(v) + gᵀ(u - v) for every feasible u; the least right-hand side
over the feasible set is a linear programme whose solution is known. Nothing is believed of the solver but v itself: the
gradient is computed anew from the columns of the nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.problems import Discrepancy

Array = np.ndarray[Any, np.dtype[Any]]


def certify_measure(
    problem: Discrepancy,
    nodes: Array,
    values: Array,
    *,
    alpha: float | None = None,
    kappa: float | None = None,
    on_nodes: bool = False,
) -> Certificate:
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

    Returns
    -------
    Certificate
        ``upper`` is the objective of v: D(v) plus the ridge, plus α dᵀv where α is given. ``lower`` is the bound.

    Notes
    -----
    Cost: N·m kernel evaluations. The bound takes Sω as the problem has it.
    """
    if (alpha is None) == (kappa is None):
        raise ValueError("certify_measure takes either alpha or kappa.")
    before = problem.n_columns
    gradient = problem.gradient(nodes, values)
    value = problem.value(nodes, values, gradient)
    if alpha is None:
        assert kappa is not None
        level, multiplier = kappa, problem.multiplier(nodes, values, gradient)
    else:
        value += alpha * float(problem.penalty[nodes] @ values)
        level, multiplier = _largest_total(problem, value, alpha, on_nodes=on_nodes), alpha
    slack = gradient + multiplier * problem.penalty
    allowed = nodes if on_nodes else np.arange(problem.size)
    least = _least_linear(problem, slack, allowed, level, exactly=kappa is not None)
    lower = value + least - float(slack[nodes] @ values)
    work = float(np.abs(slack[nodes]) @ values)
    return Certificate(
        lower=min(max(lower, 0.0), value),
        upper=value,
        failure_probability=0.0,
        method="Frank-Wolfe bound over measures on the same nodes" if on_nodes else "Frank-Wolfe bound",
        n_products=problem.n_columns - before,
        complementarity=work / value if value > 0 else 0.0,
        minimised=True,
    )


def _least_linear(problem: Discrepancy, slope: Array, allowed: Array, level: float, *, exactly: bool) -> float:
    """The least slopeᵀu over 0 ≤ u ≤ c on the allowed points with dᵀu = level, or dᵀu ≤ level.

    The cheapest points are filled up first.
    """
    price = (slope / problem.penalty)[allowed]
    room = (problem.caps * problem.penalty)[allowed]
    order = np.argsort(price, kind="stable") if np.any(room < level) else np.array([int(np.argmin(price))])
    before = np.concatenate([[0.0], np.cumsum(room[order])[:-1]])
    filled = np.clip(level - before, 0.0, room[order])
    if not exactly:
        filled = np.where(price[order] < 0, filled, 0.0)
    return float(price[order] @ filled)


def _largest_total(problem: Discrepancy, value: float, alpha: float, *, on_nodes: bool) -> float:
    """A bound on dᵀu over all u that are no worse than the value at hand.

    ½ uᵀSu ≤ (√D(u) + √D(0))², and uᵀSu ≥ Σ Sᵢᵢuᵢ² since S has no negative entry; and α dᵀu is part of the objective.
    An optimum has dᵀu ≤ dᵀω (QUAD Lemma 3.2) where ω itself may be compared with, so not on the nodes alone.
    """
    radius = np.sqrt(2.0) * (np.sqrt(value) + np.sqrt(problem.constant))
    bound = float(np.linalg.norm(problem.penalty / np.sqrt(problem.diagonal - problem.ridge))) * radius
    if alpha > 0:
        bound = min(bound, value / alpha)
        if not on_nodes and np.all(problem.ridge == 0) and np.all(problem.caps >= problem.weights):
            bound = min(bound, problem.total)
    return bound
