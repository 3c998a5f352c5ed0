"""The protocol of QUAD section 9 on larger tables: sparse solutions by the path, a larger one, weak merging, Υ-tests.

The paper's tables, MiniBooNE (129 596 × 50) and a part of SUSY (500 000 × 18), are not at hand. Forest cover types
(covtype, 581 012 × 54) and skin colours (skin, 245 057 × 3, one row in five distinct) stand in, so that none of the
paper's numbers can be met: what is compared is what it says in words, and how its tables hang together.

For the times: on a desktop of 2015, in C, the paper's path of 3000 events on MiniBooNE took four hours. On SUSY Sω took
5665.6 s, 200 000 exchanges 4625 s, 20 673 weak merges 78.9 s, to extend 300 eigenvectors 3313.6 s, and their Υ-test
191 622 s, 53 hours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import load_real, standardized
from mercer.experiments.report import Comparison, Experiment, Verdict
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_merging, plot_quadrature_path, plot_upsilon
from mercer.plots.scatter import COLOURS
from mercer.quadrature import ApproximateEigenpairs, MergeSequence, QuadratureSparsifier, approximate_eigenpairs, merge
from mercer.quadrature.sample import make_problem, make_sample

Result = TypeVar("Result")

_PATH_FRACTIONS = (0.3, 0.655)
_LARGE_FRACTION = 0.8
_INCREASE = 0.0215  # of D, that the paper's weak merging of MiniBooNE costs
_DIRECTIONS = 62
_GOOD = 0.99
_PAPER_SPREAD = 0.0077  # of Table 9.1, at m = 21: 0.6085483 beside 0.6039483


@dataclass(frozen=True)
class Approximation:
    """A sparse measure and its eigenpairs.

    Attributes
    ----------
    name : str
        Such as ``"ϰ = 0.3"``.
    n_nodes : int
        Its nodes.
    discrepancy : float
        D.
    eigenpairs : ApproximateEigenpairs
        Tested on all points.
    """

    name: str
    n_nodes: int
    discrepancy: float
    eigenpairs: ApproximateEigenpairs

    @property
    def upsilon(self) -> Array:
        """Υ of each direction."""
        assert self.eigenpairs.upsilon is not None
        return self.eigenpairs.upsilon

    @property
    def accurate(self) -> int:
        """How many of the main directions, counted until the first that fails, have Υ ≥ 0.99."""
        good = self.upsilon >= _GOOD
        return int(good.size if good.all() else np.argmin(good))

    def partial_trace(self, m: int) -> float:
        """λ̂₁ + … + λ̂_m."""
        assert self.eigenpairs.eigenvalues_hat is not None
        return float(self.eigenpairs.eigenvalues_hat[:m].sum())


@dataclass(frozen=True)
class LargeQuadrature(Experiment):
    """The solutions of one table.

    Attributes
    ----------
    name : str
        The table.
    n_rows, n_points : int
        Rows that were drawn, and distinct points among them.
    path : QuadratureSparsifier
        The solution at the largest ϰ of the path, with the path.
    large : QuadratureSparsifier
        The solution at the larger ϰ, certified.
    merging : MergeSequence
        Its weak merging.
    approximations : tuple of Approximation
        Those of the path, the larger one, and the merged one, in this order.
    seconds : dict from str to float
        What each stage took.
    """

    name: str
    n_rows: int
    n_points: int
    path: QuadratureSparsifier
    large: QuadratureSparsifier
    merging: MergeSequence
    approximations: tuple[Approximation, ...]
    seconds: dict[str, float] = field(repr=False)

    @property
    def table(self) -> dict[int, dict[str, float]]:
        """As Table 9.1: λ̂₁ + … + λ̂_m of the approximations with at least m accurate directions.

        Columns are the numbers m of accurate directions that two approximations or more have.
        """
        counts = sorted((found.accurate for found in self.approximations), reverse=True)
        return {
            m: {found.name: found.partial_trace(m) for found in self.approximations if found.accurate >= m}
            for m in sorted({count for count in counts[1:] if count})
        }

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What the paper says of its own tables in words, measured on this one."""
        return self._nodes(), self._directions(), *(self._agreement(m) for m in self.table), *self._merged()

    def _stand_in(self) -> str:
        rows = f"{self.n_rows} rows of {self.name}, {self.n_points} of them distinct"
        return f"{rows}, stand in for MiniBooNE and SUSY, which are not at hand"

    def _nodes(self) -> Comparison:
        counts = [found.n_nodes for found in self.approximations[:-1]]
        fractions = ", ".join(found.name for found in self.approximations[:-1])
        ours = ", ".join(f"{seconds:.1f} s for {stage}" for stage, seconds in self.seconds.items())
        return Comparison(
            f"nodes at {fractions}",
            "76, 1902 and 9544 of 129 596 points",
            ", ".join(map(str, counts)) + f" of {self.n_points} points",
            Verdict.AGREES if list(counts) == sorted(counts) else Verdict.DIFFERS,
            f"compared is only that they grow with ϰ: {self._stand_in()}; {ours}",
        )

    def _directions(self) -> Comparison:
        counts = [found.accurate for found in self.approximations[:-1]]
        return Comparison(
            "main directions with Υ ≥ 0.99, the same",
            "3, 8 and 21 approximated with high accuracy",
            ", ".join(map(str, counts)),
            Verdict.AGREES if list(counts) == sorted(counts) else Verdict.DIFFERS,
            "compared is only that they grow with ϰ",
        )

    def _agreement(self, m: int) -> Comparison:
        values = self.table[m]
        spread = (max(values.values()) - min(values.values())) / max(values.values())
        return Comparison(
            f"λ̂₁ + … + λ̂_{m}" if m > 2 else " + ".join(["λ̂₁", "λ̂₂"][:m]),
            "in agreement between approximations, to 0.8 % at worst",
            ", ".join(f"{value:.7f} ({name})" for name, value in values.items()),
            Verdict.AGREES if spread <= _PAPER_SPREAD else Verdict.DIFFERS,
            f"a spread of {100 * spread:.3f} %, over the approximations with so many accurate directions",
        )

    def _merged(self) -> tuple[Comparison, ...]:
        before, after = self.approximations[-2:]
        increase = 100 * (after.discrepancy / before.discrepancy - 1)
        sparser = before.n_nodes / after.n_nodes
        kept = np.sum(before.upsilon >= _GOOD), np.sum(after.upsilon >= _GOOD)
        return (
            Comparison(
                "weak merging",
                "from 9544 to 4500 nodes for 2.15 % of D",
                f"from {before.n_nodes} to {after.n_nodes} nodes for {increase:.2f} %",
                Verdict.AGREES if sparser >= 2 else Verdict.DIFFERS,
                f"{sparser:.2f} times sparser, where the paper has 2.12; it starts from what its exchanges left, which "
                "may be more nodes than the optimum has, and ours from the optimum, on other data",
            ),
            Comparison(
                f"directions with Υ ≥ 0.99 of the first {_DIRECTIONS}, before and after merging",
                "equivalent, even better",
                f"{kept[0]} and {kept[1]}",
                Verdict.AGREES if kept[1] >= 0.95 * kept[0] else Verdict.DIFFERS,
                "within one in twenty counts as equivalent",
            ),
        )

    def figure(self) -> Any:
        """The path; the Υ-test and the eigenvalues λ̂ of each solution; and the merging (QUAD Figs 9.1 to 9.3)."""
        figure, axes = new_figure(6, rows=2)
        plot_quadrature_path(self.path.path_, axes[:3])
        for found, place, marker in zip(self.approximations, (0, 1, 4, 3), "ox+v", strict=False):
            colour = COLOURS[place]
            label = f"{found.name}: {found.n_nodes} nodes"
            plot_upsilon(found.eigenpairs, axes[3], label=label, colour=colour, marker=marker)
            hat = found.eigenpairs.eigenvalues_hat
            assert hat is not None
            axes[4].semilogy(np.arange(1, hat.size + 1), hat, marker, markersize=4, color=colour, label=label)
        axes[3].legend(fontsize=7, loc="lower left")
        axes[4].legend(fontsize=7)
        axes[4].set(title="Eigenvalues λ̂ from the Υ-test", xlabel="direction l")
        plot_merging(self.merging, axes[5], title="Weak merging")
        axes[5].axvline(self.approximations[-1].n_nodes, color="0.6", linewidth=0.8, linestyle="--")
        axes[4].tick_params(which="both", labelsize=8)
        figure.suptitle(f"{self.name}: {self.n_rows} rows, {self.n_points} distinct", fontsize=11)
        return figure


