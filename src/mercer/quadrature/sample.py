"""The measure that is to be sparsified: distinct points with positive weights, and the programme on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer.backends import get_config
from mercer.backends.rounding import gamma, unit_of
from mercer.backends.threads import watch
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.validation import positive_number
from mercer.operators import GramOperator
from mercer.problems import Discrepancy
from mercer.validation import checked_weights, distinct_rows

Array = np.ndarray[Any, np.dtype[Any]]
_VECTORS = 64  # of the length of the sample, that the methods and the proof keep at a time


class Sample(NamedTuple):
    """The points that matter: rows of X without repetitions, of positive weight and positive k(x, x).

    A point that occurs m times is one point with m times the weight: the operator of the measure is the same, and S is
    not made singular by it. Points with k(x, x) = 0 contribute nothing to any operator (QUAD Remark 3.1).

    Attributes
    ----------
    rows : array of int of shape (N,)
        The first row of X at which each point occurs.
    weights : array of shape (N,)
        ω, which sums to one over all rows of positive weight.
    penalty : array of shape (N,)
        d.
    weight_error, penalty_error : float
        Bounds on their relative errors: ω is a quotient of sums, d an evaluated diagonal unless it is given.
    """

    rows: Array
    weights: Array
    penalty: Array
    weight_error: float
    penalty_error: float

    def points(self, X: Any, kernel: Kernel) -> Any:
        """The points themselves; of a precomputed kernel, its matrix between them."""
        part = X[self.rows]
        return part[:, self.rows] if isinstance(kernel, Precomputed) else part


def make_sample(X: Any, kernel: Kernel, sample_weight: Any = None, penalty: Any = None) -> Sample:
    """Read the weights and the penalty of :class:`mercer.QuadratureSparsifier` for the rows of X.

    Weights count by their ratios: they are multiplied by a power of two, which changes no digit, before anything is
    added up. Sums are taken without rounding but for that of equal points.
    """
    if kernel.properties.positive_definite is False:
        raise ValueError(f"{kernel!r} is not positive semi-definite, so that its squared discrepancy has no meaning.")
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else checked_weights(sample_weight, n, "sample_weight")
    weights = scaled_weights(weights)[0]
    matrix = kernel.matrix(*kernel._checked(X, None), dtype=np.float64)
    diagonal = matrix.diagonal()
    d = diagonal if penalty is None else _checked_penalty(penalty(X) if callable(penalty) else penalty, n)
    alive = _alive(X, kernel, weights, diagonal, np.finfo(X.dtype))
    first, place = _places(X, kernel, d, alive)
    totals = np.bincount(place, weights=weights[alive]) / math.fsum(weights)
    repeats = int(np.max(np.bincount(place), initial=1))
    entry, rows = matrix.entry_error, alive[first]
    evaluated = 0.0 if penalty is not None else entry.relative + entry.scaled + entry.absolute
    return Sample(rows, totals, d[rows], gamma(repeats + 2, unit_of(np.float64)), evaluated)


def scaled_weights(weights: Array) -> tuple[Array, int]:
    """Weights of any size as w · 4^e, the largest w between 1/4 and 1: no digit is lost but of what underflows."""
    exponent = int(np.frexp(np.max(weights))[1])
    half = -(-exponent // 2)
    return np.ldexp(weights, -2 * half), half


def _alive(X: Any, kernel: Kernel, weights: Array, diagonal: Array, arithmetic: Any) -> Array:
    """The rows of positive weight at which the square of k(x, x) is positive, with all its digits."""
    if np.any((weights > 0) & (diagonal < 0)):
        row = int(np.argmax((weights > 0) & (diagonal < 0)))
        raise ValueError(
            f"k(x, x) = {diagonal[row]:.3g} at row {row} under {kernel!r}: the kernel must be positive semi-definite."
        )
    if not np.any((weights > 0) & (diagonal > 0)):
        raise ValueError(f"k(x, x) is zero at every point of positive weight under {kernel!r}: choose another kernel.")
    least = float(np.sqrt(arithmetic.tiny / arithmetic.eps))
    alive = (weights > 0) & (diagonal > least)
    if not np.any(alive):
        raise ValueError(f"The squares of {kernel!r} vanish in {arithmetic.dtype}: multiply the kernel by a constant.")
    if isinstance(kernel, Precomputed):
        _check_left_out(X, diagonal, np.flatnonzero((weights > 0) & ~alive), kernel)
    return np.flatnonzero(alive)


def _check_left_out(X: Any, diagonal: Array, left_out: Array, kernel: Kernel) -> None:
    """Refuse a point with k(x, x) = 0 that is related to others: |k(x, y)|² ≤ k(x, x) k(y, y) in a kernel."""
    for row in left_out:
        entries = abs(X[[row]])
        entries = np.asarray(entries.toarray() if hasattr(entries, "toarray") else entries, np.float64)[0]
        most = np.sqrt(max(diagonal[row], 0.0)) * np.sqrt(np.maximum(diagonal, 0.0))
        if np.any(entries > 1.01 * most):
            other = int(np.argmax(entries - 1.01 * most))
            raise ValueError(
                f"k(x, x) = {diagonal[row]:.3g} at row {row} under {kernel!r}, but k(x, y) = {entries[other]:.3g} for "
                f"row {other}: the kernel must be positive semi-definite."
            )


def _places(X: Any, kernel: Kernel, d: Array, alive: Array) -> tuple[Array, Array]:
    """The first occurrence of each point among the rows ``alive``, and which point each of them is."""
    if isinstance(kernel, Precomputed):
        return np.arange(alive.size), np.arange(alive.size)
    points = X if alive.size == X.shape[0] else X[alive]
    constant = bool(np.all(d == d[0]))
    return distinct_rows(points if constant else np.column_stack([points, d[alive]]))


def make_problem(
    X: Any,
    kernel: Kernel,
    sample: Sample,
    *,
    max_weight: Any = None,
    ridge: Any = None,
    report: Callable[[float], None] | None = None,
    dtype: Any = None,
) -> Discrepancy:
    """The programme on a sample; Sω is computed here, and its progress reported.

    ``dtype`` is the arithmetic of S, that of X if left out: proofs for single precision are made in double.
    """
    _check_memory(sample.rows.size)
    squared = GramOperator(kernel**2, sample.points(X, kernel), dtype=dtype)
    n = X.shape[0]
    caps = None if max_weight is None else _per_row(max_weight, "max_weight", n)[sample.rows]
    strengths = None if ridge is None else _per_row(ridge, "ridge", n, zero=True)[sample.rows]
    with watch(report or (lambda done: None)), np.errstate(over="ignore"):  # an overflow is named below
        distortion = squared @ sample.weights
    problem = Discrepancy(
        squared,
        sample.weights,
        sample.penalty,
        caps=caps,
        ridge=strengths,
        distortion=distortion,
        weight_error=sample.weight_error,
        penalty_error=sample.penalty_error,
    )
    if not np.all(np.isfinite(problem.distortion)) or not np.all(np.isfinite(problem.diagonal)):
        raise ValueError(f"The squares of {kernel!r} overflow in {squared.dtype}: divide the kernel by a constant.")
    return problem


def _check_memory(size: int) -> None:
    """Refuse a memory limit that does not even hold the vectors of a programme, before anything is computed."""
    needed, limit = 8 * _VECTORS * size, get_config().memory_bytes
    if needed > limit:
        raise MemoryError(
            f"A quadrature of {size} points needs about {needed / 1e6:.3g} MB for vectors of their length, above the "
            f"limit of {limit / 1e6:.3g} MB: raise memory_limit with mercer.config_context."
        )


def _per_row(value: Any, name: str, n: int, *, zero: bool = False) -> Array:
    """A positive number for each row, from one number or one for each."""
    values = np.asarray(value, dtype=object)
    if values.ndim == 0:
        return np.full(n, positive_number(value, name, zero=zero))
    if zero and not np.any(values):
        return np.zeros(n)
    numbers = checked_weights(value, n, name)
    if not zero and not np.all(numbers > 0):
        raise ValueError(f"{name} is zero at index {int(np.argmin(numbers))}: it must be positive.")
    return numbers


def _checked_penalty(penalty: Any, n: int) -> Array:
    values = checked_weights(penalty, n, "penalty")
    if not np.all(values > 0):
        raise ValueError(f"penalty is zero at index {int(np.argmin(values))}: every point needs a positive penalty.")
    return values
