"""Kernel ridge regression of vectors through landmarks: what of y a function of some coordinates explains.

    min over B of  Σ pᵢ ‖fᵢ - (k(zᵢ, I) - k̄)B‖² + ε Tr(Bᵀ W B),      W = k(I, I),  k̄ = Σ pᵢ k(zᵢ, I)

With f the centred features of y, the value is ε Tr[G_Y (G_Z + nεI)⁻¹], G_Z being the centred Nyström matrix
H k(Z, I) W⁻¹ k(I, Z) H (Fukumizu, Bach, Jordan 2009, (13)): where all points are landmarks, that of the kernel itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.threads import run_chunks
from mercer.kernels import Kernel

_CHUNK_ENTRIES = 2**18  # of kernel values, times as many multiplications as there are landmarks: milliseconds
NUGGET = 1e-6  # of the kernel on the diagonal of W, so that it factors; the gradient is that of this W


@dataclass(frozen=True, eq=False)
class Targets:
    """What is to be explained: vectors with the mean zero, n × r, and the shares p of the points, which sum to one."""

    features: Array
    shares: Array

    @property
    def variance(self) -> float:
        """Σ pᵢ ‖fᵢ‖²."""
        return float(self.shares @ np.einsum("ij,ij->i", self.features, self.features))

    def of_rows(self, rows: Array) -> Targets:
        """Those of some rows, with the mean zero again."""
        shares = self.shares[rows] / self.shares[rows].sum()
        features = self.features[rows]
        return Targets(features - shares @ features, shares)


@dataclass(frozen=True, eq=False)
class LandmarkRegression:
    """The fitted function f(z) = (k(z, I) - k̄)B.

    Attributes
    ----------
    kernel : Kernel
        k, resolved.
    nodes : array of shape (k, m)
        The landmarks I.
    coefficients : array of shape (k, r)
        B.
    means : array of shape (k,)
        The mean k̄ of the kernel with each landmark.
    loss : float
        The least value.
    """

    kernel: Kernel
    nodes: Array
    coefficients: Array
    means: Array
    loss: float

    def __call__(self, Z: Array) -> Array:
        """The function at points Z."""
        shift = self.means @ self.coefficients
        parts = run_chunks(
            lambda rows: section(self.kernel, Z[rows], self.nodes) @ self.coefficients - shift,
            chunks_of(Z, self.nodes),
        )
        return np.concatenate(parts)


def section(kernel: Kernel, Z: Array, nodes: Array) -> Array:
    """The block k(Z, nodes)."""
    block: Array = kernel.matrix(Z, nodes).dense()
    return block


def chunks_of(Z: Array, nodes: Array) -> list[slice]:
    """Rows of Z whose kernel values with all nodes are made at a time."""
    return row_chunks(Z.shape[0], rows_within(_CHUNK_ENTRIES, nodes.shape[0]))


def fit_regression(
    kernel: Kernel, Z: Array, nodes: Array, targets: Targets, regularization: float
) -> LandmarkRegression:
    """Solve the problem: n k evaluations of the kernel and n k² flops for k landmarks, some rows at a time."""
    F, p = targets.features, targets.shares

    def sums(rows: slice) -> tuple[Array, Array, Array]:
        K, shares = section(kernel, Z[rows], nodes), p[rows]
        scaled = np.sqrt(shares)[:, None] * K
        return scaled.T @ scaled, K.T @ (shares[:, None] * F[rows]), shares @ K

    parts = run_chunks(sums, chunks_of(Z, nodes))
    second, across, means = (np.add.reduce([part[k] for part in parts]) for k in range(3))
    W = section(kernel, nodes, nodes)
    W[np.diag_indices_from(W)] *= 1 + NUGGET
    lower = np.linalg.cholesky(W)
    whitened = solve_triangular(lower, second - np.outer(means, means), lower=True)
    system = solve_triangular(lower, whitened.T, lower=True)
    system = (system + system.T) / 2
    system[np.diag_indices_from(system)] += regularization
    right = solve_triangular(lower, across, lower=True)
    solved = cho_solve(cho_factor(system, lower=True), right)
    coefficients = solve_triangular(lower, solved, lower=True, trans="T")
    return LandmarkRegression(kernel, nodes, coefficients, means, targets.variance - float(np.vdot(right, solved)))
