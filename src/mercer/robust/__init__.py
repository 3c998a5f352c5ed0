"""Regression and classification against the worst distribution of an MMD ball."""

from mercer.robust.classifier import RobustKernelClassifier
from mercer.robust.regressor import RobustKernelRegressor
from mercer.robust.ridge import RobustKernelRidge

__all__ = ["RobustKernelClassifier", "RobustKernelRegressor", "RobustKernelRidge"]
