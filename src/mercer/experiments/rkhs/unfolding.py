"""A rolled sheet drawn apart by maximum variance unfolding (RKHS section 9.2, (114))."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import swiss_roll
from mercer.embedding import KernelPCA
from mercer.embedding.kernel_pca import IndefiniteKernelWarning
from mercer.embedding.unfolding import MaximumVarianceUnfolding
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Geodesic
from mercer.plots import new_figure

_FLAT = 0.99  # of the variance: what two coordinates of a sheet that is unrolled have


@dataclass(frozen=True)
class UnrolledSheet(Experiment):
    """A swiss roll, unfolded with the distances of neighbours and of all pairs, and by geodesic distances."""

    X: Array
    sheet: Array  #: the place of every point on the sheet: along the spiral and across, isometric to the roll
    unfolded: MaximumVarianceUnfolding  #: distances of neighbours kept
    geodesic: KernelPCA  #: kernel PCA of the geodesic kernel, Isomap
    growth: tuple[float, float]  #: variance over that of the data: distances of neighbours kept, and of all pairs

    def fit(self, coordinates: Array) -> float:
        """The share of the sheet's variance that a linear function of coordinates explains."""
        flat = self.sheet - self.sheet.mean(axis=0)
        design = np.column_stack([coordinates, np.ones(len(coordinates))])
        left = flat - design @ np.linalg.lstsq(design, flat, rcond=None)[0]
        return 1 - float(np.sum(left**2) / np.sum(flat**2))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What (114) does as printed, what it is meant to do, and how near the sheet is."""
        kept, every = self.growth
        share = float(self.unfolded.explained_variance_ratio_[:2].sum())
        proof = self.unfolded.certificate_
        ours, isomap = self.fit(self.unfolded.embedding_), self.fit(self.geodesic.embedding_)
        return (
            claim(
                "variance over that of the data, distances of all pairs kept, as (114) is printed",
                "unrolled",
                f"{every:.3f}",
                every > 1.1,
                "all distances, to the thousandth by which each may change, leave a single kernel, that of the data: "
                "distances of neighbours are meant",
            ),
            claim(
                "variance over that of the data, distances of neighbours kept",
                "unrolled",
                f"{kept:.2f}, proved to be the largest within {proof.relative_gap:.0e}",
                kept > 1.1,
            ),
            claim(
                "share of the first two coordinates",
                "a sheet",
                f"{share:.4f}",
                share > _FLAT,
                "" if share > _FLAT else "neighbours reach across windings that are near one another: more points",
            ),
            claim(
                "the sheet's own coordinates, explained by the embedding",
                "not said",
                f"{ours:.4f}, by geodesic distances {isomap:.4f}",
                True,
            ),
        )

    def figure(self) -> Any:
        """The roll from the side, the sheet as it is, and both embeddings, coloured along the spiral."""
        figure, axes = new_figure(4, panel_inches=3.6)
        views = {
            "The roll, from the side": self.X[:, [0, 2]],
            "The sheet": self.sheet,
            "Maximum variance unfolding": self.unfolded.embedding_,
            "Geodesic kernel (Isomap)": self.geodesic.embedding_,
        }
        for ax, (title, points) in zip(axes, views.items(), strict=True):
            turned = points * np.where(points[:, 0] @ (self.sheet[:, 0] - self.sheet[:, 0].mean()) < 0, [-1, 1], [1, 1])
            shown = points if title.startswith("The") else turned
            ax.scatter(*shown[:, :2].T, c=self.sheet[:, 0], s=9, cmap="viridis")
            ax.set_aspect("equal", adjustable="datalim")
            ax.set_title(title, fontsize=10)
        return figure


@experiment("rkhs-eq114", place=9.2, seconds=11)
def unrolled_sheet(
    n: int = 500, *, n_neighbors: int = 5, n_all_pairs: int = 40, random_state: Any = 0
) -> UnrolledSheet:
    """A swiss roll drawn apart with the distances of neighbours kept (RKHS Equation 114).

    Parameters
    ----------
    n : int, default=500
        Points of the roll.
    n_neighbors : int, default=5
        Whose distances are kept, and on whose graph geodesic distances are taken.
    n_all_pairs : int, default=40
        Points of the programme that keeps all distances.
    """
    X, angle = swiss_roll(n, random_state=random_state)
    few = X[:n_all_pairs]
    unfolded = MaximumVarianceUnfolding(n_neighbors, connect=True).fit(X)
    every = MaximumVarianceUnfolding(len(few) - 1, n_components=None).fit(few)
    geodesic = KernelPCA(Geodesic(n_neighbors, connect=True), random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)  # Isomap leaves the negative part out
        geodesic.fit(X)
    growth = tuple(float(model.eigenvalues_.sum() / _variance(data)) for model, data in ((unfolded, X), (every, few)))
    return UnrolledSheet(X, _sheet(X, angle), unfolded, geodesic, (growth[0], growth[1]))


def _variance(X: Array) -> float:
    return float(np.sum((X - X.mean(axis=0)) ** 2))


def _sheet(X: Array, angle: Array) -> Array:
    """The points of the roll in the plane: the length of the spiral up to each, and its height."""
    turns = np.linspace(angle.min(), angle.max(), 20_001)
    curve = []
    for column, part in ((0, np.cos), (2, np.sin)):
        design = np.column_stack([angle * part(angle), np.ones_like(angle)])
        scale = np.linalg.lstsq(design, X[:, column], rcond=None)[0][0]
        curve.append(scale * turns * part(turns))
    steps = np.hypot(*np.diff(np.array(curve), axis=1))
    return np.column_stack([np.interp(angle, turns, np.concatenate([[0.0], np.cumsum(steps)])), X[:, 1]])
