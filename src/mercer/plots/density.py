"""Pictures of densities: a line with the data in one dimension, contours with the data in two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.display import Display, one_scale
from mercer.plots.labels import (
    COLOURS,
    Classes,
    Numbers,
    draw_bar,
    draw_classes,
    draw_legend,
    draw_numbers,
    read_labels,
)

_DATA = "#555555"
_SUPPORT = "#aa3377"
_MARGIN = 0.15  # of the range of the points, on either side
_EDGE = 0.01  # of the highest value: where the density is higher at the edge, the picture is made wider
_WIDENINGS = 20
_COARSE = 31
_TICKS = 6  # of a colour bar
_RESOLUTION = {1: 400, 2: 150}


@final
class DensityDisplay(Display):
    """A density of one coordinate as a line, of two coordinates as contours, with the sample and the support.

    Make one by :meth:`from_estimator`.

    Parameters
    ----------
    values : array of shape (r,) or (r, r)
        The density on a grid.
    grid : one or two arrays of shape (r,)
        The grid's axes.
    points : array of shape (n, d), optional
        The sample.
    support : array of shape (m, d), optional
        The support points.
    labels : array of shape (n,), optional
        What the sample is coloured by, as in :class:`EmbeddingDisplay`.
    label_name : str, optional
        What the labels are.

    Attributes
    ----------
    values, grid, points, support : arrays
        As above.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(
        self,
        values: Array,
        grid: Sequence[Array],
        *,
        points: Array | None = None,
        support: Array | None = None,
        labels: Any = None,
        label_name: str | None = None,
    ) -> None:
        self.values, self.grid, self.points = np.asarray(values), tuple(grid), points
        self.support = np.empty((0, len(self.grid))) if support is None else support
        if labels is not None and points is None:
            raise ValueError("labels colour the points of X, which are not given: pass X.")
        self._labels = None if points is None or labels is None else read_labels(labels, len(points), name=label_name)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        labels: Any = None,
        ax: Any = None,
        columns: Any = None,
        support: bool = True,
        limits: Any = None,
        resolution: int | None = None,
        label_name: str | None = None,
        **look: Any,
    ) -> DensityDisplay:
        """Draw a density, and the sample it was fitted to.

        Parameters
        ----------
        model : SumOfSquaresDensity or GaussianSquares
            A fitted density, or a marginal or a conditional of one; anything with a method ``density``.
        X : array of shape (n, d), optional
            Points to draw: the columns of the density, or those of the whole model where ``columns`` are chosen.
        labels : array of shape (n,), optional
            What they are coloured by, as in :class:`EmbeddingDisplay`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. Axes that have a density get a second one.
        columns : int or pair of int, optional
            Draw the marginal of these columns; needed where the density has more than two.
        support : bool, default=True
            Whether to draw the support points of the model, as stars; in one dimension as triangles on the axis.
        limits : (low, high), or two of them, optional
            The range of each coordinate; by default all points, and as far as the density has a hundredth of its
            maximum.
        resolution : int, optional
            Grid points on each axis; 400 for a line and 150 for contours by default.
        label_name : str, optional
            What the labels are, above the legend or beside the colour bar.
        **look
            See :meth:`plot`.

        Returns
        -------
        DensityDisplay
            The display, drawn.
        """
        chosen, X, points = _chosen(model, X, columns)
        d = points.shape[1]
        _check_data(look.get("data", "auto"), d)
        ranges = _ranges(chosen, points) if limits is None else _checked_limits(limits, d)
        values, grid = _on_grid(chosen, ranges, resolution or _RESOLUTION[d])
        shown = points[: points.shape[0] - (0 if X is None else X.shape[0])] if support else None
        display = cls(values, grid, points=X, support=shown, labels=labels, label_name=label_name)
        return display.plot(ax, **({"fixed": limits is not None} | look))

    def plot(
        self,
        ax: Any = None,
        *,
        data: str = "auto",
        levels: Any = 10,
        label: str | None = None,
        colour: str = COLOURS[0],
        title: str = "",
        bar: bool = True,
        fixed: bool = False,
    ) -> Self:
        """Draw the density.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        data : {"auto", "rug", "histogram", "points", "none"}, default="auto"
            How the sample is drawn: as a rug or a histogram below a line, as points over contours. ``"auto"`` is a rug
            or points.
        levels : int or increasing numbers, default=10
            Contours of a density of two coordinates.
        label, colour, title : str, optional
            A name for the legend, of the line or of the points over contours; the colour of the line; the panel's
            title.
        bar : bool, default=True
            Whether contours and numbers have a colour bar.
        fixed : bool, default=False
            Whether the panel shows the grid and nothing around it.

        Returns
        -------
        DensityDisplay
            The same display.
        """
        _check_data(data, len(self.grid))
        (ax,) = self._begin(ax, inches=5.0)
        if len(self.grid) == 1:
            _line(ax, self.values, self.grid[0], colour, label)
            self._below(ax, data)
        else:
            shades = _contours(ax, self.values, self.grid, levels, pale=self._labels is not None)
            if bar:
                draw_bar(ax, shades, "density", ticks=shades.levels[:: -(-len(shades.levels) // _TICKS)])
            self._over(ax, data, label, bar)
            one_scale(ax, *self.grid, adjustable="box" if fixed else "datalim")
        if label or self._labels is not None or (len(self.grid) == 2 and self.support.size):
            draw_legend(ax, getattr(self._labels, "title", ""))
        ax.set_title(title)
        ax.tick_params(labelsize=8)
        return self

    def _below(self, ax: Any, data: str) -> None:
        """The sample and the support below a line, in units of the height of the panel; a rug for each class."""
        across, X = ax.get_xaxis_transform(), self.points
        if X is not None and data == "histogram":
            ax.hist(X[:, 0], bins="auto", density=True, color=_DATA, alpha=0.25, zorder=1)
        elif X is not None and data != "none":
            looks = [("", _DATA, "|", np.ones(len(X), dtype=bool))]
            if isinstance(self._labels, Classes):
                looks = self._labels.looks()
            for k, (name, colour, _, own) in enumerate(looks):
                height = np.full(int(own.sum()), 0.015 + 0.03 * k)
                look: dict[str, Any] = {"alpha": 0.5, "markersize": 8, "transform": across, "label": name or None}
                ax.plot(X[own, 0], height, "|", color=colour, **look)
        if self.support.size:
            height = np.zeros(len(self.support))
            look = {"markersize": 4, "transform": across, "clip_on": False, "zorder": 4}
            ax.plot(self.support[:, 0], height, "^", color=_SUPPORT, **look)

    def _over(self, ax: Any, data: str, label: str | None, bar: bool) -> None:
        """The sample and the support over contours; the shades have no handle, so the label goes to the points."""
        X = self.points
        if X is not None and data != "none":
            if isinstance(self._labels, Numbers):
                draw_numbers(ax, X, self._labels, size=14, bar=bar)
            elif self._labels is not None:
                draw_classes(ax, X, self._labels, size=14)
            else:
                ax.scatter(*X.T, s=9, color="black", alpha=0.55, linewidths=0, label=label, zorder=3)
        if self.support.size:
            ax.scatter(*self.support.T, s=34, marker="*", color=_SUPPORT, linewidths=0, label="support", zorder=4)

    def __repr__(self) -> str:
        return f"DensityDisplay({len(self.grid)} coordinates, highest value {self.values.max():.3g})"


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
    """Draw a density of one or two coordinates, with the sample it was fitted to; :class:`DensityDisplay` draws it.

    Parameters
    ----------
    model, X, columns, support, limits, resolution
        See :meth:`DensityDisplay.from_estimator`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. Called again with the same axes it draws a second density.
    data, levels, label, colour, title
        See :meth:`DensityDisplay.plot`.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    look: dict[str, Any] = {"data": data, "levels": levels, "label": label, "colour": colour, "title": title}
    where: dict[str, Any] = {"columns": columns, "support": support, "limits": limits, "resolution": resolution}
    return DensityDisplay.from_estimator(model, X, ax=ax, bar=False, **where, **look).figure_


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


def _line(ax: Any, values: Array, x: Array, colour: str, label: str | None) -> None:
    ax.plot(x, values, color=colour, linewidth=1.4, label=label, zorder=3)
    ax.fill_between(x, values, color=colour, alpha=0.12, linewidth=0)
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.05 * float(values.max())))
    ax.set_ylabel("density", fontsize=8)


def _contours(ax: Any, values: Array, grid: Sequence[Array], levels: Any, *, pale: bool) -> Any:
    """Contours in shades of blue; in pale ones of grey, where points have colours."""
    lines = ax.contour(*grid, values.T, levels, colors="#334455", linewidths=0.5)
    heights = np.asarray(lines.levels)
    above = heights[heights > 0]  # nothing is left white
    look: dict[str, Any] = {"cmap": "Greys", "alpha": 0.5} if pale else {"cmap": "Blues"}
    return ax.contourf(*grid, values.T, above, extend="max", zorder=0, **look)
