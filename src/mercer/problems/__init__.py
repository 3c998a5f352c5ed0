"""Objectives, constraints, residuals and gradients. No loops."""

from mercer.problems.discrepancy import Discrepancy
from mercer.problems.elliptope import Elliptope, ProductBudgetError
from mercer.problems.sum_of_squares import SumOfSquares

__all__ = ["Discrepancy", "Elliptope", "ProductBudgetError", "SumOfSquares"]
