"""Pictures of what a test saw: where one sample is denser than the other, and which values go together."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Self, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.kernels.tables import is_frame
from mercer.plots.display import Display
from mercer.plots.labels import COLOURS, draw_bar
from mercer.plots.tests import FOUND
from mercer.plots.witness_columns import Drawn, column_number, drawn_columns, telling_columns, thinned

_MARGIN = 0.08  # of the range of the points, on either side
_SIDES = ((COLOURS[0], "o"), (FOUND, "^"))  # colour and marker of either sample
_MOST_TICKS = 20  # categories that are named at an axis
_TITLE_WIDTH = 44  # characters of a line of a title
_LONGEST = 24  # characters of a name in a title or at an axis
SAMPLES = ("first sample", "second sample")


@final
class WitnessDisplay(Display):
    """The witness of a test of two samples: positive where the first sample is denser, negative where the second is.

    Of one column it is a curve above both samples, of two columns shades behind their points. Of more columns, and of
    data frames, the points are drawn in its shades, in the two columns that tell most of it. Make one by
    :meth:`from_result`.

    Parameters
    ----------
    result : MMDTestResult
        What :func:`mercer.mmd_test` returned.
    X, Y : arrays or data frames
        The two samples; at most a thousand rows of each are drawn.
    columns : pair of int or str, optional
        Of data of three or more columns: the two to draw, by number or name.
    labels : pair of str
        The names of the samples.
    names : names of the columns, optional
        Of arrays; data frames have their own.

    Attributes
    ----------
    values : array
        The witness at the rows that are drawn, those of X first.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(
        self,
        result: Any,
        X: Any,
        Y: Any,
        *,
        columns: Any = None,
        labels: tuple[str, str] = SAMPLES,
        names: Sequence[str] = (),
    ) -> None:
        self._result, self._labels = result, labels
        self._samples = [thinned(sample) for sample in (X, Y)]
        self._drawn = drawn_columns(self._samples, "x", names)
        self.values = np.concatenate([np.asarray(result.witness(sample)) for sample in self._samples])
        self._belongs = np.repeat([0, 1], [len(sample) for sample in self._samples])
        drawn = self._drawn
        pair = (
            telling_columns(drawn, self.values, 2)
            if columns is None
            else [column_number(drawn, column) for column in columns]
        )
        self._pair = [drawn[k] for k in pair]

    @classmethod
    def from_result(
        cls,
        result: Any,
        X: Any,
        Y: Any,
        *,
        labels: tuple[str, str] = SAMPLES,
        ax: Any = None,
        columns: Any = None,
        names: Sequence[str] = (),
        bar: bool = True,
    ) -> WitnessDisplay:
        """Draw the witness of a test.

        Parameters
        ----------
        result, X, Y, labels, columns, names
            See :class:`WitnessDisplay`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        bar : bool, default=True
            Whether shades have a colour bar.

        Returns
        -------
        WitnessDisplay
            The display, drawn.
        """
        return cls(result, X, Y, columns=columns, labels=labels, names=names).plot(ax, bar=bar)

    def plot(self, ax: Any = None, *, bar: bool = True) -> Self:
        """Draw the curve or the shades, in a new figure or in the given panel, with a colour bar if it is wanted."""
        (ax,) = self._begin(ax)
        if len(self._drawn) == 1:
            _curve(ax, self._result, self._samples, self._drawn[0], self.values)
            _rugs(ax, self._drawn[0].places, self._belongs, self._labels)
        else:
            self._draw_plane(ax, bar)
        first, second = (_short(name) for name in self._labels)
        _finish(ax, f"where {first} (blue) and {second} (red) have more", self._result)
        return self

    def _draw_plane(self, ax: Any, bar: bool) -> None:
        values, mapped = self.values, None
        if len(self._drawn) == 2 and not is_frame(self._samples[0]):
            mapped = _shades(ax, self._result, self._drawn)
            values = np.array([])
        for side, name in enumerate(self._labels):
            points = _points(ax, self._pair, values, self._belongs == side, look=_SIDES[side], label=name)
            mapped = points if mapped is None else mapped
        if bar:
            draw_bar(ax, mapped, "witness")

    def __repr__(self) -> str:
        sizes = " and ".join(str(len(sample)) for sample in self._samples)
        return f"WitnessDisplay({sizes} rows, {len(self._drawn)} columns)"


