"""The MMD between a sample and a density, without the projection that the fit makes (SOS Lemma 2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.kernels import Kernel
from mercer.kernels.integrals import KernelIntegrals
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator
from mercer.validation import distinct_rows

Array = np.ndarray[Any, np.dtype[Any]]

_ROWS = 4096
_PROBES = 1000
_TRUNCATION = 1e-10


class SquaredMMD(NamedTuple):
    """MMD², and an estimate of its error; 0 where it is exact."""

    value: float
    error: float


def squared_mmd(integrals: KernelIntegrals, kernel: Kernel, factor: Array, X: Array, weights: Array) -> SquaredMMD:
    """‖v - w_p‖² = ‖v‖² - 2⟨v, w_p⟩ + ‖w_p‖² for v = Σ a_i φ(x_i) and p(x) = ‖Fᵀk_x‖², F scaled as the integrals are.

    ‖v‖² takes one product with the kernel matrix of the sample, ⟨v, w_p⟩ n m² operations. ‖w_p‖² is a sum over pairs of
    pairs: exact up to 150 support points of the Gaussian kernel or 6 000 nodes of a quadrature; beyond, the norm of the
    projection on the span of the support and of some points of the sample, a lower bound whose error is estimated by
    leaving half of these points out.
    """
    B = factor @ factor.T
    sample = float(weights @ np.asarray(GramOperator(kernel, X) @ weights, np.float64))
    cross = sum(
        float(weights[lo : lo + _ROWS] @ integrals.embed(B, X[lo : lo + _ROWS])) for lo in range(0, X.shape[0], _ROWS)
    )
    norm, error = integrals.squared_norm(B), 0.0
    if norm is None:
        norm, error = _projected_norm(integrals, kernel, B, X)
    return SquaredMMD(max(sample - 2.0 * cross + norm, 0.0), error)


def _projected_norm(integrals: KernelIntegrals, kernel: Kernel, B: Array, X: Array) -> tuple[float, float]:
    """‖P w_p‖² on the span of the support and of points spread over the sample, and what half of them leave out."""
    count = min(X.shape[0], _PROBES)
    probes = X[np.random.default_rng(0).choice(X.shape[0], count, replace=False)]
    values = []
    for part in (count // 2, count):
        points = np.concatenate([integrals.points, probes[:part]])
        points = np.ascontiguousarray(points[distinct_rows(points)[0]])
        levels, V = positive_eigenpairs(np.asarray(kernel(points), np.float64), _TRUNCATION / points.shape[0])
        values.append(float(np.sum((V.T @ integrals.embed(B, points)) ** 2 / levels)))
    return values[1], abs(values[1] - values[0])
