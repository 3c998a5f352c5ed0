"""The picture of a path of bandwidths."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.display import Display

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.embedding import Diagnosis, RankPath


_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
_REST = "#999999"
_INDEX = "₁₂₃₄₅₆"
_SUGGESTED = "#222222"
_NO_EMBEDDING = "#d9d9d9"
_DOUBTFUL = "#f2f2f2"


@final
class RankPathDisplay(Display):
    """The spectrum of B / Tr B with the rank over the bandwidth, and beside it the eigenvalues of diffusion maps.

    Bandwidths that are not informative are shaded, and the shade is named. A dashed line is at the suggested one. Make
    one by :meth:`from_result`.

    Parameters
    ----------
    path : RankPath
        What :func:`mercer.rank_path` returned.

    Attributes
    ----------
    path : RankPath
        As above.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(self, path: RankPath) -> None:
        self.path = path

    @classmethod
    def from_result(cls, path: RankPath, X: Any = None, *, ax: Any = None) -> RankPathDisplay:
        """Draw a path of bandwidths.

        Parameters
        ----------
        path : RankPath
            What :func:`mercer.rank_path` returned.
        X : ignored
            Here so that every display takes the same arguments.
        ax : pair of matplotlib Axes, or one, optional
            Where to draw; the place of a single one is divided. A new figure by default.

        Returns
        -------
        RankPathDisplay
            The display, drawn.
        """
        return cls(path).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw both panels, in a new figure or in the given ones."""
        left, right = self._begin(ax, 2, inches=5.0)
        path, name = self.path, self.path.parameter.rpartition("__")[2]
        for panel in (left, right):
            panel.set_xscale("log")
            panel.set_xlabel("σ" if name == "sigma" else name)
            panel.set_ylim(-0.03, 1.12)
            _shade(panel, path)
            if path.suggested is not None:
                place = path.suggested.sigma
                panel.axvline(place, color=_SUGGESTED, linestyle="--", linewidth=1.2, zorder=2, label="suggested")
            panel.tick_params(labelsize=8)
        spectrum = path.eigenvalues
        _curves(left, path, np.where(spectrum > 0, spectrum, np.nan), "β")
        left.set_title("Eigenvalues of B/TrB; above, the rank")
        _ranks(left, path)
        _curves(right, path, path.diffusion_eigenvalues, "λ")
        right.set_title("Eigenvalues of diffusion maps")
        return self

    def __repr__(self) -> str:
        return f"RankPathDisplay({len(self.path.entries)} bandwidths)"


def plot_rank_path(path: RankPath, axes: Any = None) -> Any:
    """Draw a path of bandwidths in two panels; :class:`RankPathDisplay` draws it.

    Parameters
    ----------
    path : RankPath
        What :func:`mercer.rank_path` returned.
    axes : pair of matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    return RankPathDisplay.from_result(path, ax=axes).figure_


def _curves(ax: Any, path: RankPath, values: Array, letter: str) -> None:
    """One curve an eigenvalue; those beyond the number of colours are grey."""
    for i, curve in enumerate(values.T):
        colour, label = (_COLOURS[i], f"{letter}{_INDEX[i]}") if i < len(_COLOURS) else (_REST, None)
        ax.plot(path.sigmas, curve, marker="o", markersize=3.5, linewidth=1.2, color=colour, label=label, zorder=3)
    if values.shape[1]:
        ax.legend(fontsize=8, framealpha=0.9, loc="best")


def _ranks(ax: Any, path: RankPath) -> None:
    """The rank as a number above every bandwidth that has an embedding."""
    for entry in path.entries:
        if entry.rank:
            ax.text(entry.sigma, 1.07, str(entry.rank), ha="center", va="center", fontsize=8)


def _shade(ax: Any, path: RankPath) -> None:
    """Bands over runs of bandwidths with one diagnosis, their edges halfway, on the log axis, to the neighbours."""
    edges = _edges(path.sigmas)
    for diagnosis, run in groupby(range(len(path.entries)), key=lambda i: path.diagnoses[i]):
        if diagnosis.name != "INFORMATIVE":
            members = list(run)
            _band(ax, edges[members[0]], edges[members[-1] + 1], diagnosis)
    ax.set_xlim(edges[0], edges[-1])


def _band(ax: Any, low: float, high: float, diagnosis: Diagnosis) -> None:
    colour = _NO_EMBEDDING if diagnosis.degenerate else _DOUBTFUL
    ax.axvspan(low, high, facecolor=colour, edgecolor="white", linewidth=1.5, zorder=0)
    ax.text(
        float(np.sqrt(low * high)),
        0.7,
        diagnosis.value,
        rotation=90,
        ha="center",
        va="center",
        fontsize=8,
        color="#444444",
        bbox={"facecolor": colour, "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        zorder=4,
    )


def _edges(sigmas: Array) -> Array:
    """Borders between bandwidths, geometric means; beyond the ends half a step more, a factor two if there is none."""
    logs = np.log(sigmas)
    steps = np.diff(logs) / 2 if logs.size > 1 else np.array([np.log(2.0)])
    return np.exp(np.concatenate([[logs[0] - steps[0]], (logs[1:] + logs[:-1]) / 2, [logs[-1] + steps[-1]]]))
