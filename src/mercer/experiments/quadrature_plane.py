"""The two-dimensional example of QUAD section 8: spectrum, optimal nodes and their eigenpairs (Figs 8.1 to 8.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import halton_square
from mercer.experiments.report import Comparison, Experiment, Verdict
from mercer.kernels import Gaussian
from mercer.operators import GramOperator
from mercer.plots import new_figure, plot_heat_map, plot_quadrature, plot_upsilon
from mercer.plots.scatter import COLOURS
from mercer.quadrature import ApproximateEigenpairs, QuadratureSparsifier, approximate_eigenpairs

SIGMA = 0.4  # exp(-‖x - y‖²/σ²), so that ℓ = 1/0.16 as in the paper
SIZE = 2016
TRACE_FRACTION = 0.81
DIRECTIONS = 62  # as many as the paper draws
_GRID = 201


def printed(quantity: str, paper: str, measured: float, reason: str = "") -> Comparison:
    """Compare with a number as the paper prints it: it agrees when it lies within half a unit of the last digit."""
    digits, _, exponent = paper.partition("e")
    decimals = len(digits.partition(".")[2])
    here = f"{measured:.{decimals}e}".replace("e-0", "e-") if exponent else f"{measured:.{decimals}f}"
    away = abs(float(paper) - measured)
    agrees = away <= 0.500001 * 10.0 ** (int(exponent or 0) - decimals)
    if agrees:
        return Comparison(quantity, paper, here, Verdict.AGREES)
    reason = reason or f"a relative difference of {away / abs(float(paper)):.0e}, not explained"
    return Comparison(quantity, paper, here, Verdict.DIFFERS, reason)


def other_setting(X: Array, model: QuadratureSparsifier) -> str:
    """Why the paper's numbers cannot be met, where the setting is another; empty where it is the paper's."""
    fraction = TRACE_FRACTION if model.trace_fraction is None else model.trace_fraction
    sigma = model.get_params()["kernel__sigma"]
    here = ("N", len(X), SIZE), ("σ", sigma, SIGMA), ("ϰ", fraction, TRACE_FRACTION)
    return "; ".join(
        f"{name} = {ours:g} here and {paper:g} in the paper" for name, ours, paper in here if ours != paper
    )


def exact_eigenpairs(X: Array, sigma: float, count: int = DIRECTIONS) -> ApproximateEigenpairs:
    """The leading eigenpairs of T_μ itself: every point is a node, with its own weight. One eigenproblem of size N."""
    n = len(X)
    weights = np.full(n, 1 / n)
    return approximate_eigenpairs(Gaussian(sigma=sigma), X, weights, np.arange(n), weights, count, upsilon=False)


@dataclass(frozen=True)
class SquareSpectrum(Experiment):
    """The exact eigenpairs of T_μ for the Halton points.

    Attributes
    ----------
    X : array of shape (N, 2)
        The sample.
    eigenpairs : ApproximateEigenpairs
        Those of T_μ itself.
    direction : int
        The eigenfunction that is drawn, counted from one.
    """

    X: Array
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
        left.set(
            title=f"The {values.size} largest eigenvalues of T$_μ$", xlabel="direction l", ylabel="λ", ylim=(0, None)
        )
        left.tick_params(labelsize=8)
        ticks = np.linspace(-1, 1, _GRID)
        grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        values = self.eigenpairs.extend(grid)[:, self.direction - 1].reshape(_GRID, _GRID)
        title = f"Eigenfunction {self.direction} on the square"
        plot_heat_map(right, values, extent=(-1, 1, -1, 1), title=title)
        return figure


def square_spectrum(n: int = SIZE, *, sigma: float = SIGMA, direction: int = 11) -> SquareSpectrum:
    """The spectrum of the integral operator of Halton points, and an eigenfunction (QUAD Fig 8.1).

    Parameters
    ----------
    n : int, default=2016
        Points.
    sigma : float, default=0.4
        The bandwidth of the Gaussian kernel.
    direction : int, default=11
        The eigenfunction to draw, counted from one.
    """
    X = halton_square(n)
    return SquareSpectrum(X, exact_eigenpairs(X, sigma), direction)


@dataclass(frozen=True)
class SquareQuadrature(Experiment):
    """The solution at ϰ = 0.81 and the path to it."""

    X: Array
    model: QuadratureSparsifier

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every number of QUAD section 8.1 but those of the Υ-test."""
        model, path = self.model, self.model.path_
        other = other_setting(self.X, model)
        p = int(np.searchsorted(path.kappas, model.kappa_, side="right")) - 1
        return (
            printed("α₀", "6.310163e-2", path.alphas[0], other),
            printed("D(0)", "2.661452e-2", path.discrepancies[0], other),
            self._first_point(),
            printed("α at ϰ = 0.81", "8.354215e-3", model.alpha_, other),
            printed("D(v*)", "7.631890e-4", model.discrepancy_, other),
            printed("nodes", "160", model.indices_.size, other),
            printed("p, the last kink before ϰ", "4047", p, other),
            printed("α_p", "8.355244e-3", path.alphas[p], other),
            printed("α_{p+1}", "8.352970e-3", path.alphas[p + 1], other),
            printed("ϰ_p", "0.8099788", path.kappas[p], other),
            printed("ϰ_{p+1}", "0.8100256", path.kappas[p + 1], other),
            self._bound(),
        )

    def _first_point(self) -> Comparison:
        """D(e₁) beside the printed one, and how near any D(e_k) = D(0) - (Sω)_k + ½ comes to that."""
        n, constant = len(self.X), self.model.path_.discrepancies[0]
        single = constant + 0.5 - GramOperator(self.model.kernel_**2, self.X) @ np.full(n, 1 / n)
        paper = "4.760566e-1"
        nearest = int(np.argmin(np.abs(single - float(paper))))
        reason = (
            f"the printed number fits none of the {n} points: the nearest, D(e_k) with k = {nearest + 1}, is "
            f"{single[nearest]:.6e}"
        )
        return printed("D(e₁)", paper, float(single[0]), reason)

    def _bound(self) -> Comparison:
        certificate = self.model.certificate_
        reason = (
            "both are what rounding leaves of zero, other sums in another order; the optimum is proved to "
            f"{certificate.relative_gap:.0e} of D"
        )
        return printed("Frank-Wolfe bound ε", "4.510281e-17", certificate.upper - certificate.lower, reason)

    def figure(self) -> Any:
        """The nodes over the sample, areas in proportion to the weights."""
        figure, (ax,) = new_figure(1, panel_inches=5.5)
        title = f"ϰ = {self.model.kappa_:g}: {self.model.indices_.size} nodes of {len(self.X)} points"
        plot_quadrature(self.model, self.X, ax, title=title)
        return figure


