"""Loops of linear algebra on operators: factorisations and eigenproblems, no problem of ours."""

from mercer.linalg.eigen import leading_eigenpairs, least_eigenvalue
from mercer.linalg.nystrom import nystrom
from mercer.linalg.pivoted_cholesky import rp_cholesky

__all__ = ["leading_eigenpairs", "least_eigenvalue", "nystrom", "rp_cholesky"]
