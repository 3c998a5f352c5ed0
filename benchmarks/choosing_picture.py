"""The picture of the page "Which embedding?": three samples, and what each method makes of them without being tuned.

    python benchmarks/choosing_picture.py    # some minutes; writes docs/_static/choosing.png

The samples are those of embedding_samples.py, and every method is called as in embedding_peers.py, with its defaults
and seed 0. The last two columns are one fit of ours: its first two coordinates, and the map in the plane of all of
them. Points have the colours of their classes, which no method saw; outliers are grey crosses. The number in a corner
is the accuracy of five nearest neighbours in the two coordinates that are shown. umap-learn is in the extra ``bench``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from embedding_peers import METHODS
from embedding_samples import SAMPLES
from embedding_scores import neighbours_right
from PIL import Image

from mercer import plane_map
from mercer.plots import new_figure, save_figure

Array = np.ndarray[Any, Any]
ROWS = {"digits": "digits", "moons+10": "two moons, 10 % outliers", "roll": "a rolled sheet"}
PEERS = {"pca": "PCA", "spectral": "SpectralEmbedding", "tsne": "t-SNE", "umap": "UMAP"}
OURS = ("SDPEmbedding,\nfirst two coordinates", "SDPEmbedding,\nplane_map")
PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "choosing.png"


def planes(X: Array) -> Iterator[Array]:
    """The two coordinates of each column."""
    for method in PEERS:
        yield METHODS[method].embed(X, 0)[0]
    ours, _ = METHODS["sdp"].embed(X, 0)
    yield from (ours[:, :2], plane_map(ours).coordinates)


def draw(ax: Any, plane: Array, labels: Array) -> None:
    """Points in the colours of their classes, and the accuracy of neighbours in a corner."""
    known = labels >= 0
    ax.scatter(*plane[~known].T, s=6, c="#999999", marker="x", linewidths=0.5)
    ax.scatter(*plane[known].T, s=2.5, c=labels[known], cmap="tab10", vmin=0, vmax=9, linewidths=0)
    ax.text(0.98, 0.02, f"{neighbours_right(plane[known], labels[known]):.2f}", transform=ax.transAxes, ha="right")
    ax.set_xticks([])
    ax.set_yticks([])


def main() -> None:
    titles = (*PEERS.values(), *OURS)
    figure, axes = new_figure(len(ROWS) * len(titles), rows=len(ROWS), panel_inches=1.9)
    for row, (sample, name) in enumerate(ROWS.items()):
        X, labels = SAMPLES[sample].draw(0)
        panels = axes[row * len(titles) : (row + 1) * len(titles)]
        panels[0].set_ylabel(name, fontsize=10)
        for ax, title, plane in zip(panels, titles, planes(X), strict=True):
            draw(ax, np.asarray(plane, dtype=np.float64), labels)
            ax.set_title("" if row else title, fontsize=10)
    save_figure(figure, PICTURE)
    Image.open(PICTURE).convert("RGB").quantize(64).save(PICTURE, optimize=True)  # a third of the size
    print(f"written to {PICTURE}")


if __name__ == "__main__":
    main()
