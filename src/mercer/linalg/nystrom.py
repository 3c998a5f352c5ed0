"""Nyström completion of a matrix from some of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, as_double, eigvalsh, is_tensor, like, namespace, unique
from mercer.backends.rounding import unit_of
from mercer.kernels.checks import as_points, same_library
from mercer.kernels.symmetry import symmetrised
from mercer.linalg.eigen import positive_eigenpairs
from mercer.linalg.tall import square_row_lengths, tall_product
from mercer.operators import LinearMap, LowRankOperator

_LARGEST = 1e150  # of a factor, whose squares are entries
_INDEFINITE = 1e-10  # of the largest eigenvalue: what the rounding of anyone's block may be


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
        F Fᵀ with F = K[:, I] K[I, I]^(-1/2), and the diagonal of K - F Fᵀ in ``residual_diagonal``.

    Notes
    -----
    Cost: n·m kernel evaluations and n·m² flops for m landmarks; memory: n·m.
    """
    if not gram.symmetric:
        raise ValueError("nystrom completes a symmetric map.")
    index = _checked_landmarks(landmarks, gram)
    columns = as_double(gram.block(slice(None), index))
    factor = _factor(columns[index], columns, 2 * unit_of(gram.dtype))
    left = namespace(factor).clip(as_double(gram.diagonal()) - square_row_lengths(factor), 0.0, None)
    return LowRankOperator(factor, landmarks=index, residual_diagonal=left)


def nystrom_completion(A: Any, B: Any) -> LowRankOperator:
    """Complete K = [A B; Bᵀ C] from the blocks A and B alone, C = BᵀA⁺B (RKHS (130), (137)).

    It is the completion of least trace that is positive semi-definite. It is K itself if, and only if, A has the rank
    of K: that K is of rank m at most, as the survey's Lemma 17 asks, is not enough.

    Parameters
    ----------
    A : array of shape (m, m)
        The block of the landmarks, symmetric positive semi-definite. Eigenvalues at rounding level are not inverted.
    B : array of shape (m, n - m)
        The block between the landmarks and the others, whose columns lie in the range of A, as those of a psd K do.

    Returns
    -------
    LowRankOperator
        F Fᵀ of n rows, the landmarks first, F = [A B]ᵀ A^(-1/2).

    Notes
    -----
    Cost: n·m² flops; memory: n·m. The n × n matrix is not formed.

    Examples
    --------
    >>> from mercer import nystrom_completion
    >>> nystrom_completion([[4.0]], [[2.0, 6.0]]).to_dense()
    array([[4., 2., 6.],
           [2., 1., 3.],
           [6., 3., 9.]])
    """
    A, B = same_library(A, B)
    A, B = as_double(as_points(A, "A")), as_double(as_points(B, "B"))
    if A.shape[0] != A.shape[1] or B.shape[0] != A.shape[0]:
        shapes = f"{A.shape[0]} × {A.shape[1]} and {B.shape[0]} × {B.shape[1]}"
        raise ValueError(f"A and B are {shapes}: A must be square, and B must have as many rows.")
    A = symmetrised(A)
    least, largest = (float(value) for value in eigvalsh(A)[[0, -1]])
    if least < -_INDEFINITE * max(largest, 0.0):
        raise ValueError(f"A has the eigenvalue {least:.3g}, but the block of a psd matrix has none below zero.")
    xp = namespace(A)
    factor = _factor(A, xp.concat([A, B.T], axis=0), 2 * unit_of(A.dtype))
    if float(xp.max(xp.abs(factor))) > _LARGEST:
        raise ValueError("A and B make entries beyond double precision: divide both by the largest entry.")
    return LowRankOperator(factor, landmarks=xp.arange(A.shape[0], device=A.device))


def _factor(block: Array, columns: Array, rounding: float) -> Array:
    """The columns times the pseudo-inverse root of their block."""
    values, vectors = positive_eigenpairs(block, rounding)
    if not values.shape[0]:
        raise ValueError("The kernel vanishes on every landmark: choose others.")
    return tall_product(columns, vectors / namespace(values).sqrt(values))


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