def plot_witness(
    result: Any,
    X: Any,
    Y: Any,
    ax: Any = None,
    *,
    columns: Any = None,
    labels: tuple[str, str] = SAMPLES,
    names: Sequence[str] = (),
) -> Any:
    """Draw the witness of a two-sample test; :class:`WitnessDisplay` draws it, and can add a colour bar.

    Parameters
    ----------
    result, X, Y, columns, labels, names
        See :class:`WitnessDisplay`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    display = WitnessDisplay.from_result(result, X, Y, labels=labels, ax=ax, columns=columns, names=names, bar=False)
    return display.figure_


@final
class DependenceDisplay(Display):
    """The pairs of a test of independence in the shades of its witness.

    Blue pairs are met more often, red ones less often, than if the two sides did not depend on each other. Make one by
    :meth:`from_result`.

    Parameters
    ----------
    result : HSICTestResult
        What :func:`mercer.hsic_test` returned.
    X, Y : arrays or data frames
        The two sides, row by row; at most a thousand rows are drawn. Of several columns, the one that tells most of the
        witness is drawn.
    x_names, y_names : names of the columns, optional
        Of arrays; data frames have their own.

    Attributes
    ----------
    values : array
        The witness at the rows that are drawn.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(
        self, result: Any, X: Any, Y: Any, *, x_names: Sequence[str] = (), y_names: Sequence[str] = ()
    ) -> None:
        sides = [thinned(side) for side in (X, Y)]
        self._result, self.values = result, np.asarray(result.witness(*sides))
        self._pair = []
        for side, letter, names in zip(sides, "xy", (x_names, y_names), strict=True):
            drawn = drawn_columns([side], letter, names)
            self._pair.append(drawn[telling_columns(drawn, self.values, 1)[0]])

    @classmethod
    def from_result(
        cls,
        result: Any,
        X: Any,
        Y: Any,
        *,
        ax: Any = None,
        x_names: Sequence[str] = (),
        y_names: Sequence[str] = (),
        bar: bool = True,
    ) -> DependenceDisplay:
        """Draw the pairs of a test; the arguments are those of the class, a place, and whether to add a colour bar."""
        return cls(result, X, Y, x_names=x_names, y_names=y_names).plot(ax, bar=bar)

    def plot(self, ax: Any = None, *, bar: bool = True) -> Self:
        """Draw the pairs, in a new figure or in the given panel, with a colour bar if it is wanted."""
        (ax,) = self._begin(ax)
        rows = np.ones(self.values.size, dtype=bool)
        mapped = _points(ax, self._pair, self.values, rows, look=("#888888", "o"), label=None)
        if bar:
            draw_bar(ax, mapped, "witness")
        _finish(ax, "pairs met more (blue) and less (red) often", self._result)
        return self

    def __repr__(self) -> str:
        return f"DependenceDisplay({self.values.size} pairs)"


