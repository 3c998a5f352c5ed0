"""New points among three clusters, placed by the out-of-sample extension (PSD17 Fig 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import three_clusters
from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import in_the_plane
from mercer.experiments.ranks import compare_rank
from mercer.experiments.report import Comparison, Experiment
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_shaded

_MARKERS = ("^", "s", "D", "v", "P", "X")


@dataclass(frozen=True)
class ClustersExtended(Experiment):
    """The data with its embedding, and new points with theirs."""

    X: Array
    labels: Array
    sdp: SDPEmbedding
    new: Array
    extended: Array

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank."""
        reading = "the bandwidth is that of Fig 1; the positions of the paper are drawn, not printed"
        return (compare_rank("rank of ρ", 2, self.sdp, reason=reading),)

    def figure(self) -> Any:
        """The data and the embedding, new points as black signs."""
        figure, axes = new_figure(2)
        density = self.sdp.stationary_
        plot_shaded(axes[0], self.X, density, title="Data and new points")
        plot_shaded(axes[1], self.sdp.embedding_, density, title=f"SDP embedding, extended: rank {self.sdp.rank_}")
        for ax, points in zip(axes, (self.new, in_the_plane(self.extended)), strict=True):
            for point, marker in zip(points, _MARKERS * len(points), strict=False):
                ax.scatter(*point, s=80, color="black", marker=marker, edgecolors="white", linewidths=0.8, zorder=4)
        bar = figure.colorbar(axes[1].collections[0], ax=axes, shrink=0.85)
        bar.set_label("stationary probability")
        return figure


def clusters_extended(
    sigma: float = 1.5,
    *,
    new: Sequence[Sequence[float]] = ((0.2, 0.9), (4.9, -0.6), (2.0, 1.6)),
    n_per_cluster: int = 100,
    random_state: Any = 0,
) -> ClustersExtended:
    """Three clusters embedded, and three new points placed by the out-of-sample extension (PSD17 Fig 13).

    Parameters
    ----------
    sigma : float, default=1.5
        The bandwidth of the Gaussian kernel; that of Fig 1, whose data the paper uses again.
    new : points in the plane, default three
        One in a cluster, one at the rim of another and one between the clusters. The paper only draws its own.
    n_per_cluster : int, default=100
        Points of each cluster; :func:`mercer.datasets.three_clusters` stands in for the paper's sample.
    random_state : int, default=0
        Seed of the data and of the solver.
    """
    X, labels = three_clusters(n_per_cluster, 0, random_state=random_state)
    points = np.asarray(new, dtype=np.float64)
    sdp = SDPEmbedding(Gaussian(sigma=sigma), radius="paper", random_state=random_state).fit(X)
    return ClustersExtended(X, labels, sdp, points, sdp.transform(points))
