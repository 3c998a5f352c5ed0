"""The certificate of a robust machine on candidates, recomputed from its functions, its kernel and the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends import config_context
from mercer.backends.arrays import Array, to_numpy
from mercer.backends.threads import one_thread_for
from mercer.certificates import Certificate
from mercer.certificates.candidate_game import Strategy
from mercer.consistency import require_equal, require_kernel, require_meeting, require_numbers, same_points
from mercer.robust.candidates import CandidateProblem
from mercer.robust.given_again import pairs_again
from mercer.robust.machine import COEFFICIENTS, RobustMachine, Units, out_of_units
from mercer.validation import kernel_on_columns, normalised, resolved_kernel

_SQUARES = 1e-9
_OUTSIDE = 1e-7  # of the radius, by which rounding may take the worst distribution out of the ball


def verify_machine(model: RobustMachine, X: Any, y: Any) -> Certificate:
    """Certify a fitted robust machine again, believing nothing that its solver left behind.

    See :func:`mercer.verify`. ``upper`` is what the function of ``dual_coef_`` risks at most, proved by the function of
    ``price_coef_``; ``lower`` is what no function can go below, by the tangents of ``slopes_`` under
    ``adversary_weights_``, drawn into the ball. The candidates and the kernel are made anew from the data, and every
    other number of the model must be what follows from these coefficients.
    """
    X, y, given = pairs_again(model, X, y)
    with config_context(dtype="float64"):
        weights = normalised(given, X.shape[0], reference=X)
        require_kernel(
            model, model._checked_kernel(resolved_kernel(kernel_on_columns(model, model.kernel), X, weights))
        )
        for name, expected in model._of_targets(y, weights).items():
            _require_same(model, name, expected, "its parameters and y")
        problem, units = model._posed(X, y, given)
        if model._units != units:
            raise ValueError("The model's units are not those of y: it is damaged, or y is another.")
        with one_thread_for(problem.size, X):
            return _certified(model, problem, units)


def _certified(model: RobustMachine, problem: CandidateProblem, units: Units) -> Certificate:
    strategy = out_of_units(_read_strategy(model, problem), units)
    _require_distribution(strategy.weights)
    if not problem.enclosures.are_admissible(strategy.slopes):
        raise ValueError("The model's slopes_ are not slopes of its loss: it is damaged.")
    certificate = problem.certify(strategy)
    described, why = model._described(problem, strategy, certificate, units), "its functions and the data"
    for name in ("robust_risk_", "sample_risk_", "level_"):
        require_equal(model, name, described.pop(name), why, tolerance=_SQUARES * units.loss)
    if not same_points(model.inputs_, described.pop("inputs_")):
        raise ValueError("The model's inputs_ are not those of its candidates: it is damaged, or X is another.")
    distance, largest = described.pop("distance_"), float(np.max(np.abs(problem.enclosures.gram.hi)))
    if not abs(float(model.distance_) ** 2 - distance**2) <= _SQUARES * largest:
        raise ValueError(
            f"The model's distance_ is {model.distance_:.9g} where its adversary makes {distance:.9g}: it is damaged."
        )
    if distance**2 > problem.stakes.radius**2 * (1 + _OUTSIDE) + _SQUARES * largest:
        raise ValueError("The model's adversary_weights_ lie outside the ball: it is damaged.")
    for name, expected in described.items():
        _require_same(model, name, expected, "its parameters and the data")
    return require_meeting(model, certificate.in_units(units.loss))


def _read_strategy(model: RobustMachine, problem: CandidateProblem) -> Strategy:
    M, N = int(problem.candidates.inputs.shape[0]), problem.size
    shapes = ((M,), (N,), (N,), (N,))
    return Strategy(*(require_numbers(model, name, shape) for name, shape in zip(COEFFICIENTS, shapes, strict=True)))


def _require_distribution(weights: Array) -> None:
    mass = float(weights.sum())
    if not (np.all(weights >= 0) and abs(mass - 1) <= _SQUARES):
        raise ValueError(f"The model's adversary_weights_ are no distribution, of mass {mass:.9g}: it is damaged.")


def _require_same(model: RobustMachine, name: str, expected: Any, why: str) -> None:
    """Refuse an attribute other than what is expected, numbers or labels."""
    expected = to_numpy(expected)
    if expected.dtype.kind in "iuf":
        require_equal(model, name, expected, why)
    elif not np.array_equal(np.asarray(getattr(model, name, None)), expected):
        raise ValueError(f"The model's {name} differs from what follows from {why}: it is damaged, or y is another.")
