"""Pictures of tests: the statistic among those of chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from mercer.plots.display import Display
from mercer.plots.figures import new_figure
from mercer.plots.labels import COLOURS

FOUND = "#ee6677"
_DARK = 0.05  # p-values below which a square is dark
_MOST_BINS, _MOST_BARS = 40, 150  # of the resamples, and from the least of them to the observed statistic


@final
class NullDisplay(Display):
    """What chance makes of the statistic of a test, as a histogram, and the observed statistic, as a line.

    Resamples as large as the observed statistic, which make up the p-value, are drawn in its colour. Make one by
    :meth:`from_result`.

    Parameters
    ----------
    result : MMDTestResult, HSICTestResult or another KernelTestResult
        What a test returned.

    Attributes
    ----------
    null : array
        The statistics of the resamples.
    observed : float
        That of the data.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(self, result: Any) -> None:
        self.null, self.observed = np.asarray(result.null_distribution, np.float64), float(result.statistic)
        if not self.null.size:
            raise ValueError(
                f"The null of this test is a formula ({result.null}), without resamples to draw: test with "
                'null="permutation".'
            )
        self.title = pvalue_in_words(result)

    @classmethod
    def from_result(cls, result: Any, X: Any = None, *, ax: Any = None, title: str = "") -> NullDisplay:
        """Draw the statistic of a test among those of chance.

        Parameters
        ----------
        result : MMDTestResult, HSICTestResult or another KernelTestResult
            What a test returned.
        X : ignored
            Here so that every display takes the same arguments.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            The title of the panel; by default the p-value in words.

        Returns
        -------
        NullDisplay
            The display, drawn.
        """
        return cls(result).plot(ax, title=title)

    def plot(self, ax: Any = None, *, title: str = "") -> Self:
        """Draw the histogram and the line, under a title that is the p-value in words by default."""
        (ax,) = self._begin(ax)
        edges = _edges(self.null, self.observed)
        ax.hist(self.null, edges, color=COLOURS[-1], label=f"{self.null.size} resamples")
        beyond = self.null[self.null >= self.observed]
        if beyond.size:
            ax.hist(beyond, edges, color=FOUND, alpha=0.8)
        ax.axvline(self.observed, color=FOUND, linewidth=1.8, label="observed")
        ax.set_title(title or self.title, fontsize=10)
        ax.set_xlabel("statistic", fontsize=8)
        ax.set_ylabel("resamples", fontsize=8)
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=8)
        return self

    def __repr__(self) -> str:
        return f"NullDisplay({self.null.size} resamples, {self.title})"


def plot_null(result: Any, ax: Any = None, *, title: str = "") -> Any:
    """Draw the statistic of a test among those of chance; :class:`NullDisplay` draws it.

    Parameters
    ----------
    result : MMDTestResult, HSICTestResult or another KernelTestResult
        What a test returned.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
        The title of the panel; by default the p-value in words.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    return NullDisplay.from_result(result, ax=ax, title=title).figure_


def plot_sample_pairs(result: Any, ax: Any = None, *, labels: Sequence[str] = ()) -> Any:
    """Draw which of several samples differ: a square for every two with their corrected p-value, dark if it is small.

    Parameters
    ----------
    result : KSampleTestResult
        What :func:`mercer.k_sample_test` returned, with its pairs.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    labels : names of the samples, optional
        Their numbers if left out.

    Returns
    -------
    matplotlib Figure
        The figure.
    """
    if not result.pairs:
        raise ValueError("The result has no pairs of samples: test with pairwise=True.")
    ax = new_figure(1)[1][0] if ax is None else ax
    count = len(result.sizes)
    values = np.full((count, count), np.nan)
    for pair in result.pairs:
        values[pair.second, pair.first] = pair.corrected
        colour = "white" if pair.corrected <= _DARK else "black"
        ax.text(pair.first, pair.second, f"{pair.corrected:.2g}", ha="center", va="center", color=colour, fontsize=9)
    shades = np.log10(values[1:, :-1])
    ax.imshow(shades, cmap="Blues_r", vmin=-3, vmax=0, extent=(-0.5, count - 1.5, count - 0.5, 0.5))
    names = list(labels) or [str(number) for number in range(count)]
    ax.set_xticks(range(count - 1), names[:-1], rotation=20)
    ax.set_yticks(range(1, count), names[1:])
    ax.tick_params(labelsize=8)
    ax.set_title("which samples differ: corrected p-values", fontsize=10)
    return ax.figure


def pvalue_in_words(result: Any) -> str:
    """How often a statistic is as large, such as "as large in 12 of 1000 (p = 0.012)"; the data count as one."""
    if not result.n_resamples:
        return f"p = {result.pvalue:.2g}"
    total = result.n_resamples + 1
    return f"as large in {round(result.pvalue * total)} of {total} (p = {result.pvalue:.2g})"


def _edges(null: Any, observed: float) -> Any:
    """Edges of bins with the observed statistic among them, so that no bin holds values of both its sides."""
    low, high = min(float(null.min()), observed), max(float(null.max()), observed)
    if low == high:
        return np.array([low - 0.5, low, low + 0.5])
    count = int(np.clip(np.sqrt(null.size), 5, _MOST_BINS))
    width = max(float(np.ptp(null)) / count, (high - low) / _MOST_BARS)
    below = np.arange(np.ceil((observed - low) / width), 0, -1)
    above = np.arange(0, np.ceil((high - observed) / width) + 1)
    return np.concatenate([observed - width * below, observed + width * above])
