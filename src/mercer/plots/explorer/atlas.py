"""A data frame of an embedding as Embedding Atlas reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import to_numpy
from mercer.plots.explorer.columns import Column
from mercer.plots.explorer.quantities import quantities_of
from mercer.plots.explorer.report import columns_of, require_embedding
from mercer.plots.explorer.views import embedding_view, n_rows

X_COLUMN, Y_COLUMN, NEIGHBOURS = "projection_x", "projection_y", "neighbors"


def atlas_frame(
    model: Any, X: Any, *, table: Any = None, label: Any = None, plane: Any = None, n_neighbors: int = 15
) -> Any:
    """Return a data frame that Embedding Atlas opens as it is.

    Its columns are named as in the documentation of that program, so that after ``frame.to_parquet("rows.parquet")``
    the command is ``embedding-atlas rows.parquet --x projection_x --y projection_y --neighbors neighbors``.

    Parameters
    ----------
    model : fitted estimator
        As for :func:`report`.
    X : array of shape (n, d), data frame or table
        The rows.
    table : data frame, table or mapping, optional
        Columns of the same rows, that are kept as they are read: numbers, or texts.
    label : array of shape (n,), optional
        Classes or numbers of the rows, as the column ``label``.
    plane : PlaneMap, optional
        Positions by :func:`mercer.plane_map`; by default the first two coordinates.
    n_neighbors : int, default=15
        Nearest rows by all coordinates of the embedding, for the column ``neighbors``; 0 leaves it out.

    Returns
    -------
    pandas.DataFrame
        ``projection_x`` and ``projection_y`` (float64); the columns of the table; ``label``; ``stationary density``,
        ``novelty`` and ``landmark weight`` where the model has them; ``neighbors``, a mapping a row with ``ids``, row
        numbers from zero, and ``distances``.
    """
    try:
        import pandas
    except ModuleNotFoundError:
        raise ModuleNotFoundError("A frame for Embedding Atlas needs pandas: pip install pandas.") from None
    require_embedding(model)
    n = n_rows(X)
    view, fitted = embedding_view(model, X)
    positions = view.coordinates if plane is None else np.asarray(to_numpy(plane.coordinates))
    second = positions[:, 1] if positions.shape[1] > 1 else np.zeros(n)
    data: dict[str, Any] = {X_COLUMN: positions[:, 0], Y_COLUMN: second}
    for column in [*columns_of(table, X, label, n)[0], *quantities_of(model, X, fitted, n)]:
        data[_unused(column.name, data)] = _plain(column)
    if n_neighbors and n > 1:
        data[NEIGHBOURS] = _neighbours(view.coordinates, min(n_neighbors, n - 1))
    return pandas.DataFrame(data)


def _unused(name: str, data: dict[str, Any]) -> str:
    """A name that is not taken: the positions and neighbours keep theirs."""
    while name in data or name == NEIGHBOURS:
        name = f"{name}_"
    return name


def _plain(column: Column) -> Any:
    if column.kind != "category":
        return column.values
    words = np.array([*column.words, None], dtype=object)  # -1, no value, finds None
    return words[column.values]


def _neighbours(E: Any, count: int) -> list[dict[str, list[Any]]]:
    from sklearn.neighbors import NearestNeighbors

    distances, rows = NearestNeighbors(n_neighbors=count).fit(E).kneighbors()
    return [{"ids": ids, "distances": far} for ids, far in zip(rows.tolist(), distances.tolist(), strict=True)]
