"""Three clusters: their spectrum (PSD17 Fig 1), several bandwidths (Fig 9), and new points among them (Fig 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import three_clusters
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.experiments.conventions import PAPER_STEPS, EmbeddedCases, compare_rank, embedded_cases, in_the_plane
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, compare
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_points, plot_shaded, plot_spectra
from mercer.plots.scatter import COLOURS

_N_EIGENVALUES = 6
_MARKERS = ("^", "s", "D", "v", "P", "X")
_STAND_IN = (
    "the paper does not say where its clusters lie; ours are nearly the corners of an equilateral triangle, so that "
    "the two eigenvalues nearly coincide"
)


@dataclass(frozen=True)
class ClusterSpectrum(Experiment):
    """The data, its clusters, and diffusion maps with as many eigenvalues as are drawn."""

    X: Array
    labels: Array
    diffusion_maps: DiffusionMaps

    @property
    def dimensions(self) -> int:
        """How many eigenvalues come before the largest gap of the spectrum."""
        return int(np.argmax(-np.diff(self.diffusion_maps.eigenvalues_))) + 1

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The two printed eigenvalues, and the number of dimensions they justify."""
        values = self.diffusion_maps.eigenvalues_
        return (
            compare("λ₁", 0.99, float(values[0]), within=0.005, reason=_STAND_IN),
            compare("λ₂", 0.97, float(values[1]), within=0.005, reason=_STAND_IN),
            compare("eigenvalues before the spectral gap", 2, self.dimensions, within=0),
        )

    def figure(self) -> Any:
        """The data, diffusion maps, and the largest eigenvalues."""
        figure, axes = new_figure(3)
        plot_points(axes[0], self.X, self.labels, title="Data: three clusters")
        plot_points(axes[1], self.diffusion_maps.embedding_, self.labels, title="Diffusion maps")
        values = self.diffusion_maps.eigenvalues_
        axes[2].stem(np.arange(1, len(values) + 1), values, linefmt=COLOURS[0], markerfmt="o", basefmt="none")
        axes[2].set(xlabel="ℓ", title=r"Largest eigenvalues $\lambda_\ell$ of Ā", ylim=(0, 1.05))
        return figure


@experiment("psd17-fig1", seconds=8)
def cluster_spectrum(
    sigma: float = 1.5, *, n_per_cluster: int = 100, n_eigenvalues: int = 6, random_state: Any = 0
) -> ClusterSpectrum:
    """Three clusters by diffusion maps, and the spectral gap after two eigenvalues (PSD17 Fig 1).

    Cost: a dense eigenproblem of 3 ``n_per_cluster`` points. The paper does not give its sample:
    :func:`mercer.datasets.three_clusters` stands in. ``n_eigenvalues`` are drawn.
    """
    X, labels = three_clusters(n_per_cluster, 0, random_state=random_state)
    return ClusterSpectrum(X, labels, _diffusion_maps(X, sigma, n_eigenvalues, random_state))


@dataclass(frozen=True)
class ClustersOverBandwidths(EmbeddedCases):
    """Both embeddings of the points X at several bandwidths."""

    X: Array  #: the points
    spectra: dict[float, Array]  #: the leading eigenvalues of the diffusion kernel, over a range of bandwidths

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank, which the paper found to be two in all cases."""
        return self._compare_ranks("the bandwidths and positions of the paper are drawn, not printed")

    def figure(self) -> Any:
        """Data and spectra above, then the SDP embeddings, then diffusion maps, one column a bandwidth."""
        columns = max(3, len(self.sdp))
        figure, axes = new_figure(3 * columns, rows=3)
        stars = self.labels == -1
        density = next(iter(self.sdp.values())).stationary_
        plot_shaded(axes[0], self.X, density, stars=stars, title=f"Data: {int(stars.sum())} outliers")
        sigmas = sorted(self.spectra)
        values = [self.spectra[sigma] for sigma in sigmas]
        plot_spectra(axes[1], sigmas, values, count=_N_EIGENVALUES, title="Largest eigenvalues of the diffusion kernel")
        self._draw_learned_spectra(axes[2], "Eigenvalues of ρ / Tr ρ", "power method, stopped")
        for ax in axes[3:columns]:
            ax.remove()
        for column, (sigma, model) in enumerate(self.sdp.items()):
            title = f"SDP embedding, σ = {sigma:g}: rank {model.rank_}"
            plot_shaded(axes[columns + column], model.embedding_, model.stationary_, stars=stars, title=title)
            maps = self.diffusion_maps[sigma]
            title = f"Diffusion maps, σ = {sigma:g}"
            plot_shaded(axes[2 * columns + column], maps.embedding_, maps.stationary_, stars=stars, title=title)
        for ax in (*axes[columns + len(self.sdp) : 2 * columns], *axes[2 * columns + len(self.sdp) :]):
            ax.remove()
        return figure


@experiment("psd17-fig9", seconds=32)
def clusters_over_bandwidths(
    sigmas: Sequence[float] = (0.8, 1.2, 2.0),
    *,
    spectrum_sigmas: Sequence[float] | None = None,
    n_per_cluster: int = 100,
    n_outliers: int = 8,
    paper_steps: int = PAPER_STEPS,
    random_state: Any = 0,
) -> ClustersOverBandwidths:
    """Three clusters with outliers at several bandwidths, by both methods (PSD17 Fig 9).

    Parameters
    ----------
    sigmas : sequence of float, default=(0.8, 1.2, 2)
        The bandwidths of the Gaussian kernel. The paper only draws its own; these run from isolated outliers to
        outliers that merge with the clusters.
    spectrum_sigmas : sequence of float, optional
        The bandwidths of the spectrum; 25 from 0.5 to 3 by default.
    n_per_cluster, n_outliers : int, default=100 and 8
        The sample, as large as the paper's. Its positions are not printed: :func:`mercer.datasets.three_clusters`
        stands in.
    """
    X, labels = three_clusters(n_per_cluster, n_outliers, random_state=random_state)
    cases = {float(sigma): (float(sigma), X) for sigma in sigmas}
    models = embedded_cases(cases, paper_steps=paper_steps, random_state=random_state)
    wanted = np.linspace(0.5, 3.0, 25) if spectrum_sigmas is None else spectrum_sigmas
    spectra = {float(s): _diffusion_maps(X, float(s), _N_EIGENVALUES, random_state).eigenvalues_ for s in wanted}
    return ClustersOverBandwidths(labels, *models, X, spectra)


def _diffusion_maps(X: Array, sigma: float, count: int, random_state: Any) -> DiffusionMaps:
    return DiffusionMaps(Gaussian(sigma=sigma), n_components=count, random_state=random_state).fit(X)


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


@experiment("psd17-fig13", seconds=1)
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
    """
    X, labels = three_clusters(n_per_cluster, 0, random_state=random_state)
    points = np.asarray(new, dtype=np.float64)
    sdp = SDPEmbedding(Gaussian(sigma=sigma), radius="paper", random_state=random_state).fit(X)
    return ClustersExtended(X, labels, sdp, points, sdp.transform(points))
