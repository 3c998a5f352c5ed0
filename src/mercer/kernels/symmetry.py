"""Kernel matrices that are given: whether they are symmetric, entry by entry, and the symmetric matrix they mean.

Two entries that ought to be equal differ by rounding if their difference is small beside the entries themselves, or
beside √(k(x, x) k(y, y)), which bounds them in a positive semi-definite matrix and is the scale of the rounding errors
of an inner product. The largest entry of the matrix says nothing of the others and takes no part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, dtype_name, is_sparse_tensor, namespace
from mercer.backends.chunks import ENTRY_ROWS, row_chunks

_ASYMMETRY = {"float64": 1e-10, "float32": 1e-4}  # some 10³ to 10⁵ units: kernels amplify the errors of distances


class _Entries(NamedTuple):
    """Entries stored: their rows, columns and values, and the values across the diagonal from them."""

    rows: Array
    columns: Array
    values: Array
    across: Array


def symmetrised(matrix: Any) -> Any:
    """The matrix itself if it is symmetric to the last bit, (K + Kᵀ)/2 if rounding alone made it differ.

    Parameters
    ----------
    matrix : array, tensor, sparse CSR array or sparse CSR tensor of shape (n, n)
        Finite float32 or float64. Of a sparse one the entries stored are looked at, and no others.

    Raises
    ------
    ValueError
        If two entries differ by more than rounding; the worst pair is named.
    """
    entries = _stored(matrix)
    differ, excess, pair = _dense(matrix) if entries is None else _sparse(entries, matrix.shape[0])
    if excess > _ASYMMETRY[dtype_name(matrix.dtype)]:
        i, j = pair
        ours, theirs = _two(matrix, i, j)
        raise ValueError(
            f"A precomputed kernel must be symmetric: row {i}, column {j} holds {ours:.6g}, but row {j}, "
            f"column {i} holds {theirs:.6g}. Pass (K + K.T) / 2 if rounding made them differ."
        )
    return _mean(matrix) if differ else matrix


def _dense(matrix: Array) -> tuple[bool, float, tuple[int, int]]:
    """Whether any two entries differ, the largest difference in their own scale, and where; by blocks of rows."""
    xp = namespace(matrix)
    scales = xp.sqrt(abs(as_double(matrix.diagonal())))
    differ, worst, pair = False, 0.0, (0, 0)
    for rows in row_chunks(matrix.shape[0], ENTRY_ROWS):
        ours, theirs = matrix[rows, rows.start :], matrix[rows.start :, rows].T
        if (ours == theirs).all():
            continue
        differ = True
        relative = _relative(ours, theirs, scales[rows][:, None] * scales[rows.start :])
        row, column = divmod(int(xp.argmax(relative)), relative.shape[1])
        if relative[row, column] > worst:
            worst, pair = float(relative[row, column]), (rows.start + row, rows.start + column)
    return differ, worst, pair


def _sparse(entries: _Entries, n: int) -> tuple[bool, float, tuple[int, int]]:
    """As of a dense matrix, for the entries stored."""
    rows, columns, values, theirs = entries
    xp = namespace(values)
    apart = values != theirs
    if not apart.any():
        return False, 0.0, (0, 0)
    loops = rows == columns
    scales = xp.zeros(n, dtype=xp.float64, device=values.device)
    scales[rows[loops]] = xp.sqrt(abs(as_double(values[loops])))
    rows, columns = rows[apart], columns[apart]
    relative = _relative(values[apart], theirs[apart], scales[rows] * scales[columns])
    worst = int(xp.argmax(relative))
    return True, float(relative[worst]), (int(rows[worst]), int(columns[worst]))


def _stored(matrix: Any) -> _Entries | None:
    """The entries of a sparse matrix, row by row; None of a dense one."""
    if is_sparse_tensor(matrix):
        ours = matrix.to_sparse_coo().coalesce()
        across = ours.transpose(0, 1).coalesce()
        (rows, columns), values, theirs = ours.indices(), ours.values(), across.values()
        same = ours.indices().shape == across.indices().shape and bool((ours.indices() == across.indices()).all())
    elif hasattr(matrix, "toarray"):
        across = matrix.T.tocsr()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        columns, values, theirs = matrix.indices, matrix.data, across.data
        same = np.array_equal(matrix.indptr, across.indptr) and np.array_equal(columns, across.indices)
    else:
        return None
    return _Entries(rows, columns, values, theirs if same else _sought(rows, columns, values, matrix.shape[0]))


def _sought(rows: Array, columns: Array, values: Array, n: int) -> Array:
    """The entry across the diagonal from each one stored, zero where none is: for places that are not symmetric."""
    xp = namespace(values)
    columns = xp.astype(columns, xp.int64)
    places, across = rows * n + columns, columns * n + rows
    at = xp.searchsorted(places, across)
    at = xp.where(at < places.shape[0], at, xp.zeros_like(at))
    return xp.where(places[at] == across, values[at], xp.zeros_like(values))


def _relative(ours: Array, theirs: Array, scale: Array) -> Array:
    """|a - b| / (max(|a|, |b|) + scale), halved on both sides so that nothing overflows; zero where all vanish."""
    xp = namespace(ours)
    a, b = ours / 2.0, theirs / 2.0
    size = xp.maximum(abs(a), abs(b)) + scale / 2
    size = xp.where(size > 0, size, xp.ones_like(size))
    return abs(a / size - b / size)


def _two(matrix: Any, i: int, j: int) -> tuple[float, float]:
    """The entries in row i, column j and in row j, column i."""
    if is_sparse_tensor(matrix):
        matrix = matrix.to_sparse_coo().coalesce()
    return float(matrix[i, j]), float(matrix[j, i])


def _mean(matrix: Any) -> Any:
    """(K + Kᵀ)/2, each half exactly, so that two large entries do not overflow."""
    if is_sparse_tensor(matrix):
        half = matrix.to_sparse_coo().coalesce() / 2
        return (half + half.transpose(0, 1)).coalesce().to_sparse_csr()
    mean = matrix / 2 + matrix.T / 2
    return mean.tocsr() if hasattr(mean, "toarray") else mean
