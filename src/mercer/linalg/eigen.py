"""Leading eigenpairs of a symmetric map."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, cast, is_tensor, like, namespace
from mercer.backends.rounding import unit_of
from mercer.linalg.lanczos import BlockLanczos
from mercer.operators import LinearMap
from mercer.progress import warn_user

_DENSE_UP_TO = 1500
_DENSE_AT_LAST = 6000  # where ARPACK gives up
_RESTARTS = 60
_DEPTH = 60  # of our own Lanczos, where a dense decomposition is too large
_CLOSE = 1e-6
_CONVERGED = 64  # units of rounding: what a residual of Lanczos comes down to
_BLOCK = 4  # columns a step of Lanczos on tensors
_SHARE = 1 / 4  # of the memory limit, for its space


class EigenvalueWarning(UserWarning):
    """Eigenvectors were not found to all their digits."""


def leading_eigenpairs(
    map_: LinearMap,
    count: int,
    *,
    rng: np.random.Generator,
    tolerance: float = 0.0,
    start: Array | None = None,
    more: int = 0,
) -> tuple[Array, Array]:
    """The ``count`` largest eigenvalues, in falling order, with orthonormal eigenvectors of deterministic sign.

    A dense decomposition for small n, Lanczos from a random start otherwise: ARPACK's on NumPy arrays, our own with
    restarts on tensors, which ARPACK does not take. A ``start``, more columns than are wanted that span about the
    leading space, is taken by our own, whose steps are products with a block of so many columns. Where that does not
    converge, as with eigenvalues that lie close together, a dense decomposition up to n = 6000 that fits the memory
    allowed; beyond, block Lanczos of fixed depth, and a warning if what it finds is not exact to 1e-6.

    Up to ``more`` further pairs come after the others where they cost nothing, as good as they happen to be.
    """
    n, xp = map_.shape[0], namespace(map_.reference)
    if (n <= _DENSE_UP_TO and start is None) or count > n // 4:
        values, vectors = _dense(map_.to_dense(), min(count + more, n))
    else:
        values, vectors = _iterative(map_, count, rng, tolerance, start, more)
    order = xp.flip(xp.argsort(values), axis=0)
    vectors = vectors[:, order]
    return values[order], vectors * cast(deterministic_signs(vectors), vectors.dtype)


def _iterative(
    map_: LinearMap, count: int, rng: np.random.Generator, tolerance: float, start: Array | None, more: int
) -> tuple[Array, Array]:
    n = map_.shape[0]
    if start is None and not is_tensor(map_.reference):
        found = _arpack(map_, count, rng, tolerance)
    else:
        found = _restarted(map_, count, rng, tolerance, start, more)
    if found is not None:
        return found
    if n <= _DENSE_AT_LAST and 3 * 8 * n * n <= get_config().memory_bytes:
        return _dense(map_.to_dense(), count)
    space = _space(map_, rng, block=count + 2)
    space.extend(_DEPTH)
    values, vectors, product = space.ritz_pairs(count)
    xp = namespace(values)
    residual = float(xp.max(xp.linalg.vector_norm(product - values * vectors, axis=0)))
    if residual > max(_CLOSE, 2 * _CONVERGED * unit_of(map_.dtype)) * abs(float(values[0])):
        warn_user(
            f"The leading eigenvalues lie so close together that {space.n_columns} products tell them apart to "
            f"{residual / abs(float(values[0])):.0e} only: the eigenvectors are a basis of about the right space. "
            "Choose another n_components, or a kernel of another bandwidth.",
            EigenvalueWarning,
        )
    return values, vectors


def _arpack(map_: LinearMap, count: int, rng: np.random.Generator, tolerance: float) -> tuple[Array, Array] | None:
    n = map_.shape[0]
    columns = min(n, max(40, 3 * count))
    start = rng.standard_normal(n)
    try:
        return eigsh(map_.as_scipy(), k=count, which="LA", v0=start, tol=tolerance, ncv=columns, maxiter=_RESTARTS)
    except ArpackError:
        return None


def _restarted(
    map_: LinearMap, count: int, rng: np.random.Generator, tolerance: float, start: Array | None, more: int
) -> tuple[Array, Array] | None:
    """Block Lanczos with thick restarts (Wu, Simon 2000): memory of n × max(48, 3 count) doubles; None if it is slow.

    A restart keeps the leading Ritz vectors, half of the space, and the block that comes next: what was known of the
    map on them is known still, so that nothing is multiplied twice. From a start the space is looked at after every
    step, for few are needed, and may be six of its blocks larger.
    """
    block, room = (_BLOCK, 2 * _BLOCK) if start is None else (start.shape[1], 8 * start.shape[1])
    allowed = get_config().share(_SHARE) // (8 * map_.shape[0])
    most = min(map_.shape[0], max(40, 3 * count) + room, max(allowed, count + 3 * block))
    space = _space(map_, rng, block=block, start=start)
    exact = max(tolerance, _CONVERGED * unit_of(map_.dtype))
    for _ in range(_RESTARTS):
        while space.vectors.shape[1] + block <= most and not space.closed:
            space.extend(space.depth + 1)
            if start is not None and _converged(space, count, exact):
                break
        values, vectors, _ = space.ritz_pairs(count + more)
        if values.shape[0] < count:
            return None  # the starts see fewer eigenvectors than are wanted
        if space.closed or _converged(space, count, exact):
            return cast(values, map_.dtype), cast(vectors, map_.dtype)
        space.restart(max(count + block, most // 2))
    return None


def _converged(space: BlockLanczos, count: int, exact: float) -> bool:
    """Whether the leading Ritz pairs are exact to this part of the largest value."""
    values = space.ritz_values()
    return values.shape[0] >= count and bool(
        float(space.residual_norms()[:count].max()) <= exact * abs(float(values[0]))
    )


def _space(
    map_: LinearMap, rng: np.random.Generator, *, block: int, sign: float = 1.0, start: Array | None = None
) -> BlockLanczos:
    """A Krylov space of the map, or of its negative, in double precision and in the map's library."""
    basis = like(np.zeros((map_.shape[0], 0)), map_.reference)
    return BlockLanczos(lambda V: sign * as_double(map_ @ V), basis, rng, block=block, start=start)


