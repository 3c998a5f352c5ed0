"""A kernel of some columns of the points."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import chosen_columns, is_tensor, to_numpy
from mercer.backends.matrix import KernelMatrix
from mercer.kernels.base import Kernel, spelled
from mercer.kernels.checks import as_sides
from mercer.kernels.precomputed import Precomputed
from mercer.kernels.properties import Properties
from mercer.kernels.tables import Table
from mercer.wording import LINE


@final
class OnColumns(Kernel):
    """k(x, y) of some columns of x and y, as ``kernel.on(columns)`` makes it: unlike attributes (PSD17 section 6.3).

    Sums and products of such kernels let each attribute be compared in its own way. What is known of such a kernel is
    known of it as a kernel of these columns.

    Parameters
    ----------
    kernel : Kernel
        Of points that have these columns alone, in this order.
    columns : int, str or list of them
        Numbers of columns, from zero, or names of the columns of a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, Linear
    >>> kernel = Gaussian(sigma=1.0).on(0) + Linear().on([1, 2])
    >>> kernel(np.array([[0.0, 1.0, 2.0], [0.0, 3.0, 0.0]]))
    array([[ 6.,  4.],
           [ 4., 10.]])
    """

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    def __repr__(self) -> str:
        """Return the call that makes it, in a line."""
        call = f"{self.kernel!r}.on({self.columns!r})"
        return call if len(call) <= LINE else f"{type(self.kernel).__name__}(…).on(<{np.size(self.columns)} columns>)"

    def _spelled(self) -> str:
        return f"{self.kernel._spelled()}.on({spelled(self.columns)})"

    @property
    def properties(self) -> Properties:
        """Those of the kernel, on these columns."""
        return self.kernel.properties

    @property
    def reads(self) -> frozenset[Any] | None:
        """The columns."""
        columns, inner = self._listed(), self.kernel.reads
        if inner is None:
            return frozenset(columns)
        if all(isinstance(column, int) and -len(columns) <= column < len(columns) for column in inner):
            return frozenset(columns[column] for column in inner)
        return inner  # names, which are those of the data frame

    def read_as_numbers(self, n_features: int) -> frozenset[int]:
        """Those of the columns that the kernel calculates with."""
        columns = self._numbers(n_features)
        return frozenset(columns[k] for k in self.kernel.read_as_numbers(len(columns)))

    def bound(self, table: Table) -> OnColumns:
        """The same kernel of columns by their numbers."""
        columns = [self._place(column, table.names) for column in self._listed()]
        return OnColumns(self.kernel.bound(table.some(self._checked_numbers(columns, len(table.names)))), columns)

    def resolve(self, X: Any, sample_weight: Any = None) -> Kernel:
        """Fix parameters from these columns of X."""
        kernel, X, _ = self.read(X)
        if kernel is not self:
            return kernel.resolve(X, sample_weight)
        return OnColumns(self.kernel.resolve(self._seen(X), sample_weight), self.columns)

    def matrix(self, X: Any, Y: Any = None, *, dtype: Any = None) -> KernelMatrix:
        """The kernel matrix; one that learns from its points makes it as it does of these columns alone."""
        if self._reader is None:
            return super().matrix(X, Y, dtype=dtype)
        return self.kernel.matrix(self._seen(X), None if Y is None else self._seen(Y), dtype=dtype)

    def _form(self, n_features: int) -> forms.Form:
        columns = self._numbers(n_features)
        inner = self.kernel.form(len(columns))
        return inner if self._reader is not None else forms.OnColumns(inner, columns)

    def _points(self, X: Any, Y: Any) -> tuple[Any, Any]:
        if self._reader is None:
            return super()._points(X, Y)
        return self.kernel._points(self._seen(X), None if Y is None else self._seen(Y))

    def _checked(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """All columns as points are checked, and these as the kernel asks for."""
        X, Y = as_sides(X, Y)
        self.kernel._checked(self._seen(X), None if Y is None else self._seen(Y))
        return X, Y

    def _seen(self, X: Any) -> Any:
        return chosen_columns(X, self._numbers(int(X.shape[1])))

    def _listed(self) -> list[Any]:
        """The columns as a list of names and numbers."""
        given = to_numpy(self.columns) if is_tensor(self.columns) else self.columns
        if isinstance(given, np.ndarray):
            given = given.tolist()
        listed = list(given) if isinstance(given, list | tuple | range | set | frozenset) else [given]
        for column in listed:
            if isinstance(column, bool) or not isinstance(column, int | str | np.integer):
                raise TypeError(f"columns={self.columns!r} must be numbers of columns or names, one or a list of them.")
        if not listed:
            raise ValueError("columns=[] names no column: give at least one.")
        if isinstance(self.kernel, Precomputed):
            raise TypeError("Precomputed() has no columns to choose from: the rows of X are those of a kernel matrix.")
        return [column if isinstance(column, str) else int(column) for column in listed]

    def _place(self, column: Any, names: tuple[str, ...]) -> int:
        if not isinstance(column, str):
            return int(column)
        if column not in names:
            raise ValueError(f"{self!r} names the column {column!r}, but X has {', '.join(map(repr, names))}.")
        return names.index(column)

    def _numbers(self, n_features: int) -> tuple[int, ...]:
        listed = self._listed()
        for column in listed:
            if isinstance(column, str):
                raise ValueError(
                    f"{self!r} names the column {column!r}, but the columns of X have no names: pass a data frame, or "
                    "numbers of columns."
                )
        return self._checked_numbers(listed, n_features)

    def _checked_numbers(self, columns: list[int], n_features: int) -> tuple[int, ...]:
        for column in columns:
            if not -n_features <= column < n_features:
                raise ValueError(f"{self!r} reads the column {column}, but X has {n_features} columns, from 0.")
        places = tuple(column % n_features for column in columns)
        if len(set(places)) != len(places):
            raise ValueError(f"{self!r} names a column twice.")
        return places
