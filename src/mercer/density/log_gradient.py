"""The gradient of the logarithm of a density that is a sum of squares, in closed form."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, like, to_numpy
from mercer.backends.chunks import THREAD_BYTES, panel_rows, row_chunks
from mercer.backends.threads import run_chunks
from mercer.kernels import Kernel
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.kernels.integrals.measures import DiscreteMeasure, GaussianMeasure, Measure
from mercer.kernels.radial import radial


def log_gradient(kernel: Kernel, X: Array, support: Array, factor: Array, measure: Measure) -> Array:
    """∇ log ‖Fᵀk_x‖² ρ(x) at the rows of X, n × d.

    With g = Fᵀk_x it is 2 Σ_p (Fg)_p ∇k(x, z_p)/‖g‖² + ∇ log ρ(x), where every kernel value may be divided by the
    largest: it has digits at any distance from the support. Cost: n m (d + r).
    """
    profile = radial(kernel, X.shape[1])
    if profile is None:
        raise ValueError(
            f"A density of {kernel!r} has no gradient in closed form: fit it with Gaussian(), Matern(1.5) or "
            "Matern(2.5), or pass the gradient of its logarithm as a function."
        )
    if isinstance(measure, DiscreteMeasure):
        raise ValueError("Probabilities of points have no gradient: the density must be one on R^d.")
    x, z = X / profile.lengths, support / profile.lengths
    matrix, out = kernel.matrix(X, support), np.empty_like(X)
    squares = np.sum(z**2, axis=1)

    def fill(rows: slice) -> None:
        logs = matrix.log_block(rows, slice(None))
        sections = np.exp(logs - logs.max(axis=1, keepdims=True))
        inner = sections @ factor
        t = np.maximum(np.sum(x[rows] ** 2, axis=1)[:, None] + squares - 2 * x[rows] @ z.T, 0.0)
        weights = (inner @ factor.T) * sections * profile.profile(t).slope
        sums = x[rows] * weights.sum(axis=1, keepdims=True) - weights @ z
        out[rows] = 4 * sums / (np.sum(inner**2, axis=1)[:, None] * profile.lengths)

    run_chunks(fill, row_chunks(X.shape[0], panel_rows(3 * support.shape[0], most=THREAD_BYTES)))
    return out + _reference_gradient(measure, X)


def sections_gradient(sections: GaussianSections, X: Array, factor: Array) -> Array:
    """∇ log ‖Fᵀφ(x)‖² for Gaussian sections with precisions P of their own: ∇φ = -½ P(x - μ) φ."""
    means, out = np.asarray(to_numpy(sections.points), np.float64), np.empty_like(X)
    precisions = np.linalg.inv(np.asarray(to_numpy(sections.covariances), np.float64))
    logs = np.asarray(to_numpy(sections.log_values(like(X, sections.means))), np.float64)
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    inner = values @ factor
    weights = (inner @ factor.T) * values
    for rows in row_chunks(X.shape[0], panel_rows(means.size)):
        slopes = np.einsum("pij,npj->npi", precisions, X[rows][:, None] - means)
        out[rows] = -np.einsum("np,npi->ni", weights[rows], slopes)
    return np.asarray(out / np.sum(inner**2, axis=1)[:, None])


def _reference_gradient(measure: Measure, X: Array) -> Array:
    """∇ log ρ; zero of Lebesgue's measure, on a box too."""
    if not isinstance(measure, GaussianMeasure):
        return np.zeros_like(X)
    apart = X - np.asarray(to_numpy(measure.mean))
    if measure.covariance is None:
        assert measure.std is not None
        return np.asarray(-apart / measure.std**2)
    return np.asarray(-np.linalg.solve(to_numpy(measure.covariance), apart.T).T)
