"""The steps of vertex exchange (QUAD 7.1): single exchanges, and many at once inside a block of points.

Masses uᵢ = dᵢvᵢ sum to ϰ and lie between 0 and the ceiling cᵢdᵢ; prices are gᵢ/dᵢ with g = A v - Sω; curvatures are
entries of D⁻¹AD⁻¹, D = Diag(d). These are the paper's canonical programme (7.1) up to the factor ϰ.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numba import njit

from mercer.backends.arrays import Array, as_double, is_tensor, namespace
from mercer.backends.ordering import appended, as_indices, flatnonzero, least, places, stable_order
from mercer.backends.rounding import EPS
from mercer.linalg.column_cache import ColumnCache
from mercer.linalg.dense_products import over_rows
from mercer.problems import Discrepancy
from mercer.solvers.measure.active_set_pool import first_apart
from mercer.solvers.measure.exchange_inside import FLAT, exchange_inside

_PRICE_NOISE = 4 * EPS  # of the largest terms that make up a price

# Blocks, measured on N = 2 016 to 30 000 points with 160 to 8 000 nodes.
_NEW = 64  # new points for a step at least ...
_GROWTH = 0.5  # ... or this part of the number of nodes
_POOL = 512  # the cheapest points among which new ones are chosen, at least
_ALIKE = 0.9  # a new point whose correlation with one chosen before it is higher is a near-copy
_INNER_GAP = 0.1  # of the block's own bound: where the exchanges inside stop
_INNER_STEPS = 100_000
_LEAST_BLOCK = 1024  # points
_SEEDS = 512  # points whose effect on the nodes decides which belong to the block


class Step(Protocol):
    """A rule that improves the measure."""

    def make(self, state: ExchangeState) -> bool:
        """Make one step; False if there is nothing to gain beyond rounding."""


class ExchangeState:
    """A measure under dᵀv = ϰ and the prices of all points, kept up to date as mass moves.

    Attributes
    ----------
    mass, gradient, price : arrays of shape (N,)
        u = d v, g = A v - Sω, and g/d.
    nodes : array
        Where the mass is positive.
    cheapest : int
        i*, the point of least price among those below their ceiling; -1 if there is none.
    gap : float
        Σ uₖ (priceₖ - price_i*)₊: the value less the optimum is at most this.
    value : float
        The objective, kept up to date by what each exchange gains.
    rounding : float
        Differences of prices below this mean nothing.
    fresh : bool
        Whether the gradient comes from the measure itself and not from updates.
    """

    def __init__(self, problem: Discrepancy, kappa: float, cache: ColumnCache) -> None:
        self.problem, self.kappa, self.cache = problem, kappa, cache
        self.penalty = problem.penalty
        self.ceiling = problem.caps * problem.penalty
        self.curvature = problem.diagonal / problem.penalty**2
        xp = self._xp = namespace(problem.distortion)
        self.mass = xp.zeros_like(problem.distortion)
        self.gradient, self.price = -problem.distortion, xp.zeros_like(problem.distortion)
        self.nodes, self.cheapest = as_indices([], problem.distortion), -1
        self.gap = self.value = np.inf
        self.rounding = 0.0
        self.fresh = False
        self._per_unit = 1.0 / problem.penalty
        self._capped = bool(xp.any(self.ceiling < kappa))

    @property
    def values(self) -> Array:
        """v on the nodes, never above its caps; a full node is at its cap, whatever the quotient is rounded to."""
        xp, mass, caps = namespace(self.mass), self.mass[self.nodes], self.problem.caps[self.nodes]
        return xp.where(mass >= self.ceiling[self.nodes], caps, xp.minimum(mass / self.penalty[self.nodes], caps))

    def put(self, mass: Array) -> None:
        """Start from these masses."""
        self.mass = mass
        self.fresh = False

    def refresh(self) -> None:
        """Mend the sum of the masses and compute everything else from them."""
        self.mass = settle(self.mass, self.ceiling, self.kappa)
        self.nodes = flatnonzero(self.mass)
        self.gradient = self.problem.gradient(self.nodes, self.values)
        self.value = self.exact_value()
        terms = abs(self.gradient) + 2.0 * abs(self.problem.distortion)
        self.rounding = _PRICE_NOISE * float((terms * self._per_unit).max())
        self.fresh = True
        self._look()

    def exact_value(self) -> float:
        """The objective from the gradient at every point."""
        return self.problem.value(self.nodes, self.values, self.gradient)

    def curvatures(self, points: Array) -> Array:
        """The block of D⁻¹AD⁻¹ of some points, all different, in one array: it may be large."""
        block, scale = as_double(self.problem.squared.block(points, points)), self._per_unit[points]

        def change(rows: slice) -> None:
            part = block[rows]
            part *= scale[rows, None]
            part *= scale

        over_rows(change, *block.shape)
        each = places(int(block.shape[0]), points)
        block[each, each] = self.curvature[points]  # with the ridge
        return block

    def move_pair(self, source: int, target: int, amount: float, column: Array) -> None:
        """Move mass between two points, the target's column at hand: one pass over the gradient."""
        there, room = float(self.mass[target]), float(self.ceiling[target] - self.mass[target])
        new = (float(self.mass[source]) - amount, float(self.ceiling[target]) if amount >= room else there + amount)
        same_nodes = new[0] > 0 and there > 0
        self.fresh = False
        both = new if self._xp is np else self._xp.asarray(new, dtype=self.mass.dtype, device=self.mass.device)
        self.mass[[source, target]] = both  # in one go: an interrupt must not find mass missing
        away = self.cache.get(source)
        a, b = amount * float(self._per_unit[target]), -amount * float(self._per_unit[source])
        _shift(self.gradient, column, a, away, b)
        self._moved(same_nodes)

    def move_block(self, points: Array, mass: Array) -> None:
        """Give some points new masses: one pass over the columns of those that changed."""
        changed = flatnonzero(mass != self.mass[points])
        moved, amounts = points[changed], mass[changed] - self.mass[points[changed]]
        self.fresh = False
        self.mass[points] = mass
        self.cache.add_product(self.gradient, moved, amounts * self._per_unit[moved])
        self._moved(same_nodes=False)

    def _moved(self, same_nodes: bool) -> None:
        if not same_nodes:
            self.nodes = flatnonzero(self.mass)
        self._look()

    def _look(self) -> None:
        xp = self._xp
        xp.multiply(self.gradient, self._per_unit, out=self.price)
        price = xp.where(self.mass < self.ceiling, self.price, np.inf) if self._capped else self.price
        least = int(xp.argmin(price))
        self.cheapest = least if price[least] < np.inf else -1
        excess = xp.maximum(self.price[self.nodes] - price[least], 0.0)
        self.gap = float(self.mass[self.nodes] @ excess)


