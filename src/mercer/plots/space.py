"""Scatter plots in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.scatter import COLOURS


def plot_in_space(
    ax: Any,
    coordinates: Array,
    labels: Array | None = None,
    *,
    values: Array | None = None,
    title: str = "",
    size: float = 5.0,
    view: tuple[float, float] = (20.0, -60.0),
) -> Any:
    """Draw the first three coordinates of points in space, in the place of a flat panel.

    Parameters
    ----------
    ax : matplotlib Axes
        A flat panel; it is removed, and the new one takes its place.
    coordinates : array of shape (n, d)
        The points; missing coordinates are zero.
    labels : array of int, optional
        Classes of the points, one colour each.
    values : array of shape (n,), optional
        Shades of the points, in the place of labels.
    title : str, optional
        The title of the panel.
    size : float, default=5
        The area of a dot in square points.
    view : (elevation, azimuth), default=(20, -60)
        From where one looks, in degrees.

    Returns
    -------
    matplotlib Axes
        The new axes.
    """
    space = ax.figure.add_subplot(ax.get_subplotspec(), projection="3d")
    ax.remove()
    points = np.pad(np.asarray(coordinates), ((0, 0), (0, 3)))[:, :3]
    if values is not None:
        space.scatter(*points.T, c=values, cmap="viridis", s=size, linewidths=0, depthshade=False)
    else:
        labels = np.zeros(len(points), dtype=int) if labels is None else np.asarray(labels)
        for i, label in enumerate(np.unique(labels)):
            colour = COLOURS[i % len(COLOURS)]
            space.scatter(*points[labels == label].T, color=colour, s=size, linewidths=0, label=str(label))
    space.view_init(*view)
    space.set_title(title)
    space.tick_params(labelsize=6, pad=0)
    space.locator_params(nbins=5)
    space.set_box_aspect(None, zoom=1.1)
    return space
