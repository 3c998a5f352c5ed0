"""Handwritten digits, pixels in [0, 1]: two of them embedded and extended, four in space (PSD17 Figs 14, D.15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import load_real
from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import (
    PAPER_STEPS,
    StoppedRun,
    compare_rank,
    in_the_plane,
    spectrum_text,
    stopped_power_method,
)
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, compare
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_in_space, plot_points

_DARK = ("#223b55", "#114419", "#665e22", "#336677")  # the colours of the classes, darker
_CONTRADICTION = "the caption says 3, and a fourth dimension is what a power method leaves that stops early"


@dataclass(frozen=True)
class DigitsExtended(Experiment):
    """The embedding of the digits of the test set, and its extension to those of the training set."""

    sdp: SDPEmbedding
    labels: Array
    extended: Array
    extended_labels: Array

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The numbers of images and the rank of the caption."""
        part = _part(self.labels, 1874)
        return (
            compare("images embedded", 1874, len(self.labels), within=0, reason=part),
            compare("images extended", 11263, len(self.extended), within=0, reason=_part(self.extended, 11263)),
            compare_rank("rank of ρ", 2, self.sdp, reason=part or "pixels in [0, 1]"),
        )

    def figure(self) -> Any:
        """The images embedded, and the images extended with the former as stars."""
        figure, axes = new_figure(2)
        names = " and ".join(map(str, np.unique(self.labels)))
        title = f"{len(self.labels)} images of {names}: rank {self.sdp.rank_}"
        plot_points(axes[0], self.sdp.embedding_, self.labels, title=title, size=8)
        title = f"{len(self.extended)} images extended"
        plot_points(axes[1], self.extended, self.extended_labels, title=title, size=3)
        embedded = in_the_plane(self.sdp.embedding_)
        for label, colour in zip(np.unique(self.labels), _DARK, strict=False):
            axes[1].scatter(*embedded[self.labels == label].T, s=9, marker="*", color=colour, linewidths=0)
        reach = 1.1 * float(np.quantile(np.abs(self.extended), 0.999))  # the few beyond would shrink all others
        axes[1].set_aspect("equal", adjustable="box")
        axes[1].set(xlim=(-reach, reach), ylim=(-reach, reach))
        return figure


@dataclass(frozen=True)
class DigitsInSpace(Experiment):
    """The embedding of several digits of the test set, and the papers' power method stopped, None if not asked for."""

    sdp: SDPEmbedding
    labels: Array
    stopped: StoppedRun | None

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The number of images, and the rank as the caption and as the text have it."""
        part = _part(self.labels, 4157)
        reading = part or "pixels in [0, 1]"
        return (
            compare("images embedded", 4157, len(self.labels), within=0, reason=part),
            compare_rank("rank of ρ, caption", 3, self.sdp, reason=reading),
            compare_rank("rank of ρ, text", 4, self.sdp, stopped=self.stopped, reason=part or _CONTRADICTION),
        )

    def figure(self) -> Any:
        """The first three coordinates in space, and the first two seen from above."""
        figure, axes = new_figure(2, panel_inches=5.0)
        title = f"SDP embedding: spectrum {spectrum_text(self.sdp.eigenvalues_)}"
        space = plot_in_space(axes[0], self.sdp.embedding_, self.labels, title=title, size=6)
        space.legend(fontsize=8, markerscale=2.5)
        plot_points(axes[1], self.sdp.embedding_, self.labels, title="First two coordinates", size=5)
        return figure


@experiment("psd17-fig14", seconds=24, data="mnist")
def digits_extended(
    sigma: float = 4.0,
    *,
    digits: Sequence[int] = (4, 5),
    n_embedded: int | None = None,
    n_extended: int | None = None,
    random_state: Any = 0,
) -> DigitsExtended:
    """Fours and fives of the test set of MNIST embedded, those of the training set extended (PSD17 Fig 14).

    Cost: a dense matrix of 1874² pairs, then 11 263 × 1874 kernel evaluations.

    Parameters
    ----------
    digits : sequence of int, default=(4, 5)
        Which digits.
    n_embedded, n_extended : int or None, default=None
        Use only the first images of the test set and of the training set; None for all.
    """
    X, labels = _mnist("test", digits, n_embedded)
    new, new_labels = _mnist("train", digits, n_extended)
    sdp = SDPEmbedding(Gaussian(sigma=sigma), radius="paper", random_state=random_state).fit(X)
    return DigitsExtended(sdp, labels, sdp.transform(new), new_labels)


@experiment("psd17-figd15", seconds=1080, data="mnist", quick={"n_embedded": 500, "paper_steps": 0})
def digits_in_space(
    sigma: float = 2.5,
    *,
    digits: Sequence[int] = (0, 1, 2, 3),
    n_embedded: int | None = None,
    paper_steps: int = PAPER_STEPS,
    random_state: Any = 0,
) -> DigitsInSpace:
    """The digits 0 to 3 of the test set of MNIST in three dimensions (PSD17 Fig D.15).

    Parameters
    ----------
    digits : sequence of int, default=(0, 1, 2, 3)
        Which digits.
    n_embedded : int or None, default=None
        Use only the first images; None for all 4157.
    paper_steps : int, default=5000
        Steps of the papers' power method, which is run beside ours and takes most of the time; 0 for none.
    """
    X, labels = _mnist("test", digits, n_embedded)
    sdp = SDPEmbedding(Gaussian(sigma=sigma), random_state=random_state).fit(X)
    options = {"initial_rank": 20, "max_iter": paper_steps, "random_state": random_state}
    return DigitsInSpace(sdp, labels, stopped_power_method(X, sigma, **options) if paper_steps else None)


def _part(images: Array, whole: int) -> str:
    return "" if len(images) == whole else "a part of the images only"


def _mnist(part: str, digits: Sequence[int], n: int | None) -> tuple[Array, Array]:
    """The first n images of some digits, 784 pixels in [0, 1] a row, in the order of the file."""
    data = load_real("mnist")
    rows = np.flatnonzero(np.isin(data[f"y_{part}"], list(digits)))[:n]
    return data[f"x_{part}"][rows].reshape(len(rows), -1) / 255.0, data[f"y_{part}"][rows].astype(np.int64)
