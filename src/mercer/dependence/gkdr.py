"""Gradient-based kernel dimension reduction: the directions in which the conditional mean of y's features changes."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import SLAB_ENTRIES, row_chunks, rows_within
from mercer.backends.threads import run_chunks
from mercer.dependence.kdr_objective import slope_of
from mercer.dependence.landmark_regression import (
    LandmarkRegression,
    Targets,
    fit_regression,
    section,
)
from mercer.kernels import Kernel


def gradient_directions(
    X: Array, nodes: Array, targets: Targets, kernel: Kernel, regularization: float
) -> tuple[Array, Array]:
    """The eigenvalues, falling, and eigenvectors of M = Σ pᵢ ∇f(xᵢ) ∇f(xᵢ)ᵀ, f the regression of y's features on x.

    Where y depends on x through UᵀX alone, the gradients of all conditional means lie in the span of U, so that the
    leading eigenvectors of M estimate it (Fukumizu and Leng 2014, (9)). f is fitted through the landmarks.

    Cost: n k d r flops for k landmarks and r features of y.
    """
    fitted = fit_regression(kernel, X, nodes, targets, regularization)
    values, vectors = np.linalg.eigh(gradient_outer_product(fitted, X, targets.shares))
    return values[::-1], vectors[:, ::-1]


def gradient_outer_product(fitted: LandmarkRegression, X: Array, shares: Array) -> Array:
    """M of a regression at the points that it was fitted to."""
    width = X.shape[1] * fitted.coefficients.shape[1]
    chunks = row_chunks(X.shape[0], rows_within(SLAB_ENTRIES, width))
    total: Array = np.add.reduce(run_chunks(lambda rows: _outer_products(fitted, X[rows], shares[rows]), chunks))
    return total


def _outer_products(fitted: LandmarkRegression, X: Array, shares: Array) -> Array:
    """Σ pᵢ ∇f(xᵢ) ∇f(xᵢ)ᵀ over some rows; ∇f(x) = 2 Σⱼ k'(x, xⱼ)(x - xⱼ) Bⱼ is d × r."""
    B, nodes, slope = fitted.coefficients, fitted.nodes, slope_of(fitted.kernel)
    d, r = nodes.shape[1], B.shape[1]
    S = section(slope.kernel, X, nodes)
    spread = (nodes[:, :, None] * B[:, None, :]).reshape(-1, d * r)
    gradients = X[:, :, None] * (S @ B)[:, None, :] - (S @ spread).reshape(-1, d, r)
    gradients *= 2 * slope.factor * np.sqrt(shares)[:, None, None]
    wide = gradients.transpose(1, 0, 2).reshape(d, -1)
    total: Array = wide @ wide.T
    return total
