"""Leading eigenpairs of a symmetric map."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh

from mercer.backends import get_config
from mercer.linalg.lanczos import BlockLanczos
from mercer.operators import LinearMap

Array = np.ndarray[Any, np.dtype[Any]]
_DENSE_UP_TO = 1500
_DENSE_AT_LAST = 6000  # where ARPACK gives up
_RESTARTS = 60
_DEPTH = 60  # of our own Lanczos, where a dense decomposition is too large
_CLOSE = 1e-6


class EigenvalueWarning(UserWarning):
    """Eigenvectors were not found to all their digits."""


def leading_eigenpairs(
    map_: LinearMap, count: int, *, rng: np.random.Generator, tolerance: float = 0.0
) -> tuple[Array, Array]:
    """The ``count`` largest eigenvalues, in falling order, with orthonormal eigenvectors of deterministic sign.

    A dense decomposition for small n, Lanczos (ARPACK) from a random start otherwise. Where that does not converge, as
    with eigenvalues that lie close together, a dense decomposition up to n = 6000 that fits the memory allowed; beyond,
    block Lanczos of fixed depth, and a warning if what it finds is not exact to 1e-6.
    """
    n = map_.shape[0]
    if n <= _DENSE_UP_TO or count > n // 4:
        values, vectors = _dense(map_.to_dense(), count)
    else:
        values, vectors = _iterative(map_, count, rng, tolerance)
    order = np.argsort(values)[::-1]
    vectors = vectors[:, order]
    return values[order], vectors * deterministic_signs(vectors).astype(vectors.dtype)


def _iterative(map_: LinearMap, count: int, rng: np.random.Generator, tolerance: float) -> tuple[Array, Array]:
    n = map_.shape[0]
    columns = min(n, max(40, 3 * count))
    start = rng.standard_normal(n)
    try:
        return eigsh(map_.as_scipy(), k=count, which="LA", v0=start, tol=tolerance, ncv=columns, maxiter=_RESTARTS)
    except ArpackError:
        if n <= _DENSE_AT_LAST and 3 * 8 * n * n <= get_config().memory_bytes:
            return _dense(map_.to_dense(), count)
    space = BlockLanczos(lambda V: np.asarray(map_ @ V, np.float64), np.zeros((n, 0)), rng, block=count + 2)
    space.extend(_DEPTH)
    values, vectors, product = space.ritz_pairs(count)
    residual = float(np.max(np.linalg.norm(product - values * vectors, axis=0)))
    if residual > _CLOSE * abs(float(values[0])):
        warnings.warn(
            f"The leading eigenvalues lie so close together that {space.n_columns} products tell them apart to "
            f"{residual / abs(float(values[0])):.0e} only: the eigenvectors are a basis of about the right space.",
            EigenvalueWarning,
            stacklevel=4,
        )
    return values, vectors


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
    """The least eigenvalue: exact for small n, by block Lanczos of fixed depth, hence from above, otherwise.

    An estimate; what is proved of the least eigenvalue is in :mod:`mercer.linalg.definiteness`.
    """
    n = map_.shape[0]
    if n <= _DENSE_UP_TO:
        return float(eigh(map_.to_dense(), eigvals_only=True, subset_by_index=[0, 0], driver="evx")[0])
    space = BlockLanczos(lambda V: -np.asarray(map_ @ V, np.float64), np.zeros((n, 0)), rng, block=4)
    space.extend(_DEPTH)
    return -float(space.ritz_values()[0])
