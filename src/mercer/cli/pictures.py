"""The pictures that commands save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.data import FitData

_MOST_CLASSES = 10


def draw_map(plane: Any, data: FitData, path: Path) -> None:
    """Draw the map of an embedding in the plane, coloured by its labels, with what it keeps as its title."""
    from mercer.plots import new_figure, plot_plane_map, plot_shaded, save_figure

    figure, (ax,) = new_figure(1, panel_inches=6.0)
    labels = data.labels
    if labels is not None and labels.dtype.kind == "f":
        plot_shaded(ax, plane.coordinates, np.nan_to_num(labels, nan=float(np.nanmin(labels))), title=str(plane))
        figure.colorbar(ax.collections[0], ax=ax, label=data.label.name if data.label is not None else "")
    else:
        plot_plane_map(ax, plane, _few(labels))
    save_figure(figure, path)


def _few(labels: Any) -> Any:
    """The labels; the rarest become "other" where there are more than colours."""
    if labels is None:
        return None
    names, counts = np.unique(labels, return_counts=True)
    if names.size <= _MOST_CLASSES:
        return labels
    common = names[np.argsort(-counts, kind="stable")[: _MOST_CLASSES - 1]]
    return np.where(np.isin(labels, common), labels, "other")
