"""A kernel whose matrices are all strictly positive definite and which is not universal (RKHS Lemma 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from mercer.backends.arrays import Array
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.plots import new_figure
from mercer.plots.scatter import COLOURS


@dataclass(frozen=True)
class StrictlyDefinite(Experiment):
    """k(x, y) = Σⱼ (xy)^(j²) / 2ʲ with j = 1 left out, on [0, 1], and how near its functions come to x."""

    smallest: dict[int, float]  #: by number of points, the least eigenvalue of the kernel matrix over the largest
    x: Array  #: a grid of [0, 1]
    nearest: Array  #: the combination of powers that comes nearest to x on the grid
    distance: float  #: how far it is from x at most
    below: float  #: no function of the kernel comes nearer to x than this

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The lemma's condition holds, and its conclusion does not."""
        shown = ", ".join(f"{value:.0e} of {n} points" for n, value in self.smallest.items())
        return (
            claim(
                "kernel matrices of distinct points",
                "strictly positive definite",
                f"least eigenvalue over the largest {shown}",
                min(self.smallest.values()) > 0,
            ),
            claim(
                "functions of the kernel near f(x) = x",
                "any distance, the kernel being universal",
                f"no nearer than {self.below:.4f}; nearest found {self.distance:.4f}",
                self.below <= 0,
                "powers whose reciprocals have a finite sum are not dense (Müntz 1914, Szász 1916), yet powers are "
                "linearly independent on any points; integrally strictly positive definite is what the lemma needs",
            ),
        )

    def figure(self) -> Any:
        """The function x and its best approximation, and the difference."""
        figure, (left, right) = new_figure(2)
        left.plot(self.x, self.x, color="0.6", linewidth=3, label="x")
        left.plot(self.x, self.nearest, color=COLOURS[4], label="nearest function of the kernel")
        left.set(title="Strictly positive definite, not universal", xlabel="x")
        left.legend(fontsize=8)
        right.plot(self.x, self.nearest - self.x, color=COLOURS[0])
        for side in (-1, 1):
            right.axhline(side * self.below, color="black", linestyle="--", linewidth=0.8)
        right.set(title="Difference, and the proved bound", xlabel="x")
        return figure


@experiment("rkhs-lemma6", place=5.3, seconds=1)
def strictly_definite(n_powers: int = 12, *, n_grid: int = 400) -> StrictlyDefinite:
    """Strictly positive definite matrices do not make a kernel universal (RKHS Lemma 6).

    Parameters
    ----------
    n_powers : int, default=12
        Powers 0, 4, 9, 16 … of which the best approximation of x is made.
    n_grid : int, default=400
        Points at which it is compared with x.
    """
    powers = _powers(n_powers)
    x = np.linspace(0, 1, n_grid)
    columns = x[:, None] ** powers
    nearest = columns @ _nearest(columns, x)
    smallest = {n: _least_eigenvalue(np.linspace(0.3, 1, n)) for n in (2, 3, 4)}
    return StrictlyDefinite(smallest, x, nearest, float(np.abs(nearest - x).max()), _distance_of_x())


def _powers(count: int) -> Array:
    """0, 4, 9, 16 …: the squares but for one."""
    return np.concatenate([[0], np.arange(2, count + 1) ** 2])


def _least_eigenvalue(points: Array) -> float:
    """Of the kernel matrix over the largest, by the singular values of its features: the square of their ratio."""
    powers = _powers(60)
    features = points[:, None] ** powers / 2.0 ** (np.arange(len(powers)) / 2)
    values = np.linalg.svd(features, compute_uv=False)
    return float((values[-1] / values[0]) ** 2)


def _nearest(columns: Array, target: Array) -> Array:
    """The coefficients of the combination of columns that differs least from the target where it differs most."""
    ones = np.ones((len(target), 1))
    bounds = [(None, None)] * columns.shape[1] + [(0, None)]
    found = linprog(
        np.append(np.zeros(columns.shape[1]), 1.0),
        A_ub=np.block([[columns, -ones], [-columns, -ones]]),
        b_ub=np.concatenate([target, -target]),
        bounds=bounds,
    )
    return np.asarray(found.x[:-1])


def _distance_of_x(terms: int = 100_000) -> float:
    """The distance of x from all these powers in L²[0, 1], which is below that in the maximum norm.

    Müntz's formula for x^m and powers p: ∏ (p - m)/(p + m + 1) over √(2m + 1). The factors of p = j² with
    j beyond ``terms`` are at least 1 - 3/j² each, so that their product is at least 1 - 3/terms.
    """
    powers = np.concatenate([[0.0], np.arange(2, terms + 1, dtype=float) ** 2])
    return float(np.sqrt(1 / 3) * np.exp(np.sum(np.log(np.abs(powers - 1) / (powers + 2)))) * (1 - 3 / terms))
