"""The report of a model: everything that its page shows, and the page."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from mercer.backends.arrays import to_numpy
from mercer.plots.explorer.columns import MOST_COLOURS, Column, features_of, read_column, read_columns
from mercer.plots.explorer.facts import certificates_of, charts_of, settings_of
from mercer.plots.explorer.packing import Packer
from mercer.plots.explorer.page import compose
from mercer.plots.explorer.quantities import landmarks_of, quantities_of
from mercer.plots.explorer.views import View, embedding_view, n_rows, plane_view, views_beside
from mercer.whole_files import asked_for

_FRAME = (
    '<iframe title="{title}" srcdoc="{page}" sandbox="allow-scripts allow-downloads allow-popups" '
    'style="width:100%;height:{height}px;border:1px solid #8888;border-radius:4px"></iframe>'
)
_HEIGHT = 820
_SHOWN_LANDMARKS = 500


@final
@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A page of HTML that shows an embedding; a notebook shows it inline.

    Attributes
    ----------
    html : str
        The page: one file that needs no network.
    title : str
        Its title.
    n_rows : int
        The rows that it shows.
    notes : tuple of str
        What was left out, and why, a sentence each.
    """

    html: str
    title: str
    n_rows: int
    notes: tuple[str, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all, and return its path."""
        with asked_for(path) as temporary:
            temporary.write_text(self.html, encoding="utf-8", newline="\n")
        return Path(path).resolve()

    def _repr_html_(self) -> str:
        page, title = html.escape(self.html, quote=True), html.escape(self.title, quote=True)
        return _FRAME.format(title=title, page=page, height=_HEIGHT)

    def __repr__(self) -> str:
        return f"Report({self.title!r}: {self.n_rows:,} rows, {len(self.html) / 1e6:.1f} MB; save(path) writes it)"


def report(
    model: Any,
    X: Any,
    *,
    table: Any = None,
    label: Any = None,
    title: str | None = None,
    beside: bool = True,
    path: Any = None,
    plane: Any = None,
    landmarks: Any = None,
    place: str | None = None,
) -> Report:
    """Make a page that shows an embedding in two and three dimensions, with its proof, and lets a reader explore it.

    Parameters
    ----------
    model : fitted estimator
        A :class:`~mercer.SDPEmbedding`, or another estimator with ``embedding_``. What it lacks, such as a novelty or a
        history, the page leaves out.
    X : array of shape (n, d), data frame or table
        The rows: those of the fit, which keep their coordinates, or new ones, which the model places.
    table : data frame, table or mapping, optional
        Columns of the same rows to show, search and colour by. By default those of X where it is a data frame, or an
        array of up to sixteen columns.
    label : str or array of shape (n,), optional
        The name of a column of the table, or classes or numbers of the rows, to colour by at first.
    title : str, optional
        The title of the page.
    beside : bool, default=True
        Whether to compute diffusion maps, with the model's kernel, and principal components of the same rows. Of more
        than 3000 rows diffusion maps go through 500 landmarks.
    path : RankPath, optional
        What :func:`mercer.rank_path` returned: the rank over the bandwidth is drawn.
    plane : PlaneMap, optional
        What :func:`mercer.plane_map` returned, as one more picture.
    landmarks : estimator with ``indices_`` and ``weights_``, optional
        Landmarks among these rows, such as a fitted :class:`~mercer.QuadratureSparsifier`; by default the model's own.
    place : str, optional
        The column of the table that says where a row stands in its file, such as the line: it is exported beside the
        numbers of the rows, which count those of the page from 0.

    Returns
    -------
    Report
        The page: ``html``, ``save(path)``; the last expression of a notebook's cell shows it inline.

    Notes
    -----
    Cost: one pass of the kernel for the novelties, n·m evaluations for m training points; with ``beside``, diffusion
    maps and principal components. The page has 0.6 MB beside the data, of which every row takes some 16 bytes a
    coordinate triple and what its columns need.

    Examples
    --------
    >>> from mercer import Gaussian, SDPEmbedding
    >>> from mercer.datasets import three_clusters
    >>> from mercer.plots import report
    >>> X, labels = three_clusters()
    >>> page = report(SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X), X, label=labels, beside=False)
    >>> page.n_rows, len(page.html) < 6_000_000
    (310, True)
    """
    require_embedding(model)
    n = n_rows(X)
    first, fitted = embedding_view(model, X)
    views, notes = views_beside(model, X) if beside else ([], [])
    shown = [first, *([] if plane is None else [plane_view(plane, n)]), *views]
    columns, chosen = columns_of(table, X, label, n)
    if place is not None and place not in [column.name for column in columns]:
        raise ValueError(f"There is no column {place!r} to say where rows stand: name one of the table.")
    columns += quantities_of(model, X, fitted, n, landmarks)
    title = title or f"{type(model).__name__} of {n:,} rows"
    packer = Packer()
    description = {
        "title": title,
        "n": n,
        "model": type(model).__name__,
        "notes": notes,
        "views": [_packed_view(view, packer) for view in shown],
        "columns": [packer.add_column(column) for column in columns],
        "colour": chosen or _default_colour([column for column in columns if column.name != place]),
        "place": place,
        "landmarks": _heaviest(landmarks_of(model, fitted, landmarks)),
        "certificates": certificates_of(model),
        "charts": charts_of(model, path),
        "settings": settings_of(model),
    }
    return Report(compose(title, description, packer.elements), title, n, tuple(notes))


def require_embedding(model: Any) -> None:
    """Refuse what has no embedding to show."""
    if not hasattr(model, "embedding_"):
        name = type(model).__name__
        raise TypeError(f"{name} has no embedding_ to show: fit it first, or pass an estimator that embeds points.")


def columns_of(table: Any, X: Any, label: Any, n: int) -> tuple[list[Column], str | None]:
    """The columns of the rows, and the name of the one to colour by."""
    wanted = label if isinstance(label, str) else None
    columns = features_of(X, n, wanted) if table is None else read_columns(table, n, wanted)
    if label is None:
        return columns, None
    if wanted is not None:
        names = [column.name for column in columns]
        if wanted not in names:
            shown = ", ".join(map(repr, names[:12])) or "none"
            raise ValueError(f"There is no column {wanted!r} to colour by; the columns are {shown}.")
        at = names.index(wanted)
        return [columns[at], *columns[:at], *columns[at + 1 :]], wanted
    name = _free("label", [column.name for column in columns])
    return [read_column(name, label, n, classes=True), *columns], name


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name = f"{name} (given)"
    return name


def _default_colour(columns: list[Column]) -> str | None:
    """A column of classes that colours tell apart, else the first that the model made, else any."""
    classes = [
        column.name
        for column in columns
        if column.kind == "category" and 1 < len(column.words) <= min(MOST_COLOURS, column.values.size // 2)
    ]
    numbers = [column.name for column in reversed(columns) if column.kind == "number"]
    made = [name for name in numbers if name == "novelty"]
    return next(iter([*classes, *made, *numbers]), None)


def _packed_view(view: View, packer: Packer) -> dict[str, Any]:
    """Positions in single precision, which is more than a screen has."""
    arrays = [packer.add(axis.astype(np.float32)) for axis in np.asarray(to_numpy(view.coordinates)).T]
    return {"name": view.name, "note": view.note, "axes": list(view.axes), "coordinates": arrays}


def _heaviest(landmarks: Any) -> dict[str, Any] | None:
    """The landmarks by falling weight, so many of them as a reader may look at."""
    if landmarks is None:
        return None
    rows, weights = landmarks
    order = np.argsort(-weights, kind="stable")[:_SHOWN_LANDMARKS]
    shares = weights[order] / weights.sum()
    return {
        "count": int(rows.size),
        "rows": rows[order].tolist(),
        "weights": weights[order].tolist(),
        "shares": shares.tolist(),
    }