class PairStep:
    """One exchange: to the cheapest point, from the most expensive node or from the one that promises most.

    Leaving points of high price out of the search for a while would spare at best a third of the time (30 000 points,
    536 nodes, 5.6 s to a gap of 1e-6) where blocks spare three quarters, so it is not done.
    """

    def __init__(self, *, second_order: bool) -> None:
        self.second_order = second_order

    def make(self, state: ExchangeState) -> bool:
        i, nodes = state.cheapest, state.nodes
        if i < 0:
            return False
        xp = namespace(state.price)
        excess = state.price[nodes] - state.price[i]
        if excess.max() <= state.rounding:
            return False
        column = state.cache.get(i)
        ends = state.curvature[i] + state.curvature[nodes]
        both = column[nodes] / (state.penalty[i] * state.penalty[nodes])
        curvature = xp.maximum(ends - 2.0 * both, FLAT * ends)
        promised = xp.maximum(excess, 0.0) ** 2 / curvature if self.second_order else excess
        pick = int(xp.argmax(promised))
        j, over, bend = int(nodes[pick]), float(excess[pick]), float(curvature[pick])
        amount = min(over / bend, float(state.mass[j]), float(state.ceiling[i] - state.mass[i]))
        state.value -= amount * (over - 0.5 * amount * bend)
        state.move_pair(j, i, amount, column)
        return True


