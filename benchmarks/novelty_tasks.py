"""Samples with outliers, or one class and the others, for benchmarks/novelty.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_circles, make_s_curve
from sklearn.preprocessing import StandardScaler

from mercer.datasets import load_real, three_clusters, two_moons

Array = np.ndarray[Any, Any]
ROWS = {
    **{"htru2": 2000, "mnist": 1000, "covtype": 3000, "skin": 2000, "cancer": 178, "digits": 90, "marrow": 2000},
    **{"wine": 35, "tested": 1000, "boone": 1500},
}


@dataclass(frozen=True)
class Task:
    """Rows to learn from and rows to judge, each marked where it is an outlier.

    ``learned`` has outliers among its rows, or none: then there is nothing to be judged in it.
    """

    learned: Array
    odd: Array
    new: Array
    odd_new: Array


Make = Callable[[int], Task]


def contaminated(normal: Array, odd: Array, share: float, n: int, rng: np.random.Generator) -> Task:
    """Two samples of n normal rows with a share of odd ones, which have no row in common."""
    normal, odd = rng.permutation(normal), rng.permutation(odd)
    n = min(n, len(normal) // 2)
    k = min(max(1, round(n * share / (1 - share))), len(odd) // 2)
    marks = np.arange(n + k) >= n
    return Task(
        np.concatenate([normal[:n], odd[:k]]), marks, np.concatenate([normal[n : 2 * n], odd[k : 2 * k]]), marks
    )


def clean(normal: Array, odd: Array, n: int, rng: np.random.Generator) -> Task:
    """n normal rows to learn from; as many normal and as many odd ones, where there are so many, to judge."""
    normal, odd = rng.permutation(normal), rng.permutation(odd)
    n = min(n, len(normal) // 2)
    rest = normal[n : 2 * n]
    new = np.concatenate([rest, odd[:n]])
    return Task(normal[:n], np.zeros(n, bool), new, np.arange(len(new)) >= len(rest))


def clusters(share: float, seed: int) -> Task:
    points, labels = three_clusters(200, round(600 * share / (1 - share)), random_state=seed)
    return contaminated(points[labels >= 0], points[labels < 0], share, 300, np.random.default_rng(seed))


def moons(share: float, seed: int) -> Task:
    """Two moons of 1 000 points among uniform ones that are .15 or more from all of these."""
    rng, points = np.random.default_rng(seed), two_moons(1000, 0.05, random_state=seed)[0]
    count = round(1000 * share / (1 - share))
    odd = rng.uniform([-1.5, -1.0], [2.5, 1.5], (6 * count + 60, 2))
    far = np.sqrt(((odd[:, None] - points) ** 2).sum(axis=2)).min(axis=1) > 0.15
    return contaminated(points, odd[far][:count], share, 500, rng)


@cache
def real(name: str) -> tuple[Array, Array]:
    if name == "digits":
        return load_digits(return_X_y=True)
    if name == "cancer":
        points, benign = load_breast_cancer(return_X_y=True)
        return points, 1 - benign
    if name == "wine":
        return load_wine(return_X_y=True)
    if name == "tested":  # the images that MNIST keeps for tests: are they of a digit of five or above?
        data = load_real("mnist")
        return data["x_test"].reshape(len(data["x_test"]), -1), data["y_test"] // 5
    data = load_real(name)
    if name == "mnist":
        return data["x_train"].reshape(len(data["x_train"]), -1), data["y_train"]
    return data["X"], data["y"]


def class_among(
    name: str,
    normal: int,
    odd: int | None,
    share: float | None,
    *,
    columns: slice = slice(None),
    scaled: bool = False,
) -> Make:
    """Rows of one class and of another; None for all others, and for a share: learn from the first alone."""

    def make(seed: int) -> Task:
        points, labels = real(name)
        points = points[:, columns].astype(np.float64) if name not in ("mnist", "tested") else points
        points = StandardScaler().fit_transform(points) if scaled else points
        inside, outside = labels == normal, labels != normal if odd is None else labels == odd
        rng = np.random.default_rng(seed)
        sides = points[inside], points[outside]
        task = clean(*sides, ROWS[name], rng) if share is None else contaminated(*sides, share, ROWS[name], rng)
        return Task(task.learned.astype(np.float64), task.odd, task.new.astype(np.float64), task.odd_new)

    return make


def shuffled(points: Array, n: int, seed: int) -> Task:
    """Rows of a table, and rows each of whose columns is another row's: none has that combination."""
    rng, points = np.random.default_rng(seed), points.astype(np.float64)
    odd = np.column_stack([rng.permutation(column)[:600] for column in points.T])
    return contaminated(points, odd, 0.05, n, rng)


