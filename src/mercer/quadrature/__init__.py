"""Sparse quadratures of integral operators: the estimator, merging, approximate eigenpairs."""

from mercer.quadrature.discrepancy import squared_kernel_discrepancy
from mercer.quadrature.eigenpairs import ApproximateEigenpairs, approximate_eigenpairs
from mercer.quadrature.features import NystromFeatures
from mercer.quadrature.merging import MergeSequence, merge

__all__ = [
    "ApproximateEigenpairs",
    "MergeSequence",
    "NystromFeatures",
    "approximate_eigenpairs",
    "merge",
    "squared_kernel_discrepancy",
]
