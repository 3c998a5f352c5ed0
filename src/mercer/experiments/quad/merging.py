"""The two-dimensional example of QUAD sections 8.3 and 8.4: nodes merged, and random samples (Figs 8.6 and 8.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.experiments.quadrature_setting import HaltonSquare, SquareExperiment, count_accurate
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.plots import new_figure, plot_merging, plot_quadrature, plot_upsilon
from mercer.plots.scatter import COLOURS
from mercer.quadrature import ApproximateEigenpairs, MergeSequence, QuadratureSparsifier

_THRESHOLDS = (0.99, 0.95)


@dataclass(frozen=True)
class SquareMerging(SquareExperiment):
    """Strong merging of the solution at ϰ = 0.81, down to one node."""

    model: QuadratureSparsifier  #: merged down to one node
    sequence: MergeSequence  #: all merges
    n_merges: int  #: the stage that is looked at
    before: ApproximateEigenpairs  #: of the solution
    after: ApproximateEigenpairs  #: of what is left of it after so many merges

    @property
    def merged(self) -> tuple[Array, Array]:
        """Nodes and weights after ``n_merges`` merges."""
        return self.sequence.at(n_nodes=self.sequence.nodes.size - self.n_merges)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The numbers of QUAD section 8.3, and what merging does to the Υ-test."""
        other = "" if self.n_merges == 90 else f"{self.n_merges} merges here and 90 in the paper"
        compared, values = self.square.printed, self.sequence.values
        increase = float(values[self.n_merges] - values[0])
        before, after = (count_accurate(pairs, 0.95) for pairs in (self.before, self.after))
        return (
            compared("D(v*)", float(values[0]), other),
            compared("merges down to one node", values.size - 1, other),
            compared("nodes after 90 merges", self.merged[0].size, other),
            compared("increase of D after 90 merges", increase, other),
            compared("the same in %", 100 * increase / float(values[0]), other),
            claim(
                "directions with Υ ≥ 0.95, before and after merging",
                "slightly less accurate, very satisfactory",
                f"{before} and {after}",
                after >= 0.8 * before,
                "the paper prints no number for these; four fifths of the directions count as slightly less",
            ),
        )

    def figure(self) -> Any:
        """The merged nodes over the former, D along all merges and near the stage, and both Υ-tests."""
        figure, (left, right, whole, near) = new_figure(4, rows=2, panel_inches=4.8)
        x, y = self.X[self.sequence.nodes].T
        left.scatter(x, y, s=26, marker="D", color="#c8c8c8", linewidths=0, zorder=2)
        title = f"{self.merged[0].size} nodes after {self.n_merges} merges; diamonds: all {self.sequence.nodes.size}"
        plot_quadrature(self.merged, self.X, left, title=title, crosses=4.0)
        plot_upsilon(self.before, right, label=f"{self.sequence.nodes.size} nodes")
        plot_upsilon(self.after, right, label=f"{self.merged[0].size} nodes, merged", colour=COLOURS[4], marker="x")
        right.legend(fontsize=8, loc="lower left")
        plot_merging(self.sequence, whole, title="Discrepancy D along all merges")
        left_over = self.sequence.n_nodes[self.n_merges]
        whole.axvline(left_over, color="0.6", linewidth=0.8, linestyle="--")
        part = slice(max(self.n_merges - 20, 0), self.n_merges + 21)
        growth = 100 * (self.sequence.values / self.sequence.values[0] - 1)
        near.plot(self.sequence.n_nodes[part], growth[part], ".-", color=COLOURS[0])
        near.axvline(left_over, color="0.6", linewidth=0.8, linestyle="--")
        near.invert_xaxis()
        near.set(title=f"Growth of D around merge {self.n_merges}", xlabel="nodes left", ylabel="%")
        return figure


@experiment("quad-fig8.6", seconds=1)
def square_merging(
    n: int = HaltonSquare.n,
    *,
    sigma: float = HaltonSquare.sigma,
    trace_fraction: float = HaltonSquare.trace_fraction,
    n_merges: int = 90,
) -> SquareMerging:
    """Strong merging of the optimal nodes of Halton points (QUAD Fig 8.6).

    Looked at is the stage after ``n_merges``.
    """
    square = HaltonSquare(n, sigma, trace_fraction)
    model = square.sample.solved(trace_fraction=trace_fraction, merge="strong", n_nodes=1)
    sequence = model.reduction_
    assert isinstance(sequence, MergeSequence)
    before = square.sample.eigenpairs(sequence.nodes, sequence.start)
    after = square.sample.eigenpairs(*sequence.at(n_nodes=sequence.nodes.size - n_merges))
    return SquareMerging(square, model, sequence, n_merges, before, after)


