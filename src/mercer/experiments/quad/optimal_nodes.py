"""The two-dimensional example of QUAD section 8: spectrum, optimal nodes and their eigenpairs (Figs 8.1 to 8.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.experiments.quadrature_setting import DIRECTIONS, PRINTED, HaltonSquare, SquareExperiment, upsilon_of
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, claim, printed
from mercer.plots import new_figure, plot_heat_map, plot_quadrature, plot_upsilon
from mercer.plots.scatter import COLOURS
from mercer.quadrature import ApproximateEigenpairs, QuadratureSparsifier

_GRID = 201


@dataclass(frozen=True)
class SquareSpectrum(SquareExperiment):
    """The exact eigenpairs of T_μ for the Halton points, and the direction that is drawn, counted from one."""

    eigenpairs: ApproximateEigenpairs
    direction: int

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The figure prints no number."""
        return ()

    def figure(self) -> Any:
        """The largest eigenvalues, and one eigenfunction on the square."""
        figure, (left, right) = new_figure(2)
        values = self.eigenpairs.canonical
        left.plot(np.arange(1, values.size + 1), values, "o", markersize=4, color=COLOURS[0])
        title = f"The {values.size} largest eigenvalues of T$_μ$"
        left.set(title=title, xlabel="direction l", ylabel="λ", ylim=(0, None))
        ticks = np.linspace(-1, 1, _GRID)
        grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        values = self.eigenpairs.extend(grid)[:, self.direction - 1].reshape(_GRID, _GRID)
        title = f"Eigenfunction {self.direction} on the square"
        plot_heat_map(right, values, extent=(-1, 1, -1, 1), title=title)
        return figure


@experiment("quad-fig8.1", seconds=1)
def square_spectrum(
    n: int = HaltonSquare.n, *, sigma: float = HaltonSquare.sigma, direction: int = 11
) -> SquareSpectrum:
    """The spectrum of the integral operator of Halton points, and an eigenfunction (QUAD Fig 8.1).

    The eigenfunction is that of ``direction``, counted from one.
    """
    square = HaltonSquare(n, sigma)
    return SquareSpectrum(square, square.exact, direction)


