"""Probability densities that are kernel sums of squares."""

from mercer.density.sos import SumOfSquaresDensity

__all__ = ["SumOfSquaresDensity"]
