"""Rows that do not lie, or do not all lie, in this process's memory: in a file, or on the workers of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any, ClassVar, NoReturn, final

import numpy as np

from mercer.backends.chunks import row_chunks, source_rows
from mercer.backends.config import require_memory

_TO_A_FILE = "write it to a file by mercer.io.write_rows"
Block = np.ndarray[Any, np.dtype[Any]]


class RowSource(ABC):
    """A table of n × d numbers that gives its rows a block at a time.

    It stands where an array of points would: it has a shape and a dtype, and ``source[rows]`` are rows as an array of
    this process. What needs all rows at once asks for :meth:`blocks`, and keeps no more than one of them.

    Attributes
    ----------
    shape : tuple of int
        (n, d).
    dtype : numpy.dtype
        Of the blocks.
    """

    shape: tuple[int, int]
    dtype: Any
    ndim = 2
    device: ClassVar = "cpu"
    gives_blocks: ClassVar = True  # by which :func:`mercer.backends.arrays.is_source` knows it

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.name}: {self.shape[0]} rows of {self.shape[1]} numbers, {self.dtype}>"

    def __iter__(self) -> Iterator[Block]:
        """Refuse to be gone through row by row, which would open a file for each."""
        raise TypeError(
            f"{self.name} is read a block at a time: write 'for where, block in rows.blocks(10_000)', and go through "
            "the rows of the block."
        )

    def __getitem__(self, rows: Any) -> Block:
        return self.take(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Block:
        """Refuse to become an array: what asks for one needs all rows at once."""
        self.refuse_whole()

    def refuse_whole(self) -> NoReturn:
        """Say that all rows are needed at once, which is not how they come."""
        raise TypeError(
            f"{self.name} is read a block at a time, and this needs all {self.shape[0]} rows at once: pass some of "
            "them, such as rows[:10_000], or a method that works on landmarks."
        )

    def refuse_without_landmarks(self) -> NoReturn:
        """Say that an estimator which solves on all rows can solve on landmarks instead."""
        raise ValueError(
            f"{self.name} is read a block at a time, and this needs all {self.shape[0]} rows at once: pass "
            "landmarks=1000, on which it is solved and from which it is extended to all rows, or some of the rows."
        )

    @abstractmethod
    def take(self, rows: Any) -> Block:
        """Some rows, given by a slice or an array of row numbers in any order."""

    @abstractmethod
    def blocks(self, most: int) -> Iterator[tuple[slice, Block]]:
        """All rows in their order, at most ``most`` at a time, each block with the slice of rows that it is."""

    @property
    def name(self) -> str:
        """How messages call it."""
        return "X"


@final
class ArrayRows(RowSource):
    """The rows of an array that is there: for what takes sources, and to compare with."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape, self.dtype = (int(array.shape[0]), int(array.shape[1])), array.dtype

    def take(self, rows: Any) -> Block:
        return np.array(self._array[rows])

    def blocks(self, most: int) -> Iterator[tuple[slice, Block]]:
        for rows in row_chunks(self.shape[0], most):
            yield rows, np.array(self._array[rows])


@final
class JoinedRows(RowSource):
    """The rows of several sources, or arrays, one after the other."""

    def __init__(self, *parts: Any) -> None:
        self.parts = tuple(part if isinstance(part, RowSource) else ArrayRows(part) for part in parts)
        self._starts = np.cumsum([0, *(len(part) for part in self.parts)])
        self.shape = (int(self._starts[-1]), self.parts[0].shape[1])
        self.dtype = np.result_type(*(part.dtype for part in self.parts))

    def take(self, rows: Any) -> Block:
        wanted = np.arange(len(self))[rows]
        out = np.empty((wanted.size, self.shape[1]), self.dtype)
        for part, start in zip(self.parts, self._starts, strict=False):
            inside = (wanted >= start) & (wanted < start + len(part))
            if inside.any():
                out[inside] = part.take(wanted[inside] - start)
        return out

    def blocks(self, most: int) -> Iterator[tuple[slice, Block]]:
        for part, start in zip(self.parts, self._starts, strict=False):
            for rows, block in part.blocks(most):
                yield slice(int(start) + rows.start, int(start) + rows.stop), block.astype(self.dtype, copy=False)