def covtype_quadrature(
    n: int | None = 20_000,
    *,
    sigma: float = 50**0.5,
    path_fractions: Sequence[float] = _PATH_FRACTIONS,
    large_fraction: float = _LARGE_FRACTION,
    max_increase: float = _INCREASE,
    solver: str = "auto",
    random_state: Any = 0,
) -> LargeQuadrature:
    """Nodes, merging and Υ-tests of forest cover types, in the place of MiniBooNE and SUSY (QUAD section 9).

    Parameters
    ----------
    n : int or None, default=20000
        Rows to draw at random, without replacement; None for all 581 012.
    sigma : float, default=√50
        The bandwidth of the Gaussian kernel on standardised columns, the paper's for the 50 columns of MiniBooNE.
    path_fractions : sequence of float, default=(0.3, 0.655)
        Values of ϰ that are read off the path.
    large_fraction : float, default=0.8
        A larger ϰ, solved by ``solver``.
    max_increase : float, default=0.0215
        The part by which weak merging may raise D.
    solver : str, default="auto"
        For the larger ϰ: ``"auto"`` is the active set, ``"exchange"`` vertex exchange as in the paper.
    random_state : int or generator, default=0
        What decides the draw.
    """
    return _protocol("covtype", n, sigma, path_fractions, large_fraction, max_increase, solver, random_state)


