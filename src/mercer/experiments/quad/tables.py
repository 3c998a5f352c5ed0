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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import load_real, standardized
from mercer.experiments.quadrature_setting import DIRECTIONS, GOOD, WeightedSample, count_accurate, upsilon_of
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_merging, plot_quadrature_path, plot_upsilon
from mercer.plots.scatter import COLOURS
from mercer.quadrature import ApproximateEigenpairs, MergeSequence, QuadratureSparsifier, merge
from mercer.quadrature.sample import make_sample

_PAPER_SPREAD = 0.0077  # of Table 9.1, at m = 21: 0.6085483 beside 0.6039483


@dataclass(frozen=True)
class Approximation:
    """A sparse measure and its eigenpairs."""

    name: str  #: such as "ϰ = 0.3"
    n_nodes: int
    discrepancy: float  #: D
    eigenpairs: ApproximateEigenpairs  #: tested on all points

    @property
    def accurate(self) -> int:
        """How many of the main directions, counted until the first that fails, have Υ ≥ 0.99."""
        good = upsilon_of(self.eigenpairs) >= GOOD
        return int(good.size if good.all() else np.argmin(good))

    def partial_trace(self, m: int) -> float:
        """λ̂₁ + … + λ̂_m."""
        assert self.eigenpairs.eigenvalues_hat is not None
        return float(self.eigenpairs.eigenvalues_hat[:m].sum())


