"""Optimality conditions of the embedding as numbers that vanish at an optimum. They need G = JH and no more products.

With Ξ = Diag(s) H the embedding, s = √d, row i of ÃΞ is Gᵢ/sᵢ and (ÃB)ᵢᵢ = zᵢ = Gᵢ · Hᵢ. Rows with dᵢ = 0 take no part.
"""

from __future__ import annotations

import math
from typing import Any

from scipy.linalg import eigh

from mercer.backends.arrays import Array, is_tensor, namespace
from mercer.linalg.tall import row_lengths


def optimality_residuals(s: Array, H: Array, G: Array, z: Array) -> dict[str, Any]:
    """All of them, under the names that a certificate has for them."""
    return {
        "complementarity": complementarity(s, H, G, z),
        "mean_value_residual": mean_value_residual(s, H, G, z),
        "conformality_residual": conformality_residual(H, G),
    }


def complementarity(s: Array, H: Array, G: Array, z: Array) -> float:
    """‖LB‖ relative to ‖ÃB‖ with L = Diag(z/d) - Ã, both taken as ‖·Ξ‖ in the Frobenius norm (PSD17 (8))."""
    norm = namespace(G).linalg.vector_norm
    size = float(norm(G / s[:, None]))
    return float(norm((z[:, None] * H - G) / s[:, None])) / size if size > 0 else 0.0


def mean_value_residual(s: Array, H: Array, G: Array, z: Array) -> float:
    """How far the mean value property fails: Ξᵢ = dᵢ/(ÃB)ᵢᵢ · (ÃΞ)ᵢ at an optimum (PSD17 (11)).

    maxᵢ ‖Ξᵢ - dᵢ/(ÃB)ᵢᵢ (ÃΞ)ᵢ‖ / maxᵢ ‖Ξᵢ‖ = maxᵢ sᵢ ‖Hᵢ - Gᵢ/zᵢ‖ / maxᵢ sᵢ; infinite where some zᵢ = 0.
    """
    if not z.shape[0]:
        return 0.0
    if (z == 0).any():
        return float("inf")
    return float((s * row_lengths(H - G / z[:, None])).max()) / float(s.max())


def conformality_residual(H: Array, G: Array) -> float:
    """How far multiplication by Ã is from preserving angles, as it does at an optimum (PSD17 §2.3).

    The root mean square, over all pairs (i, j), of cos∠((ÃΞ)ᵢ, (ÃΞ)ⱼ) - cos∠(Ξᵢ, Ξⱼ). With unit rows Ĝᵢ = Gᵢ/‖Gᵢ‖ this
    is ‖ĜĜᵀ - HHᵀ‖_F / n, found in O(n r²) without cancellation from U = ĜO - H and W = ĜO + H, O the rotation that
    brings Ĝ nearest to H: ĜĜᵀ - HHᵀ = ½(UWᵀ + WUᵀ). A row that Ã maps to zero has no angle and counts as Ĝᵢ = 0.
    """
    xp, n = namespace(G), H.shape[0]
    lengths = row_lengths(G)[:, None]
    unit = xp.where(lengths > 0, G / xp.where(lengths > 0, lengths, 1.0), 0.0)
    left, _, right = xp.linalg.svd(unit.T @ H)
    turned = unit @ (left @ right)
    U, W = turned - H, turned + H
    across = U.T @ W
    squared = float(xp.sum((U.T @ U) * (W.T @ W)) + xp.sum(across * across.T)) / 2
    return math.sqrt(max(squared, 0.0)) / n if n else 0.0


def least_on_space(Q: Array, inside: Array, ratio: Array, root: Array, count: int) -> Array:
    """Estimates, from above, of the least eigenvalues of the slack L = Diag(z/d) - Ã from a space near its kernel.

    With M = DÃD, D = Diag(root), L acts on vectors D Q u as D⁻¹(Diag(ratio) - M)Q u, ratio = root² z/d: Rayleigh–Ritz
    on the space D Q needs QᵀMQ (``inside``) alone, and no further product.
    """
    slack = Q.T @ (ratio[:, None] * Q) - inside
    xp, scaled = namespace(Q), root[:, None] * Q
    _, sizes, Vt = xp.linalg.svd(scaled, full_matrices=False)
    mix = Vt[sizes > 1e-6 * sizes[0]].T / sizes[sizes > 1e-6 * sizes[0]]
    reduced = mix.T @ slack @ mix
    reduced = (reduced + reduced.T) / 2
    values = xp.linalg.eigvalsh(reduced) if is_tensor(reduced) else eigh(reduced, eigvals_only=True)
    return values[:count]
