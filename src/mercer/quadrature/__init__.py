"""Sparse quadratures of integral operators: the estimator, merging, approximate eigenpairs."""

from mercer.quadrature.eigenpairs import ApproximateEigenpairs, approximate_eigenpairs
from mercer.quadrature.features import NystromFeatures
from mercer.quadrature.path import PathPoint, QuadraturePath
from mercer.quadrature.sparsifier import QuadratureSparsifier
from mercer.quadrature.two_samples import squared_kernel_discrepancy
from mercer.solvers.measure.elimination import EliminationSequence, eliminate
from mercer.solvers.measure.merging import MergeSequence, merge

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