class BlockStep:
    """Many exchanges inside a block: the nodes and cheap points apart from each other, with a small dense matrix.

    Parameters
    ----------
    max_bytes : int
        Memory for the matrix of the block, though 1024 points always have room. If the nodes are too many for it, those
        are taken that the points furthest from the average price affect most.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self.most = max(_LEAST_BLOCK, int(np.sqrt(max_bytes / 8)))

    def make(self, state: ExchangeState) -> bool:
        if state.cheapest < 0:
            return False
        level = self._level(state)
        new = self._new_points(state, level)
        points = appended(self._part_of_nodes(state, new, level), new)
        mass, price = state.mass[points], state.price[points]
        gain = exchange_inside(
            state.curvatures(points), price, mass, state.ceiling[points], _INNER_STEPS, _INNER_GAP, state.rounding
        )
        if gain <= 0:
            return False
        state.value -= gain
        state.move_block(points, mass)
        return True

    @staticmethod
    def _level(state: ExchangeState) -> float:
        """The average price of a unit of mass that could grow: at the optimum all of these cost the same."""
        free = state.nodes[state.mass[state.nodes] < state.ceiling[state.nodes]]
        if free.shape[0] == 0:
            return float(state.price[state.nodes].max())
        mass = state.mass[free]
        return float((state.price[free] * mass).sum() / mass.sum())

    def _new_points(self, state: ExchangeState, level: float) -> Array:
        """The cheapest points that are no nodes, none a near-copy of a cheaper one."""
        wanted = min(max(_NEW, int(_GROWTH * state.nodes.shape[0])), self.most // 4)
        pool = flatnonzero((state.price < level) & (state.mass == 0))
        pool = pool[least(state.price[pool], min(max(_POOL, 2 * wanted), self.most))]
        pool = pool[stable_order(state.price[pool])]
        return pool[first_apart(state.curvatures(pool), state.curvature[pool] ** 0.5, wanted, _ALIKE)]

    def _part_of_nodes(self, state: ExchangeState, new: Array, level: float) -> Array:
        """All nodes if they fit, else those that the points furthest from the average price affect most."""
        xp, nodes, room = namespace(state.price), state.nodes, self.most - new.shape[0]
        if nodes.shape[0] <= room:
            return nodes
        points = appended(nodes, new)
        price, full = state.price[points], state.mass[points] >= state.ceiling[points]
        off = xp.where(full, xp.maximum(price - level, 0.0), abs(price - level))
        seeds = least(-off, min(_SEEDS, points.shape[0]))
        affected = as_double(state.problem.squared.block(nodes, points[seeds])) @ off[seeds]
        # The best pair must be among them, or the block could have nothing to gain while others have.
        mine = price[: nodes.shape[0]]
        affected[(nodes == state.cheapest) | (mine == mine.max())] = np.inf
        return nodes[least(-affected, room)]


def settle(mass: Array, ceiling: Array, kappa: float) -> Array:
    """The masses scaled to the total ϰ, none above its ceiling.

    What is at its ceiling stays there if the others can make up for it: a rounding of room would make a cheap point
    look as if it could still take mass. Where all stop at their ceilings, the total is what these allow.
    """
    xp = namespace(mass)
    mass = xp.minimum(mass, ceiling)
    free = (mass > 0) & (mass < ceiling)
    if not xp.any(free) or kappa <= float(mass[~free].sum()):
        if abs(kappa - float(mass.sum())) <= 1e-12 * kappa:
            return mass
        free = mass > 0
    while xp.any(free):
        scaled = mass[free] * ((kappa - float(mass[~free].sum())) / float(mass[free].sum()))
        over = scaled >= ceiling[free]
        mass[free] = xp.minimum(scaled, ceiling[free])
        if not xp.any(over):
            break
        free[flatnonzero(free)[over]] = False
    return mass


def _shift(total: Array, first: Array, a: float, second: Array, b: float) -> None:
    """Add two multiples of columns to a vector."""
    if is_tensor(total):
        total += a * first + b * second
    else:
        _shift_compiled(total, first, a, second, b)


@njit(cache=True, nogil=True)
def _shift_compiled(total: Any, first: Any, a: float, second: Any, b: float) -> None:
    for k in range(total.size):
        total[k] += a * first[k] + b * second[k]
