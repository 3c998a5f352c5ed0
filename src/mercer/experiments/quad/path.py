"""The two-dimensional example of QUAD section 8.2: the whole path, and the Υ-test along it (Figs 8.4 and 8.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.experiments.quadrature_setting import DIRECTIONS, GOOD, PRINTED, HaltonSquare, SquareExperiment, upsilon_of
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.plots import new_figure, plot_quadrature_path
from mercer.quadrature import QuadraturePath, QuadratureSparsifier

_LAST = 12785  # the last event of the paper's path
_LAST_ALPHA, _LAST_KAPPA = PRINTED[f"α_{_LAST}"], PRINTED[f"ϰ_{_LAST}"]


@dataclass(frozen=True)
class SquarePath(SquareExperiment):
    """The path of the Halton points as far as it was followed."""

    model: QuadratureSparsifier

    @property
    def path(self) -> QuadraturePath:
        """The path itself."""
        return self.model.path_

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The number of events, the last printed kink, and the solution at its α."""
        compared, path = self.square.printed, self.path
        reach = f"to α = {path.alphas[-1]:.3e} and ϰ = {path.kappas[-1]:.7f}. {path.end.value}"
        went = f"ours goes {reach}" if path.end.lost_precision else f"followed {reach}"
        first = compared("α₀", path.alphas[0]), compared("events until precision ends the path", len(path), went)
        if path.alphas[-1] > float(_LAST_ALPHA):
            return first  # cut short before the paper's last kink
        meets = path.at(alpha=float(_LAST_ALPHA)).kappa
        return *first, *self._last_kink(), compared(f"ϰ of the solution at α = {_LAST_ALPHA}", meets)

    def _last_kink(self) -> tuple[Comparison, ...]:
        path = self.path
        if len(path) <= _LAST:
            return ()
        nearest = int(np.argmin(np.abs(path.alphas - float(_LAST_ALPHA))))
        reason = (
            f"from kink {path.n_in_order} on some events lie closer together than rounding resolves, so that their "
            f"numbers may be off by a few; the nearest of ours, kink {nearest}, lies at "
            f"α = {path.alphas[nearest]:.6e}, ϰ = {path.kappas[nearest]:.7f}"
        )
        values = {f"α_{_LAST}": path.alphas[_LAST], f"ϰ_{_LAST}": path.kappas[_LAST]}
        return tuple(self.square.printed(name, value, reason) for name, value in values.items())

    def figure(self) -> Any:
        """Nodes, discrepancy and penalty over ϰ."""
        figure, axes = new_figure(3)
        plot_quadrature_path(self.path, axes)
        return figure


@experiment("quad-fig8.4", seconds=56)
def square_path(n: int = HaltonSquare.n, *, sigma: float = HaltonSquare.sigma, alpha: float = 4e-6) -> SquarePath:
    """The regularisation path of Halton points, as far as precision goes (QUAD Fig 8.4).

    It stops at ``alpha``; precision ends the paper's path at 1.5e-5 and ours near 4.2e-6, after half a minute.
    """
    square = HaltonSquare(n, sigma)
    return SquarePath(square, square.sample.solved(alpha=alpha, solver="path"))


@dataclass(frozen=True)
class SquareUpsilon(Experiment):
    """The Υ-test of the solutions at many values of ϰ."""

    kappas: Array  #: (p,): ϰ, rising from zero
    upsilon: Array  #: (p, 62): Υ of each direction; NaN where there are fewer nodes than that
    n_nodes: Array  #: (p,): nodes of the solutions
    eigenvalues: Array  #: (62,): λ, the true eigenvalues

    @property
    def within_trace(self) -> Array:
        """max{l : λ₁ + … + λ_l ≤ ϰ}, how many true eigenvalues the trace has room for."""
        return np.searchsorted(np.cumsum(self.eigenvalues), self.kappas, side="right")

    @property
    def accurate(self) -> Array:
        """How many directions have Υ ≥ 0.99."""
        return np.sum(self.upsilon >= GOOD, axis=1)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The paper says in words that the accurate directions grow with ϰ and follow the decay of the spectrum."""
        inside = self.within_trace < self.eigenvalues.size  # beyond, the count is cut off at the directions computed
        correlation = float(np.corrcoef(self.accurate[inside], self.within_trace[inside])[0, 1])
        return (
            claim(
                "directions with Υ ≥ 0.99 over ϰ",
                "in close relation with the decay of the spectrum",
                f"correlation {correlation:.3f} with max{{l : λ₁ + … + λ_l ≤ ϰ}}",
                correlation > 0.9,
                f"from {self.accurate.min()} to {self.accurate.max()} of {self.eigenvalues.size} directions",
            ),
        )

    def figure(self) -> Any:
        """Υ of each direction and each ϰ in shades, and the number of eigenvalues that ϰ has room for."""
        figure, (ax,) = new_figure(1, panel_inches=5.5)
        count = self.eigenvalues.size
        shades = np.ma.masked_invalid(self.upsilon.T)
        image = ax.pcolormesh(self.kappas, np.arange(1, count + 1), shades, cmap="viridis", vmin=0, vmax=1)
        bar = figure.colorbar(image, ax=ax, aspect=30, pad=0.02, label="Υ")
        bar.ax.tick_params(labelsize=8)
        sums = np.concatenate([[0.0], np.cumsum(self.eigenvalues)])
        ax.step(sums, np.arange(count + 1), where="post", color="#ee3333", linewidth=1.8)
        title = "Υ-test along the path; red line: how many λ$_l$ sum up to ϰ at most"
        ax.set_title(title, fontsize=10)
        ax.set(xlabel="ϰ", ylabel="direction l", xlim=(0, self.kappas[-1]), ylim=(0.5, count + 0.5))
        ax.set_facecolor("#f2f2f2")
        return figure


@experiment("quad-fig8.5", seconds=24)
def square_upsilon(
    n: int = HaltonSquare.n,
    *,
    sigma: float = HaltonSquare.sigma,
    n_values: int = 41,
    largest: float = float(_LAST_KAPPA),
) -> SquareUpsilon:
    """The Υ-test of approximate eigenpairs of Halton points over the trace of the quadrature (QUAD Fig 8.5).

    There are ``n_values`` of ϰ, evenly spread from zero to ``largest``, the end of the paper's path.
    """
    square, kappas = HaltonSquare(n, sigma), np.linspace(0.0, largest, n_values)
    upsilon = np.full((n_values, DIRECTIONS), np.nan)
    nodes = np.zeros(n_values, dtype=np.intp)
    for i, kappa in enumerate(kappas[1:], start=1):
        model = square.sample.solved(trace_fraction=float(kappa))
        nodes[i] = model.indices_.size
        tested = upsilon_of(model.eigenpairs(min(DIRECTIONS, int(nodes[i]))))
        upsilon[i, : tested.size] = tested
    return SquareUpsilon(kappas, upsilon, nodes, square.exact.canonical)
