"""A kernel matrix completed from the columns of some landmarks (RKHS sections 10.3 and 10.5, Lemma 17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import three_clusters
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Gaussian, Polynomial
from mercer.landmarks import Landmarks
from mercer.linalg import nystrom
from mercer.operators import GramOperator
from mercer.plots import new_figure, plot_points
from mercer.plots.scatter import COLOURS

_STRATEGIES = ("uniform", "k-means", "leverage", "rpcholesky", "greedy")


@dataclass(frozen=True)
class KernelCompletion(Experiment):
    """The share of the trace that a completion leaves out, by the number of landmarks and how they are chosen."""

    X: Array
    labels: Array
    sizes: tuple[int, ...]
    errors: dict[str, Array]  #: by strategy, (draws, sizes)
    best: Array  #: by size, of the best matrix of that rank
    nested: Array  #: by size, of rows of which each choice contains the one before
    chosen: dict[str, Array]  #: rows that two strategies choose, of the middle size
    low_rank: tuple[float, float]  #: of a matrix of rank six from six landmarks in general position, and on a circle

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Lemma 17's two statements, and what section 10.5 says of choosing well."""
        general, circle = self.low_rank
        return (
            claim(
                "trace left out as landmarks are added",
                "falls",
                f"from {self.nested[0]:.1%} to {self.nested[-1]:.1e} of the trace, never rising",
                bool(np.all(np.diff(self.nested) <= 1e-12)),
            ),
            claim(
                "a matrix of rank 6 from 6 landmarks in general position",
                "exact",
                f"{general:.0e} of the trace left out",
                general < 1e-10,
            ),
            claim(
                "a matrix of rank 6 from 6 landmarks on a circle",
                "exact",
                f"{circle:.1%} of the trace left out",
                circle < 1e-10,
                "the landmarks' features must span those of all points: polynomials of degree two have rank five on a "
                "circle, so that A is singular whatever its size",
            ),
            *(self._wise(at) for at in (len(self.sizes) // 2, len(self.sizes) - 1)),
        )

    def _wise(self, at: int) -> Comparison:
        """Strategies beside random landmarks, at one of the sizes."""
        medians = {name: float(np.median(errors[:, at])) for name, errors in self.errors.items()}
        random = medians.pop("uniform")
        behind = [name for name, value in medians.items() if value > random]
        found = f"median of {len(self.errors['uniform'])} draws; the best matrix of that rank {self.best[at]:.1e}"
        if behind:
            found += f"; the trace counts points, and {', '.join(behind)} spend landmarks on outliers first"
        return claim(
            f"trace left out by {self.sizes[at]} landmarks, chosen wisely rather than randomly (10.5)",
            "better",
            f"random {random:.1e}, " + ", ".join(f"{name} {value:.1e}" for name, value in medians.items()),
            not behind,
            found,
        )

    def figure(self) -> Any:
        """The error over the number of landmarks, and which rows two strategies choose."""
        figure, axes = new_figure(3)
        for i, (name, errors) in enumerate(self.errors.items()):
            axes[0].loglog(self.sizes, np.median(errors, axis=0), "o-", markersize=4, color=COLOURS[i], label=name)
        axes[0].loglog(self.sizes, self.best, "k--", linewidth=0.8, label="best of that rank")
        axes[0].set(title="Share of the trace left out", xlabel="landmarks m")
        axes[0].legend(fontsize=8)
        for ax, (name, rows) in zip(axes[1:], self.chosen.items(), strict=True):
            plot_points(ax, self.X, title=f"{len(rows)} landmarks, {name}", size=6)
            ax.scatter(*self.X[rows].T, s=22, facecolors="none", edgecolors=COLOURS[4], linewidths=1.2, zorder=3)
        return figure


@experiment("rkhs-lemma17", place=10.3, seconds=5)
def kernel_completion(
    sizes: Sequence[int] = (10, 20, 40, 80, 160),
    *,
    sigma: float = 1.0,
    n_per_cluster: int = 300,
    draws: int = 5,
    random_state: Any = 0,
) -> KernelCompletion:
    """A kernel matrix completed from landmarks, by their number and how they are chosen (RKHS Lemma 17).

    Three clusters with some outliers, which a random choice misses. Cost: a dense spectrum of the matrix, and ``draws``
    choices of every size and strategy.

    Parameters
    ----------
    sizes : sequence of int, default=(10, 20, 40, 80, 160)
        Numbers of landmarks, rising.
    n_per_cluster : int, default=300
        Points of each cluster; a tenth as many outliers in all.
    draws : int, default=5
        Choices of every strategy.
    """
    X, labels = three_clusters(n_per_cluster, n_per_cluster // 10, random_state=random_state)
    gram, sizes = GramOperator(Gaussian(sigma=sigma), X), tuple(map(int, sizes))
    spectrum = np.linalg.eigvalsh(gram.to_dense())[::-1]
    order = np.random.default_rng(random_state).permutation(len(X))
    errors = {
        name: np.array([[_choose(X, sigma, m, name, seed).share_left_out_ for m in sizes] for seed in range(draws)])
        for name in _STRATEGIES
    }
    middle = sizes[len(sizes) // 2]
    return KernelCompletion(
        X,
        labels,
        sizes,
        errors,
        best=np.array([max(1 - spectrum[:m].sum() / spectrum.sum(), 0.0) for m in sizes]),
        nested=np.array([_left_out(gram, order[:m]) for m in sizes]),
        chosen={name: _choose(X, sigma, middle, name, 0).indices_ for name in ("uniform", "rpcholesky")},
        low_rank=_of_rank_six(np.random.default_rng(random_state)),
    )


def _choose(X: Array, sigma: float, count: int, strategy: str, seed: int) -> Landmarks:
    return Landmarks(count, strategy=strategy, kernel=Gaussian(sigma=sigma), random_state=seed).fit(X)


def _left_out(gram: GramOperator, landmarks: Array) -> float:
    """The share of the trace that (137) leaves out; of what is left of a psd matrix it bounds every norm."""
    diagonal, factor = gram.diagonal(), nystrom(gram, landmarks).factor
    return float(abs(np.sum(diagonal - np.sum(factor**2, axis=1))) / np.sum(diagonal))


def _of_rank_six(rng: np.random.Generator) -> tuple[float, float]:
    """What six landmarks leave out of (x·y + 1)² in the plane: random ones, and ones on a circle."""
    angles = 2 * np.pi * np.arange(6) / 6
    X = np.vstack([rng.uniform(-1, 1, (100, 2)), np.column_stack([np.cos(angles), np.sin(angles)])])
    gram = GramOperator(Polynomial(2, 1.0, 1.0), X)
    return _left_out(gram, np.arange(6)), _left_out(gram, np.arange(100, 106))
