"""The measure that is to be sparsified: distinct points with positive weights, and the programme on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, double, dtype_name, is_sparse_tensor, is_tensor, like, namespace
from mercer.backends.config import require_free_memory
from mercer.backends.ordering import as_integers, flatnonzero, places, totals
from mercer.backends.rounding import UNIT, exact_sum, gamma, unit_of
from mercer.backends.threads import watch
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.checks import as_points, positive_number, scale_free
from mercer.kernels.integrals.given_measure import checked_measure
from mercer.kernels.integrals.law_sections import LawSections, law_sections
from mercer.kernels.integrals.measures import DiscreteMeasure, Measure
from mercer.operators import GramOperator
from mercer.operators.gram_sum import GramSum
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import TargetLaw
from mercer.validation import checked_weights, distinct_rows, require_points, resolved_kernel

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
        if not isinstance(kernel, Precomputed):
            return X[self.rows]
        return rows_and_columns(X, self.rows, self.rows)


def rows_and_columns(X: Any, rows: Array | None, cols: Array) -> Any:
    """Some rows (all if None) and columns of a matrix, dense or sparse, of either library."""
    if is_sparse_tensor(X):
        part = X.to_sparse_coo() if rows is None else X.to_sparse_coo().index_select(0, rows)
        return part.index_select(1, cols).coalesce()
    return X[:, cols] if rows is None else X[rows][:, cols]


def make_sample(X: Any, kernel: Kernel, sample_weight: Any = None, penalty: Any = None) -> Sample:
    """Read the weights and the penalty of :class:`mercer.QuadratureSparsifier` for the rows of X.

    Weights count by their ratios: they are multiplied by a power of two, which changes no digit, before anything is
    added up. Sums are taken without rounding but for that of equal points.
    """
    require_semidefinite(kernel)
    n = int(X.shape[0])
    given = 1.0 if sample_weight is None else sample_weight
    weights = scale_free(checked_weights(given, n, "sample_weight", reference=X))
    matrix = kernel.matrix(*kernel._checked(X, None), dtype=double(X))
    diagonal = matrix.diagonal()
    d = diagonal if penalty is None else _checked_penalty(penalty(X) if callable(penalty) else penalty, n, diagonal)
    alive = _alive(X, kernel, weights, diagonal)
    first, place = _places(X, kernel, d, alive)
    shares = totals(place, weights[alive]) / exact_sum(weights)
    repeats = int(totals(place).max())
    entry, rows = matrix.entry_error, alive[first]
    evaluated = 0.0 if penalty is not None else entry.relative + entry.scaled + entry.absolute
    return Sample(rows, shares, d[rows], gamma(repeats + 2, UNIT), evaluated)


def _alive(X: Any, kernel: Kernel, weights: Array, diagonal: Array) -> Array:
    """The rows of positive weight at which the square of k(x, x) is positive, with all its digits."""
    negative = flatnonzero((weights > 0) & (diagonal < 0))
    if negative.shape[0]:
        row = int(negative[0])
        raise ValueError(
            f"k(x, x) = {float(diagonal[row]):.3g} at row {row} under {kernel!r}: the kernel must be positive "
            "semi-definite."
        )
    if not ((weights > 0) & (diagonal > 0)).any():
        raise ValueError(f"k(x, x) is zero at every point of positive weight under {kernel!r}: choose another kernel.")
    arithmetic = np.finfo(dtype_name(X.dtype))
    alive = (weights > 0) & (diagonal > float(np.sqrt(arithmetic.tiny / arithmetic.eps)))
    if not alive.any():
        raise ValueError(f"The squares of {kernel!r} vanish in {arithmetic.dtype}: multiply the kernel by a constant.")
    if isinstance(kernel, Precomputed):
        _check_left_out(X, diagonal, flatnonzero((weights > 0) & ~alive), kernel)
    return flatnonzero(alive)


def _check_left_out(X: Any, diagonal: Array, left_out: Array, kernel: Kernel) -> None:
    """Refuse a point with k(x, x) = 0 that is related to others: |k(x, y)|² ≤ k(x, x) k(y, y) in a kernel."""
    for row in as_integers(left_out):
        entries = X[row].to_dense() if is_sparse_tensor(X) else X[[row]]
        entries = as_double(entries.toarray() if hasattr(entries, "toarray") else entries).reshape(-1)
        nonnegative = namespace(diagonal).clip(diagonal, min=0.0) ** 0.5
        most = nonnegative[row] * nonnegative
        excess = abs(entries) - 1.01 * most
        if (excess > 0).any():
            other = int(excess.argmax())
            raise ValueError(
                f"k(x, x) = {float(diagonal[row]):.3g} at row {row} under {kernel!r}, but k(x, y) = "
                f"{abs(float(entries[other])):.3g} for row {other}: the kernel must be positive semi-definite."
            )


def _places(X: Any, kernel: Kernel, d: Array, alive: Array) -> tuple[Array, Array]:
    """The first occurrence of each point among the rows ``alive``, and which point each of them is."""
    count = int(alive.shape[0])
    if isinstance(kernel, Precomputed):
        return places(count, alive), places(count, alive)
    points = X if count == X.shape[0] else X[alive]
    if (d == d[0]).all():
        return distinct_rows(points)
    return distinct_rows(namespace(points).concat([as_double(points), d[alive][:, None]], axis=1))


def discrepancy_kernel(kernel: Kernel, discrepancy: str) -> Kernel:
    """The kernel of S: k², whose D compares integral operators (QUAD 2.3), or k itself, whose D is ½ MMD² (QUAD 10)."""
    return kernel**2 if discrepancy == "squared" else kernel


def make_problem(
    X: Any,
    kernel: Kernel,
    sample: Sample,
    *,
    discrepancy: str = "squared",
    max_weight: Any = None,
    ridge: Any = None,
    report: Callable[[float], None] | None = None,
    dtype: Any = None,
    law: Measure | None = None,
    without_pass: bool = False,
) -> Discrepancy:
    """The programme on a sample, or for a law with the sample's points as candidates; Sω is computed here.

    ``without_pass`` leaves Sω at zero, for :class:`mercer.quadrature.sampled.Potential` to fill in.

    ``dtype`` is the arithmetic of S, that of X if left out: proofs for single precision are made in double.
    """
    _check_memory(int(sample.rows.shape[0]))
    squared = GramOperator(discrepancy_kernel(kernel, discrepancy), sample.points(X, kernel), dtype=dtype)
    require_nonnegative(squared, kernel)
    n, reference = int(X.shape[0]), sample.weights
    caps = None if max_weight is None else _per_row(max_weight, "max_weight", n, reference)[sample.rows]
    full = isinstance(ridge, Kernel) or np.ndim(ridge) == 2
    strengths = None if ridge is None or full else _per_row(ridge, "ridge", n, reference, zero=True)[sample.rows]
    with watch(report or (lambda done: None)), np.errstate(over="ignore"):  # an overflow is named below
        target = None if law is None else _target(kernel, squared, law)
        distortion = 0.0 * sample.weights if without_pass else None
        if distortion is None:
            distortion = squared @ sample.weights if target is None else target.sections.values
    covariance = _covariance(ridge, X, kernel, sample, squared) if full else None
    if covariance is not None and target is None:
        target = _as_target(squared, sample, as_double(distortion))
    problem = Discrepancy(
        squared if covariance is None else GramSum(squared, covariance),
        sample.weights,
        sample.penalty,
        caps=caps,
        ridge=strengths,
        distortion=distortion,
        errors=(sample.weight_error, sample.penalty_error),
        law=target,
        covariance=covariance,
    )
    xp = namespace(problem.distortion)
    if not xp.isfinite(problem.distortion).all() or not xp.isfinite(problem.diagonal).all():
        what = "squares" if discrepancy == "squared" else "sums"
        raise ValueError(
            f"The {what} of {kernel!r} overflow in {dtype_name(squared.dtype)}: divide the kernel by a constant."
        )
    return problem


def require_semidefinite(kernel: Kernel) -> None:
    """Refuse a kernel that is known not to be positive semi-definite."""
    if kernel.properties.positive_definite is False:
        raise ValueError(f"{kernel!r} is not positive semi-definite, so that its squared discrepancy has no meaning.")


def require_nonnegative(squared: GramOperator, kernel: Kernel) -> None:
    """Refuse a kernel whose S may have negative entries."""
    if not squared.nonnegative:
        raise ValueError(
            f"{kernel!r} takes negative values, or may: discrepancy='mmd' needs a kernel that has none, such as the "
            "Gaussian; discrepancy='squared' takes any."
        )


def read_law(measure: Any, kernel: Any, X: Any, sample_weight: Any) -> Measure | None:
    """The law that a quadrature on the rows of X stands for, checked; None where it is the sample itself."""
    if measure is None:
        return None
    require_points(kernel, "The integrals against a measure are taken at points")
    if sample_weight is not None:
        raise ValueError("sample_weight has no effect with measure, of which the rows of X are no part: leave it out.")
    law = checked_measure(measure, X, "measure")
    if law is None:
        raise ValueError(f"measure={measure!r} must be a Box, a GaussianMeasure or a DiscreteMeasure.")
    return law


def _target(kernel: Kernel, squared: GramOperator, law: Measure) -> TargetLaw:
    """Sω and ωᵀSω of a law, and the mean of k(x, x), which is the same everywhere for kernels with closed forms."""
    if isinstance(law, DiscreteMeasure):
        trace = float(law.weights @ as_double(kernel.diag(law.points))) / exact_sum(law.weights)
    else:
        trace = float(kernel.diag(squared.points[:1])[0])
    return TargetLaw(law_sections(squared.kernel, squared.points, law), trace)


def _as_target(squared: GramOperator, sample: Sample, distortion: Array) -> TargetLaw:
    """The sample by its product Sω and ωᵀSω, where the quadratic term of the programme is not S alone.

    No entry exceeds κ_i κ_j, so that errors η of the entries and of the weights, and the k roundings of each term, miss
    by (η + γ_k) κ_i κᵀω at most.
    """
    roots = as_double(squared.diagonal()) ** 0.5
    weight = 1.02 * float(roots @ sample.weights)
    slip = product_slip(squared, float(roots.min()), sample.weight_error)
    energy = exact_sum(sample.weights * distortion)
    sections = LawSections(distortion, slip * weight * roots, energy, 2 * slip * weight**2)
    return TargetLaw(sections, float(sample.penalty @ sample.weights))


def product_slip(gram: GramOperator, least_root: float, weight_error: float) -> float:
    """How far an entry of a product with weights ω can be from the exact one, as a part of κᵢ κᵀω."""
    entry = gram.entry_error
    relative = entry.relative + entry.scaled + (entry.absolute / least_root**2 if entry.absolute > 0 else 0.0)
    return 1.02 * (relative + gamma(gram.summation_depth + 8, unit_of(gram.dtype)) + weight_error)


def _covariance(ridge: Any, X: Any, kernel: Kernel, sample: Sample, squared: GramOperator) -> GramOperator:
    """Σ of (5.7) between the points of the sample, from its matrix between the rows of X, or from a kernel."""
    n = int(X.shape[0])
    if isinstance(ridge, Kernel):
        require_points(kernel, "ridge is a kernel of points")
        found = GramOperator(resolved_kernel(ridge, X), squared.points, dtype=squared.dtype)
    else:
        matrix = like(as_points(ridge, "ridge"), sample.weights)
        if tuple(matrix.shape) != (n, n):
            raise ValueError(f"ridge has shape {tuple(matrix.shape)}: a matrix must be {n} × {n}.")
        if bool((matrix != matrix.T).any()):
            raise ValueError("ridge is not symmetric.")
        found = GramOperator(Precomputed(), rows_and_columns(matrix, sample.rows, sample.rows), dtype=squared.dtype)
    if not found.nonnegative:
        raise ValueError("ridge has negative entries, or may: the bounds are for matrices that have none.")
    return found


def _check_memory(size: int) -> None:
    """Refuse a memory limit that does not even hold the vectors of a programme, before anything is computed."""
    what = f"A quadrature of {size} points needs about"
    require_free_memory(8 * _VECTORS * size, what, "take fewer points", MemoryError)


def _per_row(value: Any, name: str, n: int, reference: Array, *, zero: bool = False) -> Array:
    """A positive number for each row, from one number or one for each, in the library of another array."""
    if np.ndim(value) == 0 if not is_tensor(value) else value.ndim == 0:
        number = float(value) if is_tensor(value) else value
        return like(np.full(n, positive_number(number, name, zero=zero)), reference)
    if zero and not (value.any() if is_tensor(value) else np.any(np.asarray(value, dtype=object))):
        return like(np.zeros(n), reference)
    numbers = checked_weights(value, n, name, reference=reference)
    if not zero and not (numbers > 0).all():
        raise ValueError(f"{name} is zero at index {int(numbers.argmin())}: it must be positive.")
    return numbers


def _checked_penalty(penalty: Any, n: int, reference: Array) -> Array:
    values = checked_weights(penalty, n, "penalty", reference=reference)
    if not (values > 0).all():
        raise ValueError(f"penalty is zero at index {int(values.argmin())}: every point needs a positive penalty.")
    return values
