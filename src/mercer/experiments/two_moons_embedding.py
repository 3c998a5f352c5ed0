"""Two moons by a narrow kernel: the certified embedding, and the one the power method stops at (PSD22 Fig 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import radial_moons, standardized
from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import in_the_plane, proved_gap, spectrum_text, stopped_power_method
from mercer.experiments.report import Comparison, Experiment, Verdict
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_points

_DRAWN = (0.963, 0.017, 0.007)  # eigenvalues of B / Tr B of the authors' run; the paper prints only the picture


@dataclass(frozen=True)
class TwoMoonsEmbedding(Experiment):
    """The moons, standardised, their converged embedding, and the papers' power method stopped as theirs."""

    X: Array
    labels: Array
    sdp: SDPEmbedding
    stopped: SDPEmbedding

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The spectrum, stopped as the authors stop and converged."""
        drawn = spectrum_text(np.array(_DRAWN))
        early, exact = self.stopped.eigenvalues_, self.sdp.eigenvalues_
        return (
            Comparison(
                f"spectrum of B after {self.stopped.n_iter_} power steps",
                drawn,
                spectrum_text(early),
                Verdict.AGREES if abs(early[0] - _DRAWN[0]) < 0.05 else Verdict.DIFFERS,
                f"gap {proved_gap(self.stopped):.0e}; the moons were drawn anew, so only the first digits can agree",
            ),
            Comparison(
                "spectrum of B, converged",
                drawn,
                spectrum_text(exact),
                Verdict.AGREES if abs(exact[0] - _DRAWN[0]) < 5e-4 else Verdict.DIFFERS,
                f"certified to {proved_gap(self.sdp):.0e}: the small eigenvalues that the figure draws are what the "
                "power method had not removed when it was stopped; the rank of the optimum depends on the sample",
            ),
        )

    def figure(self) -> Any:
        """Data, the certified embedding, and the embedding of the stopped power method."""
        figure, axes = new_figure(3)
        plot_points(axes[0], self.X, self.labels, title="Two moons")
        title = f"Certified, rank {self.sdp.rank_}: {spectrum_text(self.sdp.eigenvalues_, 3)}"
        plot_points(axes[1], in_the_plane(self.sdp.embedding_), self.labels, title=title)
        title = f"{self.stopped.n_iter_} power steps: {spectrum_text(self.stopped.eigenvalues_, 3)}"
        plot_points(axes[2], in_the_plane(self.stopped.embedding_), self.labels, title=title)
        return figure


def two_moons_embedding(
    sigma: float = 0.1, *, n_per_moon: int = 200, max_iter: int = 5000, random_state: Any = 0
) -> TwoMoonsEmbedding:
    """Two moons by a narrow kernel, converged and as the authors stop (PSD22 Fig 7).

    Parameters
    ----------
    sigma : float, default=0.1
        The bandwidth of the Gaussian kernel on standardised coordinates, the paper's by default.
    n_per_moon : int, default=200
        Points of each moon.
    max_iter : int, default=5000
        Steps of the power method.
    random_state : int, default=0
        Seed of the moons and of the solvers.
    """
    X, labels = radial_moons(n_per_moon, random_state=random_state)
    X = standardized(X)
    kernel = Gaussian(sigma=sigma)
    sdp = SDPEmbedding(kernel, max_iter=50_000, random_state=random_state).fit(X)
    return TwoMoonsEmbedding(X, labels, sdp, stopped_power_method(kernel, X, max_iter=max_iter))
