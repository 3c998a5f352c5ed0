"""Landmarks without the pass Sω: nodes from a part of the sample, and a proof that is made when it is asked for.

Sω at all points takes N² kernel evaluations; all else N·m. Here nodes are looked for in a *pool* of some thousand
points drawn by their weights. The pool alone gives an estimate ĝ of Sω on itself; on points J of it that stand for the
sample Sω is computed exactly, and what ĝ misses there is interpolated between them in the space of the squared kernel,

    ĝ ← ĝ + S_·J S_JJ⁻¹ ((Sω)_J - ĝ_J),

so that only what J does not explain of the error stays. Nodes are chosen by that. Their weights are not estimates: Sω
is computed exactly on the nodes, N·m evaluations, and they are the best there with the same proof as ever. Only D(0), a
constant of the programme, is not known: the pass gives it where the certificate is asked for, or further points bound
it (:mod:`mercer.certificates.sampled_level`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, double, like, namespace
from mercer.backends.ordering import among, as_indices, flatnonzero, totals
from mercer.certificates.sampled_level import Level, level_of
from mercer.kernels.integrals.law_sections import LawSections
from mercer.linalg.factors import damped_inverse
from mercer.operators import GramOperator
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import TargetLaw
from mercer.quadrature.request import is_plain, nodes_asked
from mercer.quadrature.sample import Sample, product_slip
from mercer.quadrature.selection import beyond
from mercer.solvers.measure.pursuit import Pursuit
from mercer.solvers.run import Goal, Limits, Run
from mercer.solvers.solution import Status

ROWS_OF_PROOF = 1000
_LEAST_POOL, _POOL_PER_NODE = 4000, 12
_OF_NODES = 2  # times the nodes of the pursuit, that a pool must have in distinct points
_SEED_OF_CHOICE, _SEED_OF_PROOF = 0, 1
_ENTRY = 60  # flops of an entry, beside two for each column of the points
_WORTH = 3.0  # times the work of the choice: what the pass must cost for a call to be made without it


def pool_size(n_nodes: int) -> int:
    """Points drawn for the pool of so many nodes."""
    return max(_LEAST_POOL, _POOL_PER_NODE * n_nodes)


def _entries(size: int, n_nodes: int) -> float:
    """Kernel evaluations of the choice: of the pool with itself, of its pursuit and of the nodes with the sample."""
    return 0.5 * pool_size(n_nodes) ** 2 + size * (beyond(n_nodes) + n_nodes)


def pays(size: int, n_nodes: int) -> bool:
    """Whether pool, nodes and points of the proof are fewer evaluations than the pass, which makes every pair once."""
    return _entries(size, n_nodes) + ROWS_OF_PROOF * size < 0.5 * size**2


def leaves_out_pass(model: Any, X: Any, size: int) -> bool:
    """Whether the nodes of a model are to be chosen by an estimate of Sω among so many points."""
    if model.potential == "sampled":
        return pays(size, nodes_asked(model))
    return model.potential == "auto" and is_plain(model, X) and far_cheaper(size, nodes_asked(model), int(X.shape[1]))


def far_cheaper(size: int, n_nodes: int, width: int) -> bool:
    """Whether the pass is several times the work of choosing without it: then nobody is to wait for it unasked."""
    each, found = 2 * width + _ENTRY, beyond(n_nodes)
    choice = each * _entries(size, n_nodes) + pool_size(n_nodes) * (found**2 + 4 * n_nodes**2)
    return pays(size, n_nodes) and each * 0.5 * size**2 > _WORTH * choice


class Pool(NamedTuple):
    """A programme on a part of the sample, whose potential is estimated, and points of it that it is exact at.

    Attributes
    ----------
    problem : Discrepancy
        On the points of the pool alone.
    places : array of int of shape (p,)
        Where they are in the sample, in rising order.
    start : array of int
        Nodes of a pursuit, by their places in the pool.
    """

    problem: Discrepancy
    places: Array
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
        self._known: tuple[Array, Array, Array] | None = None  # points at which Sω is, what it is, and its error

    def at(self, nodes: Array) -> tuple[Array, Array]:
        """Sω at some points in double precision, N evaluations each, and how far rounding may put it off."""
        rows = self._between(nodes, None, double(self._roots))
        slip = product_slip(rows, float(self._roots.min()), self._sample.weight_error)
        return as_double(rows @ self._sample.weights), slip * self._weight * self._roots[nodes]

    def pool(self, n_nodes: int) -> Pool | None:
        """Points drawn by their weights, with an estimate of Sω; None where too few of them are distinct."""
        weights, squared = self._sample.weights, self._squared
        found = beyond(n_nodes)
        counts = totals(systematic(weights, pool_size(n_nodes)))
        places = flatnonzero(counts)
        if int(places.shape[0]) < _OF_NODES * found:
            return None
        shares = as_double(counts[places]) / int(counts.sum())
        gram = GramOperator(squared.kernel, squared.points[places], dtype=squared.dtype)
        rough = as_double(gram @ shares)
        problem = self._on(places, gram, shares, rough)
        chosen = Run[Array](Goal(0.0)).phase(problem, Pursuit(found), None, Limits(max_iter=found))
        if chosen.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        start = chosen.point
        self._known = places[start], *self.at(places[start])
        missed = damped_inverse(as_double(gram.block(start, start))) @ (self._known[1] - rough[start])
        better = rough + as_double(self._between(places, places[start]) @ missed)
        return Pool(self._on(places, gram, shares, better), places, start)

    def _on(self, places: Array, gram: GramOperator, shares: Array, values: Array) -> Discrepancy:
        """The programme on some points with these values of Sω; ωᵀSω is their mean there."""
        problem = self._problem
        sections = LawSections(values, 0.0 * values, float(shares @ values), 0.0)
        law = TargetLaw(sections, float(problem.penalty[places] @ shares))
        options = {"caps": problem.caps[places], "ridge": problem.ridge[places], "errors": problem.errors}
        return Discrepancy(gram, shares, problem.penalty[places], law=law, **options)

    def exact_on(self, nodes: Array) -> Discrepancy:
        """The programme with Sω on some nodes; elsewhere it is bounded by κᵢ κᵀω, which nobody asks for."""
        values, errors = 0.0 * self._roots, 1.02 * self._weight * self._roots
        if self._known is not None:
            at, found, slips = self._known
            values[at], errors[at] = found, slips
            nodes = nodes[~among(nodes, at)]
        if nodes.shape[0]:
            values[nodes], errors[nodes] = self.at(nodes)
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
        potential = self.at(drawn)[0]
        residuals = potential - as_double(self._between(drawn, nodes, double(self._roots)) @ values)
        mine = problem.distortion[nodes]
        image = as_double(problem.squared.block(nodes, nodes)) @ values
        surplus, explained = float(values @ (image - mine)), float(values @ (2 * mine - image))
        return level_of(residuals, surplus, explained, 1.02 * float(self._roots.max()))

    def _between(self, rows: Array | None, cols: Array | None, dtype: Any = None) -> GramOperator:
        points, squared = self._squared.points, self._squared
        left, right = (points if which is None else points[which] for which in (rows, cols))
        return GramOperator(squared.kernel, left, right, dtype=squared.dtype if dtype is None else dtype)

    def _with(self, values: Array, errors: Array, energy: float, dtype: Any) -> Discrepancy:
        """The programme for other values of Sω and another ωᵀSω."""
        problem, squared = self._problem, self._squared
        if squared.dtype != dtype:
            squared = GramOperator(squared.kernel, squared.points, dtype=dtype)
        sections = LawSections(values, errors, energy, 0.0)
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
