"""Pictures of densities: a line with the data in one dimension, contours with the data in two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.figures import new_figure
from mercer.plots.scatter import COLOURS

_DATA = "#555555"
_SUPPORT = "#aa3377"
_MARGIN = 0.15  # of the range of the points, on either side
_EDGE = 0.01  # of the highest value: where the density is higher at the edge, the picture is made wider
_WIDENINGS = 20
_COARSE = 31


@dataclass(frozen=True)
class DensityLook:
    """The options of a picture of a density that are about its look alone; see :func:`plot_density`."""

    levels: Any
    resolution: int | None
    label: str | None
    colour: str
    title: str


def plot_density(
    model: Any,
    X: Any = None,
    ax: Any = None,
    *,
    columns: Any = None,
    data: str = "auto",
    support: bool = True,
    limits: Any = None,
    levels: Any = 10,
    resolution: int | None = None,
    label: str | None = None,
    colour: str = COLOURS[0],
    title: str = "",
) -> Any:
    """Draw a density of one coordinate as a line, of two coordinates as contours, with the sample it was fitted to.

    Parameters
    ----------
    model : SumOfSquaresDensity or GaussianSquares
        A fitted density, or a marginal or a conditional of one; anything with a method ``density``.
    X : array of shape (n, d), optional
        Points to draw: the columns of the density, or those of the whole model where ``columns`` are chosen.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. Called again with the same axes it draws a second density.
    columns : int or pair of int, optional
        Draw the marginal of these columns; needed where the density has more than two.
    data : {"auto", "rug", "histogram", "points", "none"}, default="auto"
        How X is drawn: as a rug or a histogram below a line, as points over contours. ``"auto"`` is a rug or points.
    support : bool, default=True
        Whether to draw the support points of the model, as stars; in one dimension as triangles on the axis.
    limits : (low, high), or two of them, optional
        The range of each coordinate; by default all points, and as far as the density has a hundredth of its maximum.
    levels : int or increasing numbers, default=10
        Contours of a density of two coordinates.
    resolution : int, optional
        Grid points on each axis; 400 for a line and 150 for contours by default.
    label, colour, title : str, optional
        A name for the legend, of the line or of the points over contours; the colour of the line; the panel's title.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    style = DensityLook(levels, resolution, label, colour, title)
    chosen, X, points = _chosen(model, X, columns)
    d = points.shape[1]
    _check_data(data, d)
    ranges = _ranges(chosen, points) if limits is None else _checked_limits(limits, d)
    ax = new_figure(1, panel_inches=5.0)[1][0] if ax is None else ax
    shown = points[: points.shape[0] - (0 if X is None else X.shape[0])] if support else points[:0]
    if d == 1:
        _line(ax, chosen, ranges, style)
        _below(ax, X, shown, data)
    else:
        _contours(ax, chosen, ranges, style)
        _over(ax, X, shown, data, style.label)
        ax.set_aspect("equal", adjustable="datalim" if limits is None else "box")
    if style.label or (d == 2 and shown.size):
        ax.legend(fontsize=8, loc="best")
    ax.set_title(style.title)
    ax.tick_params(labelsize=8)
    return ax.figure


# --- what to draw -------------------------------------------------------------------------------------------


def _chosen(model: Any, X: Any, columns: Any) -> tuple[Any, Array | None, Array]:
    """The density of one or two coordinates, the sample in them, and all points the picture must show."""
    support = np.asarray(model.support_ if hasattr(model, "support_") else model.points, np.float64)
    d = support.shape[1]
    X = None if X is None else _checked_points(X, d if columns is None else None)
    if columns is None:
        if d > 2:
            raise ValueError(f"A density of {d} coordinates cannot be drawn: choose one or two of its columns.")
        return model, X, support if X is None else np.concatenate([support, X])
    kept = np.atleast_1d(np.asarray(columns))
    if kept.ndim != 1 or kept.size not in (1, 2):
        raise ValueError(f"columns={columns!r} must be one or two column numbers.")
    marginal = model.marginal(kept)
    if X is not None:
        X = X if X.shape[1] == kept.size and X.shape[1] != d else _checked_points(X, d)[:, kept]
    return marginal, X, support[:, kept] if X is None else np.concatenate([support[:, kept], X])


