"""The programme on the spectrahedron by a conic solver: an independent answer for small problems."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, like, namespace, to_numpy
from mercer.problems.sum_of_squares import SumOfSquares
from mercer.solvers.solution import Status
from mercer.solvers.spectrahedron.accelerated import Callback, SpectrahedronResult, SpectrahedronStep, oracle_gap

LARGEST = 40
_LOOSEST = 1e-8


def conic_spectrahedron(problem: SumOfSquares, *, tol: float = _LOOSEST) -> Array:
    """A factor F of the minimiser C = F Fᵀ, by an interior-point method through the optional package cvxpy.

    The programme goes to it, and its answer comes back, through NumPy.

    Parameters
    ----------
    problem : SumOfSquares
        What to minimise.
    tol : float, default=1e-8
        The relative gap that the conic solver is asked for, at most its own 1e-8.

    Returns
    -------
    array of shape (s, s)
        F with ‖F‖ = 1; the objective is accurate to about 1e-8.

    Raises
    ------
    ValueError
        If C has more than 40 rows: A is handed over as a matrix of s(s+1)/2 columns.
    ModuleNotFoundError
        If cvxpy is not installed.
    ArithmeticError
        If the conic solver fails.
    """
    s = problem.dimension
    if s > LARGEST:
        raise ValueError(f"solver='conic' takes matrices of order {LARGEST} at most, not {s}: use solver='auto'.")
    try:
        cvxpy: Any = importlib.import_module("cvxpy")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("solver='conic' needs cvxpy: pip install 'mercer[conic]'.") from None
    identity = namespace(problem.basis).eye(s, dtype=problem.basis.dtype, device=problem.basis.device)
    pairs, goal, penalty = (to_numpy(part) for part in (problem.embed_pairs(identity), problem.goal, problem.penalty))
    i, j = np.triu_indices(s)
    columns = np.zeros((goal.size, s * s))
    columns[:, i * s + j] = pairs
    columns[:, j * s + i] += np.where(i == j, 0.0, 1.0) * pairs
    C = cvxpy.Variable((s, s), PSD=True)
    misfit = cvxpy.sum_squares(columns @ cvxpy.vec(C, order="C") - goal)
    programme = cvxpy.Problem(cvxpy.Minimize(misfit + cvxpy.trace(penalty @ C)), [cvxpy.trace(C) == 1])
    gap = min(tol, _LOOSEST)
    try:
        programme.solve(solver=cvxpy.CLARABEL, tol_gap_abs=gap * problem.scale, tol_gap_rel=gap)
        values, vectors = np.linalg.eigh((C.value + C.value.T) / 2)
    except (cvxpy.error.SolverError, ArithmeticError, AttributeError, TypeError, ValueError, np.linalg.LinAlgError):
        # there is no value, or one that is no number
        raise ArithmeticError(
            f"The conic solver ended with the status {programme.status!r}: use solver='auto'."
        ) from None
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return like(factor / np.linalg.norm(factor), problem.basis)


def conic_result(problem: SumOfSquares, *, tol: float, callback: Callback | None = None) -> SpectrahedronResult:
    """The same with a history of one line, for a callback to see; a true value makes the status ``STOPPED``."""
    began = time.perf_counter()
    factor = conic_spectrahedron(problem, tol=tol)
    residual = problem.residual(factor)
    value = problem.value(factor, residual)
    gap = oracle_gap(problem.gradient(residual), factor, value)
    line = SpectrahedronStep(1, value, gap, factor.shape[1], time.perf_counter() - began)
    stopped = callback is not None and bool(callback(line))
    return SpectrahedronResult(factor, Status.STOPPED if stopped else Status.CONVERGED, (line,))
