"""Landmarks without the pass Sω: the potential from a part of the sample, and a proof that needs no more.

Sω at all points takes N² kernel evaluations; all else N·m. Here it is estimated from some thousand rows drawn at
random, ĝ, and corrected where that matters: on points J that stand for the sample Sω is computed exactly, and what ĝ
misses there is interpolated between them in the space of the squared kernel,

    ĝ ← ĝ + S_·J S_JJ⁻¹ ((Sω)_J - ĝ_J),

so that only what J does not explain of the error stays. Nodes are chosen by that. Their weights are not estimates: Sω
is computed exactly on the nodes, N·m evaluations, and they are the best there with the same proof as ever. Only D(0), a
constant of the programme, is not known; :mod:`mercer.certificates.sampled_level` bounds it by further points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, double, like, namespace
from mercer.backends.ordering import as_indices
from mercer.certificates.sampled_level import Level, level_of
from mercer.kernels.integrals.law_sections import LawSections
from mercer.linalg.factors import damped_inverse
from mercer.operators import GramOperator
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import TargetLaw
from mercer.quadrature.sample import Sample, product_slip
from mercer.quadrature.selection import beyond
from mercer.solvers.measure.pursuit import Pursuit
from mercer.solvers.run import Goal, Limits, Run
from mercer.solvers.solution import Status

ROWS_OF_PROOF = 1000
_LEAST_ROWS, _ROWS_PER_NODE = 2000, 20
_SEED_OF_CHOICE, _SEED_OF_PROOF = 0, 1


def rows_drawn(n_nodes: int) -> int:
    """Rows from which the potential is estimated for so many nodes."""
    return max(_LEAST_ROWS, _ROWS_PER_NODE * n_nodes)


def pays(size: int, n_nodes: int) -> bool:
    """Whether a part of the rows is less work than the pass, which makes every pair of points once."""
    return rows_drawn(n_nodes) + ROWS_OF_PROOF < size // 2


class Sampled(NamedTuple):
    """A programme whose potential is estimated, and points it is exact at, from which nodes are chosen."""

    problem: Discrepancy
    start: Array


class Potential:
    """Sω where it is asked for, and estimates of it elsewhere.

    Parameters
    ----------
    problem : Discrepancy
        S, caps, ridge and penalty; what it says of Sω is not looked at.
    sample : Sample
        ω.
    """

    def __init__(self, problem: Discrepancy, sample: Sample) -> None:
        assert isinstance(problem.squared, GramOperator)
        self._problem, self._sample, self._squared = problem, sample, problem.squared
        self._roots = as_double(self._squared.diagonal()) ** 0.5
        self._weight = 1.02 * float(self._roots @ sample.weights)  # κᵀω

    def at(self, nodes: Array, dtype: Any = None) -> tuple[Array, Array]:
        """Sω at some points, N evaluations each, and how far rounding may put it off."""
        rows = self._between(nodes, None, dtype)
        slip = product_slip(rows, float(self._roots.min()), self._sample.weight_error)
        return as_double(rows @ self._sample.weights), slip * self._weight * self._roots[nodes]

    def estimated(self, n_nodes: int) -> Sampled:
        """The programme with an estimate in the place of Sω."""
        drawn = systematic(self._sample.weights, rows_drawn(n_nodes))
        share = like(np.full(int(drawn.shape[0]), 1 / int(drawn.shape[0])), self._roots)
        rough = as_double(self._between(None, drawn) @ share)
        wanted = min(beyond(n_nodes), self._problem.size)
        found = Run[Array](Goal(0.0)).phase(self._with(rough), Pursuit(wanted), None, Limits(max_iter=wanted))
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        start = found.point
        inverse = damped_inverse(as_double(self._squared.block(start, start)))
        missed = inverse @ (self.at(start)[0] - rough[start])
        return Sampled(self._with(rough + as_double(self._between(None, start) @ missed)), start)

    def exact_on(self, nodes: Array) -> Discrepancy:
        """The programme with Sω on some nodes; elsewhere it is bounded by κᵢ κᵀω, which nobody asks for."""
        found, slips = self.at(nodes, double(self._roots))
        values, errors = 0.0 * self._roots, 1.02 * self._weight * self._roots
        values[nodes], errors[nodes] = found, slips
        return self._with(values, errors, self._weight**2, double(self._roots))

    def at_level(self, problem: Discrepancy, level: Level) -> Discrepancy:
        """The programme of :meth:`exact_on` with the upper end of an interval in the place of ωᵀSω."""
        assert problem.law is not None
        found = self._with(problem.distortion, problem.law.sections.errors, level.high, double(self._roots))
        found.n_columns = problem.n_columns
        return found

    def level(self, problem: Discrepancy, nodes: Array, values: Array) -> Level:
        """The interval of ωᵀSω, for a measure that was settled before."""
        weights = self._sample.weights
        cumulated = namespace(weights).cumulative_sum(weights)
        chance = np.random.default_rng(_SEED_OF_PROOF).random(ROWS_OF_PROOF)
        drawn = _where(cumulated, like(chance, weights) * float(cumulated[-1]))
        potential = self.at(drawn, double(self._roots))[0]
        residuals = potential - as_double(self._between(drawn, nodes, double(self._roots)) @ values)
        mine = problem.distortion[nodes]
        image = as_double(problem.squared.block(nodes, nodes)) @ values
        surplus, explained = float(values @ (image - mine)), float(values @ (2 * mine - image))
        return level_of(residuals, surplus, explained, 1.02 * float(self._roots.max()))

    def _between(self, rows: Array | None, cols: Array | None, dtype: Any = None) -> GramOperator:
        points, squared = self._squared.points, self._squared
        left, right = (points if which is None else points[which] for which in (rows, cols))
        return GramOperator(squared.kernel, left, right, dtype=squared.dtype if dtype is None else dtype)

    def _with(
        self, values: Array, errors: Array | None = None, energy: float | None = None, dtype: Any = None
    ) -> Discrepancy:
        """The programme for other values of Sω and another ωᵀSω."""
        problem, squared = self._problem, self._squared
        if dtype is not None and squared.dtype != dtype:
            squared = GramOperator(squared.kernel, squared.points, dtype=dtype)
        energy = float(self._sample.weights @ values) if energy is None else energy
        sections = LawSections(values, 0.0 * values if errors is None else errors, energy, 0.0)
        trace = float(self._sample.penalty @ self._sample.weights)
        options = {"caps": problem.caps, "ridge": problem.ridge, "errors": problem.errors}
        found = Discrepancy(squared, problem.weights, problem.penalty, law=TargetLaw(sections, trace), **options)
        found.n_columns = problem.n_columns
        return found


def systematic(weights: Array, count: int) -> Array:
    """Points drawn by their weights, evenly along a random order of them."""
    rng, size = np.random.default_rng(_SEED_OF_CHOICE), int(weights.shape[0])
    order = as_indices(rng.permutation(size), weights)
    cumulated = namespace(weights).cumulative_sum(weights[order])
    steps = like((rng.random() + np.arange(count)) / count, weights)
    return order[_where(cumulated, steps * float(cumulated[-1]))]


def _where(cumulated: Array, heights: Array) -> Array:
    xp = namespace(cumulated)
    return xp.clip(xp.searchsorted(cumulated, heights), max=int(cumulated.shape[0]) - 1)
