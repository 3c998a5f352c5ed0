"""Optimality conditions of the embedding as numbers that vanish at an optimum. They need G = JH and no more products.

With Ξ = Diag(s) H the embedding, s = √d, row i of ÃΞ is Gᵢ/sᵢ and (ÃB)ᵢᵢ = zᵢ = Gᵢ · Hᵢ. Rows with dᵢ = 0 take no part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

Array = np.ndarray[Any, np.dtype[Any]]


def complementarity(s: Array, H: Array, G: Array, z: Array) -> float:
    """‖LB‖ relative to ‖ÃB‖ with L = Diag(z/d) - Ã, both taken as ‖·Ξ‖ in the Frobenius norm (PSD17 (8))."""
    size = float(np.linalg.norm(G / s[:, None]))
    return float(np.linalg.norm((z[:, None] * H - G) / s[:, None])) / size if size > 0 else 0.0


def mean_value_residual(s: Array, H: Array, G: Array, z: Array) -> float:
    """How far the mean value property fails: Ξᵢ = dᵢ/(ÃB)ᵢᵢ · (ÃΞ)ᵢ at an optimum (PSD17 (11)).

    maxᵢ ‖Ξᵢ - dᵢ/(ÃB)ᵢᵢ (ÃΞ)ᵢ‖ / maxᵢ ‖Ξᵢ‖ = maxᵢ sᵢ ‖Hᵢ - Gᵢ/zᵢ‖ / maxᵢ sᵢ; infinite where some zᵢ = 0.
    """
    if not z.size:
        return 0.0
    if np.any(z == 0):
        return float("inf")
    return float(np.max(s * np.linalg.norm(H - G / z[:, None], axis=1)) / np.max(s))


def conformality_residual(H: Array, G: Array) -> float:
    """How far multiplication by Ã is from preserving angles, as it does at an optimum (PSD17 §2.3).

    The root mean square, over all pairs (i, j), of cos∠((ÃΞ)ᵢ, (ÃΞ)ⱼ) - cos∠(Ξᵢ, Ξⱼ). With unit rows Ĝᵢ = Gᵢ/‖Gᵢ‖ this
    is ‖ĜĜᵀ - HHᵀ‖_F / n, found in O(n r²) without cancellation from U = ĜO - H and W = ĜO + H, O the rotation that
    brings Ĝ nearest to H: ĜĜᵀ - HHᵀ = ½(UWᵀ + WUᵀ). A row that Ã maps to zero has no angle and counts as Ĝᵢ = 0.
    """
    n = H.shape[0]
    lengths = np.linalg.norm(G, axis=1)[:, None]
    unit = np.divide(G, lengths, out=np.zeros_like(G), where=lengths > 0)
    left, _, right = np.linalg.svd(unit.T @ H)
    turned = unit @ (left @ right)
    U, W = turned - H, turned + H
    across = U.T @ W
    squared = (np.sum((U.T @ U) * (W.T @ W)) + np.sum(across * across.T)) / 2
    return float(np.sqrt(max(squared, 0.0))) / n if n else 0.0


def least_on_space(Q: Array, inside: Array, ratio: Array, root: Array, count: int) -> Array:
    """Estimates, from above, of the least eigenvalues of the slack L = Diag(z/d) - Ã from a space near its kernel.

    With M = DÃD, D = Diag(root), L acts on vectors D Q u as D⁻¹(Diag(ratio) - M)Q u, ratio = root² z/d: Rayleigh–Ritz
    on the space D Q needs QᵀMQ (``inside``) alone, and no further product.
    """
    slack = Q.T @ (ratio[:, None] * Q) - inside
    scaled = root[:, None] * Q
    _, sizes, Vt = np.linalg.svd(scaled, full_matrices=False)
    mix = Vt[sizes > 1e-6 * sizes[0]].T / sizes[sizes > 1e-6 * sizes[0]]
    reduced = mix.T @ slack @ mix
    return np.asarray(eigh((reduced + reduced.T) / 2, eigvals_only=True)[:count])