def square_quadrature(
    n: int = SIZE, *, sigma: float = SIGMA, trace_fraction: float = TRACE_FRACTION
) -> SquareQuadrature:
    """The optimal nodes of Halton points for 81 % of the trace, by the regularisation path (QUAD Fig 8.2).

    Parameters
    ----------
    n : int, default=2016
        Points.
    sigma : float, default=0.4
        The bandwidth of the Gaussian kernel.
    trace_fraction : float, default=0.81
        ϰ.
    """
    X = halton_square(n)
    model = QuadratureSparsifier(Gaussian(sigma=sigma), trace_fraction=trace_fraction, solver="path").fit(X)
    return SquareQuadrature(X, model)


@dataclass(frozen=True)
class SquareEigenpairs(Experiment):
    """Approximate eigenpairs from the solution at ϰ = 0.81.

    Attributes
    ----------
    X : array of shape (N, 2)
        The sample.
    model : QuadratureSparsifier
        The solution.
    exact, approximate, refined : ApproximateEigenpairs
        Those of T_μ itself; the paper's; and the best in the span of the nodes' kernel sections.
    """

    X: Array
    model: QuadratureSparsifier
    exact: ApproximateEigenpairs
    approximate: ApproximateEigenpairs
    refined: ApproximateEigenpairs

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The range of Υ over the first 21 directions, and how it falls off after them."""
        other = other_setting(self.X, self.model)
        upsilon = self.approximate.upsilon
        assert upsilon is not None
        return (
            printed("least Υ of directions 1 to 21", "0.9876064", float(upsilon[:21].min()), other),
            printed("largest Υ of directions 1 to 21", "0.9999785", float(upsilon[:21].max()), other),
            self._falls_off(upsilon),
        )

    def _falls_off(self, upsilon: Array) -> Comparison:
        parts = [upsilon[a - 1 : b] for a, b in ((22, 31), (32, 43), (44, upsilon.size))]
        middles = [float(np.median(part)) if part.size else float("nan") for part in parts]
        falls = bool(np.all(np.diff([float(np.median(upsilon[:21])), *middles]) < 0))
        return Comparison(
            "Υ of directions 22 to 31, 32 to 43, and from 44 on",
            "relatively accurate, significantly less, very poor",
            "medians " + ", ".join(f"{middle:.3f}" for middle in middles),
            Verdict.AGREES if falls else Verdict.DIFFERS,
            "the paper prints no number for these",
        )

    def figure(self) -> Any:
        """Eigenvalues λ, ϑ and ϑ/ρ; the Υ-test; and the eigenvalues λ̂ that the test gives."""
        figure, (left, middle, right) = new_figure(3)
        place = np.arange(1, self.exact.canonical.size + 1)
        left.plot(place, self.exact.canonical, "o", markersize=4, color=COLOURS[0], label="λ, of T$_μ$")
        for values, mark, name in (
            (self.approximate.canonical, "x", "ϑ, of T$_ν$"),
            (self.approximate.rescaled, "+", "ϑ/ρ, rescaled"),
        ):
            left.plot(
                place[: values.size], values, mark, markersize=5, color=COLOURS[4 if mark == "x" else 1], label=name
            )
        plot_upsilon(self.refined, middle, label="refined in the span of the nodes", colour=COLOURS[1], marker="+")
        plot_upsilon(self.approximate, middle, label="the paper's", title="Υ-test")
        middle.legend(fontsize=8, loc="lower left")
        hat = self.approximate.eigenvalues_hat
        assert hat is not None
        right.plot(place, self.exact.canonical, "o", markersize=4, color=COLOURS[0], label="λ, of T$_μ$")
        right.plot(place[: hat.size], hat, "x", markersize=5, color=COLOURS[4], label="λ̂ = ‖T$_μ$φ̂‖")
        left.set_title("Eigenvalues of both operators")
        right.set_title("Eigenvalues from the Υ-test")
        for ax in (left, right):
            ax.set(xlabel="direction l", ylim=(0, None))
            ax.legend(fontsize=8)
            ax.tick_params(labelsize=8)
        return figure


def square_eigenpairs(
    n: int = SIZE, *, sigma: float = SIGMA, trace_fraction: float = TRACE_FRACTION
) -> SquareEigenpairs:
    """Approximate eigenpairs of the integral operator of Halton points from 160 of them (QUAD Fig 8.3).

    Parameters
    ----------
    n : int, default=2016
        Points.
    sigma : float, default=0.4
        The bandwidth of the Gaussian kernel.
    trace_fraction : float, default=0.81
        ϰ.
    """
    X = halton_square(n)
    model = QuadratureSparsifier(Gaussian(sigma=sigma), trace_fraction=trace_fraction).fit(X)
    count = min(DIRECTIONS, model.indices_.size)
    approximate, refined = model.eigenpairs(count), model.eigenpairs(count, refine=True)
    return SquareEigenpairs(X, model, exact_eigenpairs(X, sigma), approximate, refined)