@dataclass(frozen=True)
class SquareRandom(Experiment):
    """Directions found from random samples, and from the optimal nodes."""

    counts: dict[int, Array]  #: by size of a sample, (repetitions, 2): directions with Υ ≥ 0.99 and Υ ≥ 0.95
    optimal: tuple[int, int]  #: the same from the nodes of the solution at ϰ = 0.81
    n_nodes: int  #: how many nodes these are

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The paper prints boxplots and no numbers; it says that random samples are far behind."""
        return tuple(self._behind(column, threshold) for column, threshold in enumerate(_THRESHOLDS))

    def _behind(self, column: int, threshold: float) -> Comparison:
        medians = {size: float(np.median(counts[:, column])) for size, counts in self.counts.items()}
        listed = ", ".join(f"{medians[size]:g} from {size}" for size in sorted(medians))
        return claim(
            f"median number of directions with Υ ≥ {threshold}",
            "random samples far behind the optimal nodes",
            f"{self.optimal[column]} from {self.n_nodes} optimal nodes; {listed} random points",
            max(medians.values()) < self.optimal[column],
            f"{min(map(len, self.counts.values()))} draws of each size",
        )

    def figure(self) -> Any:
        """Boxplots (minimum, quartiles, maximum) over the size of the sample; the line is that of the optimal nodes."""
        figure, axes = new_figure(2)
        sizes = sorted(self.counts)
        for column, (ax, threshold) in enumerate(zip(axes, _THRESHOLDS, strict=True)):
            looks = {"widths": 0.5, "boxprops": {"color": COLOURS[0]}, "medianprops": {"color": COLOURS[4]}}
            ax.boxplot([self.counts[size][:, column] for size in sizes], whis=(0, 100), **looks)
            ax.set_xticks(np.arange(1, len(sizes) + 1), [str(size) for size in sizes])
            ax.axhline(self.optimal[column], color=COLOURS[1], linestyle="--", label=f"{self.n_nodes} optimal nodes")
            ax.set(title=f"Directions with Υ ≥ {threshold}", xlabel="size of the random sample")
            ax.set_ylim(0, 1.2 * max(self.optimal[column], max(self.counts[size][:, column].max() for size in sizes)))
            ax.yaxis.get_major_locator().set_params(integer=True)
            ax.legend(fontsize=8, loc="upper left")
        return figure


@experiment("quad-fig8.7", seconds=96, quick={"repetitions": 10})
def square_random(
    sizes: Sequence[int] = (300, 600, 900, 1200),
    *,
    repetitions: int = 100,
    n: int = HaltonSquare.n,
    sigma: float = HaltonSquare.sigma,
    trace_fraction: float = HaltonSquare.trace_fraction,
    random_state: Any = 0,
) -> SquareRandom:
    """Eigenpairs from random samples of Halton points beside those from optimal nodes (QUAD Fig 8.7).

    Parameters
    ----------
    sizes : sequence of int, default=(300, 600, 900, 1200)
        Sizes of the samples, drawn without repetition; each point weighs the same.
    repetitions : int, default=100
        Draws of each size: two minutes in all on two cores.
    trace_fraction : float, default=0.81
        ϰ of the optimal nodes.
    """
    square, rng = HaltonSquare(n, sigma, trace_fraction), np.random.default_rng(random_state)

    def counts(nodes: Array, values: Array | None = None) -> list[int]:
        pairs = square.sample.eigenpairs(nodes, values)
        return [count_accurate(pairs, threshold) for threshold in _THRESHOLDS]

    model = square.model
    found = {
        size: np.array([counts(rng.choice(n, size, replace=False)) for _ in range(repetitions)])
        for size in map(int, sizes)
    }
    good, fair = counts(model.indices_, model.weights_)
    return SquareRandom(found, (good, fair), model.indices_.size)
