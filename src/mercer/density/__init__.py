"""Probability densities that are kernel sums of squares, and regression against the worst of them."""

from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.robust_ridge import RobustKernelRidge
from mercer.density.sos import SumOfSquaresDensity
from mercer.density.tabulated import TabulatedDensity

__all__ = ["GaussianSquares", "RobustKernelRidge", "SumOfSquaresDensity", "TabulatedDensity"]
