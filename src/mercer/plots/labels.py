"""What points are coloured by: classes, which get a legend, or numbers, which get a colour bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, to_numpy

COLOURS = ("#4477aa", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")  # told apart by colour-blind readers too
MANY_COLOURS = (
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
)  # the same, where there are more classes than usual colours
_MARKERS = ("o", "^", "s", "D")  # where there are more classes than colours
_MOST_LOOKS = len(MANY_COLOURS) * len(_MARKERS)
_MOST_WHOLE_NUMBERS = 20  # more values than this of a column of whole numbers are quantities, not classes
MISSING = "#d5d5d5"
_OUTLIER = "#ee3333"
_INSIDE = 10  # entries of a legend that fit into a panel
_MANY_POINTS = 5000  # above, the best place of a legend takes long to find
_LEGEND_ROWS = 20


@dataclass(frozen=True, eq=False)
class Classes:
    """A class for every point: its number among the names, -1 where it is missing, -2 for an outlier."""

    numbers: Array
    names: tuple[str, ...]
    title: str = ""
    outlier: str = ""  # what outliers are called

    def looks(self) -> list[tuple[str, str, str, Array]]:
        """The name, colour, marker and points of each class; of more than forty the rarest are drawn alike."""
        count = len(self.names)
        kept = list(range(count))
        if count > _MOST_LOOKS:
            frequent = np.argsort(-np.bincount(self.numbers[self.numbers >= 0], minlength=count), kind="stable")
            kept = sorted(frequent[: _MOST_LOOKS - 1].tolist())
        palette = COLOURS if count <= len(COLOURS) else MANY_COLOURS
        found = [
            (self.names[k], palette[i % len(palette)], _MARKERS[i // len(palette)], self.numbers == k)
            for i, k in enumerate(kept)
        ]
        others = (self.numbers >= 0) & ~np.isin(self.numbers, kept)
        if others.any():
            found.append((f"{count - len(kept)} others", MISSING, "o", others))
        if (self.numbers == -1).any():
            found.append(("missing", MISSING, "x", self.numbers == -1))
        if (self.numbers == -2).any():
            found.append((self.outlier, _OUTLIER, "*", self.numbers == -2))
        return found


@dataclass(frozen=True, eq=False)
class Numbers:
    """A number for every point, nan where it is missing."""

    values: Array
    title: str = ""


def read_labels(
    labels: Any, count: int, *, name: str | None = None, classes: bool | None = None, outlier: Any = None
) -> Classes | Numbers:
    """Classes or numbers, whichever the labels are, for so many points.

    Text, truth values, categories and whole numbers of up to twenty values are classes; other numbers are numbers. Pass
    text for classes of more values, and floats where few whole numbers are quantities. No labels at all are one class.
    ``outlier`` is the label of points that belong to no class.
    """
    if labels is None:
        return Classes(np.zeros(count, dtype=int), ("",))
    title = str(name if name is not None else getattr(labels, "name", None) or "")
    if len(labels) != count:
        raise ValueError(f"labels has {len(labels)} entries, but there are {count} points: pass one for each.")
    order, values = _categories(labels), _plain(labels)
    if values.ndim != 1:
        raise ValueError(f"labels must be one value for each point, not an array of shape {values.shape}.")
    if classes is None:
        many = values.dtype.kind in "iu" and np.unique(values).size > _MOST_WHOLE_NUMBERS
        classes = order is not None or not (values.dtype.kind == "f" or many)
    return _classes(values, order, title, outlier) if classes else Numbers(values.astype(np.float64), title)


def _plain(labels: Any) -> Array:
    """The labels as an array of NumPy; of numbers among which some are missing, one of floats or of objects."""
    as_array = hasattr(labels, "__array__") and not _is_whole_column(labels)
    values = np.asarray(to_numpy(labels) if as_array else _listed(labels))
    if values.dtype.kind != "O" or values.ndim != 1:
        return values
    present = [value for value in values.tolist() if not _is_missing(value)]
    if any(isinstance(value, float) for value in present) and all(isinstance(value, (int, float)) for value in present):
        return np.array([np.nan if _is_missing(value) else value for value in values.tolist()])
    return values


def _is_whole_column(labels: Any) -> bool:
    """Whether this is a data frame's column of whole numbers or truth values, whose missing ones would be floats."""
    dtype = getattr(labels, "dtype", None)
    if isinstance(dtype, np.dtype):
        return False
    return getattr(dtype, "kind", "f") in "iub" or bool(getattr(dtype, "is_integer", lambda: False)())


def _listed(labels: Any) -> Array:
    """A list as an array, of objects where NumPy would write None as text."""
    values = list(labels)
    return np.array(values, dtype=object if any(value is None for value in values) else None)


