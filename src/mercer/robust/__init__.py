"""Regression and classification against the worst distribution of an MMD ball, and the worst expectation in it."""

from mercer.robust.classifier import RobustKernelClassifier
from mercer.robust.regressor import RobustKernelRegressor
from mercer.robust.ridge import RobustKernelRidge
from mercer.robust.worst_case import WorstCase, worst_case_expectation

__all__ = [
    "RobustKernelClassifier",
    "RobustKernelRegressor",
    "RobustKernelRidge",
    "WorstCase",
    "worst_case_expectation",
]
