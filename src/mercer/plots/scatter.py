"""Scatter plots of points and of embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.embedding import EmbeddingDisplay
from mercer.plots.labels import COLOURS

__all__ = ["COLOURS", "plot_points"]


def plot_points(
    ax: Any,
    coordinates: Array,
    labels: Array | None = None,
    *,
    title: str = "",
    size: float = 14.0,
    equal_axes: bool = True,
) -> Any:
    """Draw the first two coordinates of points, one colour a label, red stars for the label -1.

    A single coordinate is drawn against the index of the point. This is :class:`EmbeddingDisplay` without its legend
    and the names of its axes; for a fitted model, or with either, use that.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    coordinates : array of shape (n, d)
        The points.
    labels : array of int, optional
        Classes of the points; -1 for outliers.
    title : str, optional
        The title of the panel.
    size : float, default=14
        The area of a dot in square points; outliers are five times as large.
    equal_axes : bool, default=True
        One scale for both coordinates, so that distances can be read off; otherwise the points fill the panel.

    Returns
    -------
    matplotlib Axes
        The same axes.
    """
    points = np.asarray(coordinates)[:, :2]
    display = EmbeddingDisplay(points, labels=labels, classes=True, outlier=-1, names=("", ""))
    return display.plot(ax, size=size, legend=False, equal_axes=equal_axes, title=title).ax_
