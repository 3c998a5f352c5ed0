"""Regression against the worst distribution of an MMD ball, and the worst expectation of any function in it."""

from mercer.robust.ridge import RobustKernelRidge
from mercer.robust.worst_case import WorstCase, worst_case_expectation

__all__ = ["RobustKernelRidge", "WorstCase", "worst_case_expectation"]
