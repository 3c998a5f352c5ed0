"""Small pictures of every display, from numbers that no machine rounds differently, and without a letter in them.

``python tests/plots/reference_pictures.py`` draws the references again, into ``pictures`` beside this file: look at each of
them before it is committed.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from mercer.certificates import Certificate
from mercer.embedding import Diagnosis
from mercer.plots import (
    CertificateDisplay,
    DensityDisplay,
    DependenceDisplay,
    EmbeddingDisplay,
    LandmarksDisplay,
    LevelsDisplay,
    NullDisplay,
    QuadraturePathDisplay,
    RankPathDisplay,
    UpsilonDisplay,
    WitnessDisplay,
)
from mercer.solvers.solution import Iteration

FOLDER = Path(__file__).parent / "pictures"
TURNS = np.arange(60) * 0.4
SPIRAL = np.column_stack([TURNS * np.cos(TURNS), TURNS * np.sin(TURNS)]) / 24


def embedding_classes(ax):
    return EmbeddingDisplay(SPIRAL, labels=np.arange(60) // 20, names=("", "")).plot(ax, size=20)


def embedding_many_classes(ax):
    labels = [f"class {k:02d}" for k in np.arange(60) // 4]
    return EmbeddingDisplay(SPIRAL, labels=labels, names=("", "")).plot(ax, size=20)


def embedding_numbers(ax):
    values = np.where(np.arange(60) % 15 == 7, np.nan, TURNS)
    return EmbeddingDisplay(SPIRAL, labels=values, names=("", "")).plot(ax, size=20)


def embedding_outliers_and_rings(ax):
    labels = np.where(np.arange(60) % 12 == 5, -1, np.arange(60) // 30)
    rings = np.arange(60) % 3 == 0
    return EmbeddingDisplay(SPIRAL, labels=labels, outlier=-1, misplaced=rings).plot(ax, size=20)


def certificate(ax):
    history = [
        Iteration(k, 1 - 0.5**k, 0.1 * k, gap=2.0 * 0.3**k, row_residual=0.4**k, phase="climb" if k < 5 else "polish")
        for k in range(9)
    ]
    return CertificateDisplay(history, Certificate(0.99, 1.0, 0.0, "proof", 0), tol=1e-3).plot(ax)


def landmarks(ax):
    return LandmarksDisplay(SPIRAL, np.arange(0, 60, 6), np.arange(1.0, 11.0)).plot(ax, size=80)


def landmarks_of_classes(ax):
    labels = np.where(np.arange(60) < 30, "first", "second")
    return LandmarksDisplay(SPIRAL, np.arange(0, 60, 6), np.arange(1.0, 11.0), labels=labels).plot(ax, size=80)


def quadrature_path(ax):
    kappas = np.linspace(0.1, 0.9, 9)
    path = {"kappas": kappas, "n_nodes": np.arange(1, 10), "discrepancies": 0.5 ** np.arange(9), "alphas": 1 - kappas}
    return QuadraturePathDisplay(SimpleNamespace(**path)).plot(ax)


def upsilon(ax):
    return UpsilonDisplay(SimpleNamespace(upsilon=1 - 0.02 * np.arange(10) ** 1.5)).plot(ax)


def rank_path(ax):
    names = ("ISOLATED", "INFORMATIVE", "INFORMATIVE", "NEARLY_CONSTANT")
    entries = [SimpleNamespace(sigma=s, rank=r) for s, r in zip((0.1, 1.0, 10.0, 100.0), (0, 3, 2, 1), strict=True)]
    values = np.array([[0.0, 0.0], [0.6, 0.4], [0.8, 0.2], [1.0, 0.0]])
    path = SimpleNamespace(
        parameter="sigma",
        entries=entries,
        sigmas=np.array([0.1, 1.0, 10.0, 100.0]),
        diagnoses=[Diagnosis[name] for name in names],
        suggested=entries[2],
        eigenvalues=values,
        diffusion_eigenvalues=1 - values,
    )
    return RankPathDisplay(path).plot(ax)


def density_line(ax):
    x = np.linspace(-3, 3, 100)
    points, labels = np.linspace(-2, 2, 30)[:, None], np.arange(30) % 2
    display = DensityDisplay(np.exp(-(x**2)), [x], points=points, support=points[::10], labels=labels)
    return display.plot(ax)


def density_contours(ax):
    x = np.linspace(-1.5, 1.5, 60)
    values = np.exp(-2 * (x[:, None] ** 2 + 2 * x**2))
    display = DensityDisplay(values, [x, x], points=SPIRAL, support=SPIRAL[::12], labels=np.arange(60) // 20)
    return display.plot(ax, levels=[0.1, 0.3, 0.5, 0.7, 0.9])


class _Result:
    """A test whose witness is known."""

    statistic, pvalue, n_resamples, null = 3.0, 0.01, 99, "permutation"
    null_distribution = np.linspace(0, 3.2, 99) ** 1.5 / 3.2**0.5

    @staticmethod
    def witness(X, Y=None):
        return X[:, 0] * (1.0 if Y is None else Y[:, 0])

    @staticmethod
    def rejects():
        return True


def witness(ax):
    return WitnessDisplay(_Result(), SPIRAL + np.array([0.5, 0]), SPIRAL - np.array([0.5, 0])).plot(ax)


def witness_curve(ax):
    return WitnessDisplay(_Result(), SPIRAL[:, :1] + 0.5, SPIRAL[:, :1] - 0.5).plot(ax)


def dependence(ax):
    return DependenceDisplay(_Result(), SPIRAL[:, 0], SPIRAL[:, 1]).plot(ax)


def null(ax):
    return NullDisplay(_Result()).plot(ax)


def levels(ax):
    proof = Certificate(0.99, 1.0, 0.0, "proof", 0)
    made = [SimpleNamespace(rank=2, eigenvalues=np.array([0.7, 0.3]), certificate=proof, correlation=0.9)] * 2
    return LevelsDisplay(made).plot(ax)


PICTURES = {
    drawn.__name__: drawn
    for drawn in (
        embedding_classes,
        embedding_many_classes,
        embedding_numbers,
        embedding_outliers_and_rings,
        certificate,
        landmarks,
        landmarks_of_classes,
        quadrature_path,
        upsilon,
        rank_path,
        density_line,
        density_contours,
        witness,
        witness_curve,
        dependence,
        null,
        levels,
    )
}


def pixels(draw):
    """A picture as numbers: red, green and blue from 0 to 255, 200 pixels wide, without any text."""
    figure = Figure(figsize=(4, 3), dpi=50)
    canvas = FigureCanvasAgg(figure)
    draw(figure.add_subplot())
    for ax in figure.axes:
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        ax.tick_params(which="both", labelbottom=False, labelleft=False, labelright=False, labeltop=False)
    for text in figure.findobj(Text):
        text.set_visible(False)
        text.set_bbox(None)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].astype(np.float64)


if __name__ == "__main__":
    from PIL import Image

    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        Image.fromarray(pixels(draw).astype(np.uint8)).save(FOLDER / f"{name}.png", optimize=True)
