"""The kernelised programme handed to a conic solver, in numbers of its own making: an independent optimum."""

from __future__ import annotations

import cvxpy
import numpy as np


def conic_optimum(K: np.ndarray, weights: np.ndarray, d: np.ndarray, strength: float) -> float:
    """max Tr((W K̄ W - λ n² K⁻¹) B') / n² with W = Diag(w), n = Σw, by Clarabel in the coordinates of K's root."""
    n = weights.sum()
    p = weights / n
    values, vectors = np.linalg.eigh(K)
    root = (vectors * np.sqrt(values)) @ vectors.T  # symmetric, where the library takes a triangular factor
    u = K @ p / np.sqrt(p @ K @ p)
    A = p[:, None] * (K - np.outer(u, u)) * p
    C = root @ A @ root
    B = cvxpy.Variable(K.shape, PSD=True)
    value = cvxpy.trace(((C + C.T) / 2) @ B) - strength * cvxpy.trace(B)
    constraints = [row @ B @ row == length for row, length in zip(root, d, strict=True)]
    programme = cvxpy.Problem(cvxpy.Maximize(value), constraints)
    programme.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(programme.value)
