"""Probability densities that are kernel sums of squares."""

import importlib
from typing import Any

from mercer.density.convex_functional import ConvexFunctional
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.linear_functionals import CellMasses, EmbeddingValues, Expectations, LinearFunctionals, Moments
from mercer.density.optimal import OptimalDensity, optimal_density
from mercer.density.signed_normals import SignedNormals
from mercer.density.sos import SumOfSquaresDensity
from mercer.density.tabulated import TabulatedDensity

__all__ = [
    "CellMasses",
    "ConvexFunctional",
    "EmbeddingValues",
    "Expectations",
    "GaussianSquares",
    "LinearFunctionals",
    "Moments",
    "OptimalDensity",
    "SignedNormals",
    "SumOfSquaresDensity",
    "TabulatedDensity",
    "optimal_density",
]


def __getattr__(name: str) -> Any:
    if name == "RobustKernelRidge":  # lives in mercer.robust, which stands on this room
        return importlib.import_module("mercer.robust").RobustKernelRidge
    raise AttributeError(f"module 'mercer.density' has no attribute {name!r}")
