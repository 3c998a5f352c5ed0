"""What every display shares: the panels that it draws in, and how a notebook shows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from io import BytesIO
from typing import Any, Self

import numpy as np

from mercer.plots.figures import new_figure

_DPI = 110  # of the picture in a notebook
_UNLIKE = 6.0  # times as long as the other, from which on two columns are in units of their own


class Display(ABC):
    """A picture and the numbers that it shows, in the manner of scikit-learn's displays.

    A display is made by ``from_estimator(model, X, *, labels=None, ax=None, …)`` or ``from_result(result, X, *, …)``,
    which compute the numbers and draw them. ``plot(ax=None, …)`` draws the same numbers elsewhere, or in another look.
    In a notebook a display shows its picture; :func:`mercer.plots.save_figure` writes it to a file.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure of the last picture.
    ax_ : matplotlib Axes
        Its panel, the first one where there are several.
    axes_ : tuple of matplotlib Axes
        All its panels.
    """

    figure_: Any = None
    ax_: Any = None
    axes_: tuple[Any, ...] = ()

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw the numbers of the display, in a new figure or in the given panels, and return the display."""

    def _begin(self, ax: Any, count: int = 1, *, inches: float = 4.2) -> tuple[Any, ...]:
        """The panels to draw in, which the display remembers."""
        self.axes_ = panels(ax, count, inches=inches)
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        return self.axes_

    def _repr_png_(self) -> bytes | None:
        """The picture for a notebook; nothing where pyplot has the figure, and shows it by itself."""
        if self.figure_ is None or self.figure_.canvas.manager is not None:
            return None
        written = BytesIO()
        self.figure_.savefig(written, format="png", dpi=_DPI)
        return written.getvalue()


def one_scale(ax: Any, across: Any, up: Any, *, adjustable: str = "datalim") -> None:
    """Give both axes one scale, so that distances can be read off, unless one range would leave the other a line."""
    spans = sorted(float(np.ptp(values)) for values in (across, up))
    if spans[1] <= _UNLIKE * spans[0] or spans[0] == 0:
        ax.set_aspect("equal", adjustable=adjustable)


def panels(ax: Any, count: int, *, inches: float = 4.2) -> tuple[Any, ...]:
    """As many panels as asked for: in a new figure, those that are given, or the place of a single one divided."""
    if ax is None:
        return tuple(new_figure(count, panel_inches=inches)[1])
    given = tuple(np.ravel(np.asarray(ax, dtype=object))) if isinstance(ax, (Sequence, np.ndarray)) else (ax,)
    if len(given) == count:
        return given
    if len(given) != 1:
        raise ValueError(f"ax has {len(given)} panels, but the picture has {count}: pass one, or {count} of them.")
    parts = given[0].get_subplotspec().subgridspec(1, count).subplots().ravel()
    given[0].set_axis_off()
    return tuple(parts)