@final
class FiniteRows(RowSource):
    """The rows of another source in single or double precision, refused where one of them is no finite number."""

    def __init__(self, source: RowSource, dtype: Any) -> None:
        self._source: RowSource = source._source if isinstance(source, FiniteRows) else source
        self.shape, self.dtype = (int(source.shape[0]), int(source.shape[1])), np.dtype(dtype)

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def parts(self) -> tuple[FiniteRows, ...]:
        """The sources whose rows are joined here; itself alone where there are no others."""
        if not isinstance(self._source, JoinedRows):
            return (self,)
        return tuple(FiniteRows(part, self.dtype) for part in self._source.parts)

    def astype(self, dtype: Any, copy: bool = False) -> FiniteRows:
        """The same rows in another precision."""
        return FiniteRows(self._source, dtype)

    def take(self, rows: Any) -> Block:
        if isinstance(rows, tuple):  # rows and columns, as of an array in memory
            self.refuse_whole()
        if not isinstance(rows, slice):
            rows = np.asarray(rows) if np.size(rows) else np.empty(0, np.intp)
            if rows.ndim != 1 or rows.dtype.kind not in "iub":
                raise TypeError(f"Rows of {self.name} are taken by a slice or a list of their numbers: rows[[3, 7]].")
        return self._checked(self._source.take(rows), rows)

    def blocks(self, most: int) -> Iterator[tuple[slice, Block]]:
        if isinstance(most, bool) or not isinstance(most, Integral) or most < 1:
            raise ValueError(f"most={most!r} must be a whole number of rows of at least 1.")
        for rows, block in self._source.blocks(int(most)):
            yield rows, self._checked(block, rows)

    def _checked(self, block: Block, rows: Any) -> Block:
        with np.errstate(over="ignore"):  # what is too large for the precision is named
            values = np.ascontiguousarray(block, dtype=self.dtype)
        if not np.isfinite(values).all():
            at, column = (int(axis[0]) for axis in np.nonzero(~np.isfinite(values)))
            row = int(np.arange(self.shape[0])[rows][at]) if not isinstance(rows, slice) else (rows.start or 0) + at
            raise ValueError(
                f"{self.name} has {float(block[at, column])} in row {row}, column {column}, both counted from 0, which "
                f"is no finite {self.dtype}: remove or impute it first."
            )
        return values


def regrouped(parts: Iterable[Block], most: int) -> Iterator[tuple[slice, Block]]:
    """Rows that come in parts of any sizes as blocks of exactly ``most`` rows, but for the last."""
    start, waiting, held = 0, list[Block](), 0
    for given in parts:
        left = given
        while left.shape[0]:
            part, left = left[: most - held], left[most - held :]
            waiting.append(part)
            held += part.shape[0]
            if held == most:
                yield slice(start, start + most), waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
                start, waiting, held = start + most, [], 0
    if held:
        yield slice(start, start + held), waiting[0] if len(waiting) == 1 else np.concatenate(waiting)


def by_blocks(function: Callable[[Block], Any], source: RowSource, width: int | None = None) -> Any:
    """What a function gives of every row, where it looks at each row alone: called block by block.

    Cost: one pass over the source; memory: a block, what is made of it, and the answer. ``width`` is how many numbers
    the function keeps of a row on its way.
    """
    out: list[Block] = []
    for rows, block in source.blocks(source_rows(2 * source.shape[1] if width is None else width)):
        try:
            found = function(block)
        except ValueError as error:
            raise ValueError(f"In rows {rows.start} to {rows.stop - 1}, counted from 0 there: {error}") from error
        parts = found if isinstance(found, tuple) else (found,)
        if not out:
            needed = source.shape[0] / block.shape[0] * sum(part.nbytes for part in parts)
            require_memory(needed, f"The answer for {source.shape[0]} rows", _TO_A_FILE)
            out = [np.empty((source.shape[0], *part.shape[1:]), part.dtype) for part in parts]
        for whole, part in zip(out, parts, strict=True):
            whole[rows] = part
    return tuple(out) if isinstance(found, tuple) else out[0]
