"""The interval [-1, 1]: is the learned kernel continuous (PSD17 Figs 3, 6)? Its eigenfunctions (Figs 4, 5, 7, 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import interval
from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import both_embeddings, compare_rank
from mercer.experiments.psd22.interval import IntervalKernels, interval_kernels
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_shaded
from mercer.plots.scatter import COLOURS


@dataclass(frozen=True)
class IntervalSteepness(Experiment):
    """Both kernels on the square, and how steep the learned one is on a fine and on a coarse grid."""

    kernels: IntervalKernels  #: on a grid
    claim: str  #: what the paper says about the shape of the learned kernel
    steps: tuple[float, float]  #: the largest, over the largest value: with all points, and with every other one

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank, and whether the learned kernel is continuous."""
        fine, coarse = self.steps
        continuous = coarse > 1.5 * fine
        shape = "continuous" if continuous else "discontinuous"
        behaviour = "shrinks with the spacing" if continuous else "does not shrink with the spacing"
        step = claim(
            "shape of ρ",
            self.claim,
            f"{shape}, largest step {fine:.4f} of the largest value",
            continuous,
            f"the step between neighbours is {coarse:.4f} on twice as coarse a grid: it {behaviour}",
        )
        return compare_rank("rank of ρ", 2, self.kernels.sdp), step

    def figure(self) -> Any:
        """Both kernels as heat maps."""
        return self.kernels.figure()


@experiment("psd17-fig3", seconds=1)
def interval_kernel_smooth(sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0) -> IntervalSteepness:
    """The diffusion kernel of [-1, 1] and the continuous kernel learned from it, σ = 0.1 (PSD17 Fig 3).

    The programme is solved again on every other point, to tell a steep function from a discontinuous one. There are
    ``n_points`` equidistant points, an odd number.
    """
    return _steepness(sigma, n_points, random_state, "continuous")


@experiment("psd17-fig6", seconds=1)
def interval_kernel_steep(sigma: float = 0.7, *, n_points: int = 2001, random_state: Any = 0) -> IntervalSteepness:
    """The diffusion kernel of [-1, 1] and the step-like kernel learned from it, σ = 0.7 (PSD17 Fig 6).

    The programme is solved again on every other point, to tell a steep function from a discontinuous one.
    """
    return _steepness(sigma, n_points, random_state, "step-like, close to a discontinuity")


def _largest_step(values: Array) -> float:
    """The largest difference between neighbours, as a fraction of the largest value."""
    return float(np.abs(np.diff(values)).max() / np.abs(values).max())