def _checked_points(X: Any, d: int | None) -> Array:
    X = np.asarray(X, np.float64)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or (d is not None and X.shape[1] != d) or not np.all(np.isfinite(X)):
        wanted = "two dimensions" if d is None else f"{d} columns"
        raise ValueError(f"X must be an array of finite numbers with {wanted}, not of shape {X.shape}.")
    return X


def _check_data(data: str, d: int) -> None:
    ways = ("auto", "rug", "histogram", "none") if d == 1 else ("auto", "points", "none")
    if data not in ways:
        raise ValueError(f"data={data!r} must be one of {', '.join(map(repr, ways))} for {d} coordinates.")


def _checked_limits(limits: Any, d: int) -> Array:
    ranges = np.asarray(limits, np.float64)
    ranges = np.repeat(ranges[None, :], d, axis=0) if ranges.shape == (2,) else ranges
    if ranges.shape != (d, 2) or not np.all(np.isfinite(ranges)) or np.any(ranges[:, 0] >= ranges[:, 1]):
        raise ValueError(f"limits={limits!r} must be (low, high) with low < high, for each of {d} coordinates.")
    return ranges


def _ranges(model: Any, points: Array) -> Array:
    """The box of the points, each side made wider until the density has come down at its edge."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, np.maximum(np.abs(low), 1.0))
    margins = np.full((points.shape[1], 2), _MARGIN)
    for _ in range(_WIDENINGS):
        ranges = np.stack([low - margins[:, 0] * span, high + margins[:, 1] * span], axis=1)
        values = _on_grid(model, ranges, _COARSE)[0]
        edges = [[np.take(values, side, axis=axis).max() for side in (0, -1)] for axis in range(values.ndim)]
        too_high = np.array(edges) > _EDGE * values.max()
        if not np.any(too_high):
            break
        margins[too_high] *= 1.5
    return ranges


def _on_grid(model: Any, ranges: Array, resolution: int) -> tuple[Array, list[Array]]:
    """The density on a grid, one axis a coordinate, and the axes."""
    axes = [np.linspace(low, high, resolution) for low, high in ranges]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return np.asarray(model.density(grid.reshape(-1, len(axes)))).reshape(grid.shape[:-1]), axes


# --- drawing ------------------------------------------------------------------------------------------------


def _line(ax: Any, model: Any, ranges: Array, look: DensityLook) -> None:
    values, (x,) = _on_grid(model, ranges, look.resolution or 400)
    ax.plot(x, values, color=look.colour, linewidth=1.4, label=look.label, zorder=3)
    ax.fill_between(x, values, color=look.colour, alpha=0.12, linewidth=0)
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.05 * float(values.max())))
    ax.set_ylabel("density", fontsize=8)


def _below(ax: Any, X: Array | None, support: Array, data: str) -> None:
    """The sample and the support below a line, in units of the height of the panel."""
    across = ax.get_xaxis_transform()
    if X is not None and data == "histogram":
        ax.hist(X[:, 0], bins="auto", density=True, color=_DATA, alpha=0.25, zorder=1)
    elif X is not None and data != "none":
        ax.plot(X[:, 0], np.full(X.shape[0], 0.015), "|", color=_DATA, alpha=0.5, markersize=8, transform=across)
    if support.size:
        height = np.zeros(support.shape[0])
        ax.plot(support[:, 0], height, "^", color=_SUPPORT, markersize=4, transform=across, clip_on=False, zorder=4)


def _contours(ax: Any, model: Any, ranges: Array, look: DensityLook) -> None:
    values, (x, y) = _on_grid(model, ranges, look.resolution or 150)
    lines = ax.contour(x, y, values.T, look.levels, colors="#334455", linewidths=0.5)
    heights = np.asarray(lines.levels)
    ax.contourf(x, y, values.T, heights[heights > 0], cmap="Blues", extend="max", zorder=0)  # nothing is left white


def _over(ax: Any, X: Array | None, support: Array, data: str, label: str | None) -> None:
    """The sample and the support over contours; the shades have no handle, so the label goes to the points."""
    if X is not None and data != "none":
        ax.scatter(*X.T, s=9, color="black", alpha=0.55, linewidths=0, label=label, zorder=3)
    if support.size:
        ax.scatter(*support.T, s=34, marker="*", color=_SUPPORT, linewidths=0, label="support", zorder=4)
