"""The integrals of :mod:`mercer.kernels.integrals.squared_loss` for densities on some points, evaluated when asked.

Of l functions on m points and densities on r of them there are l² r²/2 integrals of four sections. They need not be
stored: with g = exp(-‖ξ - ξ'‖²/(4σ²)) the integral of sections a, b of f and p, q of a density is, up to a constant,

    g_pq g_ab h_a h_b,   h_a = g_pa g_qa

so for one function all r(r+1)/2 pairs (p, q) are a product of their rows h with the m × m matrix α_a α_b g_ab, and for
one density the m × m matrix of all (a, b) is a product of these rows with themselves.
"""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array, as_double, namespace, upper_triangle
from mercer.backends.symmetric_entries import SymmetricEntries
from mercer.kernels.integrals.squared_loss import PairSupport, squared_distances, volume


@final
class SquaredLossForms:
    """The squared loss in two bases, e = Tᵀk_z of densities on some points of the support and u = Uᵀk_x of functions.

    What it answers is what :class:`~mercer.kernels.integrals.squared_loss.SquaredLossIntegrals` does, whose parameters
    and scale it has.

    Parameters
    ----------
    support : PairSupport
        ξ and η, σ and τ.
    chosen : array of int of shape (r,)
        The points of the support that densities are made of.
    density_basis, function_basis : arrays of shape (r, s) and (m, l)
        T and U.

    Notes
    -----
    Cost: r² m (m + l)/2 operations for a function with its derivatives, r² m²/2 + m² l for a density. Memory: r² m/2
    numbers, and (r² + s²) l for the derivatives. Rounding is that of the stored integrals.
    """

    def __init__(self, support: PairSupport, chosen: Array, density_basis: Array, function_basis: Array) -> None:
        xi, eta, d = as_double(support.inputs), as_double(support.targets)[chosen], support.inputs.shape[1]
        xp, self._T, self._U = namespace(xi), as_double(density_basis), as_double(function_basis)
        self.entries = SymmetricEntries(self._T.shape[1], self._T)
        self._rows = SymmetricEntries(self._T.shape[0], self._T)
        p, q = upper_triangle(self._T.shape[0], xi)
        distances = squared_distances(xi) / float(support.sigma) ** 2
        variance = float(support.target_sigma) ** 2
        near = distances[chosen]
        among = near[p, chosen[q]]
        overlap = xp.exp(-((eta[p] - eta[q]) ** 2) / (2 * variance))  # ∫κ_p κ_q dy, scaled
        middle = (eta[p] + eta[q]) / 2
        self._kernel = xp.exp(-distances / 4)
        self._both = xp.exp(-(near[p] + near[q]) / 4)
        self._front = float(volume(4, d)) * xp.exp(-among / 4) * overlap
        first = float(volume(3, d)) * xp.exp(-among / 3) * overlap * middle
        self._linear = self._packed((first[:, None] * (xp.exp(-(near[p] + near[q]) / 3) @ self._U)).T)
        self.constant = self._packed(xp.exp(-among / 2) * overlap * (middle**2 + variance / 4))

    def values(self, beta: Array) -> Array:
        """N(β)."""
        alpha = self._U @ beta
        squares = self._front * namespace(beta).sum(self._both * (self._weighted(alpha) * alpha), axis=1)
        return self._packed(squares) - 2 * (beta @ self._linear) + self.constant

    def derivatives(self, beta: Array) -> tuple[Array, Array]:
        """N(β), and its derivatives by β."""
        pairs = self._front[:, None] * ((self._both * self._weighted(self._U @ beta)) @ self._U)
        products = self._packed(pairs.T)
        return beta @ (products - 2 * self._linear) + self.constant, 2 * (products - self._linear)

    def curvature(self, C: Array) -> Array:
        """∫ u uᵀ p_C."""
        B = self._T @ self.entries.unpack(C) @ self._T.T
        weights = self._front * self._rows.pack(B) * self._rows.scale
        inner = self._kernel * (self._both.T @ (weights[:, None] * self._both))
        return self._U.T @ (inner @ self._U)

    def slope(self, C: Array) -> Array:
        """∫ y u p_C."""
        return self._linear @ C

    def _weighted(self, alpha: Array) -> Array:
        """Σ_b h_b α_b g_ab for every pair and a."""
        return (self._both * alpha) @ self._kernel

    def _packed(self, pairs: Array) -> Array:
        """TᵀMT, as entries, of matrices M given by their pairs, of shape (..., r(r+1)/2)."""
        matrices = self._rows.unpack(pairs * self._rows.scale)
        return self.entries.pack(self._T.T @ (matrices @ self._T))
