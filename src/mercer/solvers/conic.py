"""The semi-definite programme itself, by an interior-point method: an independent answer for small problems."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mercer.problems import Elliptope
from mercer.solvers.result import Iteration, SolverResult, Status

Array = np.ndarray[Any, np.dtype[Any]]

LARGEST = 200


def solve_conic(problem: Elliptope) -> SolverResult:
    """Maximise ⟨J, B⟩ over B ≽ 0 with unit diagonal, and factor B.

    The whole matrix is handed to a conic solver through the optional package cvxpy: O(n³) a step with a large constant,
    some tens of steps, accurate to about 1e-8. Directions of B that the solver leaves at its own accuracy are dropped.

    Raises
    ------
    ValueError
        If the problem has more than 200 rows.
    ModuleNotFoundError
        If cvxpy is not installed.
    """
    n = problem.size
    if n > LARGEST:
        raise ValueError(f"solver='conic' takes at most {LARGEST} points, not {n}: use solver='auto'.")
    try:
        import cvxpy
    except ModuleNotFoundError:
        raise ModuleNotFoundError("solver='conic' needs cvxpy: pip install 'mercer[conic]'.") from None
    began = time.perf_counter()
    J = problem.curvature(np.eye(n, dtype=problem.operator.dtype)).astype(np.float64)
    J = (J + J.T) / 2
    size = max(float(np.max(np.abs(J))), np.finfo(np.float64).tiny)
    B = cvxpy.Variable((n, n), symmetric=True)
    programme = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace((J / size) @ B)), [B >> 0, cvxpy.diag(B) == 1])
    programme.solve(solver=cvxpy.CLARABEL)
    if B.value is None:
        raise ArithmeticError(f"The conic solver ended with the status {programme.status!r}: use solver='auto'.")
    H = _factor(problem, B.value)
    G = problem.apply(H)
    seconds = time.perf_counter() - began
    line = Iteration(0, problem.objective(H, G), problem.row_residual(H, G), problem.n_columns, seconds)
    return SolverResult(H, G, Status.CONVERGED, (line,))


def _factor(problem: Elliptope, B: Array) -> Array:
    """Rows of unit length whose inner products are about B."""
    values, vectors = np.linalg.eigh(B)
    kept = values > 1e-6 * values[-1]
    factor = vectors[:, kept] * np.sqrt(values[kept])
    return problem.project(factor, np.eye(1, factor.shape[1]).repeat(problem.size, axis=0))
