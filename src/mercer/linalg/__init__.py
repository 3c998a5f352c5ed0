"""Loops of linear algebra on operators: factorisations and eigenproblems, no problem of ours."""

from mercer.linalg.definiteness import Definiteness, prove_definiteness
from mercer.linalg.eigen import leading_eigenpairs, least_eigenvalue
from mercer.linalg.factorize import factorize
from mercer.linalg.greedy_cholesky import greedy_cholesky
from mercer.linalg.nystrom import nystrom, nystrom_completion
from mercer.linalg.pivoted_cholesky import rp_cholesky

__all__ = [
    "Definiteness",
    "factorize",
    "greedy_cholesky",
    "leading_eigenpairs",
    "least_eigenvalue",
    "nystrom",
    "nystrom_completion",
    "prove_definiteness",
    "rp_cholesky",
]
