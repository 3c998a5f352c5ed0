"""Nyström completion of a matrix from some of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, as_double, is_tensor, like, namespace, unique
from mercer.backends.rounding import unit_of
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
    index = _checked_landmarks(landmarks, gram)
    columns = as_double(gram.block(slice(None), index))
    values, vectors = positive_eigenpairs(columns[index], 2 * unit_of(gram.dtype))
    if not values.shape[0]:
        raise ValueError("The kernel vanishes on every landmark: choose others.")
    factor = columns @ (vectors / namespace(values).sqrt(values))
    return LowRankOperator(factor, landmarks=index)


def _checked_landmarks(landmarks: Any, gram: LinearMap) -> Array:
    """The indices in ascending order, each once, in the library of the map."""
    n = gram.shape[0]
    index = landmarks if is_tensor(landmarks) else np.asarray(landmarks)
    xp = namespace(index)
    index = xp.reshape(index, (-1,)) if index.ndim == 0 else index
    if xp.isdtype(index.dtype, "bool"):
        if tuple(index.shape) != (n,):
            raise ValueError(f"A mask of landmarks must have {n} entries, not {tuple(index.shape)}.")
        index = xp.nonzero(index)[0]
    if index.ndim != 1 or index.shape[0] == 0 or not xp.isdtype(index.dtype, "integral"):
        raise ValueError("landmarks must be a non-empty list of whole numbers, or a mask.")
    if int(index.min()) < -n or int(index.max()) >= n:
        raise ValueError(f"landmarks must lie between 0 and {n - 1}.")
    index = index % n
    return like(index[unique(index)[0]], gram.reference)
