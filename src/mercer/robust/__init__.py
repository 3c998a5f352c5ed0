"""Regression against the worst distribution of an MMD ball."""

from mercer.robust.ridge import RobustKernelRidge

__all__ = ["RobustKernelRidge"]