def skin_quadrature(
    n: int | None = 20_000,
    *,
    sigma: float = 0.25,
    path_fractions: Sequence[float] = _PATH_FRACTIONS,
    large_fraction: float = _LARGE_FRACTION,
    max_increase: float = _INCREASE,
    solver: str = "auto",
    random_state: Any = 0,
) -> LargeQuadrature:
    """Nodes, merging and Υ-tests of skin colours, many repeated, in the place of MiniBooNE and SUSY (QUAD section 9).

    Parameters
    ----------
    n : int or None, default=20000
        Rows to draw at random, without replacement; None for all 245 057. Equal rows are one point with their weight.
    sigma : float, default=0.25
        The bandwidth of the Gaussian kernel on standardised columns: a narrow one, so that three columns have as many
        eigenvalues to find as the paper's tables.
    path_fractions, large_fraction, max_increase, solver, random_state
        As in :func:`covtype_quadrature`.
    """
    return _protocol("skin", n, sigma, path_fractions, large_fraction, max_increase, solver, random_state)


def _protocol(
    name: str,
    n: int | None,
    sigma: float,
    path_fractions: Sequence[float],
    large_fraction: float,
    max_increase: float,
    solver: str,
    random_state: Any,
) -> LargeQuadrature:
    """Path, larger solution, merging and tests, on the distinct rows with their weights; ω = 1/N and d = 1."""
    kernel = Gaussian(sigma=sigma)
    drawn = _drawn_rows(standardized(load_real(name)["X"]), n, random_state)
    sample = make_sample(drawn, kernel)
    X, weights = drawn[sample.rows], sample.weights
    seconds: dict[str, float] = {}

    def fitted(fraction: float, how: str) -> QuadratureSparsifier:
        return QuadratureSparsifier(kernel, trace_fraction=fraction, solver=how).fit(X, sample_weight=weights)

    path = _timed(seconds, "the path", lambda: fitted(max(path_fractions), "path"))
    large = _timed(seconds, f"ϰ = {large_fraction:g}", lambda: fitted(large_fraction, solver))
    problem = make_problem(drawn, kernel, sample)
    nodes, values = large.indices_, large.weights_
    merging = _timed(seconds, "all merges", lambda: merge(problem, nodes, values, strategy="weak"))
    points = [path.path_.at(kappa=fraction * path.kappa_ / path.trace_fraction_) for fraction in path_fractions]
    measures = [
        *((f"ϰ = {f:g}", p.indices, p.weights, p.discrepancy) for f, p in zip(path_fractions, points, strict=True)),
        (f"ϰ = {large_fraction:g}", nodes, values, large.discrepancy_),
        (f"ϰ = {large_fraction:g}, merged", *_merged(merging, max_increase)),
    ]

    def approximation(label: str, nodes: Array, values: Array, discrepancy: float) -> Approximation:
        pairs = approximate_eigenpairs(kernel, X, weights, nodes, values, min(_DIRECTIONS, nodes.size))
        return Approximation(label, nodes.size, discrepancy, pairs)

    found = _timed(seconds, "eigenpairs and Υ-tests", lambda: tuple(approximation(*measure) for measure in measures))
    return LargeQuadrature(name, len(drawn), len(X), path, large, merging, found, seconds)


def _drawn_rows(X: Array, n: int | None, random_state: Any) -> Array:
    if n is None:
        return X
    return X[np.sort(np.random.default_rng(random_state).choice(len(X), n, replace=False))]


def _merged(merging: MergeSequence, max_increase: float) -> tuple[Array, Array, float]:
    """Nodes, weights and D at the last stage before D has grown by more than that."""
    nodes, values = merging.at(max_increase=max_increase)
    return nodes, values, float(merging.values[merging.nodes.size - nodes.size])


def _timed(seconds: dict[str, float], stage: str, work: Callable[[], Result]) -> Result:
    began = time.perf_counter()
    result = work()
    seconds[stage] = time.perf_counter() - began
    return result
