"""What a fitted model states, against what follows from its solution and the data: a sentence for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, cast, is_sparse_tensor, like, to_numpy
from mercer.backends.rounding import EPS
from mercer.certificates import Certificate
from mercer.kernels import Kernel

_SAME = 1e-9
_SPANNED = 4.0  # times the eigenvalue at which a span is cut, that may lie outside of it


def require_numbers(model: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    """The finite numbers of an attribute, of a shape where one is given, as a NumPy array."""
    try:
        values = np.asarray(to_numpy(getattr(model, name)), np.float64)
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"The model's {name} is missing, or no array of numbers: it is damaged.") from None
    if (shape is not None and values.shape != shape) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"The model's {name} has shape {values.shape}, or entries that are no numbers"
            + ("" if shape is None else f", instead of {shape} finite ones")
            + ": it is damaged."
        )
    return values


def require_equal(model: Any, name: str, expected: Any, why: str, *, tolerance: float = 0.0) -> None:
    """Refuse an attribute other than what is expected, to ``tolerance`` and a billionth of the largest entry."""
    expected = np.asarray(to_numpy(expected), np.float64)
    values = require_numbers(model, name, expected.shape)
    largest = float(np.max(np.abs(expected), initial=0.0))
    worst = float(np.max(np.abs(values - expected), initial=0.0))
    if worst > tolerance + _SAME * largest:
        raise ValueError(f"The model's {name} differs by {worst:.1e} from what follows from {why}: it is damaged.")


def require_kernel(model: Any, expected: Kernel) -> None:
    """Refuse a ``kernel_`` other than the one that the parameters and the data make."""
    if not _same(model.kernel_, expected):
        raise ValueError(
            f"The model's kernel_ is {model.kernel_!r} where its parameters and X make {expected!r}: it is damaged, or "
            "X is not the data of the fit."
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Kernel) or isinstance(other, Kernel):
        if type(one) is not type(other):
            return False
        mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
        return all(_same(value, theirs[name]) for name, value in mine.items())
    try:
        return bool(np.allclose(one, other, rtol=_SAME, atol=0.0))
    except TypeError:
        return bool(np.all(one == other))


def require_meeting(model: Any, again: Certificate) -> Certificate:
    """Refuse a stored certificate that excludes what was proved again, which is returned."""
    stored = model.certificate_
    if not isinstance(stored, Certificate) or stored.lower > again.upper or again.lower > stored.upper:
        raise ValueError(
            f"The model's certificate_ excludes [{again.lower:.9g}, {again.upper:.9g}], which was proved again from "
            "its solution and X: it is damaged, or X is not the data of the fit."
        )
    return again


def same_points(stored: Any, points: Any) -> bool:
    """Whether two sets of points, dense or sparse, are equal: to the last bit, or in the coarser of two arithmetics."""
    if tuple(stored.shape) != tuple(points.shape) or hasattr(stored, "toarray") != hasattr(points, "toarray"):
        return False
    if is_sparse_tensor(stored) or is_sparse_tensor(points):
        return bool((stored.to_dense() == points.to_dense()).all())
    if hasattr(stored, "toarray"):
        coarse = 0.0 if stored.dtype == points.dtype else float(np.finfo(np.float32).eps)
        return bool(abs(stored - points).max() <= coarse * abs(points).max())
    stored = like(stored, points)
    coarser = min(stored.dtype, points.dtype, key=lambda dtype: dtype.itemsize)
    return bool((cast(stored, coarser) == cast(points, coarser)).all())


def require_spans(matrix: Any, basis: Any, name: str, truncation: float) -> None:
    """Refuse a span that leaves out more of a positive semi-definite matrix than eigenvectors below the truncation."""
    matrix, basis = (np.asarray(to_numpy(part), np.float64) for part in (matrix, basis))
    image = matrix @ basis
    try:
        outside = matrix - image @ np.linalg.solve(basis.T @ image, image.T)
    except np.linalg.LinAlgError:
        outside = np.full_like(matrix, np.inf)
    largest = float(np.linalg.norm(matrix, 2))
    allowed = (_SPANNED * truncation + 1e4 * matrix.shape[0] * EPS) * largest
    if not float(np.linalg.norm(outside)) <= np.sqrt(matrix.shape[0]) * allowed:
        raise ValueError(f"The model's span of {name} leaves out more than its truncation says: it is damaged.")
