"""Objectives, constraints, residuals and gradients. No loops."""

from mercer.problems.elliptope import Elliptope, ProductBudgetError

__all__ = ["Elliptope", "ProductBudgetError"]
