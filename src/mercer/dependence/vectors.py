"""Samples of a single variable: vectors of numbers or of texts, read as tables of one column."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, is_source, is_tensor
from mercer.kernels.tables import is_frame


@final
class TextColumn:
    """A vector of texts, as a data frame of one column."""

    columns = ("0",)
    dtypes = ("str",)
    dtype = "str"

    def __init__(self, values: Array) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, _: Any) -> TextColumn:
        return self

    def to_list(self) -> list[Any]:
        """The texts."""
        listed: list[Any] = self.values.tolist()
        return listed


def as_tables(X: Any, Y: Any) -> tuple[Any, Any]:
    """Two samples of the same columns, see :func:`as_table`."""
    X, Y = as_table(X), as_table(Y)
    if isinstance(X, TextColumn) != isinstance(Y, TextColumn) and not (is_frame(X) and is_frame(Y)):
        texts, numbers = ("X", "Y") if isinstance(X, TextColumn) else ("Y", "X")
        raise ValueError(f"{texts} is a vector of texts and {numbers} is not: give both as texts or both as numbers.")
    return X, Y


def as_table(values: Any) -> Any:
    """What is given, if it has two axes or is a data frame; of a vector, or a column of a data frame, one column.

    The name of a column is dropped: two samples of one variable are often called before and after.
    """
    if is_frame(values) or hasattr(values, "toarray") or is_source(values):
        return values
    if is_tensor(values):
        return values[:, None] if values.ndim == 1 else values
    array = np.asarray(values)
    if array.ndim != 1:
        return values
    if array.dtype.kind not in "OUST":
        return array[:, None]
    try:
        return array.astype(np.float64)[:, None]
    except (TypeError, ValueError):
        return TextColumn(array)
