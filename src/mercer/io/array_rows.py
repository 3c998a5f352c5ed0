"""Rows of an array of two dimensions in a file: NumPy's own format, HDF5, Zarr."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np

from mercer.backends.chunks import row_chunks
from mercer.backends.row_source import Block, RowSource
from mercer.io.file_state import FileState, FolderState, one_line, unreadable

_NUMBERS = "fiub"
_TAKEN_AT_ONCE = 2**14  # rows in any order that are read at a time, in the order of the file
_NEAR = 64  # rows between two that are wanted, which are read along with them
State = FileState | FolderState
Opener = Callable[[], AbstractContextManager[Any]]


@final
class ArrayFileRows(RowSource):
    """Rows of an array that is opened for every pass, read, and closed.

    Parameters
    ----------
    path : Path
        The file, for messages.
    opener : callable
        Opens the array: a context with ``shape``, ``dtype`` and indexing by slices and rising row numbers.
    columns : sequence of int, optional
        Those to be kept.
    state : FileState or FolderState
        What the file was like when it was opened.
    """

    def __init__(
        self, path: Path, opener: Opener, columns: Sequence[Any] | None, state: FileState | FolderState
    ) -> None:
        self._path, self._opener, self._state = path, opener, state
        with self._opened() as array:
            shape, dtype = tuple(array.shape or ()), np.dtype(array.dtype)
        if len(shape) != 2:
            raise ValueError(f"{path} holds an array of shape {shape}: rows of points need two dimensions.")
        if dtype.kind not in _NUMBERS:
            raise ValueError(f"{path} holds {dtype}: rows of points are numbers.")
        self._columns = None if columns is None else _checked_columns(columns, shape[1], path)
        self.shape = (int(shape[0]), int(shape[1]) if self._columns is None else len(self._columns))
        self.dtype = dtype

    @property
    def name(self) -> str:
        return str(self._path)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        self._state.require_same()
        try:
            with self._opener() as array:
                yield array
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            if str(self._path) in str(error):
                raise
            raise unreadable(self._path, error) from None  # libraries do not name the file
        self._state.require_same()  # what was read meanwhile may be of either file

    def take(self, rows: Any) -> Block:
        if isinstance(rows, slice) and rows.step in (None, 1):
            with self._opened() as array:
                return self._kept(np.array(array[slice(*rows.indices(self.shape[0])[:2])]))
        wanted = np.arange(self.shape[0])[rows]
        order = np.argsort(wanted, kind="stable")
        out = np.empty((wanted.size, self.shape[1]), self.dtype)
        for part in row_chunks(wanted.size, _TAKEN_AT_ONCE):
            distinct, place = np.unique(wanted[order[part]], return_inverse=True)
            with self._opened() as array:
                out[order[part]] = self._kept(_by_runs(array, distinct))[place]
        self._state.require_same(at_last=True)
        return out

    def blocks(self, most: int) -> Iterator[tuple[slice, Block]]:
        for rows in row_chunks(self.shape[0], most):
            yield rows, self.take(rows)
        self._state.require_same(at_last=True)

    def _kept(self, block: Block) -> Block:
        return block if self._columns is None else block[:, self._columns]


def _by_runs(array: Any, rows: Any) -> Block:
    """Rows in rising order: a run that holds many of them is read whole, single ones alone."""
    if isinstance(array, np.ndarray):
        return np.array(array[rows])
    cuts = np.flatnonzero(np.diff(rows) > _NEAR) + 1
    runs = [array[int(part[0]) : int(part[-1]) + 1][part - part[0]] for part in np.split(rows, cuts)]
    return np.concatenate(runs) if runs else np.array(array[0:0])


def open_npy(path: Path, columns: Sequence[Any] | None) -> RowSource:
    """Rows of a file ``.npy``, read with plain calls, so that pages of the file do not count as memory of ours."""
    state = FileState.of(path)
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a head can be damaged in more ways than NumPy has exceptions for
        raise ValueError(f"{path} cannot be read as a NumPy array: {_why_no_array(error)}.") from None
    if not isinstance(mapped, np.memmap):
        mapped.close()
        raise ValueError(f"{path} holds an archive of several arrays: save one array as .npy.")
    offset, shape, dtype, fortran = mapped.offset, mapped.shape, mapped.dtype, not mapped.flags.c_contiguous

    @contextmanager
    def opener() -> Iterator[Any]:
        if fortran:
            yield np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            with path.open("rb") as file:
                yield _PlainRows(file, offset, shape, dtype)

    return ArrayFileRows(path, opener, columns, state)


def _why_no_array(error: Exception) -> str:
    """What NumPy says, but for what nobody should do and words of its own trade."""
    said = one_line(error)
    if "pickle" in said or "Python objects" in said:
        return "it is another kind of file, or holds Python objects, which are not read"
    if "mmap length" in said or "EOF" in said or "No data left" in said:
        return "it is cut off"
    return said


@final
class _PlainRows:
    """Runs of rows of an array that lies row after row in a file."""

    def __init__(self, file: Any, offset: int, shape: tuple[int, ...], dtype: Any) -> None:
        self._file, self._offset, self.shape, self.dtype = file, offset, shape, dtype

    def __getitem__(self, rows: slice) -> Block:
        width, count = self.shape[1], max(0, rows.stop - rows.start)
        self._file.seek(self._offset + rows.start * width * self.dtype.itemsize)
        found = np.fromfile(self._file, self.dtype, count * width)
        if found.size < count * width:
            raise ValueError(f"{self._file.name} ends before its last row: it is cut off.")
        return found.reshape(count, width)


def open_hdf5(path: Path, columns: Sequence[Any] | None, array: str | None) -> RowSource:
    """Rows of an array in a file ``.h5``, read by h5py."""
    try:
        import h5py
    except ModuleNotFoundError:
        raise ModuleNotFoundError("HDF5 files need h5py: pip install h5py.") from None

    def arrays_in(file: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
        return found

    try:
        with h5py.File(path, "r") as file:
            chosen = _only_one(path, arrays_in(file), array)
    except (OSError, RuntimeError) as error:
        busy = "another program has it open: close it there" if error.args[:1] == (errno.EAGAIN,) else one_line(error)
        raise ValueError(f"{path} cannot be read as HDF5: {busy}.") from None

    @contextmanager
    def opener() -> Iterator[Any]:
        with h5py.File(path, "r") as file:
            yield file[chosen]

    return ArrayFileRows(path, opener, columns, FileState.of(path))


def open_zarr(path: Path, columns: Sequence[Any] | None, array: str | None) -> RowSource:
    """Rows of an array in a folder ``.zarr``, read by zarr."""
    try:
        import zarr
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Zarr arrays need zarr: pip install zarr.") from None
    try:
        node: Any = zarr.open(str(path), mode="r")
        chosen = None if hasattr(node, "dtype") else _only_one(path, _arrays_in(node), array)
    except NotOneError:
        raise
    except Exception as error:  # metadata can be damaged in more ways than its readers have exceptions for
        raise ValueError(f"{path} cannot be read as Zarr: {one_line(error)}.") from None
    if chosen is None and array is not None:
        raise ValueError(f"{path} holds one array alone: leave array={array!r} out.")

    @contextmanager
    def opener() -> Iterator[Any]:
        found: Any = zarr.open(str(path), mode="r")
        yield found if chosen is None else found[chosen]

    return ArrayFileRows(path, opener, columns, FolderState(path))


def _arrays_in(group: Any) -> dict[str, Any]:
    """The arrays of a group and of the groups in it, by their paths."""
    return {name: each for name, each in group.members(max_depth=None) if hasattr(each, "dtype")}


class NotOneError(ValueError):
    """A file has not the one array that is meant."""


def _only_one(path: Path, arrays: dict[str, Any], wanted: str | None) -> str:
    """The array that is asked for, or the only one of two dimensions."""
    if wanted is not None:
        found = wanted.strip("/")
        if found not in arrays:
            raise NotOneError(f"{path} has no array {wanted!r}; it has {', '.join(map(repr, arrays)) or 'none'}.")
        return found
    tables = [name for name, each in arrays.items() if each.shape is not None and len(each.shape) == 2]
    if not tables:
        raise NotOneError(f"{path} has no array of two dimensions, which rows of points need.")
    if len(tables) > 1:
        known = ", ".join(map(repr, sorted(tables)))
        raise NotOneError(f"{path} has {len(tables)} arrays of two dimensions ({known}): say which one by array=.")
    return tables[0]


def _checked_columns(columns: Sequence[Any], width: int, path: Path) -> list[int]:
    chosen = []
    for column in columns:
        if isinstance(column, bool) or not isinstance(column, int | np.integer) or not 0 <= column < width:
            raise ValueError(f"{path} has no column {column!r}: its columns are the numbers 0 to {width - 1}.")
        chosen.append(int(column))
    return chosen
