"""Read a table from a file, in the format that its name says."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from mercer.io.anndata_files import read_annotated
from mercer.io.arrays import read_arrays, read_rows
from mercer.io.data_table import DataTable
from mercer.io.delimited import Layout, read_delimited
from mercer.io.parquet import read_parquet
from mercer.io.stream import Stream
from mercer.io.text import LONGEST_LINE

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
_SEVERAL = {  # arrays in one file
    ".npz": read_arrays,
    ".h5ad": read_annotated,
    **dict.fromkeys((".h5", ".hdf5", ".zarr"), read_rows),
}
_OTHER = {".npy": read_arrays, ".parquet": read_parquet, ".pq": read_parquet}


def read_table(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    categories: Collection[str] = (),
    encoding: str | None = None,
    array: str | None = None,
    longest_line: int = LONGEST_LINE,
) -> DataTable:
    r"""Read a table of numbers and categories.

    Text files (``.csv``, ``.tsv``, ``.txt``, ``.dat``, also compressed, ``.csv.gz``) are read with the delimiter and
    the decimal comma that they have. A column all of whose values are numbers holds numbers, any other one categories;
    where most of a column are numbers and some are not, it is refused, and the message names the line. Rows must be
    equally long. Of ``.npz`` each array is a column, or several, ``X[0]``, ``X[1]``, …; ``.parquet`` needs pyarrow.
    Of ``.h5ad``, which needs anndata, the columns are those of ``X`` and the annotations of rows that are words. Of
    ``.h5``, which needs h5py, and of a folder ``.zarr``, which needs zarr, one array is read, whose columns are "1",
    "2", ….

    Parameters
    ----------
    path : str, path or binary file
        The file; its suffix says the format. Of an open file, such as ``sys.stdin.buffer``, and of a named pipe the
        first bytes do.
    delimiter : str, optional
        Of a text file: what stands between two values; found out if left out.
    header : bool, optional
        Of a text file: whether its first line names the columns. Left out, it does where a text stands above numbers,
        or where there are no numbers. Columns without names are "1", "2", ….
    categories : names of columns
        Columns that are categories although they look like numbers, such as codes.
    encoding : str, optional
        Of a text file; UTF-8, or UTF-16 with its mark, if left out.
    array : str, optional
        Of ``.npz``, ``.h5`` and ``.zarr``: read this array alone. Of ``.h5ad``: read this layer or array of ``obsm`` in
        the place of ``X``.
    longest_line : int, default=100 000 000
        Of a text file: the bytes of a line beyond which it is refused, so that a file of another kind cannot fill the
        memory.

    Returns
    -------
    DataTable
        The columns. Missing values are NaN among numbers and None among categories: ``complete`` refuses them or leaves
        their rows out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mercer
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "plants.csv"
    >>> _ = file.write_text("height;colour\n1,5;red\n2,25;blue\n")
    >>> table = mercer.read_table(file)
    >>> table.shape, table["height"].to_list(), table["colour"].to_list()
    ((2, 2), [1.5, 2.25], ['red', 'blue'])
    """
    source = _source(path)
    suffix = Path(source.name).with_suffix("").suffix.lower() if source.suffix == ".gz" else source.suffix.lower()
    if suffix in _TEXT or (isinstance(source, Stream) and source.suffix == ".gz"):
        if array is not None:
            raise ValueError(f"{source} is text, which holds no arrays: leave {array!r} out.")
        layout = Layout(delimiter or ("\t" if suffix in (".tsv", ".tab") else None), header, frozenset(categories))
        return read_delimited(source, layout, encoding, longest_line)
    if suffix in _SEVERAL and source.suffix != ".gz":
        return _SEVERAL[suffix](source, frozenset(categories), array)
    if suffix not in _OTHER or source.suffix == ".gz":
        known = ", ".join((*_TEXT, *_SEVERAL, *_OTHER))
        raise ValueError(f"{source} has a suffix that names no format of tables: use one of {known}.")
    if array is not None:
        raise ValueError(f"{source} holds one table alone: leave {array!r} out.")
    return _OTHER[suffix](source, frozenset(categories))


def _source(path: str | os.PathLike[str] | BinaryIO) -> Path | Stream:
    """The file, if there is one."""
    if not isinstance(path, str | os.PathLike):
        return Stream(path)
    found = Path(path)
    if not found.exists():
        raise FileNotFoundError(f"There is no file {found}.")
    if found.is_dir() and found.suffix.lower() != ".zarr":
        raise IsADirectoryError(f"{found} is a folder: name a file in it.")
    return Stream(found.open("rb"), str(found)) if found.is_fifo() else found
