"""Three clusters with outliers at several bandwidths: the SDP embedding hardly changes (PSD17 Fig 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import three_clusters
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.experiments.conventions import PAPER_STEPS, stopped_power_method
from mercer.experiments.ranks import compare_rank
from mercer.experiments.report import Comparison, Experiment
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_shaded, plot_spectra

_N_EIGENVALUES = 6


@dataclass(frozen=True)
class ClustersOverBandwidths(Experiment):
    """Both embeddings at several bandwidths, and the spectrum of the diffusion over a range of them.

    Attributes
    ----------
    X : array of shape (n, 2)
        The points.
    labels : array of int
        The clusters, and -1 for the outliers.
    sdp, diffusion_maps : dict from bandwidth to model
        At the bandwidths drawn.
    stopped : dict from bandwidth to SDPEmbedding
        The papers' power method, stopped as theirs; empty where it was not asked for.
    spectra : dict from bandwidth to array
        The leading eigenvalues of the diffusion kernel.
    """

    X: Array
    labels: Array
    sdp: dict[float, SDPEmbedding]
    diffusion_maps: dict[float, DiffusionMaps]
    stopped: dict[float, SDPEmbedding]
    spectra: dict[float, Array]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank, which the paper found to be two in all cases."""
        reading = "the bandwidths and positions of the paper are drawn, not printed"
        return tuple(
            compare_rank(f"rank of ρ, σ = {sigma:g}", 2, model, stopped=self.stopped.get(sigma), reason=reading)
            for sigma, model in self.sdp.items()
        )

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
        self._draw_learned_spectra(axes[2])
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

    def _draw_learned_spectra(self, ax: Any) -> None:
        sigmas, early = sorted(self.sdp), sorted(self.stopped)
        plot_spectra(ax, sigmas, [self.sdp[s].eigenvalues_ for s in sigmas], title="Eigenvalues of ρ / Tr ρ", count=3)
        plot_spectra(ax, early, [self.stopped[s].eigenvalues_ for s in early], crosses=True, count=3)
        ax.plot([], [], "k.-", linewidth=1.2, label="certified")
        ax.plot([], [], "kx", markersize=5, label="power method, stopped")
        ax.legend(fontsize=8)


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
    paper_steps : int, default=5000
        Steps of the papers' power method, which is run beside ours; 0 for none.
    random_state : int, default=0
        Seed of the data and of the solvers.
    """
    X, labels = three_clusters(n_per_cluster, n_outliers, random_state=random_state)
    kernels = {float(sigma): Gaussian(sigma=float(sigma)) for sigma in sigmas}
    wanted = np.linspace(0.5, 3.0, 25) if spectrum_sigmas is None else np.asarray(spectrum_sigmas, dtype=float)
    early = kernels if paper_steps else {}
    return ClustersOverBandwidths(
        X,
        labels,
        {s: SDPEmbedding(k, max_iter=50_000, random_state=random_state).fit(X) for s, k in kernels.items()},
        {s: DiffusionMaps(k, random_state=random_state).fit(X) for s, k in kernels.items()},
        {s: stopped_power_method(k, X, max_iter=paper_steps, random_state=random_state) for s, k in early.items()},
        {float(s): _spectrum(X, float(s), random_state) for s in wanted},
    )


def _spectrum(X: Array, sigma: float, random_state: Any) -> Array:
    maps = DiffusionMaps(Gaussian(sigma=sigma), n_components=_N_EIGENVALUES, random_state=random_state).fit(X)
    return maps.eigenvalues_
