"""Draw the three pictures of the first page: ``python docs/pictures.py`` writes them to docs/_static.

Digits in the plane with what was proved of their coordinates; landmarks with weights; where two samples differ.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from mercer import Gaussian, MeanEmbedding, QuadratureSparsifier, SDPEmbedding, mmd_test, plane_map
from mercer.datasets import digits, three_clusters, two_moons

STATIC = Path(__file__).parent / "_static"
COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#774411", "#004488", "#ee7733"]


def _panel() -> tuple[plt.Figure, plt.Axes]:
    figure, axes = plt.subplots(figsize=(4.2, 3.9), layout="constrained")
    axes.set(xticks=[], yticks=[])
    return figure, axes


def _save(figure: plt.Figure, name: str) -> None:
    figure.savefig(STATIC / name, dpi=130, pil_kwargs={"optimize": True})
    plt.close(figure)


def embedding() -> None:
    """All 1797 digits on the map of their coordinates, and the weakest proof of the levels."""
    X, labels = digits()
    model = SDPEmbedding(random_state=0).fit(X)
    plane = plane_map(model).coordinates
    gap = max(level.certificate.relative_gap for level in model.levels_)
    figure, axes = _panel()
    for digit, colour in enumerate(COLOURS):
        rows = labels == digit
        axes.scatter(*plane[rows].T, s=4, color=colour, linewidths=0)
        axes.annotate(str(digit), np.median(plane[rows], axis=0), ha="center", va="center", fontsize=13, weight="bold")
    columns = model.embedding_.shape[1]
    axes.set_title(f"1797 images, {columns} coordinates: optimal to within {gap:.0e}", fontsize=10)
    _save(figure, "for_embedding.png")


def landmarks() -> None:
    """Forty points with weights that stand for 1830."""
    X, _ = three_clusters(n_per_cluster=600, n_outliers=30, random_state=0)
    model = QuadratureSparsifier(Gaussian(0.8), n_nodes=40).fit(X)
    figure, axes = _panel()
    axes.scatter(*X.T, s=3, color="#bbbbbb", linewidths=0)
    area = model.weights_ / model.weights_.max() * 260
    axes.scatter(*X[model.indices_].T, s=area, color="#4477aa", alpha=0.75, linewidths=0)
    axes.set_title("40 rows, with weights, stand for 1830", fontsize=10)
    axes.set_aspect("equal")
    _save(figure, "for_landmarks.png")


def difference() -> None:
    """Two samples, the p-value of their difference, and where it lies."""
    before, _ = two_moons(150, noise=0.1, random_state=0)
    after = two_moons(150, noise=0.1, random_state=1)[0] + np.array([0.25, 0.0])
    result = mmd_test(before, after, rng=0)
    kernel = Gaussian(0.4)
    x, y = np.meshgrid(np.linspace(-1.6, 2.7, 90), np.linspace(-1.1, 1.6, 70))
    at = np.column_stack([x.ravel(), y.ravel()])
    values = MeanEmbedding(kernel, before).witness(MeanEmbedding(kernel, after), at).reshape(x.shape)
    top = np.abs(values).max()
    figure, axes = _panel()
    axes.contourf(x, y, values, 14, cmap="RdBu", vmin=-top, vmax=top)
    axes.scatter(*before.T, s=7, color="#003366", linewidths=0)
    axes.scatter(*after.T, s=12, color="#882211", marker="x", linewidths=0.8)
    axes.set_title(f"two samples differ (p = {result.pvalue:.3f}), and where", fontsize=10)
    _save(figure, "for_difference.png")


if __name__ == "__main__":
    embedding()
    landmarks()
    difference()
