"""Labelled samples that embeddings are judged on: thirteen clean ones, and seven of them with 5 to 20 % of outliers.

The samples are the same on every machine. A seed changes the outliers alone, never the other points, so that
embeddings of two draws can be compared point by point. Outliers have the label -1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from mercer.datasets import (
    digits,
    htru2,
    iris,
    load_real,
    marrow,
    standardized,
    swiss_roll,
    three_clusters,
    two_moons,
    wine,
)

Array = np.ndarray[Any, Any]
Table = tuple[Array, Array]
SHARES = (5, 10, 20)  # of outliers among all points, in per cent
OUTLIER = -1
_BOX = 1.5
_LINEAGES = (("CD34", "AVP"), ("MPO", "ELANE"), ("GATA1", "KLF1"), ("ITGA2B",), ("IRF8",), ("CD79B", "VPREB1"))


@dataclass(frozen=True)
class Sample:
    """A sample by name: how to load it, how many points it has, and what its outliers are."""

    name: str
    about: str
    load: Callable[[], Table]
    size: int  # points that are no outliers
    share: int = 0  # of outliers, in per cent
    contaminate: Callable[[Array, Array, int, int], Array] | None = None
    family: str = ""  # the clean sample it was made of

    def draw(self, seed: int) -> Table:
        """Points and labels; the seed decides the outliers."""
        X, labels = self.load()
        if self.contaminate is None:
            return X, labels
        count = round(len(X) * self.share / (100 - self.share))
        outliers = self.contaminate(X, labels, count, seed)
        return np.concatenate([X, outliers]), np.concatenate([labels, np.full(count, OUTLIER)])

    @property
    def n_points(self) -> int:
        return round(self.size * 100 / (100 - self.share))


# --- clean samples --------------------------------------------------------------------------------------------------


def _roll() -> Table:
    X, angle = swiss_roll(1500)
    return X, np.digitize(angle, np.quantile(angle, np.arange(1, 6) / 6))


def _cancer() -> Table:
    table = load_breast_cancer()
    return standardized(table.data), table.target.astype(np.int64)


def mnist_rows(n: int) -> Array:
    """Rows of the training set of MNIST."""
    return np.random.default_rng(0).choice(60_000, n, replace=False)


def _mnist(n: int) -> Table:
    data, rows = load_real("mnist"), mnist_rows(n)
    return data["x_train"][rows].reshape(n, -1) / 255.0, data["y_train"][rows].astype(np.int64)


def covtype_rows(n: int) -> Array:
    """Rows of covtype."""
    return np.random.default_rng(0).choice(581_012, n, replace=False)


def _covtype(n: int) -> Table:
    data, rows = load_real("covtype"), covtype_rows(n)
    X = data["X"][rows].astype(np.float64)
    return np.hstack([standardized(X[:, :10]), X[:, 10:]]), data["y"][rows].astype(np.int64) - 1


def _skin(n: int) -> Table:
    data = load_real("skin")
    _, first = np.unique(data["X"], axis=0, return_index=True)
    rows = np.random.default_rng(0).choice(first, n, replace=False)
    return data["X"][rows] / 255.0, (data["y"][rows] == 1).astype(np.int64)


def _marrow() -> Table:
    """Cells by the lineage whose marker genes they express most, compared with all cells."""
    data = load_real("marrow_pca")
    genes = list(data["marker_names"])
    expression = standardized(data["markers"])
    means = [expression[:, [genes.index(gene) for gene in lineage]].mean(axis=1) for lineage in _LINEAGES]
    return marrow(), np.argmax(means, axis=0)


# --- outliers -------------------------------------------------------------------------------------------------------


def in_a_box(X: Array, labels: Array, count: int, seed: int) -> Array:
    """Uniform on the bounding box, half as large again."""
    low, high = X.min(axis=0), X.max(axis=0)
    middle, half = (low + high) / 2, _BOX * (high - low) / 2
    return np.random.default_rng([seed, 1]).uniform(middle - half, middle + half, (count, X.shape[1]))


def mixtures(X: Array, labels: Array, count: int, seed: int) -> Array:
    """Means of two points of different classes, drawn at random."""
    rng = np.random.default_rng([seed, 2])
    first = rng.integers(len(X), size=count)
    second = np.array([rng.choice(np.flatnonzero(labels != labels[i])) for i in first])
    return (X[first] + X[second]) / 2


def between_clusters(X: Array, labels: Array, count: int, seed: int) -> Array:
    """Those of the generator of three clusters: uniform on a box, and away from the centres."""
    return three_clusters(1, count, random_state=seed)[0][3:]


# --- the registry ---------------------------------------------------------------------------------------------------


def _clean() -> list[Sample]:
    def sample(name: str, size: int, load: Callable[[], Table], about: str) -> Sample:
        return Sample(name, about, cache(load), size, family=name)

    return [
        sample("moons", 400, lambda: two_moons(400), "two moons, noise 0.05"),
        sample("roll", 1500, _roll, "a rolled sheet; classes are sixths of the angle"),
        sample("clusters", 300, lambda: three_clusters(100, 0), "three Gaussian clusters in the plane"),
        sample("wine", 178, wine, "13 quantities, standardised; 3 cultivars"),
        sample("iris", 150, iris, "4 lengths, standardised; 3 species"),
        sample("cancer", 569, _cancer, "breast cancer, 30 quantities, standardised; 2 diagnoses"),
        sample("digits", 1797, digits, "images of 8 × 8 pixels; 10 digits"),
        sample("mnist3000", 3000, lambda: _mnist(3000), "MNIST, 28 × 28 pixels, drawn at random; 10 digits"),
        sample("marrow", 4142, _marrow, "cells by 100 components; 6 lineages, by which marker genes are highest"),
        sample("htru2", 3000, lambda: htru2(3000), "pulsar candidates, 8 features, standardised; 2 classes, 9 to 91"),
        sample("covtype", 3000, lambda: _covtype(3000), "forests: 10 quantities, standardised, 44 indicators; 7 types"),
        sample("skin", 3000, lambda: _skin(3000), "distinct colours, skin or not"),
        sample("mnist10000", 10_000, lambda: _mnist(10_000), "MNIST, 28 × 28 pixels, drawn at random; 10 digits"),
    ]


_CONTAMINATED = (
    ("clusters", "", between_clusters),
    ("moons", "", in_a_box),
    ("wine", "", in_a_box),
    ("iris", "", in_a_box),
    ("digits", "", in_a_box),
    ("wine", "mixed", mixtures),
    ("digits", "mixed", mixtures),
)


def _contaminated(clean: Sample, kind: str, contaminate: Callable[..., Array], share: int) -> Sample:
    name = f"{clean.name}+{share}{kind}"
    return Sample(name, clean.about, clean.load, clean.size, share, contaminate, clean.name + kind)


_BY_NAME = {sample.name: sample for sample in _clean()}
SAMPLES: dict[str, Sample] = _BY_NAME | {
    made.name: made
    for name, kind, contaminate in _CONTAMINATED
    for share in SHARES
    for made in [_contaminated(_BY_NAME[name], kind, contaminate, share)]
}
FAMILIES = tuple(name + kind for name, kind, _ in _CONTAMINATED)
