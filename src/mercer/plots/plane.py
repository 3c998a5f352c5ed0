"""The map of an embedding in the plane, its doubtful points shown as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.embedding import EmbeddingDisplay
from mercer.plots.labels import MANY_COLOURS

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.embedding import PlaneMap


def plot_plane_map(
    ax: Any, plane: PlaneMap, labels: Array | None = None, *, title: str | None = None, size: float = 14.0
) -> Any:
    """Draw a map in the plane, one colour a label; points that it misplaces are empty rings.

    This is :class:`EmbeddingDisplay` of a map that is there already; its ``from_estimator(model, components="map")``
    makes the map too.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    plane : PlaneMap
        What :func:`mercer.plane_map` returned.
    labels : array of shape (n,), optional
        Classes of the points, with a legend where there are two to ten.
    title : str, optional
        The title; by default what the map keeps.
    size : float, default=14
        The area of a dot in square points.

    Returns
    -------
    matplotlib Axes
        The same axes.
    """
    display = EmbeddingDisplay(plane.coordinates, labels=labels, classes=True, misplaced=plane.misplaced)
    few = labels is not None and 1 < len(np.unique(np.asarray(labels))) <= len(MANY_COLOURS)
    return display.plot(ax, size=size, legend=few, title=_two_lines(str(plane)) if title is None else title).ax_


def _two_lines(summary: str) -> str:
    return summary.replace("; ", ";\n")
