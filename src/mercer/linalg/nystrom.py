"""Nyström completion of a matrix from some of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import LinearMap, LowRankOperator


def nystrom(gram: LinearMap, landmarks: Any) -> LowRankOperator:
    """Complete a positive semi-definite map from the columns of some landmarks: K[:, I] K[I, I]⁺ K[I, :].

    It agrees with K on the rows and columns of the landmarks, and everywhere if K[I, I] has the rank of K. Eigenvalues
    of K[I, I] at rounding level are dropped rather than inverted.

    Parameters
    ----------
    gram : LinearMap
        Symmetric positive semi-definite, n × n.
    landmarks : array of int
        Indices I, or a mask of length n.

    Returns
    -------
    LowRankOperator
        F Fᵀ with F = K[:, I] K[I, I]^(-1/2).

    Notes
    -----
    Cost: n·m kernel evaluations and n·m² flops for m landmarks; memory: n·m.
    """
    if not gram.symmetric:
        raise ValueError("nystrom completes a symmetric map.")
    index = np.atleast_1d(np.asarray(landmarks))
    if index.dtype == bool:
        if index.shape != (gram.shape[0],):
            raise ValueError(f"A mask of landmarks must have {gram.shape[0]} entries, not {index.shape}.")
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.size == 0 or index.dtype.kind not in "iu":
        raise ValueError("landmarks must be a non-empty list of whole numbers, or a mask.")
    if index.min() < -gram.shape[0] or index.max() >= gram.shape[0]:
        raise ValueError(f"landmarks must lie between 0 and {gram.shape[0] - 1}.")
    index = np.unique(index % gram.shape[0])
    columns = gram.block(slice(None), index).astype(np.float64)
    values, vectors = positive_eigenpairs(columns[index], float(np.finfo(gram.dtype).eps))
    if not values.size:
        raise ValueError("The kernel vanishes on every landmark: choose others.")
    factor = columns @ (vectors / np.sqrt(values))
    return LowRankOperator(factor, landmarks=index)
