"""The regularisation path as a user sees it: solutions at any α or ϰ, in rows of the data."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from mercer.backends.arrays import Array, namespace
from mercer.backends.ordering import appended, as_indices, flatnonzero
from mercer.problems import Discrepancy
from mercer.solvers.measure.active_set import solve_on
from mercer.solvers.measure.kinks import Kinks, PathEnd
from mercer.wording import brief


class PathPoint(NamedTuple):
    """The solution at a point of the path.

    Attributes
    ----------
    indices : array of int of shape (m,)
        Rows of the data that carry weight, in rising order.
    weights : array of shape (m,)
        Their weights.
    alpha, kappa : float
        The penalty and dᵀv.
    discrepancy : float
        D(v).
    """

    indices: Array
    weights: Array
    alpha: float
    kappa: float
    discrepancy: float

    def __repr__(self) -> str:
        return brief(self, "alpha", "kappa", "discrepancy", "indices")


class QuadraturePath:
    """All solutions from α₀ down, piecewise linear in α and in ϰ (QUAD Lemma 6.1).

    Attributes
    ----------
    alphas : array of shape (p,)
        The kinks, α falling; the first is α₀, where the measure is still empty.
    kappas : array of shape (p,)
        dᵀv at the kinks, rising from zero.
    discrepancies : array of shape (p,)
        D(v) at the kinks, with the ridge where there is one.
    n_nodes : array of shape (p,)
        Nodes just below each kink.
    end : PathEnd
        Why the path ended; ``end.value`` says it in a sentence.
    n_in_order : int
        Kinks up to which every event was told from the next in floating point. Beyond, some events lie closer together
        than rounding resolves: the measures are as accurate as elsewhere, but the number of kinks may be off by a few.
    """

    _made_from: ClassVar = {"problem": "_problem", "kinks": "_kinks", "rows": "_rows"}

    def __init__(self, problem: Discrepancy, kinks: Kinks, rows: Array) -> None:
        self._problem, self._kinks, self._rows = problem, kinks, rows
        self.alphas, self.kappas = kinks.alphas, kinks.kappas
        self.discrepancies, self.n_nodes = kinks.values, kinks.n_nodes
        self.end, self.n_in_order = kinks.end, kinks.n_in_order

    def __len__(self) -> int:
        """Kinks found."""
        return int(self.alphas.shape[0])

    def __repr__(self) -> str:
        """Return the number of kinks, where they end and why."""
        last = f"α = {self.alphas[-1]:.6g}, ϰ = {self.kappas[-1]:.6g}, {int(self.n_nodes[-1])} nodes"
        return f"<QuadraturePath of {len(self)} kinks to {last}. {self.end.value}>"

    def at(self, *, alpha: float | None = None, kappa: float | None = None, n_nodes: int | None = None) -> PathPoint:
        """The solution at a penalty α, at a value ϰ of dᵀv, or at the first kink below which there are n_nodes nodes.

        Between two kinks the nodes are known and their weights are the solution of a linear system, which is solved
        anew: no error of the path enters. Cost: n³/3 flops and n² kernel evaluations, and n N for the discrepancy.
        """
        if sum(given is not None for given in (alpha, kappa, n_nodes)) != 1:
            raise ValueError("at takes one of alpha, kappa and n_nodes.")
        if n_nodes is not None:
            reached = flatnonzero(self.n_nodes[:-1] >= n_nodes)
            if reached.shape[0] == 0:
                most = int(self.n_nodes[:-1].max()) if len(self) > 1 else 0
                raise ValueError(f"n_nodes={n_nodes}: the path has {most} nodes at most. {self._how_to_go_on()}")
            alpha = float(self.alphas[reached[0]] + self.alphas[reached[0] + 1]) / 2
        if kappa is not None:
            alpha = self._alpha_at(float(kappa))
        assert alpha is not None
        return self._point(float(alpha))

    def _alpha_at(self, kappa: float) -> float:
        if not 0 <= kappa <= self.kappas[-1]:
            raise ValueError(
                f"kappa={kappa:.6g} lies outside the path, which covers 0 to {self.kappas[-1]:.6g}. "
                f"{self._how_to_go_on()}"
            )
        above = int((self.kappas <= kappa).sum())
        if above == len(self):
            return float(self.alphas[-1])
        low, high = float(self.kappas[above - 1]), float(self.kappas[above])
        first, last = float(self.alphas[above - 1]), float(self.alphas[above])
        return first + (last - first) * (kappa - low) / (high - low)

    def _how_to_go_on(self) -> str:
        return "Ask for more of it." if self.end is PathEnd.REQUESTED else self.end.value

    def _point(self, alpha: float) -> PathPoint:
        if not alpha >= self.alphas[-1]:
            raise ValueError(
                f"alpha={alpha:.6g} lies beyond the end of the path, {self.alphas[-1]:.6g}. {self._how_to_go_on()}"
            )
        if alpha >= self.alphas[0]:
            return PathPoint(as_indices([], self.alphas), self.alphas[:0], alpha, 0.0, self._problem.constant)
        xp = namespace(self.alphas)
        kink = int((self.alphas > alpha).sum()) - 1
        places = xp.sort(appended(*self._kinks.sets_after(kink)))
        values = solve_on(self._problem.regularised(alpha), places)
        places, values = places[values > 0], values[values > 0]
        kappa = self._problem.trace(places, values)
        discrepancy = self._problem.discrepancy(places, values)
        order = xp.argsort(self._rows[places])
        return PathPoint(self._rows[places][order], values[order], alpha, kappa, discrepancy)
