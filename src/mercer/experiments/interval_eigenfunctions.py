"""The interval by the eigenfunctions of its diffusion kernel and of the learned one (PSD17 Figs 4, 5, 7, 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import interval
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.experiments.conventions import symmetric_coordinates
from mercer.experiments.ranks import compare_rank
from mercer.experiments.report import Comparison, Experiment, Verdict
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_shaded
from mercer.plots.scatter import COLOURS


def parity(values: Array) -> float:
    """⟨f, f(-·)⟩ / ‖f‖² of a function on points symmetric about zero: -1 for an odd function, 1 for an even one."""
    return float(values @ values[::-1] / (values @ values))


@dataclass(frozen=True)
class IntervalEigenfunctions(Experiment):
    """The two leading eigenfunctions of the diffusion kernel and the coordinates of the learned one.

    Attributes
    ----------
    sdp : SDPEmbedding
        Fitted to all points.
    x : array of shape (n,)
        The points.
    spectral : array of shape (n, 2)
        e₀, e₁, the eigenfunctions of the diffusion kernel, of unit length as functions.
    learned : array of shape (n, r)
        χ, the coordinates of the embedding in the scale of the integral operator.
    """

    sdp: SDPEmbedding
    x: Array
    spectral: Array
    learned: Array

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
        _draw_functions(axes[1], self.x, self.learned, "χ", 1, f"Eigenfunctions of the learned kernel{_rank(self.sdp)}")
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
        plot_shaded(axes[1], functions.learned, functions.x, title=f"SDP embedding{_rank(functions.sdp)}")
        axes[0].set(xlabel="e₀(x)", ylabel="e₁(x)")
        axes[1].set(xlabel="χ₁(x)", ylabel="χ₂(x)")
        bar = figure.colorbar(axes[1].collections[0], ax=axes, shrink=0.85)
        bar.set_label("x")
        return figure


def interval_eigenfunctions(
    sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0
) -> IntervalEigenfunctions:
    """Eigenfunctions of the diffusion kernel of [-1, 1] and of the kernel learned from it, σ = 0.1 (PSD17 Fig 4).

    Cost: two dense matrices of order ``n_points`` at most.

    Parameters
    ----------
    sigma : float, default=0.1
        The bandwidth of the Gaussian kernel, the paper's by default.
    n_points : int, default=2001
        Equidistant points.
    random_state : int, default=0
        Seed of the solvers.
    """
    X = interval(n_points)
    kernel = Gaussian(sigma=sigma)
    sdp = SDPEmbedding(kernel, random_state=random_state).fit(X)
    maps = DiffusionMaps(kernel, time=0, random_state=random_state).fit(X)
    scale = np.sqrt(2.0 / (n_points - 1))
    x, spectral = X[:, 0], symmetric_coordinates(maps)
    return IntervalEigenfunctions(sdp, x, _oriented(x, spectral) / scale, _oriented(x, sdp.embedding_) / scale)


def interval_in_plane(sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0) -> IntervalInPlane:
    """The interval [-1, 1] in the plane by diffusion maps and by the SDP embedding, σ = 0.1 (PSD17 Fig 5).

    The coordinates are the functions of Fig 4, without further weights, as the paper has them. Parameters as in
    :func:`interval_eigenfunctions`.
    """
    return IntervalInPlane(interval_eigenfunctions(sigma, n_points=n_points, random_state=random_state))


def wide_interval_eigenfunctions(
    sigma: float = 0.7, *, n_points: int = 2001, random_state: Any = 0
) -> IntervalEigenfunctions:
    """Eigenfunctions of the diffusion kernel of [-1, 1] and of the kernel learned from it, σ = 0.7 (PSD17 Fig 7).

    Parameters as in :func:`interval_eigenfunctions`.
    """
    return interval_eigenfunctions(sigma, n_points=n_points, random_state=random_state)


def wide_interval_in_plane(sigma: float = 0.7, *, n_points: int = 2001, random_state: Any = 0) -> IntervalInPlane:
    """The interval [-1, 1] in the plane by diffusion maps and by the SDP embedding, σ = 0.7 (PSD17 Fig 8).

    Parameters as in :func:`interval_eigenfunctions`.
    """
    return interval_in_plane(sigma, n_points=n_points, random_state=random_state)


def _oriented(x: Array, functions: Array) -> Array:
    """The functions with the sign that makes odd ones rise from left to right and even ones high in the middle."""
    return functions * np.where((x + 1 - 2 * x**2) @ functions < 0, -1.0, 1.0)


def _compare_parity(name: str, paper: str, values: Array) -> Comparison:
    measured = parity(values)
    word = "odd" if measured < 0 else "even"
    verdict = Verdict.AGREES if word == paper and abs(measured) > 0.999 else Verdict.DIFFERS
    return Comparison(f"parity of {name}", paper, word, verdict, f"⟨f, f(-·)⟩ / ‖f‖² = {measured:.6f}")


def _rank(model: SDPEmbedding) -> str:
    return f": rank {model.rank_}"


def _draw_functions(ax: Any, x: Array, values: Array, name: str, first: int, title: str) -> None:
    for i, (column, colour) in enumerate(zip(values.T, (COLOURS[0], "#ee3333", *COLOURS[1:]), strict=False)):
        ax.plot(x, column, color=colour, linewidth=1.6, label=f"${name}_{i + first}$")
    ax.axhline(0, color="black", linewidth=0.5)
    ax.set(xlabel="x", title=title)
    ax.legend(fontsize=9)
    ax.tick_params(labelsize=8)
