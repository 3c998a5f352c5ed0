"""Probability densities that are kernel sums of squares."""

import importlib
from typing import Any

from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.sos import SumOfSquaresDensity
from mercer.density.tabulated import TabulatedDensity

__all__ = ["GaussianSquares", "SumOfSquaresDensity", "TabulatedDensity"]


def __getattr__(name: str) -> Any:
    if name == "RobustKernelRidge":  # lives in mercer.robust, which stands on this room
        return importlib.import_module("mercer.robust").RobustKernelRidge
    raise AttributeError(f"module 'mercer.density' has no attribute {name!r}")
