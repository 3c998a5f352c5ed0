"""The map of an embedding in the plane, its doubtful points shown as such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.scatter import COLOURS

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.embedding import PlaneMap

_MANY = (
    "#332288",
    "#88ccee",
    "#44aa99",
    "#117733",
    "#999933",
    "#ddcc77",
    "#cc6677",
    "#882255",
    "#aa4499",
    "#888888",
)  # told apart by colour-blind readers too, where there are more classes than usual colours


def plot_plane_map(
    ax: Any, plane: PlaneMap, labels: Array | None = None, *, title: str | None = None, size: float = 14.0
) -> Any:
    """Draw a map in the plane, one colour a label; points that it misplaces are empty rings.

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
    positions, doubtful = plane.coordinates, plane.misplaced
    if labels is not None and len(labels) != len(positions):
        raise ValueError(f"labels has {len(labels)} entries, but the map has {len(positions)} points.")
    numbers, names = _classes(labels, len(positions))
    palette = COLOURS if len(names) <= len(COLOURS) else _MANY
    for i, name in enumerate(names):
        own, colour = numbers == i, palette[i % len(palette)]
        x, y = positions[own & ~doubtful].T
        ax.scatter(x, y, s=size, color=colour, alpha=0.75, linewidths=0, label=None if labels is None else str(name))
        x, y = positions[own & doubtful].T
        ax.scatter(x, y, s=1.6 * size, facecolors="none", edgecolors=colour, linewidths=0.8, zorder=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])  # positions of the layout have no unit
    ax.set_yticks([])
    ax.set_title(_two_lines(str(plane)) if title is None else title, fontsize=9)
    if 1 < len(names) <= len(palette):
        ax.legend(fontsize=7, framealpha=0.8, markerscale=1.3, loc="best")
    return ax


def _classes(labels: Array | None, n: int) -> tuple[Array, Array]:
    """The number of every point's class, and the classes."""
    if labels is None:
        return np.zeros(n, dtype=int), np.zeros(1)
    names, numbers = np.unique(np.asarray(labels), return_inverse=True)
    return numbers, names


def _two_lines(summary: str) -> str:
    return summary.replace("; ", ";\n")
