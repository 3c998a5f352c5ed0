"""The function that tells landmarks from their sample best (QUAD 5.1-5.3), and values that can be written down."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from mercer.backends.arrays import Array, as_double, like, namespace
from mercer.backends.ordering import place_of
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.integrals.law_sections import law_sections
from mercer.operators import GramOperator
from mercer.quadrature.sample import discrepancy_kernel, rows_and_columns


def witness_values(model: Any, X: Any) -> Array:
    """g = Σ (v - ω)ₖ s(·, xₖ) at the rows of X, of a fitted sparsifier.

    Cost: a kernel evaluation for every row of X and every point of the sample.
    """
    signed = -model._weights if model.measure_ is None else 0.0 * model._weights
    signed[place_of(model.indices_, model._rows)] += model.weights_
    with np.errstate(over="ignore", invalid="ignore"):  # named below
        if isinstance(model.kernel_, Precomputed):
            part = rows_and_columns(X, None, model._rows)
            if model.discrepancy == "squared":
                part = part.multiply(part) if issparse(part) else part * part
            return finite_values(model.kernel_, part @ like(signed, signed, dtype=part.dtype))
        kernel = discrepancy_kernel(model.kernel_, model.discrepancy)
        values = as_double(GramOperator(kernel, X, model._points) @ signed)
        if model.measure_ is not None:
            values = values - law_sections(kernel, X, model.measure_).values
        return finite_values(model.kernel_, values)


def finite_values(kernel: Kernel, values: Any) -> Array:
    """Values at some points, in double precision, refused where the kernel has none that can be written."""
    values = as_double(values)
    finite = namespace(values).isfinite(values).reshape((values.shape[0], -1))
    if not finite.all():
        row = [bool(each.all()) for each in finite].index(False)
        raise ValueError(f"{kernel!r} overflows at row {row} of X: such a point is too large for it.")
    return values
