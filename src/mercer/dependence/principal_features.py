"""A few coordinates of points in the space of a kernel: what tests multiply instead of n × n matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS
from mercer.backends.threads import blas_for
from mercer.kernels import Kernel
from mercer.linalg.pivoted_cholesky import rp_cholesky
from mercer.operators import GramOperator

_ROUNDING = 4 * EPS  # of a mean of entries
_TRACE = 1e-3  # of the trace: what a partial factorisation may leave out, and what a coordinate must hold


def centred_factor(kernel: Kernel, points: Any, rank: int, rng: np.random.Generator, left_out: float = _TRACE) -> Array:
    """F with F Fᵀ ≈ H K H, the centred kernel matrix, of at most ``rank`` columns.

    Columns of K are drawn with pivots that treat all rows alike (:func:`mercer.rp_cholesky`), until the trace of the
    rest is the part ``left_out`` of the whole. Cost: n·rank kernel evaluations and n·rank² operations.
    """
    gram = GramOperator(kernel, points)
    factor = rp_cholesky(gram, min(rank, gram.shape[0]), rng, tolerance=left_out).factor
    centred = np.asarray(factor - factor.mean(axis=0))
    rounding = _ROUNDING * np.sqrt(gram.shape[0]) * np.abs(factor).max(initial=0.0)
    return np.where(np.abs(centred).max(axis=0, initial=0.0) > rounding, centred, 0.0)


def principal_features(kernel: Kernel, points: Any, rank: int, rng: np.random.Generator) -> Array:
    """The coordinates of the points along the principal directions that hold a thousandth of the variance or more."""
    factor = centred_factor(kernel, points, rank, rng)
    with blas_for(factor.shape[1]):
        vectors, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    kept = sizes**2 > _TRACE * float(sizes @ sizes)
    return np.asarray(vectors[:, kept] * sizes[kept])
