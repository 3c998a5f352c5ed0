"""Sparse quadratures of integral operators: the estimator, merging, approximate eigenpairs."""

from mercer.quadrature.discrepancy import squared_kernel_discrepancy
from mercer.quadrature.eigenpairs import ApproximateEigenpairs, approximate_eigenpairs
from mercer.quadrature.elimination import EliminationSequence, eliminate
from mercer.quadrature.features import NystromFeatures
from mercer.quadrature.merging import MergeSequence, merge
from mercer.quadrature.path import PathPoint, QuadraturePath
from mercer.quadrature.sparsifier import QuadratureSparsifier

__all__ = [
    "ApproximateEigenpairs",
    "EliminationSequence",
    "MergeSequence",
    "NystromFeatures",
    "PathPoint",
    "QuadraturePath",
    "QuadratureSparsifier",
    "approximate_eigenpairs",
    "eliminate",
    "merge",
    "squared_kernel_discrepancy",
]
