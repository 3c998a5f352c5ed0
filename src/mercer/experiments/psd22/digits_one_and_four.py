"""Handwritten ones and fours, pixels in [0, 1]: a third embedded, the rest extended and classified (PSD22 Fig 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from mercer.backends.arrays import Array
from mercer.datasets import mnist_pair
from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import random_split, spectrum_text
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, compare
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_points

_PAPER_TOTAL = 12584


@dataclass(frozen=True)
class DigitsOneAndFour(Experiment):
    """The embedding of the training images, its extension to the others, and how well neighbours classify these."""

    sdp: SDPEmbedding
    train_labels: Array
    extended: Array
    test_labels: Array
    error: float

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Sizes, rank and error of the caption."""
        total = len(self.train_labels) + len(self.test_labels)
        part = "" if total == _PAPER_TOTAL else f"a part of the images only: {total} of {_PAPER_TOTAL}"
        return (
            compare("images of 1 and 4", _PAPER_TOTAL, total, within=0, reason=part),
            compare("training images", 3775, len(self.train_labels), within=0, reason=part),
            compare("rank of B", 2, self.sdp.rank_, within=0, reason=part),
            compare(
                "test error of 5 neighbours, %",
                1.0,
                round(100 * self.error, 2),
                within=0.5,
                reason=part or "another draw of the training images; the paper rounds to whole per cent",
            ),
        )

    def figure(self) -> Any:
        """The training images and the others, by the same coordinates."""
        figure, axes = new_figure(2)
        title = f"{len(self.train_labels)} embedded: spectrum {spectrum_text(self.sdp.eigenvalues_)}"
        plot_points(axes[0], self.sdp.embedding_, self.train_labels, title=title, size=4)
        title = f"{len(self.test_labels)} extended: 5-NN error {100 * self.error:.1f} %"
        plot_points(axes[1], self.extended, self.test_labels, title=title, size=4)
        return figure


@experiment("psd22-fig4", seconds=36, data="mnist")
def digits_one_and_four(
    sigma: float = 10.0,
    *,
    n_total: int | None = None,
    train_fraction: float = 0.3,
    n_neighbors: int = 5,
    random_state: Any = 0,
) -> DigitsOneAndFour:
    """Handwritten ones and fours, 30 % embedded and the rest extended and classified (PSD22 Fig 4).

    Parameters
    ----------
    n_total : int or None, default=None
        Images to use, training and test together; all 12 584 if None.
    train_fraction : float, default=0.3
        The part that is embedded.
    n_neighbors : int, default=5
        Neighbours of the classifier.
    """
    X, y = mnist_pair(1, 4, n=n_total, random_state=random_state)
    train, test = random_split(len(X), train_fraction, random_state)
    sdp = SDPEmbedding(Gaussian(sigma=sigma), radius="paper", random_state=random_state).fit(X[train])
    extended = sdp.transform(X[test])
    classifier = KNeighborsClassifier(n_neighbors).fit(sdp.embedding_, y[train])
    error = float(np.mean(classifier.predict(extended) != y[test]))
    return DigitsOneAndFour(sdp, y[train], extended, y[test], error)
