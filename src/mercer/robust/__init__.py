"""Regression against the worst distribution of an MMD ball, and the worst expectation of any function in it."""

"""Regression and classification against the worst distribution of an MMD ball."""

from mercer.robust.classifier import RobustKernelClassifier
from mercer.robust.regressor import RobustKernelRegressor
from mercer.robust.ridge import RobustKernelRidge
from mercer.robust.worst_case import WorstCase, worst_case_expectation

__all__ = ["RobustKernelRidge", "WorstCase", "worst_case_expectation"]
__all__ = ["RobustKernelClassifier", "RobustKernelRegressor", "RobustKernelRidge"]
