"""Loops of linear algebra on operators: factorisations and eigenproblems, no problem of ours."""

from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.nystrom import nystrom
from mercer.linalg.pivoted_cholesky import rp_cholesky

__all__ = ["leading_eigenpairs", "nystrom", "rp_cholesky"]
