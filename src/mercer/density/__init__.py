"""Probability densities that are kernel sums of squares."""

from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.sos import SumOfSquaresDensity
from mercer.density.tabulated import TabulatedDensity

__all__ = ["GaussianSquares", "SumOfSquaresDensity", "TabulatedDensity"]