@dataclass(frozen=True)
class SquareQuadrature(SquareExperiment):
    """The solution at ϰ = 0.81 and the path to it."""

    model: QuadratureSparsifier

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every number of QUAD section 8.1 but those of the Υ-test."""
        model, path, compared = self.model, self.model.path_, self.square.printed
        p = int(np.searchsorted(path.kappas, model.kappa_, side="right")) - 1
        return (
            compared("α₀", path.alphas[0]),
            compared("D(0)", path.discrepancies[0]),
            self._first_point(),
            compared("α at ϰ = 0.81", model.alpha_),
            compared("D(v*)", model.discrepancy_),
            compared("nodes", model.indices_.size),
            compared("p, the last kink before ϰ", p),
            compared("α_p", path.alphas[p]),
            compared("α_{p+1}", path.alphas[p + 1]),
            compared("ϰ_p", path.kappas[p]),
            compared("ϰ_{p+1}", path.kappas[p + 1]),
            self._bound(),
        )

    def _first_point(self) -> Comparison:
        """D(e₁) beside the printed one, and how near any D(e_k) = D(0) - (Sω)_k + ½ comes to that."""
        single = self.model.path_.discrepancies[0] + 0.5 - self.square.sample.problem.distortion
        paper = PRINTED["D(e₁)"]
        nearest = int(np.argmin(np.abs(single - float(paper))))
        reason = (
            f"the printed number fits none of the {len(self.X)} points: the nearest, D(e_k) with k = {nearest + 1}, is "
            f"{single[nearest]:.6e}"
        )
        return printed("D(e₁)", paper, float(single[0]), reason)

    def _bound(self) -> Comparison:
        certificate = self.model.certificate_
        reason = (
            "both are what rounding leaves of zero, other sums in another order; the optimum is proved to "
            f"{certificate.relative_gap:.0e} of D"
        )
        name = "Frank-Wolfe bound ε"
        return printed(name, PRINTED[name], certificate.upper - certificate.lower, reason)

    def figure(self) -> Any:
        """The nodes over the sample, areas in proportion to the weights."""
        figure, (ax,) = new_figure(1, panel_inches=5.5)
        title = f"ϰ = {self.model.kappa_:g}: {self.model.indices_.size} nodes of {len(self.X)} points"
        plot_quadrature(self.model, self.X, ax, title=title)
        return figure


@experiment("quad-fig8.2", seconds=2)
def square_quadrature(
    n: int = HaltonSquare.n, *, sigma: float = HaltonSquare.sigma, trace_fraction: float = HaltonSquare.trace_fraction
) -> SquareQuadrature:
    """The optimal nodes of Halton points for 81 % of the trace, by the regularisation path (QUAD Fig 8.2)."""
    square = HaltonSquare(n, sigma, trace_fraction)
    return SquareQuadrature(square, square.sample.solved(trace_fraction=trace_fraction, solver="path"))


@dataclass(frozen=True)
class SquareEigenpairs(SquareExperiment):
    """Approximate eigenpairs from the solution at ϰ = 0.81."""

    model: QuadratureSparsifier  #: the solution
    exact: ApproximateEigenpairs  #: those of T_μ itself
    approximate: ApproximateEigenpairs  #: the paper's
    refined: ApproximateEigenpairs  #: the best in the span of the nodes' kernel sections

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The range of Υ over the first 21 directions, and how it falls off after them."""
        upsilon, compared = upsilon_of(self.approximate), self.square.printed
        return (
            compared("least Υ of directions 1 to 21", float(upsilon[:21].min())),
            compared("largest Υ of directions 1 to 21", float(upsilon[:21].max())),
            self._falls_off(upsilon),
        )

    def _falls_off(self, upsilon: Array) -> Comparison:
        parts = [upsilon[a - 1 : b] for a, b in ((22, 31), (32, 43), (44, upsilon.size))]
        middles = [float(np.median(part)) if part.size else float("nan") for part in parts]
        return claim(
            "Υ of directions 22 to 31, 32 to 43, and from 44 on",
            "relatively accurate, significantly less, very poor",
            "medians " + ", ".join(f"{middle:.3f}" for middle in middles),
            bool(np.all(np.diff([float(np.median(upsilon[:21])), *middles]) < 0)),
            "the paper prints no number for these",
        )

    def figure(self) -> Any:
        """Eigenvalues λ, ϑ and ϑ/ρ; the Υ-test; and the eigenvalues λ̂ that the test gives."""
        figure, (left, middle, right) = new_figure(3)
        plot_upsilon(self.refined, middle, label="refined in the span of the nodes", colour=COLOURS[1], marker="+")
        plot_upsilon(self.approximate, middle, label="the paper's", title="Υ-test")
        middle.legend(fontsize=8, loc="lower left")
        found = self.approximate
        canonical = found.canonical, "x", 4, "ϑ, of T$_ν$"
        rescaled = found.rescaled, "+", 1, "ϑ/ρ, rescaled"
        hat = found.eigenvalues_hat, "x", 4, "λ̂ = ‖T$_μ$φ̂‖"
        self._draw_eigenvalues(left, "Eigenvalues of both operators", canonical, rescaled)
        self._draw_eigenvalues(right, "Eigenvalues from the Υ-test", hat)
        return figure

    def _draw_eigenvalues(self, ax: Any, title: str, *families: tuple[Any, str, int, str]) -> None:
        """Draw λ, and families of eigenvalues with their marks, colours and names."""
        place = np.arange(1, self.exact.canonical.size + 1)
        ax.plot(place, self.exact.canonical, "o", markersize=4, color=COLOURS[0], label="λ, of T$_μ$")
        for values, mark, colour, name in families:
            ax.plot(place[: values.size], values, mark, markersize=5, color=COLOURS[colour], label=name)
        ax.set(title=title, xlabel="direction l", ylim=(0, None))
        ax.legend(fontsize=8)


@experiment("quad-fig8.3", seconds=1)
def square_eigenpairs(
    n: int = HaltonSquare.n, *, sigma: float = HaltonSquare.sigma, trace_fraction: float = HaltonSquare.trace_fraction
) -> SquareEigenpairs:
    """Approximate eigenpairs of the integral operator of Halton points from 160 of them (QUAD Fig 8.3).

    Parameters as in :func:`square_quadrature`.
    """
    square = HaltonSquare(n, sigma, trace_fraction)
    count = min(DIRECTIONS, square.model.indices_.size)
    approximate, refined = (square.model.eigenpairs(count, refine=refine) for refine in (False, True))
    return SquareEigenpairs(square, square.model, square.exact, approximate, refined)
