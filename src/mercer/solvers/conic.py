"""The semi-definite programme itself, by a conic solver: an independent answer for small problems."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, like, to_numpy
from mercer.backends.rounding import TINY
from mercer.linalg.tall import first_axis
from mercer.problems import Elliptope

LARGEST = 200
_INTERIOR_UP_TO = 40  # an interior-point step factors a matrix of order n²/2


def solve_conic(problem: Elliptope) -> Array:
    """Maximise ⟨J, B⟩ over B ≽ 0 with unit diagonal, and factor B.

    The whole matrix is handed to a conic solver through the optional package cvxpy: an interior-point method up to 40
    rows, operator splitting beyond, accurate to about 1e-8 and 1e-6. It knows NumPy's arrays only: a matrix of tensors
    goes there as a whole before it starts, and the factor comes back.

    Returns
    -------
    array of shape (n, r)
        Rows of unit length whose inner products are about B; directions at the solver's accuracy are dropped.

    Raises
    ------
    ValueError
        If the problem has more than 200 rows.
    ModuleNotFoundError
        If cvxpy is not installed.
    ArithmeticError
        If the conic solver fails, or ends without a solution.
    """
    n = problem.size
    if n > LARGEST:
        raise ValueError(f"solver='conic' takes at most {LARGEST} points, not {n}: use solver='auto'.")
    try:
        cvxpy: Any = importlib.import_module("cvxpy")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("solver='conic' needs cvxpy: pip install 'mercer[conic]'.") from None
    J = to_numpy(problem.curvature(like(np.eye(n), problem.scale))).astype(np.float64)
    J = (J + J.T) / (2 * max(float(np.max(np.abs(J))), TINY))
    B = cvxpy.Variable((n, n), PSD=True)
    objective = cvxpy.sum(cvxpy.multiply(J, B))
    programme = cvxpy.Problem(cvxpy.Maximize(objective), [B[i, i] == 1 for i in range(n)])
    try:
        if n <= _INTERIOR_UP_TO:
            programme.solve(solver=cvxpy.CLARABEL)
        else:
            programme.solve(solver=cvxpy.SCS, eps_abs=1e-8, eps_rel=1e-8, max_iters=20_000)
    except (cvxpy.error.SolverError, np.linalg.LinAlgError) as error:
        raise ArithmeticError(f"The conic solver failed ({error}): use solver='interior-point' or 'auto'.") from error
    if B.value is None or not np.all(np.isfinite(B.value)):
        raise ArithmeticError(
            f"The conic solver ended without a solution, with the status {programme.status!r}: use "
            "solver='interior-point' or 'auto'."
        )
    return _factor(problem, B.value)


def _factor(problem: Elliptope, B: Array) -> Array:
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    kept = values > 1e-5 * values[-1]
    factor = like(vectors[:, kept] * np.sqrt(values[kept]), problem.scale)
    return problem.project(factor, first_axis(factor.shape[1], factor))
