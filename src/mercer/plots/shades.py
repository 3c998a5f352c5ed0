"""Scatter plots shaded by a quantity, such as the stationary probability of every point."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.labels import Numbers, draw_numbers


def plot_shaded(
    ax: Any, coordinates: Array, values: Array, *, stars: Array | None = None, title: str = "", size: float = 12.0
) -> Any:
    """Draw the first two coordinates of points in the shade of a value, from dark blue (low) to yellow (high).

    :class:`EmbeddingDisplay` draws points in the same shades, with a colour bar.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    coordinates : array of shape (n, d), d ≥ 1
        The points; a single coordinate is drawn on a horizontal line.
    values : array of shape (n,)
        What the shade says.
    stars : array of bool, optional
        Points to draw as stars, above the others.
    title : str, optional
        The title of the panel.
    size : float, default=12
        The area of a dot in square points; stars are eight times as large.

    Returns
    -------
    matplotlib Axes
        The same axes.
    """
    points = np.pad(np.asarray(coordinates), ((0, 0), (0, 1)))[:, :2]
    draw_numbers(ax, points, Numbers(np.asarray(values, np.float64)), size=size, stars=stars, bar=False)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_title(title)
    ax.tick_params(labelsize=8)
    return ax
