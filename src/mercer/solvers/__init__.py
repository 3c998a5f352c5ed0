"""Loops. They see a problem, never data, kernels or estimators. One algorithm a file."""

from mercer.solvers.accelerated import AcceleratedPower
from mercer.solvers.loop import Method, maximise
from mercer.solvers.power import ProjectedPower
from mercer.solvers.result import Iteration, SolverResult, Status

__all__ = ["AcceleratedPower", "Iteration", "Method", "ProjectedPower", "SolverResult", "Status", "maximise"]
