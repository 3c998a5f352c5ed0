"""The spectra of all levels of an embedding, with what is proved of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from mercer.backends.arrays import to_numpy
from mercer.plots.display import Display
from mercer.plots.labels import COLOURS

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.embedding import Level


_TITLE = "Eigenvalues of B/TrB, level by level"


@final
class LevelsDisplay(Display):
    """The spectrum of every level of an embedding, one after the other, with its certified gap and what a step keeps.

    Make one by :meth:`from_estimator`.

    Parameters
    ----------
    levels : sequence of Level
        The ``levels_`` of a fitted :class:`mercer.SDPEmbedding`.

    Attributes
    ----------
    levels : tuple of Level
        As above.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = tuple(levels)

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, ax: Any = None, title: str = _TITLE) -> LevelsDisplay:
        """Draw the levels of a fitted :class:`mercer.SDPEmbedding`; X is not used, and title stands above the panel."""
        if not hasattr(model, "levels_"):
            raise ValueError(f"{type(model).__name__} has no levels_ to draw: fit an SDPEmbedding.")
        return cls(model.levels_).plot(ax, title=title)

    def plot(self, ax: Any = None, *, title: str = _TITLE) -> Self:
        """Draw the spectra, in a new figure or in the given panel."""
        (ax,) = self._begin(ax)
        first, top = 1, max(float(level.eigenvalues[0]) for level in self.levels)
        for i, level in enumerate(self.levels):
            places, colour = np.arange(first, first + level.rank), COLOURS[i % len(COLOURS)]
            ax.bar(places, to_numpy(level.eigenvalues), color=colour, width=0.8)
            look = {"ha": "center", "va": "bottom", "fontsize": 8, "color": "#444444"}
            ax.text(places.mean(), 1.04 * top, _caption(i, level), **look)
            if i:
                ax.axvline(first - 0.5, color="#bbbbbb", linewidth=0.8)
            first += level.rank
        ax.set_ylim(0.0, 1.4 * top)
        ax.set_xlim(0.4, first - 0.4)
        ax.set_xticks(range(1, first))
        ax.set_xlabel("coordinate")
        ax.tick_params(labelsize=8)
        ax.set_title(title)
        return self

    def __repr__(self) -> str:
        return f"LevelsDisplay({len(self.levels)} levels, {sum(level.rank for level in self.levels)} coordinates)"


def plot_levels(ax: Any, levels: Sequence[Level], *, title: str = _TITLE) -> Any:
    """Draw the spectrum of every level, with its certified gap and what a step keeps; :class:`LevelsDisplay` draws it.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    levels : sequence of Level
        The ``levels_`` of a fitted :class:`mercer.SDPEmbedding`.
    title : str, optional
        The title of the panel.

    Returns
    -------
    matplotlib Axes
        The same axes.
    """
    return LevelsDisplay(levels).plot(ax, title=title).ax_


def _caption(number: int, level: Level) -> str:
    """What is known of a level, in the width of a few bars."""
    proof = level.certificate
    gap = "not certified" if proof is None else f"gap {proof.relative_gap:.0e}"
    return f"level {number + 1}\n{gap}\nkeeps {level.correlation:.0%}"
