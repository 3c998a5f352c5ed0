"""Tables in NumPy's own files, and in those of HDF5 and Zarr."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from mercer.backends.arrays import Array
from mercer.io.data_table import DataColumn, DataTable, UnknownColumnError, Values
from mercer.io.row_sources import opened_file
from mercer.io.stream import Stream

_NUMBERS, _TEXTS = "fiub", "US"


def read_arrays(path: Path | Stream, categories: frozenset[str], array: str | None = None) -> DataTable:
    """The columns of one array, "1", "2", … or its fields; of several those of each, X[0], … where it has two."""
    found = _loaded(path)
    if array is not None:
        found = _named(path, found, array)
    if isinstance(found, dict):
        return _table(path, found, categories)
    if found.dtype.names:
        return _table(path, {name: found[name] for name in found.dtype.names}, categories)
    flat = _flat(path, found)
    return _table(path, {str(k + 1): flat[:, k] for k in range(flat.shape[1])}, categories)


def read_rows(path: Path | Stream, categories: frozenset[str], array: str | None = None) -> DataTable:
    """The columns of an array of HDF5 or Zarr, "1", "2", …, which is in memory from then on."""
    rows = opened_file(str(path), array=array)
    values = rows.take(slice(0, rows.shape[0]))
    return _table(path, {str(k + 1): values[:, k] for k in range(values.shape[1])}, categories)


def _loaded(path: Path | Stream) -> Any:
    """The array of a file, or its arrays by name."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            return found if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except ValueError as error:
        why = "it holds Python objects" if "allow_pickle" in str(error) else "it is damaged, or no file of NumPy"
        raise ValueError(f"{path} cannot be read as {path.suffix}: {why}.") from None
    except (EOFError, OSError, KeyError, BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as {path.suffix}: {error}.") from None


def _named(path: Path | Stream, found: Any, array: str) -> Array:
    """One of several arrays."""
    if not isinstance(found, dict) or array not in found:
        known = ", ".join(map(repr, found)) if isinstance(found, dict) else "one without a name"
        raise ValueError(f"{path} has no array {array!r}; it has {known}.")
    return found[array]


def _flat(path: Path | Stream, array: Array) -> Array:
    """The array with a row a point; further dimensions are laid side by side."""
    if not array.ndim or not array.size:
        raise ValueError(f"{path} has no rows of values.")
    return array.reshape(array.shape[0], -1)


def _table(path: Path | Stream, arrays: dict[str, Array], categories: frozenset[str]) -> DataTable:
    sizes = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {size[0] if size else 'none'}" for name, size in sizes.items())
        raise ValueError(
            f"The arrays of {path} must have equally many rows, but {found}: save those that belong together."
        )
    parts = [part for name, array in arrays.items() for part in _columns(path, name, array, categories)]
    if not parts:
        raise ValueError(f"{path} has no rows of values.")
    unknown = sorted(categories - set(arrays) - {part.name for part in parts})
    if unknown:
        raise UnknownColumnError(path, unknown[0], list(arrays))
    return DataTable(str(path), tuple(parts))


def _columns(path: Path | Stream, name: str, array: Array, categories: frozenset[str]) -> Iterator[DataColumn]:
    """The columns of one array."""
    if array.dtype.kind not in _NUMBERS + _TEXTS:
        raise ValueError(f"The array {name!r} of {path} holds {array.dtype}: numbers and texts are read.")
    flat = _flat(path, array)
    for k in range(flat.shape[1]):
        part = name if array.ndim == 1 else f"{name}[{k}]"
        yield DataColumn(part, _values(path, part, flat[:, k], name in categories or part in categories))


def _values(path: Path | Stream, name: str, array: Array, as_categories: bool) -> Values:
    if array.dtype.kind in _TEXTS or as_categories:
        values = np.empty(array.shape[0], dtype=object)
        values[:] = [str(value) for value in array.astype(str).tolist()]
        return values
    if np.isinf(array).any():
        row = int(np.argmax(np.isinf(array)))
        raise ValueError(f"Row {row + 1} of {path} has {array[row]} in the column {name!r}, which is no finite number.")
    return array.astype(np.float64)
