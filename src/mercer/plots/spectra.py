"""Curves over a bandwidth: spectra, scores with their spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.scatter import COLOURS


def plot_spectra(
    ax: Any,
    bandwidths: Sequence[float],
    eigenvalues: Sequence[Array],
    *,
    count: int = 4,
    title: str = "",
    crosses: bool = False,
) -> Any:
    """Draw the leading eigenvalues over the bandwidth, one curve an eigenvalue; those that are missing count as zero.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    bandwidths : sequence of p floats
        The abscissae.
    eigenvalues : sequence of p arrays
        The eigenvalues at each, in falling order; the arrays need not be equally long.
    count : int, default=4
        How many curves.
    title : str, optional
        The title of the panel.
    crosses : bool, default=False
        Crosses without lines, for a second family in the same panel.

    Returns
    -------
    matplotlib Axes
        The same axes.
    """
    for i in range(count):
        curve = [values[i] if len(values) > i else 0.0 for values in eigenvalues]
        style = "x" if crosses else ".-"
        ax.plot(bandwidths, curve, style, color=COLOURS[i % len(COLOURS)], linewidth=1.2, markersize=5)
    if title:
        ax.set_title(title)
    ax.set_xlabel("bandwidth σ")
    ax.tick_params(labelsize=8)
    return ax


def plot_spread(ax: Any, bandwidths: Sequence[float], scores: Array, *, label: str, colour: str, marker: str) -> Any:
    """Draw the mean of scores over the bandwidth with bars of one standard deviation; runs that failed are NaN.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    bandwidths : sequence of p floats
        The abscissae.
    scores : array of shape (p, runs)
        The scores; a bandwidth without a single score leaves a gap.
    label, colour, marker : str
        How the curve looks, and its name in the legend.

    Returns
    -------
    matplotlib Axes
        The same axes.
    """
    have = np.isfinite(scores).any(axis=1)
    mean, spread = np.nanmean(scores[have], axis=1), np.nanstd(scores[have], axis=1)
    ax.errorbar(
        np.asarray(bandwidths)[have],
        mean,
        spread,
        label=label,
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=1.2,
        capsize=2,
    )
    ax.set_xlabel("bandwidth σ")
    ax.tick_params(labelsize=8)
    return ax
