"""The kernelised programme handed to a conic solver, as a method of one step: an independent answer for few points."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.problems.kernelized import KernelizedProgramme
from mercer.solvers.conic import conic_package, symmetric_solution
from mercer.solvers.kernelized import HilbertPair
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

LARGEST = 60
_TOLERANCE = 1e-10


@final
class HilbertConic(Method[KernelizedProgramme, HilbertPair]):
    """Maximise ⟨C, B⟩ over B ≽ 0 with lᵢᵀBlᵢ = dᵢ by Clarabel, through cvxpy."""

    name = "conic"
    phase = "conic solver"

    def start(self, problem: KernelizedProgramme, point: Any) -> Report[HilbertPair]:
        """Solve; no first point is of use.

        Raises
        ------
        ValueError
            If there are more than 60 points.
        ModuleNotFoundError
            If cvxpy is not installed.
        ArithmeticError
            If the conic solver fails, or ends without a solution.
        """
        if problem.size > LARGEST:
            raise ValueError(
                f"solver='conic' takes at most {LARGEST} points, not {problem.size}: use solver='auto', or landmarks."
            )
        cvxpy, L, d = conic_package(), problem.factor, problem.prescribed
        unit = float(np.max(np.abs(problem.centred))) * problem.size  # so that the objective is near one
        C = L.T @ (problem.centred / unit) @ L - problem.regularization / unit * np.eye(problem.size)
        rows = L / np.sqrt(d)[:, None]
        B = cvxpy.Variable(C.shape, PSD=True)
        constraints = [row @ B @ row == 1 for row in rows]
        programme = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace((C + C.T) / 2 @ B)), constraints)
        options = {"solver": cvxpy.CLARABEL, "tol_gap_abs": _TOLERANCE, "tol_gap_rel": _TOLERANCE}
        values, vectors = symmetric_solution(programme, B, "solver='auto'", options)
        y = np.array([float(constraint.dual_value) for constraint in constraints]) * unit / d
        found = HilbertPair((vectors * np.maximum(values, 0.0)) @ vectors.T, y)
        objective = float(programme.value) * unit
        gap = abs(float(y @ d) - objective)
        return Report(found, objective, gap, size=problem.size, steps=1, status=Status.CONVERGED)

    def step(self, problem: KernelizedProgramme, most: int) -> None:
        """There is nothing left to do."""
