"""Whether the matrix of a discrepancy is positive semi-definite, proved.

Squares of a kernel that is known to be positive semi-definite are (Schur's product theorem). Of a matrix that somebody
gives nothing is known, and the discrepancy of an indefinite one has no least value worth the name. So the matrix is
factored: with κ² = diag S, C = Diag(κ)⁻¹ S Diag(κ)⁻¹ has a unit diagonal, and a Cholesky factorisation of C + cI that
runs to completion proves S + c Diag(κ²) ≽ 0, its rounding counted (:mod:`mercer.certificates.factorisation`). It is S
that is asked for, not the kernel: K ∘ K can be positive semi-definite where K is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, is_tensor, like, namespace
from mercer.backends.ordering import places
from mercer.backends.rounding import UNIT, EntryError
from mercer.certificates.factorisation import bound_largest_eigenvalue, estimate_largest_eigenvalue
from mercer.operators import GramOperator, LinearMap
from mercer.operators.gram_sum import GramSum

_LARGEST = 8000  # points: some seconds of factorisation
_COPIES = 4  # of the matrix, that a factorisation needs at a time
_ROUNDED = 1e-5  # of the unit diagonal: a matrix computed in single precision may have such a negative eigenvalue


@dataclass(frozen=True)
class SquareDefiniteness:
    """S + defect·Diag(S) ≽ 0, proved; :class:`mercer.linalg.Definiteness` is about multiples of the identity.

    Attributes
    ----------
    defect : float
        Zero for a kernel that is known to be positive semi-definite; at rounding level for a matrix that is.
    asymmetry : float
        |Sᵢⱼ - Sⱼᵢ| ≤ asymmetry·√(Sᵢᵢ Sⱼⱼ).
    n_columns : int
        Columns of S that the proof formed.
    """

    defect: float
    asymmetry: float = 0.0
    n_columns: int = 0


def prove_square_definite(squared: LinearMap, points: Array | None = None) -> SquareDefiniteness | None:
    """Prove that S, or its block of some points, is positive semi-definite but for rounding.

    Parameters
    ----------
    squared : LinearMap
        S, n × n, symmetric and without negative entries.
    points : array of int of shape (m,), optional
        The rows and columns of a block; all of them if left out.

    Returns
    -------
    SquareDefiniteness or None
        None where the proof would exceed the memory limit, or 8000 points.

    Raises
    ------
    ValueError
        If the least eigenvalue is negative beyond what rounding explains, or an entry is negative.

    Notes
    -----
    Cost: nothing for a kernel that is known to be positive semi-definite, else m² entries, m³/3 flops and 4 m² doubles.
    """
    if isinstance(squared, GramSum) and squared.positive_definite:
        return SquareDefiniteness(0.0)
    known = isinstance(squared, GramOperator) and squared.kernel.properties.positive_definite is True
    if known and squared.nonnegative:  # type: ignore[attr-defined]
        return SquareDefiniteness(0.0)
    which = places(squared.shape[0], squared.reference) if points is None else points
    size = int(which.shape[0])
    if size > _LARGEST or _COPIES * 8 * size**2 > get_config().memory_bytes:
        return None
    return _factored(squared, which)


def entry_error_of(squared: LinearMap) -> EntryError:
    """How far the entries of S are from the squared kernel at the points; a map that is no kernel's is what it is."""
    return squared.entry_error if isinstance(squared, GramOperator | GramSum) else EntryError(0.0)


def _factored(squared: LinearMap, which: Array) -> SquareDefiniteness:
    block, size = as_double(squared.block(which, which)), int(which.shape[0])
    if (block < 0).any():
        raise ValueError("The matrix of a discrepancy has a negative entry: it must be that of a squared kernel.")
    roots = block.diagonal() ** 0.5
    if not (roots > 0).all():
        raise ValueError("The matrix of a discrepancy has a zero on its diagonal: leave such points out.")
    block /= roots[:, None]
    block /= roots
    asymmetry = _symmetrised(block)
    error = entry_error_of(squared)
    width = float(namespace(block).sum(block, axis=1).max()) if size else 0.0
    formed = (error.relative + 8 * UNIT) * width + error.scaled * size
    block *= -1.0
    defect = bound_largest_eigenvalue(block, 0.0) + 1.01 * formed
    if defect > max(_ROUNDED, 2 * formed):
        raise ValueError(_refusal(squared, -_largest(block), size))
    return SquareDefiniteness(max(defect, 0.0), asymmetry, size)


def _symmetrised(block: Array) -> float:
    """Replace a matrix by its symmetric part; returns the largest difference between two entries that should agree."""
    if is_tensor(block):
        worst = float(abs(block - block.T).max()) if block.shape[0] else 0.0
        block += block.T.clone()
        block *= 0.5
        return 1.01 * worst
    worst = 0.0
    for k in range(block.shape[0]):
        row, column = block[k, k:].copy(), block[k:, k].copy()
        worst = max(worst, float(np.max(np.abs(row - column))))
        block[k, k:] = block[k:, k] = 0.5 * (row + column)
    return 1.01 * worst


def _largest(matrix: Array) -> float:
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    return estimate_largest_eigenvalue(matrix, like(start, matrix))


def _refusal(squared: LinearMap, least: float, size: int) -> str:
    name = f"{squared.kernel!r}" if isinstance(squared, GramOperator) else "the discrepancy"
    return (
        f"The matrix of {name} on these {size} points, scaled to a unit diagonal, has an eigenvalue of {least:.3g}: "
        "the squared kernel must be positive semi-definite, or the discrepancy has no least value. Set the negative "
        "eigenvalues of the kernel matrix to zero, or choose another kernel."
    )
