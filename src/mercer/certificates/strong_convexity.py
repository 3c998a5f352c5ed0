"""How far a point is from the minimum of a strongly convex function: by its gradient, recomputed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.problems.relaxed_regression import RelaxedRegression

Array = np.ndarray[Any, np.dtype[Any]]


def certify_strongly_convex(problem: RelaxedRegression, beta: Array) -> Certificate:
    """Bound min F from β: F is 2λ-strongly convex, so F(β) - min F ≤ ‖∇F(β)‖²/(4λ)."""
    value = problem.value(beta)
    gradient = problem.gradient(beta)
    return Certificate(
        lower=max(value - float(gradient @ gradient) / (4 * problem.regularization), 0.0),
        upper=value,
        failure_probability=0.0,
        method="gradient of a strongly convex function",
        n_products=0,
        minimised=True,
    )
