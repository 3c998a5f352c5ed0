"""Two tables of measurements in the plane, by the SDP embedding and by diffusion maps (PSD17 Figs 11, 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.datasets import iris, wine
from mercer.experiments.conventions import PAPER_STEPS, EmbeddedCases, embedded_cases
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison
from mercer.plots import new_figure, plot_points


@dataclass(frozen=True)
class TableInPlane(EmbeddedCases):
    """A table embedded by both methods, in one case or more, under a ``reading`` of what the paper does not print."""

    reading: str

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank, which the captions print as two."""
        return self._compare_ranks(self.reading)

    def figure(self) -> Any:
        """The SDP embeddings in the first row, diffusion maps in the second, one column a case."""
        count = len(self.sdp)
        figure, axes = new_figure(2 * count, rows=2)
        for column, (case, model) in enumerate(self.sdp.items()):
            plot_points(axes[column], model.embedding_, self.labels, title=f"SDP embedding, {case}: rank {model.rank_}")
            coordinates = self.diffusion_maps[case].embedding_
            plot_points(axes[count + column], coordinates, self.labels, title=f"Diffusion maps, {case}")
        return figure


@experiment("psd17-fig11", seconds=1)
def iris_in_plane(sigma: float = 1.0, *, random_state: Any = 0) -> TableInPlane:
    """Iris by the SDP embedding and by diffusion maps (PSD17 Fig 11).

    The paper does not say whether the four lengths are standardised: both readings are embedded.
    """
    from sklearn.datasets import load_iris

    standardised, labels = iris()
    scales = {"in centimetres": np.asarray(load_iris().data, dtype=np.float64), "standardised": standardised}
    cases = {f"σ = {sigma:g}, {name}": (sigma, X) for name, X in scales.items()}
    models = embedded_cases(cases, paper_steps=0, random_state=random_state)
    return TableInPlane(labels, *models, "the scale of the lengths is not printed")


@experiment("psd17-fig12", seconds=10)
def wine_in_plane(
    sigmas: Sequence[float] = (10.0, 3.0, 1.5, 1.0), *, paper_steps: int = PAPER_STEPS, random_state: Any = 0
) -> TableInPlane:
    """Standardised wine at several bandwidths, by the SDP embedding and by diffusion maps (PSD17 Fig 12).

    The paper only draws its bandwidths; the smallest of these ``sigmas`` isolate points.
    """
    X, labels = wine()
    cases = {f"σ = {sigma:g}": (float(sigma), X) for sigma in sigmas}
    models = embedded_cases(cases, paper_steps=paper_steps, random_state=random_state)
    return TableInPlane(labels, *models, "the bandwidths of the paper are drawn, not printed")
