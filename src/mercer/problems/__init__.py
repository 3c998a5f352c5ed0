"""Objectives, constraints, residuals and gradients. No loops."""

from mercer.problems.discrepancy import Discrepancy, SparseMeasure, TraceProblem
from mercer.problems.elliptope import DenseElliptope, Elliptope
from mercer.problems.problem import Problem, ProductBudgetError
from mercer.problems.squares_likelihood import SquaresLikelihood
from mercer.problems.sum_of_squares import SumOfSquares
from mercer.problems.unfolding import Unfolding

__all__ = [
    "DenseElliptope",
    "Discrepancy",
    "Elliptope",
    "Problem",
    "ProductBudgetError",
    "SparseMeasure",
    "SquaresLikelihood",
    "SumOfSquares",
    "TraceProblem",
    "Unfolding",
]
