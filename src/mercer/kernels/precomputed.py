"""A kernel whose values are given."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import is_source, is_sparse_tensor
from mercer.kernels.base import Kernel
from mercer.kernels.checks import (
    COMPLEX_MATRIX,
    INFINITE_MATRIX,
    as_points,
    as_sparse_tensor,
    positive_number,
    require_columns,
    same_library,
)
from mercer.kernels.properties import Properties
from mercer.kernels.symmetry import symmetrised


@final
class Precomputed(Kernel):
    """The "points" are rows of a kernel matrix, dense or sparse.

    Fit with the n × n matrix of the training points; transform with the m × n matrix between new points and training
    points. Entries of the n × n matrix that rounding made differ from their transposed ones are replaced by the mean of
    the two, and it is that symmetric matrix that is embedded and certified; a larger difference is refused.

    Parameters
    ----------
    new_diagonal : float or None, default=None
        k(x, x) of new points, which an m × n block does not contain. None means the constant diagonal of the training
        matrix, and an error where that is not constant.
    """

    def __init__(self, new_diagonal: float | None = None) -> None:
        self.new_diagonal = new_diagonal

    def _form(self, n_features: int) -> forms.Form:
        if self.new_diagonal is None:
            return forms.Stored()
        return forms.Stored(positive_number(self.new_diagonal, "new_diagonal", zero=True))

    def _checked(self, X: Any, Y: Any) -> tuple[Any, Any]:
        if Y is None or Y is X:
            X = _as_matrix(X)
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"A precomputed kernel must be square, not {X.shape[0]} × {X.shape[1]}.")
            return symmetrised(X), None
        X, Y = same_library(X, Y)
        X, Y = _as_matrix(X), _as_matrix(Y, "Y")
        if X.shape[1] != Y.shape[0]:
            raise ValueError(
                f"A precomputed block must have a column for each of {Y.shape[0]} training points, not {X.shape[1]}."
            )
        return X, Y

    @property
    def properties(self) -> Properties:
        """Nothing is known of a matrix that is given."""
        return Properties()


def _as_matrix(X: Any, name: str = "X") -> Any:
    """A dense matrix as points are checked, or a sparse one: CSR, sorted, each entry once, float32 or float64."""
    if is_source(X):
        raise ValueError("A kernel matrix that is given cannot come a block at a time: pass points and a kernel.")
    if is_sparse_tensor(X):
        return as_sparse_tensor(X, name)
    if not hasattr(X, "toarray"):
        return as_points(X, name)
    matrix = X.tocsr()
    require_columns(matrix, name)
    if matrix.dtype.kind == "c":
        raise ValueError(COMPLEX_MATRIX)
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float64, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the user's own is left alone
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError(INFINITE_MATRIX)
    return matrix
