"""Semi-definite programmes handed to a conic solver by the optional package cvxpy: independent answers, in NumPy."""

from __future__ import annotations

import importlib
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, like, namespace, to_numpy
from mercer.backends.rounding import TINY
from mercer.backends.symmetric_entries import SymmetricEntries
from mercer.linalg.tall import first_axis
from mercer.problems import Elliptope, SumOfSquares
from mercer.problems.elliptope import INDEFINITE
from mercer.problems.squares_likelihood import LOGARITHMS, SquaresLikelihood
from mercer.problems.sum_of_squares import TRACE
from mercer.solvers.run import Goal, Method, Report, refuse_misfit
from mercer.solvers.solution import Status
from mercer.solvers.spectrahedron.accelerated import value_and_gap

LARGEST_ELLIPTOPE, LARGEST_SPECTRAHEDRON = 200, 40
_INTERIOR_UP_TO = 40  # an interior-point step factors a matrix of order n²/2
_LOOSEST = 1e-8
_OF_LOGARITHMS = 1e-7  # where exponential cones still converge
_VANISHES = 1e-5  # eigenvalues relative to the largest that are the solver's inaccuracy


def solve_conic(problem: Elliptope) -> Array:
    """Maximise ⟨J, B⟩ over B ≽ 0 with unit diagonal, and factor B.

    An interior-point method up to 40 rows, operator splitting beyond, accurate to about 1e-8 and 1e-6.

    Returns
    -------
    array of shape (n, r)
        Rows of unit length whose inner products are about B; directions at the solver's accuracy are dropped.

    Raises
    ------
    ValueError
        If the problem has more than 200 rows, or a linear term.
    ModuleNotFoundError
        If cvxpy is not installed.
    ArithmeticError
        If the conic solver fails, or ends without a solution.
    """
    n = problem.size
    refuse_misfit(problem, "conic", frozenset({INDEFINITE}))
    if n > LARGEST_ELLIPTOPE:
        raise ValueError(f"solver='conic' takes at most {LARGEST_ELLIPTOPE} points, not {n}: use solver='auto'.")
    cvxpy = conic_package()
    J = to_numpy(problem.curvature(like(np.eye(n), problem.scale))).astype(np.float64)
    J = (J + J.T) / (2 * max(float(np.max(np.abs(J))), TINY))
    B = cvxpy.Variable((n, n), PSD=True)
    programme = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(J, B))), [B[i, i] == 1 for i in range(n)])
    options = {"solver": cvxpy.SCS, "eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 20_000}
    if n <= _INTERIOR_UP_TO:
        options = {"solver": cvxpy.CLARABEL}
    values, vectors = symmetric_solution(programme, B, "solver='interior-point' or 'auto'", options)
    kept = values > _VANISHES * values[-1]
    factor = like(vectors[:, kept] * np.sqrt(values[kept]), problem.scale)
    return problem.project(factor, first_axis(factor.shape[1], factor))


def conic_spectrahedron(problem: SumOfSquares, *, tol: float = _LOOSEST) -> Array:
    """Minimise over the spectrahedron by an interior-point method, and factor C = F Fᵀ.

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
        If the conic solver fails, or ends without a solution.
    """
    s = problem.dimension
    if s > LARGEST_SPECTRAHEDRON:
        raise ValueError(
            f"solver='conic' takes matrices of order {LARGEST_SPECTRAHEDRON} at most, not {s}: use solver='auto'."
        )
    cvxpy, entries = conic_package(), SymmetricEntries(s)
    identity = namespace(problem.basis).eye(s, dtype=problem.basis.dtype, device=problem.basis.device)
    pairs, goal, penalty = (to_numpy(part) for part in (problem.embed_pairs(identity), problem.goal, problem.linear))
    columns = entries.unpack(pairs * entries.scale).reshape(goal.size, s * s)  # ⟨A, C⟩ entry by entry
    C = cvxpy.Variable((s, s), PSD=True)
    misfit = cvxpy.sum_squares(columns @ cvxpy.vec(C, order="C") - goal)
    programme = cvxpy.Problem(cvxpy.Minimize(misfit + cvxpy.trace(penalty @ C)), [cvxpy.trace(C) == 1])
    gap = min(tol, _LOOSEST)
    options = {"solver": cvxpy.CLARABEL, "tol_gap_abs": gap * problem.scale, "tol_gap_rel": gap}
    values, vectors = symmetric_solution(programme, C, "solver='auto'", options)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return like(factor / np.linalg.norm(factor), problem.basis)


def conic_likelihood(problem: SquaresLikelihood) -> Array:
    """Minimise a likelihood over the spectrahedron by an interior-point method with logarithms, and factor C = F Fᵀ.

    Accurate to about 1e-7 nats a point; see :func:`conic_spectrahedron` for what is raised.
    """
    s, cvxpy = problem.dimension, conic_package()
    if s > LARGEST_SPECTRAHEDRON:
        raise ValueError(
            f"solver='conic' takes matrices of order {LARGEST_SPECTRAHEDRON} at most, not {s}: use solver='auto'."
        )
    rows, shares, penalty = (
        to_numpy(part) for part in (problem.observed.rows, problem.observed.shares, problem.penalty)
    )
    C = cvxpy.Variable((s, s), PSD=True)
    densities = cvxpy.sum(cvxpy.multiply(rows @ C, rows), axis=1)
    objective = cvxpy.trace(penalty @ C) - cvxpy.sum(cvxpy.multiply(shares, cvxpy.log(densities)))
    programme = cvxpy.Problem(cvxpy.Minimize(objective), [cvxpy.trace(C) == 1])
    options = {"solver": cvxpy.CLARABEL} | dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), _OF_LOGARITHMS)
    values, vectors = symmetric_solution(programme, C, "solver='auto'", options)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return like(factor / np.linalg.norm(factor), problem.basis)


@final
class Conic(Method[SumOfSquares | SquaresLikelihood, Array]):
    """The conic solver as a method of one step, which is the answer; points are factors of length one."""

    name = "conic"
    phase = "conic solver"
    handles = frozenset({TRACE, LOGARITHMS})

    def __init__(self, goal: Goal) -> None:
        self._tol = goal.tol

    def start(self, problem: SumOfSquares | SquaresLikelihood, point: Any) -> Report[Array]:
        """Solve; no first point is of use."""
        if isinstance(problem, SquaresLikelihood):
            factor = conic_likelihood(problem)
        else:
            factor = conic_spectrahedron(problem, tol=self._tol)
        return Report(factor, *value_and_gap(problem, factor), size=factor.shape[1], steps=1, status=Status.CONVERGED)

    def step(self, problem: SumOfSquares | SquaresLikelihood, most: int) -> None:
        """There is nothing left to do."""


def conic_package() -> Any:
    """The package cvxpy, or a sentence where it is not installed."""
    try:
        return importlib.import_module("cvxpy")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("solver='conic' needs cvxpy: pip install 'mercer[conic]'.") from None


def symmetric_solution(programme: Any, variable: Any, advice: str, options: dict[str, Any]) -> tuple[Array, Array]:
    """Solve a programme for a symmetric matrix; its eigenvalues in rising order, and its eigenvectors."""
    try:
        programme.solve(**options)
    except (conic_package().error.SolverError, ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
        raise ArithmeticError(f"The conic solver failed ({error}): use {advice}.") from error
    if variable.value is None or not np.all(np.isfinite(variable.value)):
        raise ArithmeticError(
            f"The conic solver ended without a solution, with the status {programme.status!r}: use {advice}."
        )
    return np.linalg.eigh((variable.value + variable.value.T) / 2)
