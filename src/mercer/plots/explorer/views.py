"""The pictures of a page: the embedding, and diffusion maps and principal components of the same rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy

_ENOUGH = 10  # coordinates of the embedding that a page carries
_BESIDE = 3  # of the methods beside it
_PROBES = 20  # rows by which data are recognised as those of the fit
_SAME = 1e-3  # of the spread of the embedding: a row that is embedded so near to its place in the fit is the same
_ALL_ROWS = 3000  # up to which diffusion maps are of all rows
_LANDMARKS = 500  # and of so many beyond


@final
@dataclass(frozen=True, eq=False)
class View:
    """Positions of all rows by one method.

    Attributes
    ----------
    name, note : str
        The method, and what should be known of how it was computed.
    coordinates : array of shape (n, k), k ≥ 1
        The positions.
    axes : tuple of k str
        Names of the coordinates.
    """

    name: str
    note: str
    coordinates: Array
    axes: tuple[str, ...]


def embedding_view(model: Any, X: Any) -> tuple[View, bool]:
    """The coordinates of the rows of X, and whether they are the rows that the model was fitted on."""
    fitted = is_fitted_on(model, X)
    coordinates = to_numpy(model.embedding_ if fitted else model.transform(X))
    coordinates = np.asarray(coordinates, dtype=np.float64)
    if not np.isfinite(coordinates).all():
        raise ValueError("The embedding has coordinates that are not finite: there is nothing to draw.")
    what = "The rows that the model was fitted on." if fitted else "New rows, placed by the model's transform."
    kept = coordinates[:, :_ENOUGH]
    if coordinates.shape[1] > _ENOUGH:
        what += f" The first {_ENOUGH} of {coordinates.shape[1]} coordinates."
    return View(type(model).__name__, what, kept, _axes_of(model, kept.shape[1])), fitted


def is_fitted_on(model: Any, X: Any) -> bool:
    """Whether X are the rows of the fit: as many, and some of them embedded where the fit has them."""
    stored = getattr(model, "embedding_", None)
    n = n_rows(X)
    if stored is None or stored.shape[0] != n:
        return False
    if getattr(model, "metric", None) == "precomputed":
        return True  # such a model knows no new points
    probes = np.unique(np.linspace(0, n - 1, _PROBES).astype(int))
    there, here = to_numpy(stored)[probes], to_numpy(model.transform(rows_of(X, probes)))
    spread = float(np.ptp(to_numpy(stored), axis=0).max()) or 1.0
    return bool(np.abs(there - here).max() <= _SAME * spread)


def views_beside(model: Any, X: Any) -> tuple[list[View], list[str]]:
    """Diffusion maps with the model's kernel and principal components of X, and why one of them is missing."""
    found, missing = [], []
    for name, method in (("Diffusion maps", _diffusion), ("PCA", _principal)):
        began = time.perf_counter()
        try:
            view = method(model, X, name)
        except (ValueError, ArithmeticError, TypeError) as reason:
            missing.append(f"{name} is left out: {reason}")
            continue
        if view is not None:
            seconds = time.perf_counter() - began
            found.append(View(view.name, f"{view.note} Computed for this page in {seconds:.1f} s.", *_rest(view)))
    return found, missing


def plane_view(plane: Any, n: int) -> View:
    """The map of all coordinates in the plane that :func:`mercer.plane_map` made."""
    positions = np.asarray(to_numpy(plane.coordinates), dtype=np.float64)
    if positions.shape[0] != n:
        raise ValueError(
            f"The plane map has {positions.shape[0]} points, but there are {n} rows: make it of this model."
        )
    return View("Plane map", plane.summary, positions, ("first", "second"))


def n_rows(X: Any) -> int:
    """The number of rows of an array, a tensor, a sparse matrix or a table."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def rows_of(X: Any, rows: Array) -> Any:
    """Some rows of an array, a data frame or a table."""
    for way in ("iloc", "take"):
        if hasattr(X, "columns") and hasattr(X, way):
            return X.iloc[rows] if way == "iloc" else X.take(rows)
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def _rest(view: View) -> tuple[Array, tuple[str, ...]]:
    return view.coordinates, view.axes


def _axes_of(model: Any, k: int) -> tuple[str, ...]:
    """Names of coordinates; with several levels they say of which one each is."""
    levels = getattr(model, "levels_", ())
    if len(levels) < 2:
        return tuple(f"coordinate {j + 1}" for j in range(k))
    names = [f"level {i}, {j + 1}" for i, level in enumerate(levels, 1) for j in range(level.rank)]
    names += [f"coordinate {j + 1}" for j in range(len(names), k)]
    return tuple(names[:k])


def _diffusion(model: Any, X: Any, name: str) -> View | None:
    from mercer.embedding import DiffusionMaps

    if isinstance(model, DiffusionMaps):
        return None
    kernel, n = getattr(model, "kernel", None), n_rows(X)
    chosen = None if n <= _ALL_ROWS else _LANDMARKS
    fitted = DiffusionMaps(kernel, n_components=_BESIDE, landmarks=chosen, random_state=0).fit(X)
    how = "of all rows" if chosen is None else f"through {chosen} landmarks"
    return View(
        name, f"Diffusion maps {how}, with {fitted.kernel_!r}.", to_numpy(fitted.embedding_), _numbered(_BESIDE)
    )


def _principal(model: Any, X: Any, name: str) -> View | None:
    from sklearn.decomposition import PCA

    points = _as_matrix(model, X)
    if points is None:
        return None
    count = min(_BESIDE, *points.shape)
    method = PCA(count, random_state=0).fit(points)
    shares = ", ".join(f"{share:.0%}" for share in method.explained_variance_ratio_)
    return View(
        name, f"Principal components, with {shares} of the variance.", method.transform(points), _numbered(count)
    )


def _as_matrix(model: Any, X: Any) -> Array | None:
    """The points as numbers; None where rows are those of a kernel matrix or of distances, or nothing is a number."""
    if type(getattr(model, "kernel_", None)).__name__ == "Precomputed" or getattr(model, "metric", "") == "precomputed":
        return None
    if hasattr(X, "columns"):
        from mercer.plots.explorer.columns import read_columns

        numbers = [column.values for column in read_columns(X, n_rows(X)) if column.kind == "number"]
        return np.column_stack(numbers) if numbers else None
    return np.asarray(to_numpy(X), dtype=np.float64)


def _numbered(k: int) -> tuple[str, ...]:
    return tuple(f"coordinate {j + 1}" for j in range(k))