def marrow(columns: int, seed: int) -> Task:
    """Cells of the bone marrow, and impossible ones."""
    return shuffled(load_real("marrow_pca")["X"][:, :columns], ROWS["marrow"], seed)


def boone(seed: int) -> Task:
    """Events of MiniBooNE, and impossible ones."""
    data = load_real("miniboone_part")
    return shuffled(np.concatenate([data["X_val"], data["X_test"]]), ROWS["boone"], seed)


def drawn(make: Callable[..., tuple[Array, Array]], seed: int) -> Task:
    """Points of a generator of scikit-learn, and as many as a twentieth of them uniform in the box around them."""
    points, rng = make(2000, noise=0.05, random_state=seed)[0], np.random.default_rng(seed)
    return contaminated(
        points, rng.uniform(points.min(axis=0), points.max(axis=0), (400, points.shape[1])), 0.05, 1000, rng
    )


SYNTHETIC: dict[str, Make] = {
    **{f"three clusters, {100 * s:g} % uniform": lambda seed, s=s: clusters(s, seed) for s in (0.02, 0.05, 0.1, 0.2)},
    **{f"two moons, {100 * s:g} % uniform": lambda seed, s=s: moons(s, seed) for s in (0.05, 0.2)},
}
TEN: dict[str, list[Make]] = {
    "MNIST, one digit (mean of ten)": [class_among("mnist", k, None, None) for k in range(10)],
    "MNIST, one digit, 5 % others (mean of ten)": [class_among("mnist", k, None, 0.05) for k in range(10)],
    "digits 8 × 8, one digit (mean of ten)": [class_among("digits", k, None, None) for k in range(10)],
    "digits 8 × 8, one digit, 10 % others (mean of ten)": [class_among("digits", k, None, 0.1) for k in range(10)],
}
REAL: dict[str, Make] = {
    "pulsars, raw columns, 9 %": class_among("htru2", 0, 1, 0.092),
    "pulsars, standardised, 9 %": class_among("htru2", 0, 1, 0.092, scaled=True),
    "covtype 2, 2 % of class 4, 10 columns": class_among("covtype", 2, 4, 0.02, columns=slice(10)),
    "covtype 2, 2 % of class 5, 10 columns": class_among("covtype", 2, 5, 0.02, columns=slice(10)),
    "covtype 2, 2 % of class 6, 10 columns": class_among("covtype", 2, 6, 0.02, columns=slice(10)),
    "covtype 2, 2 % of class 4, 54 columns": class_among("covtype", 2, 4, 0.02),
    "no skin, 5 % skin": class_among("skin", 0, 1, 0.05),
    "no skin, 20 % skin": class_among("skin", 0, 1, 0.2),
    "no skin alone, then skin": class_among("skin", 0, 1, None),
    "benign, 10 % malignant": class_among("cancer", 0, 1, 0.1),
    "benign alone, then malignant": class_among("cancer", 0, 1, None),
    "bone marrow, 20 components, 5 % shuffled": lambda seed: marrow(20, seed),
    "bone marrow, 50 components, 5 % shuffled": lambda seed: marrow(50, seed),
}
# On these nothing was chosen, and they were looked at once.
FRESH: dict[str, list[Make]] = {
    "wine, a class, 10 % others (mean of three)": [class_among("wine", k, None, 0.1) for k in range(3)],
    "pulsars, 5 % other candidates": [class_among("htru2", 1, 0, 0.05)],
    "skin, 5 % other colours": [class_among("skin", 1, 0, 0.05)],
    "malignant, 10 % benign": [class_among("cancer", 1, 0, 0.1)],
    "covtype 3, 2 % of class 6, 10 columns": [class_among("covtype", 3, 6, 0.02, columns=slice(10))],
    "covtype 7, 2 % of class 5, 10 columns": [class_among("covtype", 7, 5, 0.02, columns=slice(10))],
    "covtype 7, 2 % of class 1, 54 columns": [class_among("covtype", 7, 1, 0.02)],
    "MNIST's test images, 0 to 4, 5 % above": [class_among("tested", 0, 1, 0.05)],
    "MiniBooNE, 43 columns, 5 % shuffled": [boone],
    "S-curve, 5 % uniform": [lambda seed: drawn(make_s_curve, seed)],
    "two circles, 5 % uniform": [lambda seed: drawn(make_circles, seed)],
}
