"""Leading eigenpairs of a symmetric map."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from mercer.operators import LinearMap

Array = np.ndarray[Any, np.dtype[Any]]
_DENSE_UP_TO = 1500


def leading_eigenpairs(
    map_: LinearMap, count: int, *, rng: np.random.Generator, tolerance: float = 0.0
) -> tuple[Array, Array]:
    """The ``count`` largest eigenvalues, in falling order, with orthonormal eigenvectors of deterministic sign.

    A dense decomposition for small n, Lanczos (ARPACK) from a random start otherwise.
    """
    n = map_.shape[0]
    if n <= _DENSE_UP_TO or count > n // 4:
        values, vectors = _dense(map_.to_dense(), count)
    else:
        start = rng.standard_normal(n)
        values, vectors = eigsh(map_.as_scipy(), k=count, which="LA", v0=start, tol=tolerance)
    order = np.argsort(values)[::-1]
    vectors = vectors[:, order]
    return values[order], vectors * deterministic_signs(vectors).astype(vectors.dtype)


def _dense(matrix: Array, count: int) -> tuple[Array, Array]:
    """The ``count`` largest eigenpairs of a dense matrix; all of them first where LAPACK loses count of a cluster."""
    n = matrix.shape[0]
    try:
        values, vectors = eigh(matrix, subset_by_index=[n - count, n - 1])
    except np.linalg.LinAlgError:
        values, vectors = np.empty(0), matrix
    if values.size < count:
        values, vectors = eigh(matrix)
    return values[-count:], vectors[:, -count:]


def positive_eigenpairs(matrix: Array, rounding: float) -> tuple[Array, Array]:
    """The eigenpairs of a dense positive semi-definite matrix, in falling order, without those at rounding level.

    Parameters
    ----------
    matrix : array of shape (m, m)
        Symmetric.
    rounding : float
        The relative rounding error of its entries; eigenvalues below m · rounding · λ₁ are dropped.

    Returns
    -------
    values : array of shape (r,)
        The positive eigenvalues; none where the matrix vanishes.
    vectors : array of shape (m, r)
        Orthonormal eigenvectors.
    """
    values, vectors = eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > max(values[0], 0.0) * values.size * rounding
    return values[kept], vectors[:, kept]


def deterministic_signs(vectors: Array) -> Array:
    """The sign of each column's largest entry in absolute value: multiplying by it makes that entry positive."""
    if vectors.shape[0] == 0:
        return np.ones(vectors.shape[1])
    largest = np.argmax(np.abs(vectors), axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def least_eigenvalue(map_: LinearMap, *, rng: np.random.Generator) -> float:
    """The least eigenvalue: exact for small n, by Lanczos (ARPACK) to three digits otherwise."""
    n = map_.shape[0]
    if n <= _DENSE_UP_TO:
        return float(eigh(map_.to_dense(), eigvals_only=True, subset_by_index=[0, 0], driver="evx")[0])
    start = rng.standard_normal(n)
    return float(eigsh(map_.as_scipy(), k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False)[0])
