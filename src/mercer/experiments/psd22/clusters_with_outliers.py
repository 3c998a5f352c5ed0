"""Three clusters with outliers, embedded by the semi-definite programme and by diffusion maps (PSD22 Fig 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import three_clusters
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.experiments.conventions import both_embeddings
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim, compare
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_points

_OTHER_SAMPLE = "the paper gives no coordinates: clusters and outliers were drawn anew"


@dataclass(frozen=True)
class ClustersWithOutliers(Experiment):
    """The data, both models, and what the picture shows in numbers."""

    X: Array
    labels: Array
    sdp: SDPEmbedding
    diffusion_maps: DiffusionMaps  #: λu, as the paper has it
    markov_maps: DiffusionMaps  #: λψ, as diffusion maps are usually drawn

    def outlier_reach(self, embedding: Array) -> float:
        """How much farther from the centre the farthest outlier lies than the farthest cluster point."""
        distances = np.linalg.norm(embedding - np.median(embedding, axis=0), axis=1)
        return float(distances[self.labels == -1].max() / distances[self.labels != -1].max())

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank that section 5 gives for this figure, and the one thing the text says of the outliers."""
        rank = compare("rank of B", 2, self.sdp.rank_, within=0, reason=_OTHER_SAMPLE)
        if -1 not in self.labels:
            return (rank,)
        reach = self.outlier_reach(self.sdp.embedding_)
        far = f"{reach:.1f} times as far out as the clusters reach"
        others = [self.outlier_reach(model.embedding_) for model in (self.diffusion_maps, self.markov_maps)]
        return (
            rank,
            claim("outliers in the SDP embedding", "far from the clusters", far, reach > 1, _OTHER_SAMPLE),
            claim(
                "outliers in diffusion maps",
                "their positions are not fixed",
                f"{others[0]:.1f} times as far out as the clusters reach by λu, {others[1]:.1f} times by λψ",
                others[0] < reach,
                "λu, the paper's, is small where the data are sparse; λψ, the usual one, is large there",
            ),
        )

    def figure(self) -> Any:
        """Data, SDP embedding and diffusion maps in both conventions."""
        figure, axes = new_figure(4)
        outliers = int(np.sum(self.labels == -1))
        plot_points(axes[0], self.X, self.labels, title=f"Data: three clusters, {outliers} outliers")
        certificate = self.sdp.certificate_
        proof = "not certified" if certificate is None else f"certified to {certificate.relative_gap:.0e}"
        title = f"SDP embedding: rank {self.sdp.rank_}, {proof}"
        plot_points(axes[1], self.sdp.embedding_, self.labels, title=title)
        plot_points(axes[2], self.diffusion_maps.embedding_, self.labels, title="Diffusion maps, λu (the paper's)")
        plot_points(axes[3], self.markov_maps.embedding_, self.labels, title="Diffusion maps, λψ (the usual ones)")
        return figure


@experiment("psd22-fig1", seconds=1)
def clusters_with_outliers(
    sigma: float = 1.2, *, n_outliers: int = 10, random_state: Any = 0, callback: Any = None
) -> ClustersWithOutliers:
    """Three clusters with outliers, by the SDP embedding and by diffusion maps (PSD22 Fig 1).

    A ``callback`` receives every iteration of the solver.
    """
    X, labels = three_clusters(n_outliers=n_outliers, random_state=random_state)
    models = both_embeddings(X, sigma, random_state=random_state, callback=callback)
    markov = DiffusionMaps(Gaussian(sigma=sigma), random_state=random_state).fit(X)
    return ClustersWithOutliers(X, labels, *models, markov)
