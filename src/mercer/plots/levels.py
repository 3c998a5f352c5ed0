"""The spectra of all levels of an embedding, with what is proved of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends.arrays import to_numpy
from mercer.plots.scatter import COLOURS

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.embedding import Level


def plot_levels(ax: Any, levels: Sequence[Level], *, title: str = "Eigenvalues of B/TrB, level by level") -> Any:
    """Draw the spectrum of every level, one after the other, with its certified gap and what a step keeps of it.

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
    first, top = 1, max(float(level.eigenvalues[0]) for level in levels)
    for i, level in enumerate(levels):
        places, colour = np.arange(first, first + level.rank), COLOURS[i % len(COLOURS)]
        ax.bar(places, to_numpy(level.eigenvalues), color=colour, width=0.8)
        ax.text(places.mean(), 1.04 * top, _caption(i, level), ha="center", va="bottom", fontsize=8, color="#444444")
        if i:
            ax.axvline(first - 0.5, color="#bbbbbb", linewidth=0.8)
        first += level.rank
    ax.set_ylim(0.0, 1.4 * top)
    ax.set_xlim(0.4, first - 0.4)
    ax.set_xticks(range(1, first))
    ax.set_xlabel("coordinate")
    ax.tick_params(labelsize=8)
    ax.set_title(title)
    return ax


def _caption(number: int, level: Level) -> str:
    """What is known of a level, in the width of a few bars."""
    proof = level.certificate
    gap = "not certified" if proof is None else f"gap {proof.relative_gap:.0e}"
    return f"level {number + 1}\n{gap}\nkeeps {level.correlation:.0%}"
