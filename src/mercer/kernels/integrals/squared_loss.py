"""Integrals of the squared loss (f(x) - y)² against products of Gaussian sections of the pair z = (x, y) (SOS 18).

Let k(x, x') = exp(-‖x-x'‖²/σ²), κ(y, y') = exp(-(y-y')²/τ²) and kκ the kernel of pairs, with support ζ_p = (ξ_p, η_p).
For f = Σ_a α_a k(·, ξ_a) the loss of a density k_zᵀ B k_z is Tr(B M), and M is a polynomial of α in closed form:

    M_pq = Σ_ab α_a α_b ∫k_a k_b k_p k_q dx · ∫κ_p κ_q dy  -  2 Σ_a α_a ∫k_a k_p k_q dx · ∫y κ_p κ_q dy
           + ∫k_p k_q dx · ∫y² κ_p κ_q dy

A product of n Gaussians integrates to (πσ²/n)^{d/2} Π_{i<j} exp(-‖ξ_i - ξ_j‖²/(nσ²)): a product over pairs, as in SOS
Lemma 4 for n = 2 and 3. In y, κ_p κ_q is a Gaussian of variance τ²/4 around (η_p + η_q)/2, which gives its moments.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, final

import numpy as np

from mercer.backends.arrays import Array, as_double, double, is_tensor, like, namespace, to_numpy, upper_triangle
from mercer.backends.symmetric_entries import SymmetricEntries


class PairSupport(NamedTuple):
    """Support points (ξ_p, η_p) of shapes (m, d) and (m,), and the bandwidths σ and τ."""

    inputs: Array
    targets: Array
    sigma: float
    target_sigma: float

    @property
    def size(self) -> int:
        """m."""
        return int(self.inputs.shape[0])

    @property
    def stretch(self) -> float:
        """σ/τ: (x, y σ/τ) has one bandwidth for all coordinates."""
        return self.sigma / self.target_sigma


class SquaredLosses(Protocol):
    """∫ (f - y)² e eᵀ dz as a polynomial of β, f = βᵀu; matrices of order s are vectors of ``entries``."""

    entries: SymmetricEntries
    constant: Array

    def values(self, beta: Array) -> Array:
        """The integrals for one function, of shape (s(s+1)/2,)."""

    def derivatives(self, beta: Array) -> tuple[Array, Array]:
        """These, and their derivatives by β, of shape (l, s(s+1)/2)."""

    def curvature(self, C: Array) -> Array:
        """∫ u uᵀ p_C for a vector of entries, of shape (l, l)."""

    def slope(self, C: Array) -> Array:
        """∫ y u p_C, of shape (l,)."""


@final
class SquaredLossIntegrals:
    """The matrices of the squared loss in two bases: e = Tᵀk_z of the densities, u = Uᵀk_x of the functions f = βᵀu.

    With them ∫ (f - y)² e eᵀ dz = Σ_jk β_j β_k Q_jk - 2 Σ_j β_j R_j + S, divided by (πσ²/2)^{d/2} (πτ²/2)^{1/2}, the
    scale of :class:`mercer.kernels.integrals.gaussian.GaussianIntegrals`. Matrices of order s are held as vectors of
    :class:`~mercer.backends.symmetric_entries.SymmetricEntries`.

    Parameters
    ----------
    support : PairSupport
        ξ and η, σ and τ.
    density_basis, function_basis : arrays of shape (r, s) and (m, l)
        T and U.
    chosen : array of int of shape (r,), optional
        The points of the support that densities are made of; all where they are left out.
    dtype : floating-point type, default=numpy.float64
        In which the integrals are formed; they are kept in double precision. Of tensors too, which go through NumPy
        where it is not the double precision.

    Attributes
    ----------
    quadratic : array of shape (l, l, s(s+1)/2)
        Q.
    linear : array of shape (l, s(s+1)/2)
        R.
    constant : array of shape (s(s+1)/2,)
        S.
    entries : SymmetricEntries
        Of matrices of order s.

    Notes
    -----
    Cost: O(r² l (m² + l s)) once. Memory: l² s²/2 numbers. Rounding errors of the entries are multiplied by
    ‖T‖²‖U‖²: bases that divide by small eigenvalues lose as many digits. ``numpy.longdouble`` has three more on most
    machines, and no BLAS: 4·10⁻⁹ l r² m² seconds.
    """

    def __init__(
        self,
        support: PairSupport,
        density_basis: Array,
        function_basis: Array,
        dtype: Any = np.float64,
        *,
        chosen: Array | None = None,
    ) -> None:
        given: tuple[Array, ...] = (support.inputs, support.targets, density_basis, function_basis)
        if dtype != np.float64:  # which NumPy alone has
            given = tuple(to_numpy(values) for values in given)
            chosen = None if chosen is None else to_numpy(chosen)
        number = float if is_tensor(given[0]) else dtype
        xi, eta, T, U = (as_double(v) if is_tensor(v) else v.astype(dtype) for v in given)
        xp, d = namespace(xi), xi.shape[1]
        pack = SymmetricEntries(T.shape[1], T).pack
        variance = number(support.target_sigma) ** 2
        distances = squared_distances(xi) / number(support.sigma) ** 2
        eta, near = (eta, distances) if chosen is None else (eta[chosen], distances[chosen])
        among = near if chosen is None else near[:, chosen]
        overlap = xp.exp(-squared_distances(eta[:, None]) / (2 * variance))  # ∫κ_p κ_q dy, scaled
        middle = (eta[:, None] + eta) / 2
        constant = pack(T.T @ (xp.exp(-among / 2) * overlap * (middle**2 + variance / 4)) @ T)
        first, triples = number(volume(3, d)) * xp.exp(-among / 3) * overlap * middle, xp.exp(-near / 3)
        linear = pack(_moved(xp.stack([first * ((triples * u) @ triples.T) for u in U.T]), T))
        front = xp.exp(-among / 4) * overlap * number(volume(4, d))
        quadratic = _fourfold(xp.exp(-distances / 4), xp.exp(-near / 4), front, T, U)
        self.entries = SymmetricEntries(T.shape[1], density_basis)
        self.constant, self.linear, self.quadratic = (
            like(as_double(values), density_basis) for values in (constant, linear, quadratic)
        )

    def values(self, beta: Array) -> Array:
        """Σ_jk β_j β_k Q_jk - 2 Σ_j β_j R_j + S."""
        return self._polynomial(beta, self._bilinear(beta))

    def derivatives(self, beta: Array) -> tuple[Array, Array]:
        """The same, and its derivatives by β."""
        products = self._bilinear(beta)
        return self._polynomial(beta, products), 2 * (products - self.linear)

    def curvature(self, C: Array) -> Array:
        """Σ_pq C_pq Q_jk,pq."""
        return self.quadratic @ C

    def slope(self, C: Array) -> Array:
        """Σ_pq C_pq R_j,pq."""
        return self.linear @ C

    def _bilinear(self, beta: Array) -> Array:
        return namespace(beta).tensordot(beta, self.quadratic, axes=1)

    def _polynomial(self, beta: Array, products: Array) -> Array:
        return beta @ (products - 2 * self.linear) + self.constant


def volume(n: int, d: int) -> Any:
    """(2/n)^{d/2}: the volume of a product of n Gaussians, relative to that of two."""
    return (np.longdouble(2) / n) ** (np.longdouble(d) / 2)


def squared_distances(points: Array) -> Array:
    """‖p - q‖² for all pairs of rows, in the precision of the points, a row at a time: columns may be many."""
    xp = namespace(points)
    return xp.stack([xp.sum((points - row) ** 2, axis=1) for row in points])


def _fourfold(g: Array, near: Array, front: Array, T: Array, U: Array) -> Array:
    """Q in double precision, a row j at a time: front_pq Σ_ab U_aj U_bk g_ab (g_pa g_pb)(g_qa g_qb), in the basis T."""
    xp, r, l = namespace(g), near.shape[0], U.shape[1]
    p, q = upper_triangle(r, g)
    entries = SymmetricEntries(T.shape[1], T)
    both = near[p] * near[q]
    front = front[p, q]
    out = xp.empty((l, l, entries.scale.shape[0]), dtype=double(g), device=g.device)
    for j in range(l):
        values = front[:, None] * ((both * ((both * U[:, j]) @ g)) @ U)
        matrices = xp.empty((l, r, r), dtype=g.dtype, device=g.device)
        matrices[:, p, q] = matrices[:, q, p] = values.T
        out[j] = entries.pack(_moved(matrices, T))
    return (out + xp.permute_dims(out, (1, 0, 2))) / 2


def _moved(matrices: Array, T: Array) -> Array:
    """TᵀMT of each matrix."""
    return T.T @ (matrices @ T)
