"""The objective of kernel dimension reduction, with its exact gradient."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.threads import run_chunks
from mercer.dependence.landmark_regression import (
    LandmarkRegression,
    Targets,
    chunks_of,
    fit_regression,
    section,
)
from mercer.kernels import Gaussian, Kernel, Matern
from mercer.problems.stiefel import StiefelProblem, ValueAndGradient

_SMALLEST = 1e-140  # of lengths, and one over the largest: products of their squares have room


class Slope(NamedTuple):
    """The derivative of k by the squared distance, as a number times another kernel."""

    factor: float
    kernel: Kernel


def slope_of(kernel: Kernel) -> Slope:
    """∂k/∂s of a smooth kernel of s = ‖z - z'‖²: -k/σ² of the Gaussian; of Matérn's one of the order below.

    By (s^ν K_ν(s))' = -s^ν K_{ν-1}(s), the derivative of the Matérn kernel of order ν > 1 and length ℓ is
    -ν/(2(ν-1)ℓ²) times that of order ν - 1 and length ℓ √((ν-1)/ν).
    """
    if isinstance(kernel, Gaussian) and np.ndim(kernel.sigma) == 0:
        return Slope(-1.0 / _square(float(kernel.sigma)), kernel)
    if isinstance(kernel, Matern) and np.ndim(kernel.length_scale) == 0 and kernel.nu > 1:
        nu, length = float(kernel.nu), float(kernel.length_scale)
        if nu == np.inf:
            return Slope(-0.5 / _square(length), kernel)
        return Slope(-nu / (2 * (nu - 1) * _square(length)), Matern(nu - 1, length * np.sqrt((nu - 1) / nu)))
    raise ValueError(
        f"x_kernel={kernel!r} has no gradient that is known here: give Gaussian() or Matern(nu) with nu > 1, with one "
        "length for all columns."
    )


def _square(length: float) -> float:
    """The square of a length of x, which gradients are divided by."""
    if not _SMALLEST < length < 1 / _SMALLEST:
        raise ValueError(
            f"The length of x_kernel is {length:.1e}, and gradients by such points leave double precision: bring X to "
            'a size near one, as scaling="columns" does.'
        )
    return length**2


@final
class DimensionReduction(StiefelProblem):
    """min over UᵀU = I of the part of y that is not explained by UᵀX: ε Tr[G_Y (G_XU + nεI)⁻¹] / Tr(G_Y) · n.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    nodes : array of shape (k, d)
        Landmarks among them, through which the kernel matrix is approximated.
    targets : Targets
        The features of y.
    kernel : Kernel
        k on the projected points, resolved.
    regularization : float
        ε.

    Notes
    -----
    The value lies between 0 and 1. Cost of a value with its gradient: 2 n k kernel evaluations and n k (k + 6r + 4m)
    flops for k landmarks, r features of y and m columns of U; memory: some panels of rows beside X.
    """

    def __init__(self, X: Array, nodes: Array, targets: Targets, kernel: Kernel, regularization: float) -> None:
        self.X, self.nodes, self.targets, self.kernel = X, nodes, targets, kernel
        self.regularization = regularization
        self._slope, self._variance = slope_of(kernel), targets.variance

    def evaluate(self, U: Array) -> ValueAndGradient:
        """The value and gradient at U.

        At the best B the value changes by -2 Σ pᵢ rᵢᵀ dk(zᵢ, I) B + ε Tr(Bᵀ dW B) alone, r being the residuals, since
        B's own change is of second order and the residuals have the mean zero.
        """
        Z, nodes = self.X @ U, self.nodes @ U
        fitted = fit_regression(self.kernel, Z, nodes, self.targets, self.regularization)
        gradient = self._gradient(Z, fitted)
        return ValueAndGradient(fitted.loss / self._variance, gradient / self._variance)

    def _gradient(self, Z: Array, fitted: LandmarkRegression) -> Array:
        B, nodes, slope = fitted.coefficients, fitted.nodes, self._slope.kernel
        shift = fitted.means @ B

        def of(rows: slice) -> tuple[Array, Array]:
            z, targets = Z[rows], self.targets
            K = section(fitted.kernel, z, nodes)
            S = (-2 * targets.shares[rows, None] * (targets.features[rows] - K @ B + shift)) @ B.T
            S *= K if slope is fitted.kernel else section(slope, z, nodes)
            at_points = S.sum(axis=1)[:, None] * z - S @ nodes
            return self.X[rows].T @ at_points, S.sum(axis=0)[:, None] * nodes - S.T @ z

        parts = run_chunks(of, chunks_of(Z, nodes))
        by_points, at_nodes = (np.add.reduce([part[k] for part in parts]) for k in range(2))
        S = self.regularization * (B @ B.T) * section(slope, nodes, nodes)
        at_nodes += 2 * (S.sum(axis=1)[:, None] * nodes - S @ nodes)
        gradient: Array = 2 * self._slope.factor * (by_points + self.nodes.T @ at_nodes)
        return gradient