def _steepness(sigma: float, n_points: int, random_state: Any, claim: str) -> IntervalSteepness:
    kernels = interval_kernels(sigma, n_points=n_points, random_state=random_state)
    coarse = SDPEmbedding(Gaussian(sigma=sigma), random_state=random_state).fit(interval((n_points + 1) // 2))
    steps = _largest_step(kernels.sdp.embedding_[:, 0]), _largest_step(coarse.embedding_[:, 0])
    return IntervalSteepness(kernels, claim, steps)


def _parity(values: Array) -> float:
    """⟨f, f(-·)⟩ / ‖f‖² of a function on points symmetric about zero: -1 for an odd function, 1 for an even one."""
    return float(values @ values[::-1] / (values @ values))


@dataclass(frozen=True)
class IntervalEigenfunctions(Experiment):
    """The two leading eigenfunctions of the diffusion kernel and the coordinates of the learned one."""

    sdp: SDPEmbedding  #: fitted to all points
    x: Array  #: (n,), the points
    spectral: Array  #: (n, 2): e₀, e₁, the eigenfunctions of the diffusion kernel, of unit length as functions
    learned: Array  #: (n, r): χ, the coordinates of the embedding in the scale of the integral operator

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank, and which curves are odd or even as functions of x."""
        functions = {"e₀": self.spectral[:, 0], "e₁": self.spectral[:, 1]}
        functions |= dict(zip(("χ₁", "χ₂"), self.learned.T, strict=False))
        names = zip(functions, ("odd", "even", "odd", "even"), strict=False)
        rank = compare_rank("rank of ρ", 2, self.sdp)
        return rank, *(_compare_parity(name, paper, functions[name]) for name, paper in names)

    def figure(self) -> Any:
        """Both pairs of functions over the interval."""
        figure, axes = new_figure(2)
        _draw_functions(axes[0], self.x, self.spectral, "e", 0, "Two leading eigenfunctions of $L_K$")
        _draw_functions(
            axes[1], self.x, self.learned, "χ", 1, f"Eigenfunctions of the learned kernel: rank {self.sdp.rank_}"
        )
        return figure


@dataclass(frozen=True)
class IntervalInPlane(Experiment):
    """The interval as a curve in the plane, by the same functions."""

    functions: IntervalEigenfunctions

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Those of the functions."""
        return self.functions.comparisons

    def figure(self) -> Any:
        """The two curves, shaded by x."""
        figure, axes = new_figure(2)
        functions = self.functions
        plot_shaded(axes[0], functions.spectral, functions.x, title="Diffusion maps")
        plot_shaded(axes[1], functions.learned, functions.x, title=f"SDP embedding: rank {functions.sdp.rank_}")
        axes[0].set(xlabel="e₀(x)", ylabel="e₁(x)")
        axes[1].set(xlabel="χ₁(x)", ylabel="χ₂(x)")
        bar = figure.colorbar(axes[1].collections[0], ax=axes, shrink=0.85)
        bar.set_label("x")
        return figure


@experiment("psd17-fig4", seconds=2)
def interval_eigenfunctions(
    sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0
) -> IntervalEigenfunctions:
    """Eigenfunctions of the diffusion kernel of [-1, 1] and of the kernel learned from it, σ = 0.1 (PSD17 Fig 4).

    There are ``n_points`` equidistant points. Cost: two dense matrices of that order at most.
    """
    X = interval(n_points)
    sdp, maps = both_embeddings(X, sigma, time=0, random_state=random_state)
    scale = np.sqrt(2.0 / (n_points - 1))
    x, spectral = X[:, 0], maps.embedding_
    return IntervalEigenfunctions(sdp, x, _oriented(x, spectral) / scale, _oriented(x, sdp.embedding_) / scale)


@experiment("psd17-fig5", seconds=2)
def interval_in_plane(sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0) -> IntervalInPlane:
    """The interval [-1, 1] in the plane by diffusion maps and by the SDP embedding, σ = 0.1 (PSD17 Fig 5).

    The coordinates are the functions of Fig 4, without further weights, as the paper has them.
    """
    return IntervalInPlane(interval_eigenfunctions(sigma, n_points=n_points, random_state=random_state))


@experiment("psd17-fig7", seconds=1)
def wide_interval_eigenfunctions(
    sigma: float = 0.7, *, n_points: int = 2001, random_state: Any = 0
) -> IntervalEigenfunctions:
    """Eigenfunctions of the diffusion kernel of [-1, 1] and of the kernel learned from it, σ = 0.7 (PSD17 Fig 7)."""
    return interval_eigenfunctions(sigma, n_points=n_points, random_state=random_state)


@experiment("psd17-fig8", seconds=1)
def wide_interval_in_plane(sigma: float = 0.7, *, n_points: int = 2001, random_state: Any = 0) -> IntervalInPlane:
    """The interval [-1, 1] in the plane by diffusion maps and by the SDP embedding, σ = 0.7 (PSD17 Fig 8)."""
    return interval_in_plane(sigma, n_points=n_points, random_state=random_state)


def _oriented(x: Array, functions: Array) -> Array:
    """The functions with the sign that makes odd ones rise from left to right and even ones high in the middle."""
    return functions * np.where((x + 1 - 2 * x**2) @ functions < 0, -1.0, 1.0)


def _compare_parity(name: str, paper: str, values: Array) -> Comparison:
    measured = _parity(values)
    word = "odd" if measured < 0 else "even"
    holds = word == paper and abs(measured) > 0.999
    return claim(f"parity of {name}", paper, word, holds, f"⟨f, f(-·)⟩ / ‖f‖² = {measured:.6f}")


def _draw_functions(ax: Any, x: Array, values: Array, name: str, first: int, title: str) -> None:
    for i, (column, colour) in enumerate(zip(values.T, (COLOURS[0], "#ee3333", *COLOURS[1:]), strict=False)):
        ax.plot(x, column, color=colour, linewidth=1.6, label=f"${name}_{i + first}$")
    ax.axhline(0, color="black", linewidth=0.5)
    ax.set(xlabel="x", title=title)
    ax.legend(fontsize=9)
