"""The programme of a density, from its kernel, its support and the data: the same for fitting and for certifying."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, as_double, namespace
from mercer.kernels import Kernel
from mercer.kernels.integrals.choice import kernel_integrals
from mercer.kernels.integrals.measures import Measure
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.problems.enclosed_squares import Sample
from mercer.problems.sum_of_squares import Spans
from mercer.validation import distinct_rows, normalised

_LARGEST_LOG = 700.0
_HEAVIEST = 1e100


def make_programme(
    kernel: Kernel,
    support: Array,
    measure: Measure,
    X: Array,
    weights: Array | None,
    *,
    regularization: float | None,
    truncation: float,
    spans: Spans | None = None,
) -> SumOfSquares:
    """The fit of a density to Σ a_i δ(x_i), the weights a over their sum; equal ones where they are None.

    λ = None means Σ a_i² (over distinct points: 1/n), the size of the sampling error of an MMD², times the volume
    exp(log_scale) of a squared kernel section, (πσ²/2)^{d/2} on R^d, so that the fit does not depend on the units of X.
    ``spans`` are those of an earlier programme with the same support, kernel and measure.

    Raises
    ------
    ValueError
        If the volume (πσ²/2)^{d/2} of a squared kernel section, or its like, is no number in double precision, or if λ
        is beyond all measure.
    """
    shares = normalised(weights, X.shape[0], reference=X)
    integrals = kernel_integrals(kernel, support, measure)
    if not abs(integrals.log_scale) < _LARGEST_LOG:
        raise ValueError(
            f"The squared kernel has the volume exp({integrals.log_scale:.0f}) under {kernel!r} in {support.shape[1]} "
            "dimensions, beyond double precision: bring the features to a scale near one, or reduce the dimension."
        )
    if regularization is not None and regularization * float(np.exp(-integrals.log_scale)) > _HEAVIEST:
        raise ValueError(f"regularization={regularization:g} is so large that nothing of the data is left: lower it.")
    if regularization is None:
        regularization = _concentration(X, shares) * float(np.exp(integrals.log_scale))
    gram = as_double(kernel(support))
    target = as_double(GramOperator(kernel, support, X) @ shares)
    return SumOfSquares(
        integrals,
        gram,
        target,
        regularization=regularization,
        truncation=truncation,
        sample=Sample(X, weights),
        spans=spans,
    )


def _concentration(X: Array, weights: Array) -> float:
    """Σ a² over distinct points: 1/n for n equal weights."""
    xp = namespace(X)
    present = xp.nonzero(weights > 0)[0]
    masses = xp.bincount(distinct_rows(X[present])[1], weights=weights[present])
    return float(masses @ masses)
