"""The measure that is to be sparsified: distinct points with positive weights, and the programme on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.threads import watch
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.validation import positive_number
from mercer.operators import GramOperator
from mercer.problems import Discrepancy
from mercer.validation import checked_weights, distinct_rows

Array = np.ndarray[Any, np.dtype[Any]]


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
    """

    rows: Array
    weights: Array
    penalty: Array

    def points(self, X: Any, kernel: Kernel) -> Any:
        """The points themselves; of a precomputed kernel, its matrix between them."""
        part = X[self.rows]
        return part[:, self.rows] if isinstance(kernel, Precomputed) else part


def make_sample(X: Any, kernel: Kernel, sample_weight: Any = None, penalty: Any = None) -> Sample:
    """Read the weights and the penalty of :class:`mercer.QuadratureSparsifier` for the rows of X."""
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else checked_weights(sample_weight, n, "sample_weight")
    diagonal = np.asarray(kernel.diag(X), np.float64)
    d = diagonal if penalty is None else _checked_penalty(penalty(X) if callable(penalty) else penalty, n)
    alive = _alive(kernel, weights, diagonal, np.finfo(X.dtype))
    first, place = _places(X, kernel, d, alive)
    weights = np.ldexp(weights, -int(np.frexp(np.max(weights))[1]))  # exactly, so that no sum overflows
    totals = np.bincount(place, weights=weights[alive])
    return Sample(alive[first], totals / float(np.sum(weights)), d[alive[first]])


def _alive(kernel: Kernel, weights: Array, diagonal: Array, arithmetic: Any) -> Array:
    """The rows of positive weight at which the square of k(x, x) is positive, with all its digits."""
    if not np.any((weights > 0) & (diagonal > 0)):
        raise ValueError(f"k(x, x) is zero at every point of positive weight under {kernel!r}: choose another kernel.")
    least = float(np.sqrt(arithmetic.tiny / arithmetic.eps))
    alive = np.flatnonzero((weights > 0) & (diagonal > least))
    if alive.size == 0:
        raise ValueError(f"The squares of {kernel!r} vanish in {arithmetic.dtype}: multiply the kernel by a constant.")
    return alive


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
) -> Discrepancy:
    """The programme on a sample; Sω is computed here, and its progress reported."""
    if kernel.properties.positive_definite is False:
        raise ValueError(f"{kernel!r} is not positive semi-definite, so that its squared discrepancy has no meaning.")
    squared = GramOperator(kernel**2, sample.points(X, kernel))
    n = X.shape[0]
    caps = None if max_weight is None else _per_row(max_weight, "max_weight", n)[sample.rows]
    strengths = None if ridge is None else _per_row(ridge, "ridge", n, zero=True)[sample.rows]
    with watch(report or (lambda done: None)), np.errstate(over="ignore"):  # an overflow is named below
        distortion = squared @ sample.weights
    problem = Discrepancy(squared, sample.weights, sample.penalty, caps=caps, ridge=strengths, distortion=distortion)
    if not np.all(np.isfinite(problem.distortion)) or not np.all(np.isfinite(problem.diagonal)):
        raise ValueError(f"The squares of {kernel!r} overflow in {squared.dtype}: divide the kernel by a constant.")
    return problem


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
