"""The two pictures of embedding_defaults.py: embeddings side by side, and scores against the share of outliers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from embedding_peers import METHODS
from embedding_samples import FAMILIES, SAMPLES, SHARES
from embedding_scores import shown_rows, unpacked_plane
from embedding_verdicts import Measured
from PIL import Image

from mercer.plots import new_figure, save_figure

SHOWN = ("moons", "moons+20", "roll", "wine+20", "digits", "digits+20", "mnist3000", "marrow")
CURVES = {"nmi": (-0.03, 1.03), "knn": (0.73, 1.01)}  # with the range that is shown
NAMES = {"nmi": "NMI of k-means", "knn": "5-NN accuracy"}
COLOURS = {
    "pca": "#bbbbbb",
    "spectral": "#228833",
    "isomap": "#aa3377",
    "tsne": "#66ccee",
    "umap": "#ccbb44",
    "pacmap": "#ee8866",
    "maps": "#ee6677",
    "papers": "#99aacc",
    "sdp": "#004488",
    "plane": "#000000",
}

COLOURS_STORED = 128  # of a picture: a quarter of the bytes, and nobody sees it


def write_pictures(measured: Measured, folder: Path) -> None:
    for draw, name in ((side_by_side, "embedding_defaults.png"), (outlier_curves, "embedding_defaults_outliers.png")):
        path = folder / name
        save_figure(draw(measured), path)
        Image.open(path).convert("RGB").quantize(COLOURS_STORED, dither=Image.Dither.NONE).save(path, optimize=True)


def side_by_side(measured: Measured) -> Any:
    """A row a sample, a column a method called without arguments; outliers are grey crosses."""
    methods = measured.methods(ten=False)
    samples = [name for name in SHOWN if name in measured.samples]
    figure, axes = new_figure(len(samples) * len(methods), rows=len(samples), panel_inches=1.4)
    for i, ax in enumerate(axes):
        sample, method = samples[i // len(methods)], methods[i % len(methods)]
        ax.set_xticks([])
        ax.set_yticks([])
        if i < len(methods):
            ax.set_title(METHODS[method].title.replace("(G", "(\nG").replace("(S", "(\nS"), fontsize=7)
        if i % len(methods) == 0:
            ax.set_ylabel(sample, fontsize=9)
        row = measured.rows.get((sample, method, 0), {})
        if "plane" in row:
            _scatter(ax, unpacked_plane(row["plane"]), SAMPLES[sample].draw(0)[1])
    return figure


def _scatter(ax: Any, plane: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> None:
    labels = labels[shown_rows(len(labels))]
    known = labels >= 0
    ax.scatter(*plane[~known].T, s=4, c="#999999", marker="x", linewidths=0.4)
    ax.scatter(*plane[known].T, s=2, c=labels[known], cmap="tab10", vmin=0, vmax=9, linewidths=0)


def outlier_curves(measured: Measured) -> Any:
    """A row a score, a column a sample."""
    families = [family for family in FAMILIES if any(SAMPLES[name].family == family for name in measured.samples)]
    figure, axes = new_figure(len(CURVES) * max(1, len(families)), rows=len(CURVES), panel_inches=2.6)
    for i, ax in enumerate(axes[: len(CURVES) * len(families)]):
        family, measure = families[i % len(families)], list(CURVES)[i // len(families)]
        for method in measured.methods(ten=False):
            _curve(ax, measured, family, method, measure)
        ax.set_title(f"{family}: {NAMES[measure]}", fontsize=9)
        ax.set_xlabel("outliers, %", fontsize=8)
        ax.set_ylim(*CURVES[measure])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _curve(ax: Any, measured: Measured, family: str, method: str, measure: str) -> None:
    base = family.removesuffix("mixed")
    kind = family[len(base) :]
    names = [base, *(f"{base}+{share}{kind}" for share in SHARES)]
    values = [measured.mean(name, method, measure) for name in names]
    ours = METHODS[method].ours
    looks = {"linewidth": 1.8 if ours else 1.0, "linestyle": "-" if ours else "--", "marker": "o", "markersize": 3}
    ax.plot((0, *SHARES), values, color=COLOURS[method], label=METHODS[method].title, **looks)
