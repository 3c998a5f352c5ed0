"""The embeddings of the bumps that a Gaussian sum of squares is made of: probes that leave nothing of it out.

With k(x, y) = exp(-‖x - y‖²/σ²), k(x, z_p) k(x, z_q) dρ is W_pq times a normal law around the midpoint of z_p and z_q,
drawn towards the mean of ρ where ρ is normal, and of one covariance for all pairs (SOS Lemma 4). So w_p = Σ B_pq W_pq
ψ_pq, ψ_pq the embedding of that law: m(m+1)/2 functions whose Gram matrix is a Gaussian kernel of the midpoints.
"""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, namespace
from mercer.kernels.integrals.gaussian import GaussianIntegrals
from mercer.kernels.integrals.integral_enclosures import ProbeEnclosures
from mercer.kernels.integrals.probes import Probes
from mercer.kernels.stationary import Gaussian


@final
class MidpointProbes(Probes):
    """ψ for some pairs (i, j) of support points.

    With r = σ²/(2s²) for ρ = N(μ₀, s² I), r = 0 for Lebesgue's measure, and t = (2 + r)(4 + r),

        ⟨ψ_ij, ψ_pq⟩ = ((2 + r)/(4 + r))^{d/2} exp(-‖z_i + z_j - z_p - z_q‖²/(tσ²)),

    where ‖2u - z_p - z_q‖² = 2‖u - z_p‖² + 2‖u - z_q‖² - ‖z_p - z_q‖² for the midpoint u of z_i and z_j: a product over
    pairs again, so that inner products with embeddings are products of matrices of shapes (N, m) and (m, m).

    Parameters
    ----------
    integrals : GaussianIntegrals
        Those of the densities.
    pairs : array of int of shape (N, 2)
        Rows of the support.
    """

    def __init__(self, integrals: GaussianIntegrals, pairs: Array) -> None:
        self._integrals, self.pairs = integrals, pairs
        near, ratio, rate = integrals.scaled_points, integrals.ratio, _rate(integrals)
        self._middle, self._rate = midpoints(integrals, pairs), rate
        self._height = float(((2.0 + ratio) / (4.0 + ratio)) ** (0.5 * near.shape[1]))
        self._towards = _sections(2.0 * rate, self._middle, near)
        lone = integrals.lone_factor(2)
        self._inner = self._height * _sections((3.0 + ratio) * rate, near, near) * (lone[:, None] * lone)

    def gram(self) -> Array:
        return self._height * _sections(4.0 * self._rate, self._middle, self._middle)

    def embed(self, B: Array) -> Array:
        return namespace(B).einsum("np,np->n", self._towards @ (B * self._inner), self._towards)

    def weighted_mass(self, c: Array) -> Array:
        return ((self._towards.T * c) @ self._towards) * self._inner

    def contracted(self, c: Array) -> Array:
        return ((self._towards * c) @ self._inner) * self._towards

    def enclosures(self) -> ProbeEnclosures:
        raise NotImplementedError("The whole distance is proved without its probes.")


def midpoints(integrals: GaussianIntegrals, pairs: Array) -> Array:
    """Those of pairs of support points, in the integrals' units."""
    near = integrals.scaled_points
    return (near[pairs[:, 0]] + near[pairs[:, 1]]) / 2


def midpoint_kernel(integrals: GaussianIntegrals) -> Gaussian:
    """⟨ψ, ψ'⟩ over the largest, as a function of the midpoints."""
    return Gaussian(sigma=float(0.5 / np.sqrt(_rate(integrals))))


def _rate(integrals: GaussianIntegrals) -> float:
    """1/(tσ²)."""
    return integrals.rate / ((2.0 + integrals.ratio) * (4.0 + integrals.ratio))


def _sections(rate: float, X: Array, Y: Array) -> Array:
    """exp(-rate ‖x - y‖²)."""
    return as_double(Gaussian(sigma=float(1.0 / np.sqrt(rate)))(X, Y))
