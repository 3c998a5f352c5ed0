"""Classes that no line separates, and which one does in the feature space (RKHS Fig 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from sklearn.svm import SVC

from mercer.backends.arrays import Array
from mercer.embedding import KernelPCA
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Gaussian
from mercer.plots import new_figure, plot_points
from mercer.plots.scatter import COLOURS

_STIFF = 1e6  # the price of a point on the wrong side: that of a separator without slack


@dataclass(frozen=True)
class SeparatedRings(Experiment):
    """Two noisy rings in the plane and along the principal directions of their features."""

    X: Array
    labels: Array
    coordinates: Array  #: along the principal directions of the features
    errors: dict[str, tuple[float, float]]  #: by space, errors on the sample and on another one
    by_components: dict[int, tuple[float, float]]  #: the same, by number of kernel principal components

    @property
    def telling(self) -> int:
        """The direction, from 0 on, along which the means of the rings are furthest apart for their spread."""
        inner, outer = (self.coordinates[self.labels == label] for label in (0, 1))
        return int(np.argmax(np.abs(inner.mean(axis=0) - outer.mean(axis=0)) / (inner.std(axis=0) + outer.std(axis=0))))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Errors of the best line before and after, and what is left on new points."""
        (plain, plain_new), (pulled, pulled_new) = self.errors["plane"], self.errors["features"]
        fewest = min((count for count, (error, _) in self.by_components.items() if error == 0), default=None)
        return (
            claim(
                "error of a line in the plane", "not separable", f"{plain:.1%}, new points {plain_new:.1%}", plain > 0
            ),
            claim(
                "error of a hyperplane in the feature space",
                "separable",
                f"{pulled:.1%}, new points {pulled_new:.1%}",
                pulled == 0,
                "" if pulled == 0 else "points lie nearer to those of the other ring than the bandwidth tells apart",
            ),
            claim(
                "leading directions that are enough",
                "not said",
                "none of those tried" if fewest is None else f"{fewest}",
                fewest is not None,
                f"the leading directions turn with the rings; the radius, which tells them apart, is direction "
                f"{self.telling + 1}",
            ),
        )

    def figure(self) -> Any:
        """The rings, the two directions that separate them, and the error over the number of directions."""
        figure, axes = new_figure(3)
        plot_points(axes[0], self.X, self.labels, title="In the plane")
        first, telling = 0, self.telling
        seen = self.coordinates[:, [first, telling]]
        plot_points(axes[1], seen, self.labels, title=f"Feature space, directions {first + 1} and {telling + 1}")
        normal, offset = separating_hyperplane(seen, self.labels)
        span = np.array([seen[:, 0].min(), seen[:, 0].max()])
        axes[1].plot(span, -(offset + normal[0] * span) / normal[1], "k--", linewidth=1)
        counts = sorted(self.by_components)
        for i, name in enumerate(("the sample", "new points")):
            shares = [100 * self.by_components[count][i] for count in counts]
            axes[2].plot(counts, shares, "o-", color=COLOURS[4 * i], label=name)
        axes[2].set(title="Error of a hyperplane, %", xlabel="directions used")
        axes[2].legend(fontsize=8)
        return figure


@experiment("rkhs-fig3", place=8, seconds=1)
def separated_rings(
    sigma: float = 1.5,
    *,
    n_per_ring: int = 150,
    noise: float = 0.12,
    components: Sequence[int] = (1, 2, 3, 4, 6, 10),
    random_state: Any = 0,
) -> SeparatedRings:
    """Two rings that no line separates are separated by a hyperplane of the feature space (RKHS Fig 3).

    Parameters
    ----------
    n_per_ring : int, default=150
        Points of each ring, the radii of which are 1 and 2; as many again are classified.
    noise : float, default=0.12
        Standard deviation of the radius.
    components : sequence of int, default=(1, 2, 3, 4, 6, 10)
        Numbers of kernel principal components.
    """
    rng, kernel = np.random.default_rng(random_state), Gaussian(sigma=sigma)
    (X, labels), (new, truth) = _rings(n_per_ring, noise, rng), _rings(n_per_ring, noise, rng)
    count = max(3, *components)
    pca = KernelPCA(kernel, n_components=count, random_state=random_state).fit(X)
    train, test = pca.embedding_, pca.transform(new)

    def errors(points: Array, others: Array) -> tuple[float, float]:
        normal, offset = separating_hyperplane(points, labels)
        return _error(points @ normal + offset, labels), _error(others @ normal + offset, truth)

    machine = SVC(C=_STIFF, kernel=kernel).fit(X, labels)
    pulled = _error(machine.decision_function(X), labels), _error(machine.decision_function(new), truth)
    by_components = {m: errors(train[:, :m], test[:, :m]) for m in map(int, components)}
    return SeparatedRings(X, labels, train, {"plane": errors(X, new), "features": pulled}, by_components)


def separating_hyperplane(points: Array, labels: Array) -> tuple[Array, float]:
    """Normal and offset of a hyperplane with label 1 on its positive side, with the least total slack.

    min Σ s with yᵢ(w · xᵢ + b) ≥ 1 - sᵢ and s ≥ 0, a linear programme: without error if there is one without error.
    """
    n, d = points.shape
    signs = np.where(labels == 1, 1.0, -1.0)[:, None]
    found = linprog(
        np.concatenate([np.zeros(d + 1), np.ones(n)]),
        A_ub=-np.hstack([signs * points, signs, np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
    )
    return np.asarray(found.x[:d]), float(found.x[d])


def _error(heights: Array, labels: Array) -> float:
    return float(np.mean((heights > 0) != (labels == 1)))


def _rings(count: int, noise: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points around two circles about the origin."""
    labels = np.repeat([0, 1], count)
    radius, angle = 1 + labels + noise * rng.normal(size=2 * count), rng.uniform(0, 2 * np.pi, 2 * count)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), labels
