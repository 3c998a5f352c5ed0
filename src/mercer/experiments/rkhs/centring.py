"""The cloud of pulled data before and after centring, and what a kernel leaves open of it (RKHS Figs 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import three_clusters
from mercer.embedding import KernelPCA
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Gaussian
from mercer.linalg import leading_eigenpairs
from mercer.operators import CenteredOperator, GramOperator
from mercer.plots import new_figure, plot_points


@dataclass(frozen=True)
class CentredCloud(Experiment):
    """Three clusters in the feature space of a Gaussian kernel, seen along its principal directions."""

    labels: Array
    before: Array  #: coordinates along the three leading directions of the features as they are
    after: Array  #: along the two leading directions of the centred features
    mean: float  #: length of the mean of the features, which are of length one
    towards_mean: float  #: cosine of the first direction before centring and the mean
    sums: float  #: the largest row sum of the centred matrix
    new_points: float  #: the largest error of coordinates by (65) at points not in the sample
    rotations: tuple[float, float]  #: how far the inner products of two clouds of features differ, and the clouds

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """(62), (63) and (65), and that only inner products are known."""
        same, apart = self.rotations
        return (
            claim("mean of the pulled data, before", "not zero", f"length {self.mean:.3f} of 1", self.mean > 0),
            claim("mean of the pulled data, centred (62)", "zero", f"row sums below {self.sums:.0e}", self.sums < 1e-9),
            claim(
                "coordinates of new points by the centred kernel (65)",
                "those of the pulled points",
                f"equal to {self.new_points:.0e}",
                self.new_points < 1e-9,
                "its third term being (1/n) K 11ᵀ, as in (66), not (1/n) K_t 11ᵀ",
            ),
            claim(
                "locations of pulled points (Fig 1)",
                "unknown, only inner products are known",
                f"two clouds with inner products equal to {same:.0e} are {apart:.2f} apart at a point",
                same < 1e-9 < apart,
            ),
            claim(
                "first direction without centring",
                "not said",
                f"cosine {self.towards_mean:.3f} with the mean",
                True,
                "the first coordinate is spent on where the cloud lies: components are taken of centred data",
            ),
        )

    def figure(self) -> Any:
        """The cloud along its directions: as it is, the same without the first, and centred."""
        figure, axes = new_figure(3)
        plot_points(axes[0], self.before[:, :2], self.labels, title="As pulled: the cross is the origin")
        axes[0].plot(0, 0, "k+", markersize=14)
        plot_points(axes[1], self.before[:, 1:], self.labels, title="As pulled, directions 2 and 3")
        axes[1].plot(0, 0, "k+", markersize=14)
        plot_points(axes[2], self.after, self.labels, title="Centred, directions 1 and 2")
        axes[2].plot(0, 0, "k+", markersize=14)
        return figure


@experiment("rkhs-fig2", place=6.1, seconds=1)
def centred_cloud(sigma: float = 3.0, *, n_per_cluster: int = 100, random_state: Any = 0) -> CentredCloud:
    """Pulled data before and after centring (RKHS Fig 2).

    Three clusters, seen along the leading directions of their features. Cost: a dense matrix of 3 ``n_per_cluster``.
    """
    X, labels = three_clusters(n_per_cluster, 0, random_state=random_state)
    kernel, n, rng = Gaussian(sigma=sigma), len(X), np.random.default_rng(random_state)
    gram = GramOperator(kernel, X)
    K = gram.to_dense()
    values, vectors = leading_eigenpairs(gram, 3, rng=rng)
    model = KernelPCA(kernel, random_state=random_state).fit(X)
    mean = float(np.sqrt(K.mean()))
    return CentredCloud(
        labels,
        before=vectors * np.sqrt(values),
        after=model.embedding_,
        mean=mean,
        towards_mean=float(abs(np.sum(vectors[:, 0])) * np.sqrt(values[0]) / (n * mean)),
        sums=float(np.abs(CenteredOperator(gram).to_dense().sum(axis=1)).max()),
        new_points=_error_of_new_points(model, K, kernel(X, X + 0.1), X + 0.1),
        rotations=_two_clouds(K),
    )


def _error_of_new_points(model: KernelPCA, K: Array, K_t: Array, new: Array) -> float:
    """The largest difference of :meth:`KernelPCA.transform` and (101) with (65), K in its third term."""
    centred = K_t - K_t.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    expected = centred.T @ model.eigenvectors_ / np.sqrt(model.eigenvalues_)
    return float(np.abs(model.transform(new) - expected).max())


def _two_clouds(K: Array) -> tuple[float, float]:
    """Two square roots of one kernel matrix: the largest difference of their inner products, and of their points."""
    values, vectors = np.linalg.eigh(K)
    one = vectors * np.sqrt(np.maximum(values, 0))
    other = one @ vectors.T
    return float(np.abs(one @ one.T - other @ other.T).max()), float(np.linalg.norm(one - other, axis=1).max())
