"""What a variable has beside another one: residuals of kernel ridge regression, in the space of a kernel.

The regression of features φ(x) on z in the space of a kernel of z, with an intercept, is a linear smoother H, and its
residuals are (I - H) Φ. Bandwidth and ridge are those with the least error of prediction of a row that is left out,
which for a smoother of this kind is its residual over 1 - Hᵢᵢ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS
from mercer.backends.threads import blas_for
from mercer.dependence.principal_features import centred_factor
from mercer.kernels import Kernel

_RANK = 200  # of the kernel matrix of z: a regression on n points has far fewer degrees of freedom
_LEFT_OUT = 1e-6
_RIDGES = np.logspace(-6, 1, 15)  # in units of the trace of the kernel matrix
_LEAST_LEVERAGE = 1e-3  # of 1 - Hᵢᵢ, where a row alone decides its own prediction


class Residuals(NamedTuple):
    """Of features that were regressed on another variable.

    Attributes
    ----------
    values : array of shape (n, p)
        Features less what the other variable predicts.
    explained : float
        The part of their variance that is predicted for rows that are left out; negative where a mean does better.
    """

    values: Array
    explained: float


class Regressors(NamedTuple):
    """The centred kernel matrix U Diag(s²) Uᵀ of what is regressed on, and its trace before centring."""

    vectors: Array
    squares: Array
    trace: float


def regressors(kernel: Kernel, points: Any, rng: np.random.Generator) -> Regressors:
    """The leading eigenvectors of a kernel matrix, from a partial factorisation."""
    factor = centred_factor(kernel, points, _RANK, rng, _LEFT_OUT)
    with blas_for(factor.shape[1]):
        vectors, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    kept = sizes > EPS * factor.shape[0] * sizes[0]
    return Regressors(vectors[:, kept], sizes[kept] ** 2, float(np.sum(kernel.matrix(points).diagonal())))


def residuals(features: Array, choices: Sequence[Regressors]) -> Residuals:
    """The residuals of the regressions that predict best, feature by feature, among several kernels and ridges.

    A few features hold most of what z says and want little smoothing, the others are noise and want much: what is left
    of the former in their residuals would look like dependence. Cost: n p r operations for each ridge, p features and
    a kernel matrix of rank r.
    """
    n, centred = features.shape[0], features - features.mean(axis=0)
    variance = np.sum(centred**2, axis=0) * (n / (n - 1)) ** 2
    best, least = centred.copy(), variance.copy()
    for basis in choices:
        inner, leverages = basis.vectors.T @ centred, basis.vectors**2
        for ridge in _RIDGES * basis.trace:
            shrinkage = basis.squares / (basis.squares + ridge)
            left = centred - basis.vectors @ (shrinkage[:, None] * inner)
            room = np.maximum(1 - 1 / n - leverages @ shrinkage, _LEAST_LEVERAGE)
            error = np.sum((left / room[:, None]) ** 2, axis=0)
            better = error < least
            best[:, better], least[better] = left[:, better], error[better]
    return Residuals(best, 1 - float(least.sum() / variance.sum()) if variance.any() else 0.0)
