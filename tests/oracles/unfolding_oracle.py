"""Maximum variance unfolding by a conic solver, as the programme is written down: all of B, centred, no factor."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np
from scipy.linalg import null_space


def largest_variance(pairs, lower, upper, masses):
    """max Σ mᵢ Bᵢᵢ with Σ mᵢ yᵢ = 0, B ≽ 0 and lo ≤ Bᵢᵢ + Bⱼⱼ - 2Bᵢⱼ ≤ hi."""
    Q = null_space(np.asarray(masses)[None, :])  # B m = 0 for B = QCQᵀ: as a constraint it would leave no interior
    C = cvxpy.Variable((Q.shape[1], Q.shape[1]), PSD=True)
    differences = np.array([Q[i] - Q[j] for i, j in pairs]) / np.sqrt(upper)[:, None]  # in units of the bounds
    squares = cvxpy.sum(cvxpy.multiply(differences @ C, differences), axis=1)
    constraints = [squares <= 1]
    if np.any(lower > 0):
        constraints.append(squares >= lower / upper)
    pulled = Q.T @ (np.asarray(masses)[:, None] * Q)
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(pulled @ C)), constraints)
    with warnings.catch_warnings():  # narrow bounds leave it short of its own tolerance, and close enough for ours
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        problem.solve(solver=cvxpy.CLARABEL)
    return float(problem.value)
