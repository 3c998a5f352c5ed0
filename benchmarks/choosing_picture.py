"""The picture of the page "Which embedding?": three samples, and what each method makes of them without being tuned.

    python benchmarks/choosing_picture.py    # a minute or two; writes docs/_static/choosing.png

Every method is called as in embedding_peers.py, with its defaults and seed 0. Points have the colours of their classes,
which no method saw; outliers are grey crosses. The number in a corner is the accuracy of five nearest neighbours in the
two coordinates that are shown. umap-learn is in the extra ``bench``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from embedding_peers import METHODS
from embedding_samples import SAMPLES
from embedding_scores import neighbours_right

from mercer.plots import new_figure, save_figure

SHOWN = {"digits": "digits", "moons+10": "two moons, 10 % outliers", "roll": "a rolled sheet"}
COLUMNS = {
    "pca": "PCA",
    "spectral": "SpectralEmbedding",
    "tsne": "t-SNE",
    "umap": "UMAP",
    "plane": "SDPEmbedding, map",
}
PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "choosing.png"


def draw(ax: Any, plane: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> None:
    """Points in the colours of their classes, and the accuracy of neighbours in a corner."""
    known = labels >= 0
    ax.scatter(*plane[~known].T, s=6, c="#999999", marker="x", linewidths=0.5)
    ax.scatter(*plane[known].T, s=2.5, c=labels[known], cmap="tab10", vmin=0, vmax=9, linewidths=0)
    ax.text(0.98, 0.02, f"{neighbours_right(plane[known], labels[known]):.2f}", transform=ax.transAxes, ha="right")
    ax.set_xticks([])
    ax.set_yticks([])


def main() -> None:
    figure, axes = new_figure(len(SHOWN) * len(COLUMNS), rows=len(SHOWN), panel_inches=2.1)
    panels = iter(axes)
    for row, (sample, name) in enumerate(SHOWN.items()):
        X, labels = SAMPLES[sample].draw(0)
        for column, (method, title) in enumerate(COLUMNS.items()):
            ax = next(panels)
            plane, _ = METHODS[method].embed(X, 0)
            draw(ax, np.asarray(plane, dtype=np.float64)[:, :2], labels)
            if row == 0:
                ax.set_title(title, fontsize=10)
            if column == 0:
                ax.set_ylabel(name, fontsize=10)
    save_figure(figure, PICTURE)
    print(f"written to {PICTURE}")


if __name__ == "__main__":
    main()
