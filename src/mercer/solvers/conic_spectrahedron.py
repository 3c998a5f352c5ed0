"""The programme on the spectrahedron by a conic solver: an independent answer for small problems."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from mercer.problems.sum_of_squares import SumOfSquares

Array = np.ndarray[Any, np.dtype[Any]]

LARGEST = 40


def conic_spectrahedron(problem: SumOfSquares) -> Array:
    """A factor F of the minimiser C = F Fᵀ, by an interior-point method through the optional package cvxpy.

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
    """
    s = problem.dimension
    if s > LARGEST:
        raise ValueError(f"solver='conic' takes matrices of order {LARGEST} at most, not {s}: use solver='auto'.")
    try:
        cvxpy: Any = importlib.import_module("cvxpy")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("solver='conic' needs cvxpy: pip install 'mercer[conic]'.") from None
    pairs = problem.embed_pairs(np.eye(s))
    i, j = np.triu_indices(s)
    columns = np.zeros((problem.goal.size, s * s))
    columns[:, i * s + j] = pairs
    columns[:, j * s + i] += np.where(i == j, 0.0, 1.0) * pairs
    C = cvxpy.Variable((s, s), PSD=True)
    misfit = cvxpy.sum_squares(columns @ cvxpy.vec(C, order="C") - problem.goal)
    programme = cvxpy.Problem(cvxpy.Minimize(misfit + cvxpy.trace(problem.penalty @ C)), [cvxpy.trace(C) == 1])
    programme.solve(solver=cvxpy.CLARABEL)
    if C.value is None:
        raise ArithmeticError(f"The conic solver ended with the status {programme.status!r}: use solver='auto'.")
    values, vectors = np.linalg.eigh((C.value + C.value.T) / 2)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(factor / np.linalg.norm(factor))
