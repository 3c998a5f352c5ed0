"""Write a table to a file, in the format that its name says, whole or not at all."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

import numpy as np

from mercer.backends.arrays import Array
from mercer.whole_files import asked_for


def write_table(columns: Mapping[str, Any], path: str | os.PathLike[str] | BinaryIO) -> None:
    """Write named columns of equal length.

    Parameters
    ----------
    columns : mapping of str to sequences
        Numbers or texts, by the names of the columns.
    path : str, path or binary file
        The suffix says the format: ``.csv``, ``.tsv``, ``.parquet``, ``.npz`` (an array a column), ``.npy`` (one array,
        of the columns of numbers). An open file is given CSV. Numbers are written so that they are read back exactly.

    Examples
    --------
    >>> import sys
    >>> from mercer.io import write_table
    >>> write_table({"x": [0.5, 1.0], "kind": ["a", "b"]}, sys.stdout.buffer)  # doctest: +SKIP
    x,kind
    0.5,a
    1.0,b
    """
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    if not isinstance(path, str | os.PathLike):
        whole = io.BytesIO()  # written at once: a stream may have no buffer of its own
        _delimited(",")(arrays, whole)
        path.write(whole.getvalue())
        return
    writer_for(path)  # before a file is made
    with asked_for(path) as temporary, temporary.open("wb") as file:
        writer_for(path)(arrays, file)


def writer_for(path: str | os.PathLike[str]) -> Callable[[dict[str, Array], BinaryIO], None]:
    """What writes the format that a suffix names; refused where it names none, or its library is not installed."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise ValueError(f"{path} has a suffix that names no format to write: use one of {', '.join(_WRITERS)}.")
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ModuleNotFoundError("Parquet files need pyarrow: pip install pyarrow.")
    return _WRITERS[suffix]


def _delimited(delimiter: str) -> Callable[[dict[str, Array], BinaryIO], None]:
    def write(arrays: dict[str, Array], file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        writer.writerow(arrays)
        writer.writerows(zip(*(_texts(array) for array in arrays.values()), strict=True))
        text.detach()

    return write


def _texts(array: Array) -> list[Any]:
    """Numbers with all their digits; nothing where there is none."""
    return ["" if value is None or value != value else value for value in array.tolist()]


def _npy(arrays: dict[str, Array], file: BinaryIO) -> None:
    numbers = [array for array in arrays.values() if array.dtype.kind in "fiub"]
    array = np.ascontiguousarray(np.column_stack(numbers))
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.data)  # numpy.save does not say why a disk takes no more


def _npz(arrays: dict[str, Array], file: BinaryIO) -> None:
    """What ``numpy.savez`` writes, which cannot name an array "file" and before NumPy 2.2 not be kept from pickling."""
    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, _plain(array), allow_pickle=False)


def _plain(array: Array) -> Array:
    """Texts as NumPy stores them without Python objects."""
    return np.array(["" if value is None else value for value in array.tolist()]) if array.dtype == object else array


def _parquet(arrays: dict[str, Array], file: BinaryIO) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({name: array.tolist() for name, array in arrays.items()}), file)


_WRITERS = {".csv": _delimited(","), ".tsv": _delimited("\t"), ".parquet": _parquet, ".npz": _npz, ".npy": _npy}
