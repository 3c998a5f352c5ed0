"""Heat maps of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array


def plot_heat_map(
    ax: Any, values: Array, *, extent: tuple[float, float, float, float] | None = None, title: str = ""
) -> Any:
    """Draw a matrix as an image with a colour bar, white at zero, the first row at the bottom.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    values : array of shape (n, m)
        The matrix, such as a kernel on a grid.
    extent : (left, right, bottom, top), optional
        The rectangle the matrix covers.
    title : str, optional
        The title of the panel.

    Returns
    -------
    matplotlib Axes
        The same axes.
    """
    largest = float(np.abs(values).max())
    image = ax.imshow(values, origin="lower", extent=extent, cmap="RdBu_r", vmin=-largest, vmax=largest)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.04)  # as high as a square image
    bar.ax.tick_params(labelsize=8)
    ax.locator_params(nbins=5)
    ax.set_title(title)
    ax.tick_params(labelsize=8)
    return ax
