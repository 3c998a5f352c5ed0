"""Dask arrays and data frames as points: their blocks stay where they lie, and models are applied to them there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, final

import numpy as np

from mercer.backends.chunks import row_chunks
from mercer.backends.collections import is_dask
from mercer.backends.config import config_context, get_config, require_free_memory
from mercer.backends.dask.cluster import Cluster
from mercer.backends.dask.failures import as_one_sentence
from mercer.backends.row_source import Block, RowSource

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@contextmanager
def brought_here(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Arguments]:
    """The arguments with the values of Dask collections; inside, kernel matrices are multiplied where these lie."""
    client = get_config().client or _default_client()
    with nullcontext() if client is None else config_context(client=client):
        cluster = get_config().cluster
        by_blocks = bool(args) and getattr(args[0], "_fits_blocks", False)  # of the estimator whose method this is
        yield (
            tuple(_values(each, cluster, by_blocks) if is_dask(each) else each for each in args),
            {name: _values(each, cluster, by_blocks) if is_dask(each) else each for name, each in kwargs.items()},
        )


def _default_client() -> Any:
    """The client that collections are computed with; None where that is this process's threads."""
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _values(collection: Any, cluster: Cluster | None, by_blocks: bool) -> Any:
    """The values, with a table of numbers left on the workers in groups of rows.

    Of an array that does not fit here, what takes blocks of rows is given these.
    """
    _require_array_or_frame(collection)
    if by_blocks and collection.ndim == 2 and _bytes(collection) > get_config().memory_bytes:
        return DaskRows(_as_array(collection))
    require_free_memory(_bytes(collection), f"The rows of {type(collection).__name__} X take", "fit to a part of them")
    if cluster is None:
        return collection.compute()
    with as_one_sentence(cluster.client):
        if not _is_table(collection):
            return collection.compute()
        array = _as_array(collection)
        held = array.rechunk({0: cluster.group_rows(array.shape[0]), 1: -1}).persist()
        values = _frame_or_array(collection, held)
    cluster.adopt(held, np.asarray(values, dtype=held.dtype))
    return values


def _require_array_or_frame(collection: Any) -> None:
    if not hasattr(type(collection), "ndim"):
        kind = type(collection).__name__
        raise TypeError(f"A {kind} of Dask is no table: pass an array or a data frame of Dask, or what it computes.")


def _bytes(collection: Any) -> float:
    """An array knows its size; a data frame does not before it is read."""
    return float(np.nan_to_num(collection.nbytes)) if hasattr(collection, "chunks") else 0.0


def _is_table(collection: Any) -> bool:
    """Whether rows are points, all of whose columns are numbers."""
    if hasattr(collection, "dtypes"):  # a data frame; one column of it is a target
        return collection.ndim == 2 and all(kind.kind in "fiub" for kind in collection.dtypes if hasattr(kind, "kind"))
    return collection.ndim == 2 and collection.dtype.kind in "fiub"


def _as_array(collection: Any) -> Any:
    """The numbers in double precision, unless they are single."""
    array = collection.to_dask_array(lengths=True) if hasattr(collection, "dtypes") else collection
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        array = array.compute_chunk_sizes()
    return array if array.dtype == np.float32 else array.astype(np.float64)


def _frame_or_array(collection: Any, held: Any) -> Any:
    """What a fit is given: the array, or a frame of the names and the numbers."""
    values = held.compute()
    if not hasattr(collection, "dtypes"):
        return values
    import pandas

    return pandas.DataFrame(values, columns=collection.columns)


@final
class DaskRows(RowSource):
    """The rows of an array of Dask, computed a block at a time where its blocks lie.

    Parameters
    ----------
    array : dask.array.Array of shape (n, d)
        Of numbers, with blocks of known sizes.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape, self.dtype = (int(array.shape[0]), int(array.shape[1])), array.dtype

    @property
    def name(self) -> str:
        return "The Dask array X"

    def take(self, rows: Any) -> Block:
        if isinstance(rows, slice):
            return self._computed(self._array[rows])
        wanted, place = np.unique(np.arange(len(self))[rows], return_inverse=True)  # each block is asked once
        return self._computed(self._array[wanted])[place]

    def blocks(self, most: int) -> Iterator[tuple[slice, Block]]:
        for rows in row_chunks(len(self), most):
            yield rows, self._computed(self._array[rows])

    def _computed(self, array: Any) -> Block:
        client = get_config().client or _default_client()
        if client is None:
            return np.asarray(array.compute())
        with as_one_sentence(client):
            return np.asarray(client.compute(array, sync=True))


def block_by_block(name: str, model: Any, collection: Any, *args: Any, **kwargs: Any) -> Any:
    """The collection of what a method of the model says of every block; several, where it says several things."""
    from dask.delayed import delayed

    _require_array_or_frame(collection)
    if collection.ndim != 2:
        raise ValueError(
            f"X has {collection.ndim} dimensions, and points are rows of a table: pass X[:, None] of one column, "
            "X[None, :] of one row, and the table itself of a series, frame[['a']]."
        )
    sent = delayed(model, pure=False, traverse=False)
    options = {"model": sent, "method": name, "rest": args, "named": kwargs}
    if hasattr(collection, "dtypes"):
        return _frame_by_block(collection, model, options)
    blocks = collection.rechunk({1: -1}) if collection.numblocks[1] > 1 else collection
    row = np.ones((1, blocks.shape[1]), blocks.dtype)
    seen = getattr(model, name)(row, *args, **kwargs)
    if isinstance(seen, tuple):
        return tuple(_array_of(np.asarray(part), blocks, options, which=k) for k, part in enumerate(seen))
    return _array_of(np.asarray(seen), blocks, options)


def _array_of(seen: Block, blocks: Any, options: dict[str, Any], which: int | None = None) -> Any:
    """The array of answers, given that to one row; ``which`` of several is meant."""
    shape = {"chunks": (blocks.chunks[0], (seen.shape[1],))} if seen.ndim == 2 else {"drop_axis": 1}
    own = {**options, **shape, "none": seen[:0], "which": which}
    return blocks.map_blocks(_answer, **own, dtype=seen.dtype, meta=seen[:0])


def _frame_by_block(frame: Any, model: Any, options: dict[str, Any]) -> Any:
    """Data frames of the answers, with the index of the rows."""
    row = frame._meta_nonempty[:1]  # further rows of it lack values
    seen = getattr(model, options["method"])(row, *options["rest"], **options["named"])
    several = isinstance(seen, tuple)
    named = {name: value for name, value in options.items() if name != "model"}
    found = []
    for which, part in enumerate(seen if several else (seen,)):
        own: dict[str, Any] = {"none": np.asarray(part)[:0], "which": which if several else None}
        meta = _framed(row, model=model, **named, **own)[:0]
        found.append(frame.map_partitions(_framed, **options, **own, meta=meta))
    return tuple(found) if several else found[0]


def _answer(
    block: Any,
    *,
    model: Any,
    method: str,
    rest: tuple[Any, ...],
    named: dict[str, Any],
    none: Block,
    which: int | None,
) -> Any:
    """What the model says of a block; of one without rows, ``none``."""
    if not len(block):
        return none
    found = getattr(model, method)(block, *rest, **named)
    return np.asarray(found if which is None else found[which])


def _framed(block: Any, *, model: Any, method: str, **options: Any) -> Any:
    import pandas

    values = _answer(block, model=model, method=method, **options)
    if values.ndim == 1:
        return pandas.Series(values, index=block.index, name=method)
    names = model.get_feature_names_out() if method == "transform" else range(values.shape[1])
    return pandas.DataFrame(values, index=block.index, columns=list(names))
