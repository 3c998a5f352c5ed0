"""The pictures that commands save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.data import FitData

_MOST_CLASSES = 10


def drawn_map(model: Any, data: FitData, path: Path) -> str:
    """Draw an embedding in the plane, coloured by its labels, and return what the map keeps, in a line."""
    from mercer.embedding import plane_map
    from mercer.plots import new_figure, plot_plane_map, plot_shaded, save_figure

    plane = plane_map(np.asarray(model.embedding_), random_state=0)
    figure, (ax,) = new_figure(1, panel_inches=6.0)
    labels = data.labels
    if labels is not None and labels.dtype.kind == "f":
        plot_shaded(ax, plane.coordinates, np.nan_to_num(labels, nan=float(np.nanmin(labels))), title=str(plane))
        figure.colorbar(ax.collections[0], ax=ax, label=data.label.name if data.label is not None else "")
    else:
        plot_plane_map(ax, plane, _few(labels))
    save_figure(figure, path)
    return str(plane)


def _few(labels: Any) -> Any:
    """The labels; the rarest become "other" where there are more than colours."""
    if labels is None:
        return None
    names, counts = np.unique(labels, return_counts=True)
    if names.size <= _MOST_CLASSES:
        return labels
    common = names[np.argsort(-counts, kind="stable")[: _MOST_CLASSES - 1]]
    return np.where(np.isin(labels, common), labels, "other")