def _dense(matrix: Array, count: int) -> tuple[Array, Array]:
    """The ``count`` largest eigenpairs of a dense matrix; all of them first where LAPACK loses count of a cluster."""
    n = matrix.shape[0]
    if is_tensor(matrix):
        values, vectors = namespace(matrix).linalg.eigh(matrix)
        return values[n - count :], vectors[:, n - count :]
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
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix) if is_tensor(matrix) else eigh(matrix)
    values, vectors = xp.flip(values, axis=0), xp.flip(vectors, axis=1)
    kept = values > max(float(values[0]), 0.0) * values.shape[0] * rounding
    return values[kept], vectors[:, kept]


def deterministic_signs(vectors: Array) -> Array:
    """The sign of each column's largest entry in absolute value: multiplying by it makes that entry positive."""
    xp = namespace(vectors)
    columns = xp.arange(vectors.shape[1], device=vectors.device)
    if vectors.shape[0] == 0:
        return xp.ones(vectors.shape[1], dtype=xp.float64, device=vectors.device)
    largest = xp.argmax(xp.abs(vectors), axis=0)
    return 1.0 - 2.0 * xp.astype(vectors[largest, columns] < 0, xp.float64)


def least_eigenvalue(map_: LinearMap, *, rng: np.random.Generator) -> float:
    """The least eigenvalue: exact for small n, by block Lanczos of fixed depth, hence from above, otherwise.

    An estimate; what is proved of the least eigenvalue is in :mod:`mercer.linalg.definiteness`.
    """
    if map_.shape[0] <= _DENSE_UP_TO:
        return least_of(map_.to_dense())
    space = _space(map_, rng, block=4, sign=-1.0)
    space.extend(_DEPTH)
    return -float(space.ritz_values()[0])


def least_of(matrix: Array) -> float:
    """The least eigenvalue of a dense symmetric matrix, to rounding."""
    return _one_of(matrix, 0)


def largest_of(matrix: Array) -> float:
    """The largest eigenvalue of a dense symmetric matrix, to rounding."""
    return _one_of(matrix, matrix.shape[0] - 1)


def _one_of(matrix: Array, index: int) -> float:
    if is_tensor(matrix):
        return float(namespace(matrix).linalg.eigvalsh(matrix)[index])
    try:  # LAPACK's default, evr, may fail
        return float(eigh(matrix, eigvals_only=True, subset_by_index=[index, index], driver="evx")[0])
    except np.linalg.LinAlgError:  # bisection gives up on some matrices with an eigenvalue of high multiplicity
        return float(np.linalg.eigvalsh(matrix)[index])