@dataclass(frozen=True)
class LargeQuadrature(Experiment):
    """The solutions of one table."""

    name: str  #: of the table
    n_rows: int  #: rows that were drawn
    n_points: int  #: distinct points among them
    path: QuadratureSparsifier  #: the solution at the largest ϰ of the path, with the path
    large: QuadratureSparsifier  #: the solution at the larger ϰ, certified
    merging: MergeSequence  #: its weak merging
    approximations: tuple[Approximation, ...]  #: those of the path, the larger one, and the merged one
    seconds: dict[str, float] = field(repr=False)  #: what each stage took

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
        fractions = ", ".join(found.name for found in self.approximations[:-1])
        rows = f"{self.n_rows} rows of {self.name}, {self.n_points} of them distinct"
        times = ", ".join(f"{seconds:.1f} s for {stage}" for stage, seconds in self.seconds.items())
        return (
            self._growth(
                f"nodes at {fractions}",
                "76, 1902 and 9544 of 129 596 points",
                [found.n_nodes for found in self.approximations[:-1]],
                f" of {self.n_points} points",
                f": {rows}, stand in for MiniBooNE and SUSY, which are not at hand; {times}",
            ),
            self._growth(
                "main directions with Υ ≥ 0.99, the same",
                "3, 8 and 21 approximated with high accuracy",
                [found.accurate for found in self.approximations[:-1]],
            ),
            *map(self._agreement, self.table),
            *self._merged(),
        )

    @staticmethod
    def _growth(quantity: str, paper: str, counts: list[int], unit: str = "", source: str = "") -> Comparison:
        reason = f"compared is only that they grow with ϰ{source}"
        return claim(quantity, paper, ", ".join(map(str, counts)) + unit, counts == sorted(counts), reason)

    def _agreement(self, m: int) -> Comparison:
        values = self.table[m]
        spread = (max(values.values()) - min(values.values())) / max(values.values())
        return claim(
            f"λ̂₁ + … + λ̂_{m}" if m > 2 else " + ".join(["λ̂₁", "λ̂₂"][:m]),
            "in agreement between approximations, to 0.8 % at worst",
            ", ".join(f"{value:.7f} ({name})" for name, value in values.items()),
            spread <= _PAPER_SPREAD,
            f"a spread of {100 * spread:.3f} %, over the approximations with so many accurate directions",
        )

    def _merged(self) -> tuple[Comparison, ...]:
        before, after = self.approximations[-2:]
        increase = 100 * (after.discrepancy / before.discrepancy - 1)
        sparser = before.n_nodes / after.n_nodes
        kept = count_accurate(before.eigenpairs), count_accurate(after.eigenpairs)
        return (
            claim(
                "weak merging",
                "from 9544 to 4500 nodes for 2.15 % of D",
                f"from {before.n_nodes} to {after.n_nodes} nodes for {increase:.2f} %",
                sparser >= 2,
                f"{sparser:.2f} times sparser, where the paper has 2.12; it starts from what its exchanges left, which "
                "may be more nodes than the optimum has, and ours from the optimum, on other data",
            ),
            claim(
                f"directions with Υ ≥ 0.99 of the first {DIRECTIONS}, before and after merging",
                "equivalent, even better",
                f"{kept[0]} and {kept[1]}",
                kept[1] >= 0.95 * kept[0],
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
        figure.suptitle(f"{self.name}: {self.n_rows} rows, {self.n_points} distinct", fontsize=11)
        return figure


@final
@dataclass(frozen=True)
class TableProtocol:
    """How a table is sparsified; the defaults are the paper's values for MiniBooNE, but for the solver."""

    path_fractions: Sequence[float] = (0.3, 0.655)  #: values of ϰ that are read off the path
    large_fraction: float = 0.8  #: a larger ϰ
    max_increase: float = 0.0215  #: the part by which weak merging may raise D
    solver: str = "auto"  #: for the larger ϰ: the active set; "exchange" is vertex exchange, as in the paper

    def run(self, name: str, drawn: Array, kernel: Gaussian) -> LargeQuadrature:
        """Path, larger solution, merging and tests, on the distinct rows with their weights; ω = 1/N and d = 1."""
        weighted = make_sample(drawn, kernel)
        sample = WeightedSample(kernel, drawn[weighted.rows], weighted.weights)
        seconds: dict[str, float] = {}
        with _timed(seconds, "the path"):
            path = sample.solved(trace_fraction=max(self.path_fractions), solver="path")
        with _timed(seconds, f"ϰ = {self.large_fraction:g}"):
            large = sample.solved(trace_fraction=self.large_fraction, solver=self.solver)
        problem = sample.problem
        with _timed(seconds, "all merges"):
            merging = merge(problem, large.indices_, large.weights_, strategy="weak")
        measures = self._measures(path, large, merging)
        with _timed(seconds, "eigenpairs and Υ-tests"):
            found = tuple(
                Approximation(label, nodes.size, discrepancy, sample.eigenpairs(nodes, values))
                for label, (nodes, values, discrepancy) in measures.items()
            )
        return LargeQuadrature(name, len(drawn), len(sample.X), path, large, merging, found, seconds)

    def _measures(
        self, path: QuadratureSparsifier, large: QuadratureSparsifier, merging: MergeSequence
    ) -> dict[str, tuple[Array, Array, float]]:
        """Nodes, weights and D: on the path, at the larger ϰ, and merged until D has grown by no more than allowed."""
        trace = path.kappa_ / path.trace_fraction_
        points = {f"ϰ = {part:g}": path.path_.at(kappa=part * trace) for part in self.path_fractions}
        nodes, values = merging.at(max_increase=self.max_increase)
        name = f"ϰ = {self.large_fraction:g}"
        return {
            **{label: (point.indices, point.weights, point.discrepancy) for label, point in points.items()},
            name: (large.indices_, large.weights_, large.discrepancy_),
            f"{name}, merged": (nodes, values, float(merging.values[merging.nodes.size - nodes.size])),
        }


@experiment("quad-section9-covtype", seconds=42, data="covtype")
def covtype_quadrature(
    n: int | None = 20_000, *, sigma: float = 50**0.5, random_state: Any = 0, **protocol: Any
) -> LargeQuadrature:
    """Nodes, merging and Υ-tests of forest cover types, in the place of MiniBooNE and SUSY (QUAD section 9).

    Parameters
    ----------
    n : int or None, default=20000
        Rows to draw at random, without replacement; None for all 581 012. The paper's tables, which are not at hand,
        have 129 596 and 500 000; ``benchmarks/quadrature_section9.py`` has the latter size.
    sigma : float, default=√50
        The bandwidth of the Gaussian kernel on standardised columns, the paper's for the 50 columns of MiniBooNE.
    **protocol
        What :class:`TableProtocol` takes: ``path_fractions``, ``large_fraction``, ``max_increase`` and ``solver``.
    """
    return TableProtocol(**protocol).run("covtype", _drawn_rows("covtype", n, random_state), Gaussian(sigma=sigma))


@experiment("quad-section9-skin", seconds=33, data="skin")
def skin_quadrature(
    n: int | None = 20_000, *, sigma: float = 0.25, random_state: Any = 0, **protocol: Any
) -> LargeQuadrature:
    """Nodes, merging and Υ-tests of skin colours, many repeated, in the place of MiniBooNE and SUSY (QUAD section 9).

    Parameters
    ----------
    n : int or None, default=20000
        Rows to draw at random, without replacement; None for all 245 057. Equal rows are one point with their weight.
    sigma : float, default=0.25
        The bandwidth of the Gaussian kernel on standardised columns: a narrow one, so that three columns have as many
        eigenvalues to find as the paper's tables.
    random_state, **protocol
        As in :func:`covtype_quadrature`.
    """
    return TableProtocol(**protocol).run("skin", _drawn_rows("skin", n, random_state), Gaussian(sigma=sigma))


def _drawn_rows(name: str, n: int | None, random_state: Any) -> Array:
    """Rows of a table, its columns standardised over all of them, in the order of the file."""
    X = standardized(load_real(name)["X"])
    if n is None:
        return X
    return X[np.sort(np.random.default_rng(random_state).choice(len(X), n, replace=False))]


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - began
