"""The two-dimensional example of QUAD section 8.2: the whole path, and the Υ-test along it (Figs 8.4 and 8.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import halton_square
from mercer.experiments.quadrature_plane import DIRECTIONS, SIGMA, SIZE, exact_eigenpairs, other_setting, printed
from mercer.experiments.report import Comparison, Experiment, Verdict
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_quadrature_path
from mercer.quadrature import QuadraturePath, QuadratureSparsifier

_LAST = 12785  # the last event of the paper's path
_LAST_ALPHA, _LAST_KAPPA = "1.514626e-5", "0.9995426"
_GOOD = 0.99


@dataclass(frozen=True)
class SquarePath(Experiment):
    """The path of the Halton points as far as it was followed."""

    X: Array
    model: QuadratureSparsifier

    @property
    def path(self) -> QuadraturePath:
        """The path itself."""
        return self.model.path_

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The number of events, the last printed kink, and the solution at its α."""
        other = other_setting(self.X, self.model)
        first = printed("α₀", "6.310163e-2", self.path.alphas[0], other), self._events(other)
        if self.path.alphas[-1] > float(_LAST_ALPHA):
            return first  # cut short before the paper's last kink
        meets = self.path.at(alpha=float(_LAST_ALPHA)).kappa
        return (
            *first,
            *self._last_kink(other),
            printed(f"ϰ of the solution at α = {_LAST_ALPHA}", _LAST_KAPPA, meets, other),
        )

    def _events(self, other: str) -> Comparison:
        path = self.path
        ours = f"to α = {path.alphas[-1]:.3e} and ϰ = {path.kappas[-1]:.7f}. {path.end.value}"
        reason = other or f"ours goes {ours}" if path.end.lost_precision else other or f"followed {ours}"
        return printed("events until precision ends the path", str(_LAST + 1), len(path), reason)

    def _last_kink(self, other: str) -> tuple[Comparison, ...]:
        path = self.path
        if len(path) <= _LAST:
            return ()
        nearest = int(np.argmin(np.abs(path.alphas - float(_LAST_ALPHA))))
        reason = other or (
            f"from kink {path.n_in_order} on some events lie closer together than rounding resolves, so that their "
            f"numbers may be off by a few; the nearest of ours, kink {nearest}, lies at "
            f"α = {path.alphas[nearest]:.6e}, ϰ = {path.kappas[nearest]:.7f}"
        )
        return (
            printed(f"α_{_LAST}", _LAST_ALPHA, path.alphas[_LAST], reason),
            printed(f"ϰ_{_LAST}", _LAST_KAPPA, path.kappas[_LAST], reason),
        )

    def figure(self) -> Any:
        """Nodes, discrepancy and penalty over ϰ."""
        figure, axes = new_figure(3)
        plot_quadrature_path(self.path, axes)
        return figure


def square_path(n: int = SIZE, *, sigma: float = SIGMA, alpha: float = 4e-6) -> SquarePath:
    """The regularisation path of Halton points, as far as precision goes (QUAD Fig 8.4).

    Parameters
    ----------
    n : int, default=2016
        Points.
    sigma : float, default=0.4
        The bandwidth of the Gaussian kernel.
    alpha : float, default=4e-6
        Where to stop; precision ends the paper's path at 1.5e-5 and ours near 4.2e-6, after half a minute.
    """
    X = halton_square(n)
    return SquarePath(X, QuadratureSparsifier(Gaussian(sigma=sigma), alpha=alpha, solver="path").fit(X))


@dataclass(frozen=True)
class SquareUpsilon(Experiment):
    """The Υ-test of the solutions at many values of ϰ.

    Attributes
    ----------
    kappas : array of shape (p,)
        ϰ, rising from zero.
    upsilon : array of shape (p, 62)
        Υ of each direction; NaN where there are fewer nodes than that, and everywhere for ϰ = 0.
    n_nodes : array of int of shape (p,)
        Nodes of the solutions.
    eigenvalues : array of shape (62,)
        λ, the true eigenvalues.
    """

    kappas: Array
    upsilon: Array
    n_nodes: Array
    eigenvalues: Array

    @property
    def within_trace(self) -> Array:
        """max{l : λ₁ + … + λ_l ≤ ϰ}, how many true eigenvalues the trace has room for."""
        return np.searchsorted(np.cumsum(self.eigenvalues), self.kappas, side="right")

    @property
    def accurate(self) -> Array:
        """How many directions have Υ ≥ 0.99."""
        return np.sum(self.upsilon >= _GOOD, axis=1)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The paper says in words that the accurate directions grow with ϰ and follow the decay of the spectrum."""
        inside = self.within_trace < self.eigenvalues.size  # beyond, the count is cut off at the directions computed
        correlation = float(np.corrcoef(self.accurate[inside], self.within_trace[inside])[0, 1])
        return (
            Comparison(
                "directions with Υ ≥ 0.99 over ϰ",
                "in close relation with the decay of the spectrum",
                f"correlation {correlation:.3f} with max{{l : λ₁ + … + λ_l ≤ ϰ}}",
                Verdict.AGREES if correlation > 0.9 else Verdict.DIFFERS,
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
        ax.tick_params(labelsize=8)
        return figure


def square_upsilon(
    n: int = SIZE, *, sigma: float = SIGMA, n_values: int = 41, largest: float = float(_LAST_KAPPA)
) -> SquareUpsilon:
    """The Υ-test of approximate eigenpairs of Halton points over the trace of the quadrature (QUAD Fig 8.5).

    Parameters
    ----------
    n : int, default=2016
        Points.
    sigma : float, default=0.4
        The bandwidth of the Gaussian kernel.
    n_values : int, default=41
        Values of ϰ, evenly spread from zero.
    largest : float, default=0.9995426
        The largest of them, the end of the paper's path.
    """
    X = halton_square(n)
    kappas = np.linspace(0.0, largest, n_values)
    upsilon = np.full((n_values, DIRECTIONS), np.nan)
    nodes = np.zeros(n_values, dtype=np.intp)
    for i, kappa in enumerate(kappas[1:], start=1):
        model = QuadratureSparsifier(Gaussian(sigma=sigma), trace_fraction=float(kappa)).fit(X)
        nodes[i] = model.indices_.size
        tested = model.eigenpairs(min(DIRECTIONS, int(nodes[i]))).upsilon
        assert tested is not None
        upsilon[i, : tested.size] = tested
    return SquareUpsilon(kappas, upsilon, nodes, exact_eigenpairs(X, sigma).canonical)
