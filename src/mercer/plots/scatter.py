"""Scatter plots of points and of embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array

COLOURS = ("#4477aa", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")  # told apart by colour-blind readers too
_OUTLIER = "#ee3333"


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

    A single coordinate is drawn against the index of the point.

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
    coordinates = np.asarray(coordinates)
    labels = np.zeros(len(coordinates), dtype=int) if labels is None else np.asarray(labels)
    if coordinates.shape[1] == 1:
        coordinates = np.column_stack([np.arange(len(coordinates)), coordinates])
    elif equal_axes:
        ax.set_aspect("equal", adjustable="datalim")
    for i, label in enumerate(label for label in np.unique(labels) if label != -1):
        x, y = coordinates[labels == label, :2].T
        ax.scatter(x, y, s=size, color=COLOURS[i % len(COLOURS)], alpha=0.75, linewidths=0)
    x, y = coordinates[labels == -1, :2].T
    ax.scatter(x, y, s=5 * size, color=_OUTLIER, marker="*", linewidths=0, zorder=3)
    ax.set_title(title)
    ax.tick_params(labelsize=8)
    return ax
