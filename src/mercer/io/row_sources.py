"""Open the rows of a file that may be larger than the memory: NumPy, Parquet, HDF5 and Zarr, a block at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer.backends.row_source import ArrayRows, FiniteRows, RowSource
from mercer.io.array_rows import open_hdf5, open_npy, open_zarr
from mercer.io.parquet_rows import ParquetRows

Columns = Sequence[str | int] | None
_TABLES = {".npy": open_npy, ".parquet": ParquetRows, ".pq": ParquetRows}  # by suffix: files of one table
_ARRAYS = {".h5": open_hdf5, ".hdf5": open_hdf5, ".zarr": open_zarr}  # and of several arrays, which have names
SUFFIXES = (*_TABLES, *_ARRAYS)


def open_rows(path: str | os.PathLike[str] | Any, *, columns: Columns = None, array: str | None = None) -> FiniteRows:
    """Open a table of numbers whose rows are read a block at a time, and never all at once.

    What it returns takes the place of X wherever rows are looked at one by one, or against a few others: operators with
    landmarks, ``Landmarks``, ``SDPEmbedding(landmarks=m)``, ``QuadratureSparsifier``, ``transform``. What needs all
    rows at once refuses it.

    Parameters
    ----------
    path : str, path or array
        A file ``.npy``, ``.parquet``, ``.h5`` (which needs h5py) or a folder ``.zarr`` (which needs zarr). An array of
        two dimensions, such as a ``numpy.memmap``, is taken as it is.
    columns : sequence of str or int, optional
        Use these columns, in this order: names or numbers of Parquet, numbers of the others. Left out, all of them.
    array : str, optional
        Of ``.h5`` and ``.zarr``: the name of the array in it. Left out, the only one of two dimensions.

    Returns
    -------
    RowSource
        With ``shape``, ``dtype``, ``take(rows)``, ``blocks(most)``. Blocks are in single precision where all of the
        file is, and in double precision otherwise. A number that is not finite is refused when it is read, with its
        row; so is a file that was changed since it was opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import mercer
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "points.npy"
    >>> np.save(file, np.arange(12.0).reshape(6, 2))
    >>> rows = mercer.open_rows(file)
    >>> rows.shape, rows[[4, 0]].tolist(), [block.shape for _, block in rows.blocks(4)]
    ((6, 2), [[8.0, 9.0], [0.0, 1.0]], [(4, 2), (2, 2)])
    """
    if columns is not None and (isinstance(columns, str) or not hasattr(columns, "__iter__")):
        raise TypeError(f"columns={columns!r} must be a list of columns, such as [{columns!r}].")
    if isinstance(path, str | os.PathLike):
        source = opened_file(path, None if columns is None else list(columns), array)
    elif isinstance(path, RowSource):
        source = path
    else:
        source = _of_array(path, columns)
    single = source.dtype.kind == "f" and source.dtype.itemsize <= 4
    return FiniteRows(source, np.float32 if single else np.float64)


def opened_file(given: str | os.PathLike[str], columns: Columns = None, array: str | None = None) -> RowSource:
    """The rows of a file by its suffix, as they are."""
    path, kind = Path(given), Path(given).suffix.lower()
    if "://" in str(given):
        raise ValueError(f"{given} is no file of this machine: download it, and open the copy.")
    if kind not in SUFFIXES:
        raise ValueError(f"{path} has a suffix that names no format of rows: use one of {', '.join(SUFFIXES)}.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if kind == ".zarr" and not path.is_dir():
        raise NotADirectoryError(f"{path} is a file, and Zarr keeps arrays in folders: unpack it.")
    if kind != ".zarr" and not path.is_file():
        what = "a folder: name a file in it" if path.is_dir() else "no file that can be read again: copy it to one"
        raise OSError(f"{path} is {what}.")
    if kind in _TABLES and array is not None:
        raise ValueError(f"{path} holds one table alone: leave array={array!r} out.")
    source: RowSource = _TABLES[kind](path, columns) if kind in _TABLES else _ARRAYS[kind](path, columns, array)
    if not source.shape[0] or not source.shape[1]:
        raise ValueError(f"{path} has no rows of numbers: its shape is {source.shape}.")
    return source


def _of_array(array: Any, columns: Columns) -> RowSource:
    shape, kind = getattr(array, "shape", ()), getattr(getattr(array, "dtype", None), "kind", "")
    if np.ma.is_masked(array):
        raise ValueError("The array has values that are masked, which are no numbers: remove or fill them first.")
    if len(shape) != 2 or kind not in tuple("fiub") or hasattr(array, "tocsr"):
        raise TypeError(
            "open_rows takes the path of a file, or an array of numbers with two dimensions: of a data frame, pass "
            "frame.to_numpy(), of a sparse array array.toarray()."
        )
    return ArrayRows(array if columns is None else array[:, list(columns)])
