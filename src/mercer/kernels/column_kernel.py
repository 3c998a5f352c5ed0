"""A kernel on a neighbour graph whose values come a column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import like, namespace
from mercer.backends.matrix import KernelMatrix, kernel_matrix
from mercer.kernels.checks import whole_number
from mercer.kernels.column_matrix import ColumnMatrix, packed, packed_form
from mercer.kernels.trained import TrainedKernel


class ColumnKernel(TrainedKernel):
    """What the kernels of neighbour graphs have in common; what they learn are :class:`Columns` of their matrix."""

    n_neighbors: int

    def _check_parameters(self) -> None:
        whole_number(self.n_neighbors, "n_neighbors", 1)

    def _form(self, n_features: int) -> forms.Form:
        return packed_form(self._sample, self._sample.roundings())

    def _points(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Entries with what k(x, x) is made of, and numbers of columns with the same."""
        rows, cols = packed(self._known, *self._require_features((X, Y)))
        return like(rows, X), None if cols is None else like(cols, X)

    def matrix(self, X: Any, Y: Any = None, *, dtype: Any = None) -> KernelMatrix:
        """The kernel matrix: of two sets of points made at once, of one set when a product asks for it."""
        self._require_features((X, Y))
        if Y is None:
            return ColumnMatrix(self._known, X, X.dtype if dtype is None else dtype)
        points = self._points(X, Y)
        width = self._known.width
        form = packed_form(self._known, self._known.roundings(*(np.asarray(side[:, -width:]) for side in points)))
        dtype = namespace(X).result_type(X.dtype, Y.dtype) if dtype is None else dtype
        return kernel_matrix(form, *points, dtype=dtype)


def require_switch(value: Any, name: str) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} must be True or False.")
