"""Dask arrays and data frames as points: their blocks stay where they lie, and models are applied to them there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from mercer.backends.collections import is_dask
from mercer.backends.config import config_context, get_config, require_free_memory
from mercer.backends.dask.cluster import Cluster
from mercer.backends.dask.failures import as_one_sentence

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@contextmanager
def brought_here(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Arguments]:
    """The arguments with the values of Dask collections; inside, kernel matrices are multiplied where these lie."""
    client = get_config().client or _default_client()
    with nullcontext() if client is None else config_context(client=client):
        cluster = get_config().cluster
        yield (
            tuple(_values(each, cluster) if is_dask(each) else each for each in args),
            {name: _values(each, cluster) if is_dask(each) else each for name, each in kwargs.items()},
        )


def _default_client() -> Any:
    """The client that collections are computed with; None where that is this process's threads."""
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def _values(collection: Any, cluster: Cluster | None) -> Any:
    """The values, with a table of numbers left on the workers in groups of rows."""
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


def block_by_block(name: str, model: Any, collection: Any, *args: Any, **kwargs: Any) -> Any:
    """The collection of what a method of the model says of every block."""
    from dask.delayed import delayed

    sent = delayed(model, pure=False, traverse=False)
    options = {"model": sent, "method": name, "rest": args, "named": kwargs}
    if hasattr(collection, "dtypes"):
        return _frame_by_block(collection, model, options)
    blocks = collection.rechunk({1: -1}) if collection.numblocks[1] > 1 else collection
    row = np.ones((1, blocks.shape[1]), blocks.dtype)
    seen = np.asarray(getattr(model, name)(row, *args, **kwargs))
    shape = {"chunks": (blocks.chunks[0], (seen.shape[1],))} if seen.ndim == 2 else {"drop_axis": 1}
    return blocks.map_blocks(_answer, **options, **shape, dtype=seen.dtype, meta=seen[:0])


def _frame_by_block(frame: Any, model: Any, options: dict[str, Any]) -> Any:
    """A data frame of the answers, with the index of the rows."""
    named = {name: value for name, value in options.items() if name != "model"}
    meta = _framed(frame._meta_nonempty, model=model, **named)[:0]
    return frame.map_partitions(_framed, **options, meta=meta)


def _answer(block: Any, *, model: Any, method: str, rest: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return np.asarray(getattr(model, method)(block, *rest, **named))


def _framed(block: Any, *, model: Any, method: str, rest: tuple[Any, ...], named: dict[str, Any]) -> Any:
    import pandas

    values = np.asarray(getattr(model, method)(block, *rest, **named))
    if values.ndim == 1:
        return pandas.Series(values, index=block.index, name=method)
    names = model.get_feature_names_out() if method == "transform" else range(values.shape[1])
    return pandas.DataFrame(values, index=block.index, columns=list(names))
