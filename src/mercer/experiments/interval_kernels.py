"""The diffusion kernel of an interval and the kernel learned from it (PSD22 Fig 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import interval
from mercer.embedding import SDPEmbedding
from mercer.experiments.report import Comparison, Experiment, compare
from mercer.kernels import Gaussian
from mercer.operators import DiffusionOperator, GramOperator
from mercer.plots import new_figure, plot_heat_map

_SHOWN = 501  # points of the interval a picture can tell apart


@dataclass(frozen=True)
class IntervalKernels(Experiment):
    """Both kernels on a grid, in the scale of the integral operators.

    Attributes
    ----------
    sdp : SDPEmbedding
        Fitted to all points.
    grid : array of shape (m,)
        The points drawn.
    diffusion_kernel, learned_kernel : arrays of shape (m, m)
        ā(x, y) and b(x, y): the matrices divided by the spacing of the points.
    """

    sdp: SDPEmbedding
    grid: Array
    diffusion_kernel: Array
    learned_kernel: Array

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


def interval_kernels(sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0) -> IntervalKernels:
    """The diffusion kernel of [-1, 1] and the kernel learned from it, as heat maps (PSD22 Fig 2).

    Parameters
    ----------
    sigma : float, default=0.1
        The bandwidth of the Gaussian kernel, the paper's by default.
    n_points : int, default=2001
        Equidistant points; the paper's grid has 2001² pairs.
    random_state : int, default=0
        Seed of the solver.
    """
    X = interval(n_points)
    kernel = Gaussian(sigma=sigma)
    sdp = SDPEmbedding(kernel, random_state=random_state).fit(X)
    shown = np.unique(np.linspace(0, n_points - 1, min(n_points, _SHOWN)).round().astype(int))
    spacing = 2.0 / (n_points - 1)
    diffusion = DiffusionOperator(GramOperator(kernel, X)).block(shown, shown)
    learned = sdp.embedding_[shown] @ sdp.embedding_[shown].T
    return IntervalKernels(sdp, X[shown, 0], diffusion / spacing, learned / spacing)
