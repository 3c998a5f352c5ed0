"""Kernel matrices that are given: whether they are symmetric, entry by entry, and the symmetric matrix they mean.

Two entries that ought to be equal differ by rounding if their difference is small beside the entries themselves, or
beside √(k(x, x) k(y, y)), which bounds them in a positive semi-definite matrix and is the scale of the rounding errors
of an inner product. The largest entry of the matrix says nothing of the others and takes no part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
_ROUNDING = {"float64": 1e-10, "float32": 1e-4}  # some 10³ to 10⁵ units: kernels amplify the errors of distances
_ROWS = 256


def symmetrised(matrix: Any) -> Any:
    """The matrix itself if it is symmetric to the last bit, (K + Kᵀ)/2 if rounding alone made it differ.

    Parameters
    ----------
    matrix : array or sparse CSR array of shape (n, n)
        Finite float32 or float64.

    Raises
    ------
    ValueError
        If two entries differ by more than rounding; the worst pair is named.
    """
    bound = _ROUNDING[matrix.dtype.name]
    scales = np.sqrt(np.abs(np.asarray(matrix.diagonal(), np.float64)))
    differ, excess, pair = _sparse(matrix, scales) if hasattr(matrix, "toarray") else _dense(matrix, scales)
    if excess > bound:
        i, j = pair
        raise ValueError(
            f"A precomputed kernel must be symmetric: row {i}, column {j} holds {matrix[i, j]:.6g}, but row {j}, "
            f"column {i} holds {matrix[j, i]:.6g}. Pass (K + K.T) / 2 if rounding made them differ."
        )
    return _mean(matrix) if differ else matrix


def _dense(matrix: Array, scales: Array) -> tuple[bool, float, tuple[int, int]]:
    """Whether any two entries differ, the largest difference in their own scale, and where; by blocks of rows."""
    differ, worst, pair = False, 0.0, (0, 0)
    for lo in range(0, matrix.shape[0], _ROWS):
        ours, theirs = matrix[lo : lo + _ROWS, lo:], matrix[lo:, lo : lo + _ROWS].T
        if np.array_equal(ours, theirs):
            continue
        differ = True
        relative = _relative(ours, theirs, scales[lo : lo + _ROWS, None] * scales[lo:])
        row, column = np.unravel_index(np.argmax(relative), relative.shape)
        if relative[row, column] > worst:
            worst, pair = float(relative[row, column]), (lo + int(row), lo + int(column))
    return differ, worst, pair


def _sparse(matrix: Any, scales: Array) -> tuple[bool, float, tuple[int, int]]:
    difference = (matrix - matrix.T).tocoo()
    rows, columns = difference.coords if hasattr(difference, "coords") else (difference.row, difference.col)
    apart = difference.data != 0
    if not np.any(apart):
        return False, 0.0, (0, 0)
    rows, columns = rows[apart], columns[apart]
    ours, theirs = (np.asarray(matrix[a, b]).ravel() for a, b in ((rows, columns), (columns, rows)))
    relative = _relative(ours, theirs, scales[rows] * scales[columns])
    worst = int(np.argmax(relative))
    return True, float(relative[worst]), (int(rows[worst]), int(columns[worst]))


def _relative(ours: Array, theirs: Array, scale: Array) -> Array:
    """|a - b| / (max(|a|, |b|) + scale), halved on both sides so that nothing overflows; zero where all vanish."""
    a, b = ours / 2.0, theirs / 2.0
    size = np.maximum(np.abs(a), np.abs(b)) + np.asarray(scale, np.float64) / 2
    return np.abs(a / np.where(size > 0, size, 1.0) - b / np.where(size > 0, size, 1.0))


def _mean(matrix: Any) -> Any:
    if hasattr(matrix, "toarray"):
        return (matrix / 2 + matrix.T / 2).tocsr()
    return matrix / 2 + matrix.T / 2  # each half exactly, so that two large entries do not overflow
