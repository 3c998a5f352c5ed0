"""Annotated matrices (``.h5ad``) of single-cell analyses, read by anndata."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.io.data_table import DataColumn, DataTable, UnknownColumnError, Values
from mercer.io.stream import Stream


def read_annotated(path: Path | Stream, categories: frozenset[str], array: str | None = None) -> DataTable:
    """The columns of X, or of a layer or an array of obsm, by their names, and the annotations of rows that are words.

    Annotations that are numbers, such as counts, say how a row was measured: they are left out, and a note names them.
    """
    found = _loaded(path)
    points, names = _points(path, found, array)
    if not points.size:
        raise ValueError(f"{path} has no rows of values.")
    if not np.isfinite(points).all():
        row = int(np.argmax(~np.isfinite(points).all(axis=1)))
        raise ValueError(f"Row {row + 1} of {path} has a value that is no finite number.")
    parts = [DataColumn(name, points[:, k]) for k, name in enumerate(names)]
    unknown = sorted(categories - {*names, *map(str, found.obs.columns)})
    if unknown:
        raise UnknownColumnError(path, unknown[0], [*map(str, found.obs.columns)])
    words = list(_annotations(found, categories, frozenset(names)))
    numbers = sorted({*map(str, found.obs.columns)} - {part.name for part in words} - {*names})
    left = f"Annotations of rows that are numbers are left out: {', '.join(numbers)}."
    return DataTable(str(path), (*parts, *words), None, (left,) if numbers else ())


def _loaded(path: Path | Stream) -> Any:
    try:
        from anndata import read_h5ad
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Files of AnnData (.h5ad) need anndata: pip install anndata.") from None
    try:
        if isinstance(path, Path):
            return read_h5ad(path)
        with tempfile.NamedTemporaryFile(suffix=".h5ad") as file, path.open() as held:
            file.write(held.read())
            file.flush()
            return read_h5ad(file.name)
    except Exception as error:  # a file can be damaged in more ways than its readers have exceptions for
        why = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(f"{path} cannot be read as .h5ad: {why}.") from None


def _points(path: Path | Stream, found: Any, array: str | None) -> tuple[Array, list[str]]:
    """The matrix that is meant, dense, and the names of its columns."""
    if array is None or array in found.layers:
        values = found.X if array is None else found.layers[array]
        if values is None:
            known = ", ".join(map(repr, [*found.layers, *found.obsm])) or "nothing else"
            raise ValueError(f"{path} has no X; it has {known}: name one with --array.")
        return _dense(values), list(map(str, found.var_names))
    if array not in found.obsm:
        known = ", ".join(map(repr, [*found.layers, *found.obsm])) or "X alone"
        raise ValueError(f"{path} has no layer and no obsm {array!r}; it has {known}.")
    values = _dense(found.obsm[array])
    return values, [f"{array}[{k}]" for k in range(values.shape[1])]


def _dense(values: Any) -> Array:
    values = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(values, dtype=np.float64)


def _annotations(found: Any, categories: frozenset[str], taken: frozenset[str]) -> Iterator[DataColumn]:
    """Annotations of rows that are words, or that are said to be categories."""
    for name in map(str, found.obs.columns):
        column = found.obs[name]
        numeric = column.dtype.kind in "fiu" if isinstance(column.dtype, np.dtype) else False
        if (not numeric or name in categories) and name not in taken:
            values: Values = np.empty(len(column), dtype=object)
            values[:] = [None if value != value else str(value) for value in column.tolist()]
            yield DataColumn(name, values)
