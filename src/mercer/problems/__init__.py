"""Objectives, constraints, residuals and gradients. No loops."""

from mercer.problems.discrepancy import Discrepancy
from mercer.problems.elliptope import Elliptope, ProductBudgetError

__all__ = ["Discrepancy", "Elliptope", "ProductBudgetError"]
