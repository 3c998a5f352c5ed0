"""Vertex exchange: weight moves from point to point until no move pays (QUAD 7.1).

    minimise D(v) + ½ Σ ρᵢ vᵢ²   subject to   dᵀv = ϰ, 0 ≤ v ≤ c

The loop knows the *mass* uᵢ = dᵢvᵢ of a point (ϰ times the paper's ṽᵢ) and its *price* gᵢ/dᵢ, g = A v - Sω. Masses sum
to ϰ. Moving mass σ from j to i changes the objective by σ(priceᵢ - priceⱼ) + ½σ²(Aᵢᵢ/dᵢ² + Aⱼⱼ/dⱼ² - 2Aᵢⱼ/(dᵢdⱼ)), so
weight goes from dear points to cheap ones. (The paper's δ = e_j* - e_i* has its sign the wrong way round.)

The steps themselves are in :mod:`mercer.solvers.measure.exchange_steps`. No matrix is stored but a bounded number of
columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, namespace
from mercer.backends.ordering import as_indices
from mercer.backends.threads import single_threaded_blas
from mercer.linalg.column_cache import ColumnCache
from mercer.problems import Discrepancy
from mercer.solvers.measure.exchange_steps import BlockStep, ExchangeState, PairStep, Step, settle
from mercer.solvers.measure.sparse_measure import ExchangeStep, SparseMeasure
from mercer.solvers.solution import Status

Callback = Callable[[ExchangeStep], bool | None]

_MOST_STEPS = {"block": 1_000, "second-order": 1_000_000, "plain": 1_000_000}
_LONGEST_PAUSE = 1_000  # steps between two lines of the history


def exchange(
    problem: Discrepancy,
    kappa: float,
    *,
    rule: Literal["block", "second-order", "plain"] = "block",
    tol: float = 1e-6,
    max_iter: int | None = None,
    cache_bytes: int | None = None,
    cache: ColumnCache | None = None,
    start: tuple[Array, Array] | None = None,
    callback: Callback | None = None,
) -> SparseMeasure:
    """Minimise the discrepancy under dᵀv = ϰ by exchanges of weight between points.

    Parameters
    ----------
    problem : Discrepancy
        The programme, with its caps and its ridge.
    kappa : float
        ϰ > 0.
    rule : {"block", "second-order", "plain"}
        ``"plain"`` is the paper's: from the dearest node to the cheapest point. ``"second-order"`` takes the node from
        which the move to the cheapest point promises most, as LIBSVM does. ``"block"`` collects the nodes and a choice
        of cheap points, makes many exchanges among these, and then brings the prices of all points up to date at once.
    tol : float
        The run ends when the Frank-Wolfe bound is at most ``tol`` times the value of v.
    max_iter : int, optional
        Steps at most: 1 000 by default for ``"block"``, 1 000 000 single exchanges otherwise.
    cache_bytes : int, optional
        Memory for columns of A; a quarter of the configured limit by default. The matrix of a block takes at most an
        eighth of it besides, or 8 MB.
    cache : ColumnCache, optional
        Columns of this problem's A kept from an earlier run, instead of a new cache of ``cache_bytes``.
    start : (nodes, values), optional
        A first measure, for instance the solution for another ϰ: it is scaled to dᵀv = ϰ within the caps. By default
        all weight is on the points that are cheapest at v = 0.
    callback : callable, optional
        Receives every line of the history; True ends the run.

    Returns
    -------
    SparseMeasure
        With dᵀv = ϰ to rounding, and the gradient computed anew from v. On Ctrl-C too, with the status
        ``INTERRUPTED``; ``STALLED`` where the tolerance is out of reach in double precision.

    Notes
    -----
    A single exchange costs 2 N operations for the gradient and N to find the points, besides columns that are not in
    the cache. A step of blocks costs N for each of the m points of its block, and m for each exchange inside it: as
    many exchanges as there are points in the sample cost as much as the update they share.

    The bound is Σ uₖ (priceₖ - price_i*)₊ with i* the cheapest point that has room under its cap. Without caps it is
    ε = (v - e_i*)ᵀg of QUAD 7.1. Before convergence is claimed it is computed again from a fresh gradient.
    """
    state = ExchangeState(problem, _checked_level(problem, kappa), _cache(problem, cache, cache_bytes))
    step = _step(rule, state.cache)
    run = _Run(state, tol, callback, pause=1 if rule == "block" else _LONGEST_PAUSE)
    status = Status.INTERRUPTED
    with single_threaded_blas():  # vectors of length N wake its threads and wait for them longer than they work
        try:
            state.put(_first_mass(problem, kappa, start))
            status = run.until_done(step, _MOST_STEPS[rule] if max_iter is None else max_iter)
        except KeyboardInterrupt:
            if state.mass.max() == 0:  # nothing was placed yet: there is no best iterate
                raise
        return run.result(status)


class _Run:
    """Stopping, history and callback of one run."""

    def __init__(self, state: ExchangeState, tol: float, callback: Callback | None, *, pause: int) -> None:
        self.state, self.tol, self.callback, self.pause = state, tol, callback, pause
        self.number = 0
        self.history: list[ExchangeStep] = []
        self._began = time.perf_counter()
        self._due = 0

    def until_done(self, step: Step, max_iter: int) -> Status:
        """Make steps until the bound is small enough, the budget spent, the callback content, or nothing moves."""
        self.state.refresh()
        while not self._converged():
            if self.number >= self._due and self._report():
                return Status.STOPPED
            if self.number >= max_iter:
                return Status.MAX_ITER
            if not step.make(self.state):
                self.state.refresh()  # drift may hide what is left to gain
                if not step.make(self.state):
                    return Status.CONVERGED if self._converged() else Status.STALLED
            self.number += 1
        return Status.CONVERGED

    def _converged(self) -> bool:
        """Whether the bound meets the tolerance, on a gradient that is not the sum of updates."""
        if self.state.gap > self.tol * self.state.value:
            return False
        if not self.state.fresh:
            self.state.refresh()
        return self.state.gap <= self.tol * self.state.value

    def _report(self) -> bool:
        self._due = self.number + min(self.pause, 1 + self.number // 10)
        self.history.append(self._line())
        return self.callback is not None and bool(self.callback(self.history[-1]))

    def _line(self) -> ExchangeStep:
        state = self.state
        value = state.exact_value()
        return ExchangeStep(self.number, value, state.gap, int(state.nodes.shape[0]), time.perf_counter() - self._began)

    def result(self, status: Status) -> SparseMeasure:
        """The measure with the gradient of the values that are returned."""
        state = self.state
        if not state.fresh:
            state.refresh()
        if self.history and self.history[-1].number == self.number:
            self.history.pop()  # the same step, before its gradient was computed anew
        self.history.append(self._line())
        return SparseMeasure(state.nodes, state.values, state.gradient, status, tuple(self.history))


def _checked_level(problem: Discrepancy, kappa: float) -> float:
    if not (np.isfinite(kappa) and kappa > 0):
        raise ValueError(f"kappa={kappa!r} must be a positive number.")
    most = float(problem.caps @ problem.penalty)
    if most < kappa * (1 - 1e-12):
        raise ValueError(
            f"The caps allow dᵀv = {most:.6g} at most, but kappa = {kappa:.6g}: raise them or lower kappa."
        )
    return float(kappa)


def _cache(problem: Discrepancy, cache: ColumnCache | None, cache_bytes: int | None) -> ColumnCache:
    if cache is not None:
        return cache
    room = get_config().memory_bytes // 4 if cache_bytes is None else cache_bytes
    return ColumnCache(problem.columns, problem.size, room, reference=problem.distortion)


def _step(rule: str, cache: ColumnCache) -> Step:
    if rule == "block":
        return BlockStep(max_bytes=cache.max_bytes // 8)
    if rule in _MOST_STEPS:
        return PairStep(second_order=rule == "second-order")
    raise ValueError(f"rule={rule!r} must be one of {', '.join(map(repr, _MOST_STEPS))}.")


def _first_mass(problem: Discrepancy, kappa: float, start: tuple[Array, Array] | None) -> Array:
    """The start of the user, scaled, or the cheapest points at v = 0 filled up in order."""
    gain = problem.distortion / problem.penalty
    mass = namespace(gain).zeros_like(gain)
    if start is not None:
        nodes, values = as_indices(start[0], gain), as_double(start[1])
        if nodes.shape != values.shape or (values < 0).any() or not values.sum() > 0:
            raise ValueError("start must be nodes and as many values, none negative and not all zero.")
        mass[nodes] = values * problem.penalty[nodes]
        mass = settle(mass, problem.caps * problem.penalty, kappa)
        if mass.sum() >= kappa * (1 - 1e-12):
            return mass
        gain[nodes] += gain.max() + 1.0  # the caps of these nodes do not hold it all: they are filled up first
    nodes, values = problem.filled(gain, kappa)
    mass[nodes] = values * problem.penalty[nodes]
    return mass
