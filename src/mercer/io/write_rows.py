"""Write what a fitted model says of every row of a source to a file, a block at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mercer.backends.chunks import source_rows
from mercer.backends.row_source import RowSource
from mercer.io.row_sources import open_rows
from mercer.whole_files import asked_for

_ROOM = 16  # times the numbers of a row that what is made of it takes on its way


def write_rows(function: Callable[[Any], Any], rows: Any, path: str | os.PathLike[str]) -> RowSource:
    """Write what a function makes of every row to a file ``.npy``, whole or not at all, and open it.

    Parameters
    ----------
    function : callable
        Of a block of rows, an array of numbers with as many rows, of one dimension or two: ``model.transform``, say.
    rows : RowSource or array
        As :func:`mercer.open_rows` takes them.
    path : str or path
        The file, whose name ends in ``.npy``; it takes its place once all is written.

    Returns
    -------
    RowSource
        The rows of the file; one number a row is a table of one column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import mercer
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.save(folder / "points.npy", np.random.default_rng(0).normal(size=(1000, 3)))
    >>> rows = mercer.open_rows(folder / "points.npy")
    >>> model = mercer.SDPEmbedding(mercer.Gaussian(), landmarks=50, random_state=0).fit(rows)
    >>> mercer.io.write_rows(model.transform, rows, folder / "coordinates.npy").shape[0]
    1000
    """
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"{path} must end in .npy: rows are written in NumPy's format.")
    source = open_rows(rows)
    if path.exists() and any(Path(part.name).exists() and path.samefile(part.name) for part in source.parts):
        raise ValueError(f"{path} holds the rows that are read: write to another file.")
    first: tuple[int, np.dtype[Any]] | None = None
    with asked_for(path) as temporary, temporary.open("wb") as file:
        for where, block in source.blocks(source_rows(_ROOM * source.shape[1])):
            values = _values(function, block, where)
            if first is None:
                first = values.shape[1], values.dtype
                shape = (source.shape[0], values.shape[1])
                head = {"descr": np.lib.format.dtype_to_descr(values.dtype), "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(file, head)
            if (values.shape[1], values.dtype) != first:
                raise ValueError(
                    f"The function gave {values.shape[1]} numbers of {values.dtype} for each of the rows {where.start} "
                    f"to {where.stop - 1}, and {first[0]} of {first[1]} before: it must give the same for all."
                )
            file.write(values.data)
    return open_rows(path)


def _values(function: Callable[[Any], Any], block: Any, where: slice) -> np.ndarray[Any, Any]:
    """What the function makes of a block, as a table of numbers."""
    try:
        values = np.asarray(function(block))
    except ValueError as error:
        raise ValueError(f"In rows {where.start} to {where.stop - 1}, counted from 0 there: {error}") from error
    if values.dtype.kind not in "fiub":
        raise ValueError(f"The function gave {values.dtype}, and a file of rows holds real numbers: write numbers.")
    table = values[:, None] if values.ndim == 1 else values
    if table.ndim != 2 or table.shape[0] != block.shape[0]:
        raise ValueError(f"The function gave an array of shape {values.shape} for {block.shape[0]} rows.")
    return np.ascontiguousarray(table)
