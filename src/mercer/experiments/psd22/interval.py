"""The interval [-1, 1]: two kernels on it (PSD22 Fig 2), and a coarse sample embedded and extended (PSD22 Fig 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import interval
from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import in_the_plane
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, compare
from mercer.kernels import Gaussian
from mercer.operators import DiffusionOperator, GramOperator
from mercer.plots import new_figure, plot_heat_map
from mercer.plots.scatter import COLOURS

_SHOWN = 501  # points of the interval a picture can tell apart

# Read off the file with which the authors' programme drew the figure (15 points, σ = 0.1): |χ₁| and |χ₂|, at a training
# point, in the middle, and at a new point. The paper itself prints no values.
_DRAWN = ((14 / 15, (1.92869, 1.49906)), (0.0, (0.0, 2.25606)), (0.99, (2.44546, 1.92401)))
_SOURCE = "read off the file with which the authors drew the figure"


@dataclass(frozen=True)
class IntervalKernels(Experiment):
    """Both kernels on a grid, in the scale of the integral operators."""

    sdp: SDPEmbedding  #: fitted to all points
    grid: Array  #: (m,), the points drawn
    diffusion_kernel: Array  #: (m, m): ā(x, y), the matrix divided by the spacing of the points
    learned_kernel: Array  #: (m, m): b(x, y), likewise

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The number of components that Fig 3, which accompanies the figure, draws."""
        return (compare("rank of B", 2, self.sdp.rank_, within=0, reason="the components ℓ = 1 and 2 of Fig 3"),)

    def figure(self) -> Any:
        """Both kernels as heat maps on the square."""
        figure, axes = new_figure(2)
        figure.set_size_inches(9.4, 4.1)  # two squares and their colour bars
        ends = (float(self.grid[0]), float(self.grid[-1]))
        plot_heat_map(axes[0], self.diffusion_kernel, extent=ends * 2, title="Diffusion kernel ā(x, y)")
        title = f"Learned kernel b(x, y), rank {self.sdp.rank_}"
        plot_heat_map(axes[1], self.learned_kernel, extent=ends * 2, title=title)
        for ax in axes:
            ax.set(xlabel="x", ylabel="y")
        return figure


@experiment("psd22-fig2", seconds=3)
def interval_kernels(sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0) -> IntervalKernels:
    """The diffusion kernel of [-1, 1] and the kernel learned from it, as heat maps (PSD22 Fig 2).

    Solved on ``n_points`` equidistant points; the paper's grid has 2001² pairs.
    """
    X = interval(n_points)
    kernel = Gaussian(sigma=sigma)
    sdp = SDPEmbedding(kernel, random_state=random_state).fit(X)
    shown = np.unique(np.linspace(0, n_points - 1, min(n_points, _SHOWN)).round().astype(int))
    spacing = 2.0 / (n_points - 1)
    diffusion = DiffusionOperator(GramOperator(kernel, X)).block(shown, shown)
    learned = sdp.embedding_[shown] @ sdp.embedding_[shown].T
    return IntervalKernels(sdp, X[shown, 0], diffusion / spacing, learned / spacing)


@dataclass(frozen=True)
class IntervalExtension(Experiment):
    """Coordinates of the sample and of the points between, in the scale of the integral operators."""

    sigma: float
    sdp: SDPEmbedding  #: fitted to the sample
    x: Array  #: (n,), the sample
    new: Array  #: (m,), the points between
    coordinates: Array  #: (n, r): χ, the rows of the embedding divided by the square root of the spacing
    extended: Array  #: (m, r): χ at the points between

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The number of components, and with the paper's sample the values that are drawn."""
        rank = compare("rank of B", 2, self.sdp.rank_, within=0, reason="the figure has the components ℓ = 1 and 2")
        if (self.sigma, len(self.x)) != (0.1, 15):
            return (rank,)
        spacing = 2.0 / len(self.x)
        values = np.abs(self.sdp.transform([[x] for x, _ in _DRAWN])) / np.sqrt(spacing)
        drawn = [
            compare(f"|χ_{i + 1}| at x = {x:.4g}", paper, round(float(values[row, i]), 5), within=2e-5, reason=_SOURCE)
            for row, (x, pair) in enumerate(_DRAWN)
            for i, paper in enumerate(pair)
        ]
        return rank, *drawn

    def figure(self) -> Any:
        """The embedding in the plane, and each coordinate over the interval."""
        figure, axes = new_figure(2)
        two = [in_the_plane(values) for values in (self.coordinates, self.extended)]
        axes[0].scatter(*two[1].T, s=8, color=COLOURS[4], linewidths=0, label=f"{len(self.new)} new points")
        axes[0].scatter(*two[0].T, s=36, color="black", linewidths=0, label=f"{len(self.x)} training points")
        axes[0].set(xlabel="χ₁(x)", ylabel="χ₂(x)", title=f"SDP embedding: rank {self.sdp.rank_}")
        axes[0].set_aspect("equal", adjustable="datalim")
        axes[0].legend(fontsize=8, loc="upper right")
        for i in range(self.coordinates.shape[1]):
            colour = COLOURS[(4, 0, 1, 2)[i % 4]]
            axes[1].scatter(self.new, self.extended[:, i], s=8, color=colour, linewidths=0, label=f"ℓ = {i + 1}")
            axes[1].scatter(self.x, self.coordinates[:, i], s=36, color="black", linewidths=0)
        axes[1].set(xlabel="x", ylabel="χ(x)", title="Out-of-sample extension")
        axes[1].legend(fontsize=8, loc="upper right")
        return figure


@experiment("psd22-fig3", seconds=1)
def interval_extension(
    sigma: float = 0.1, *, n_points: int = 15, n_new: int = 100, random_state: Any = 0
) -> IntervalExtension:
    """A coarse sample of [-1, 1] and the extension to the points between (PSD22 Fig 3).

    The sample are the midpoints of ``n_points`` equal parts of [-1, 1], the points between those of ``n_new`` parts.
    """
    x, new = _midpoints(n_points), _midpoints(n_new)
    kernel = Gaussian(sigma=sigma)
    sdp = SDPEmbedding(kernel, tol=1e-9, residual_tol=1e-9, radius="paper", random_state=random_state).fit(x[:, None])
    scale = np.sqrt(2.0 / n_points)
    return IntervalExtension(sigma, sdp, x, new, sdp.embedding_ / scale, sdp.transform(new[:, None]) / scale)


def _midpoints(n: int) -> Array:
    return (2 * np.arange(n) + 1.0) / n - 1