def _categories(labels: Any) -> list[Any] | None:
    """The categories of a column of pandas or polars, in their order."""
    if hasattr(labels, "cat") and hasattr(labels.cat, "get_categories"):  # polars
        return list(labels.cat.get_categories()) if str(labels.dtype).startswith(("Enum", "Categorical")) else None
    kinds = getattr(getattr(labels, "dtype", None), "categories", None)
    return None if kinds is None else list(kinds)


def _classes(values: Array, order: list[Any] | None, title: str, outlier: Any) -> Classes:
    given = values.tolist()
    met = {value for value in given if not _is_missing(value)}
    names = [name for name in (_sorted(met) if order is None else order) if name in met and name != outlier]
    place = {name: k for k, name in enumerate(names)} | ({} if outlier is None else {outlier: -2})
    numbers = np.array([-1 if _is_missing(value) else place[value] for value in given], dtype=int)
    return Classes(numbers, tuple(map(str, names)), title, str(outlier))


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _sorted(values: set[Any]) -> list[Any]:
    """The values in their order, that of their names where they cannot be compared."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


# --- drawing ------------------------------------------------------------------------------------------------


def draw_classes(ax: Any, points: Array, labels: Classes, *, size: float, rings: Array | None = None) -> None:
    """Draw points of the plane by class, those of ``rings`` empty; outliers are red stars above the others."""
    for name, colour, marker, own in labels.looks():
        filled = own if rings is None else own & ~rings
        look: dict[str, Any] = {"s": size, "alpha": 0.75, "linewidths": 1.0 if marker == "x" else 0}
        if marker == "*":
            look |= {"s": 5 * size, "alpha": 1.0, "zorder": 3}
        x, y = points[filled].T
        ax.scatter(x, y, color=colour, marker=marker, label=name or None, **look)
        if rings is not None:
            x, y = points[own & rings].T
            ax.scatter(x, y, s=1.6 * size, facecolors="none", edgecolors=colour, linewidths=0.8, zorder=3)


def draw_numbers(
    ax: Any,
    points: Array,
    labels: Numbers,
    *,
    size: float,
    rings: Array | None = None,
    stars: Array | None = None,
    bar: bool = True,
) -> None:
    """Draw points of the plane in the shade of their number, dark blue to yellow, with a colour bar if it is wanted.

    Missing numbers are grey crosses. Points of ``rings`` are empty, those of ``stars`` are stars above the others.
    """
    values, known = labels.values, np.isfinite(labels.values)
    none = np.zeros(values.size, dtype=bool)
    rings, stars = (none if mask is None else np.asarray(mask) for mask in (rings, stars))
    if not known.all():
        x, y = points[~known].T
        ax.scatter(x, y, s=size, color=MISSING, marker="x", linewidths=1.0, label="missing")
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 1.0)

    def draw(chosen: Array, **look: Any) -> Any:
        rows = np.flatnonzero(chosen & known)
        rows = rows[np.argsort(values[rows])]  # high values last, so that they are not hidden
        return ax.scatter(*points[rows].T, c=values[rows], cmap="viridis", vmin=low, vmax=high, **look)

    shades = draw(~rings & ~stars, s=size, linewidths=0)
    if rings.any():
        draw(rings & ~stars, s=1.6 * size, linewidths=0.8, zorder=3).set_facecolor("none")
    if stars.any():
        draw(stars, s=8 * size, marker="*", edgecolors="black", linewidths=0.4, zorder=3)
    if bar:
        draw_bar(ax, shades, labels.title)


def draw_bar(ax: Any, shades: Any, title: str, *, ticks: Any = None) -> None:
    """A colour bar beside a panel, with what its numbers are."""
    from matplotlib.ticker import MaxNLocator

    bar = ax.figure.colorbar(shades, ax=ax, fraction=0.046, pad=0.04, ticks=MaxNLocator(7) if ticks is None else ticks)
    bar.set_label(title, fontsize=8)
    bar.ax.tick_params(labelsize=8)


def draw_legend(ax: Any, title: str = "", *, points: int = 0) -> None:
    """The legend of a panel where there is anything to tell: inside for a few entries, beside it for many."""
    entries = len(ax.get_legend_handles_labels()[0])
    if not entries:
        return
    look: dict[str, Any] = {"fontsize": 8, "framealpha": 0.8, "title": title or None, "title_fontsize": 8}
    if entries > _INSIDE:
        columns = -(-entries // _LEGEND_ROWS)
        look |= {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "ncols": columns, "fontsize": 7}
    else:
        look["loc"] = "best" if points <= _MANY_POINTS else "upper right"
    ax.legend(**look)


def area_of_dots(count: int) -> float:
    """The area of a dot in square points that suits so many points: 14 up to a thousand, down to 2 for the most."""
    return float(np.clip(14.0 * np.sqrt(1000 / max(count, 1)), 2.0, 14.0))