def plot_dependence(
    result: Any, X: Any, Y: Any, ax: Any = None, *, x_names: Sequence[str] = (), y_names: Sequence[str] = ()
) -> Any:
    """Draw the pairs of an independence test in the shades of its witness; :class:`DependenceDisplay` draws them.

    Parameters
    ----------
    result, X, Y, x_names, y_names
        See :class:`DependenceDisplay`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    return DependenceDisplay.from_result(result, X, Y, ax=ax, x_names=x_names, y_names=y_names, bar=False).figure_


def _curve(ax: Any, result: Any, samples: Sequence[Any], part: Drawn, values: Array) -> None:
    """The witness of one column: on a grid, or at the points where these are rows of a data frame."""
    if is_frame(samples[0]):
        order = np.argsort(part.numbers)
        x, heights = part.numbers[order], values[order]
    else:
        x = np.linspace(*_range(part.numbers), 300)
        heights = np.asarray(result.witness(x[:, None]))
    ax.fill_between(x, heights, where=heights > 0, color=COLOURS[0], alpha=0.2, linewidth=0, interpolate=True)
    ax.fill_between(x, heights, where=heights < 0, color=FOUND, alpha=0.2, linewidth=0, interpolate=True)
    ax.plot(x, heights, color="#334455", linewidth=1.4)
    ax.axhline(0, color="#999999", linewidth=0.6)
    _name_axis(ax.xaxis, part)
    ax.set_ylabel("witness", fontsize=8)


def _rugs(ax: Any, places: Array, belongs: Array, labels: Sequence[str]) -> None:
    """Both samples at the foot of the panel, one above the other."""
    across = ax.get_xaxis_transform()
    for side, (name, (colour, _)) in enumerate(zip(labels, _SIDES, strict=True)):
        own = places[belongs == side]
        height = np.full(own.size, 0.06 - 0.035 * side)
        ax.plot(own, height, "|", color=colour, alpha=0.5, markersize=7, transform=across, label=name)
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.12 * (high - low), high)


def _shades(ax: Any, result: Any, drawn: Sequence[Drawn]) -> Any:
    """The witness on a grid of two columns, white where it is zero."""
    x, y = (np.linspace(*_range(part.numbers), 60) for part in drawn)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    heights = np.asarray(result.witness(grid.reshape(-1, 2))).reshape(grid.shape[:-1])
    most = float(np.abs(heights).max()) or 1.0
    return ax.contourf(x, y, heights, np.linspace(-most, most, 16), cmap="RdBu", alpha=0.6, zorder=0)


def _points(
    ax: Any, pair: Sequence[Drawn], values: Array, rows: Array, *, look: tuple[str, str], label: str | None
) -> Any:
    """Points of two columns with the marker of their sample, in the shade of the witness or the sample's colour."""
    colour, marker = look
    x, y = (part.places[rows] for part in pair)
    fill = {"facecolors": colour, "alpha": 0.7}
    if values.size:
        most = float(np.abs(values).max()) or 1.0
        fill = {"c": values[rows], "cmap": "RdBu", "vmin": -most, "vmax": most}
    drawn = ax.scatter(x, y, s=16, marker=marker, edgecolors=colour, linewidths=0.6, zorder=3, **fill)
    if label is not None:  # a marker of its own, since each point has another shade
        ax.scatter(
            [], [], s=16, marker=marker, facecolors="white" if values.size else colour, edgecolors=colour, label=label
        )
    _name_axis(ax.xaxis, pair[0])
    _name_axis(ax.yaxis, pair[1])
    return drawn


def _name_axis(axis: Any, part: Drawn) -> None:
    """The column at its axis, and its categories at their places: of many only some, evenly spread."""
    axis.set_label_text(part.name, fontsize=8)
    if part.categories:
        named = range(0, len(part.categories), -(-len(part.categories) // _MOST_TICKS))
        axis.set_ticks(named, [_short(str(part.categories[k])) for k in named])


def _short(name: str) -> str:
    """A name, cut where it would not fit."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _range(numbers: Array) -> tuple[float, float]:
    low, high = float(numbers.min()), float(numbers.max())
    margin = _MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _finish(ax: Any, title: str, result: Any) -> None:
    """The title, which says where the picture may show nothing but chance, and the legend."""
    said = title if result.rejects() else f"{title}, as by chance"
    ax.set_title("\n".join(wrap(said, _TITLE_WIDTH)), fontsize=10)
    ax.tick_params(labelsize=8)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8)
