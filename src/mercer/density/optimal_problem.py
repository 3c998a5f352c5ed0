"""The programme of an optimal density from what a person gave, the squares that are stored, and their proof."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double
from mercer.backends.config import require_free_memory
from mercer.certificates import Certificate
from mercer.certificates.convex_squares import certify_convex_squares
from mercer.density.convex_functional import ConvexFunctional
from mercer.density.setting import Setting
from mercer.density.squares import Squares
from mercer.kernels.integrals import kernel_integrals
from mercer.linalg.eigen import deterministic_signs
from mercer.problems.convex_squares import ConvexSquares, PricedFactor, ranges_of
from mercer.problems.observed_function import ObservedFunction
from mercer.problems.sum_of_squares import Spans, SumOfSquares
from mercer.solvers.run import Goal

_PROBES = 4  # densities at which value and gradient are compared before the run
_COPIES = 6  # of the functionals' matrices, at the same time
_LEVELS = (1e-4, 1e-6, 1e-8, 1e-10)  # of the largest eigenvalue of C: below it is the barrier's


def pose(
    functional: ConvexFunctional, setting: Setting, regularization: float, truncation: float, spans: Spans | None = None
) -> ConvexSquares:
    """The programme, its function checked at some densities.

    ``spans`` are those of an earlier programme with the same setting, and then nothing is cut off.
    """
    integrals = kernel_integrals(*setting)
    m = setting.support.shape[0]
    matrices = functional.of.matrices(integrals)
    require_free_memory(
        8 * _COPIES * matrices.size, f"{matrices.shape[0]} functionals on {m} points take about", "take fewer of either"
    )
    gram = as_double(setting.kernel(setting.support))
    squares = SumOfSquares(
        integrals, gram, np.zeros(m), regularization=regularization, truncation=truncation, spans=spans
    )
    reduced = squares.basis.T @ matrices @ squares.basis
    ranges = ranges_of((reduced + reduced.transpose(0, 2, 1)) / 2)
    value, gradient, hessian = functional.value, functional.gradient, functional.hessian
    if value is None or gradient is None:
        value, gradient, hessian = _nothing, np.zeros_like, lambda u: np.zeros((u.size, u.size))
    function = ObservedFunction(value, gradient, hessian, ranges)
    bounds = functional.bounds(matrices.shape[0])
    problem = ConvexSquares(squares, matrices, function, bounds, functional.of.enclosures(integrals, matrices))
    _require_convex(problem)
    return problem


def _nothing(u: Array) -> float:
    return 0.0


def _require_convex(problem: ConvexSquares) -> None:
    """Hold value and gradient against each other on segments between densities of full rank."""
    rng, s = np.random.default_rng(0), problem.dimension
    probes = [np.eye(s) / np.sqrt(s)]
    for _ in range(_PROBES):
        F = rng.standard_normal((s, s + 2)) * rng.uniform(0.1, 2.0, s + 2)
        probes.append(F / np.linalg.norm(F))
    values = [problem.functional_values(F) for F in probes]
    for u, v in itertools.pairwise(values):
        if np.isfinite(problem.function.value(u)):
            problem.function.require_gradient(u, v)
            problem.function.seen(u)


class Kept(NamedTuple):
    """What is stored of a solution."""

    squares: Squares
    below: Array
    above: Array


def trimmed(problem: ConvexSquares, point: PricedFactor, goal: Goal) -> Kept:
    """Orthogonal squares in falling order, without those that the barrier alone holds up where the gap bears that."""
    vectors, sizes, _ = np.linalg.svd(point.factor, full_matrices=False)
    whole = vectors * sizes
    for level in _LEVELS:
        fewer = whole[:, sizes**2 > level * sizes[0] ** 2]
        if _is_enough(problem, PricedFactor(fewer / np.linalg.norm(fewer), point.below, point.above), goal):
            return Kept(_squares(problem, fewer), point.below, point.above)
    return Kept(_squares(problem, whole), point.below, point.above)


def _is_enough(problem: ConvexSquares, point: PricedFactor, goal: Goal) -> bool:
    u = problem.functional_values(point.factor)
    if not problem.is_inside(u):
        return False
    value, slope = problem.function.value(u), problem.function.gradient(u)
    objective = value + float((point.factor * (problem.penalty @ point.factor)).sum())
    return goal.is_met(problem.gap(point.factor, slope, point.below, point.above), objective)


def _squares(problem: ConvexSquares, F: Array) -> Squares:
    """The density of C = F Fᵀ by its scaled factor, with deterministic signs and mass one."""
    scaled = problem.squares.coefficients(F)
    masses, rounding = problem.squares.integrals.square_masses(scaled)
    order = np.argsort(-masses, kind="stable")
    scaled = scaled[:, order] / np.sqrt(masses.sum())
    return Squares(scaled * deterministic_signs(scaled), masses[order] / masses.sum(), rounding)


def certified(problem: ConvexSquares, point: PricedFactor, accuracy: float) -> Certificate:
    """The certificate of exactly the numbers that are stored."""
    return certify_convex_squares(problem, point, accuracy)
