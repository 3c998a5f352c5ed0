"""Supervised projections: nearest neighbours behind them, their agreement with scikit-learn, and cost as n grows.

    MERCER_DATA=... python benchmarks/discriminant.py                             # two minutes on two cores
    MERCER_DATA=... python benchmarks/discriminant.py --part projections --mnist 10000 --repeats 3 --write
    MERCER_DATA=... python benchmarks/discriminant.py --part scale --sizes 5000 20000 50000 --write
    MERCER_DATA=... python benchmarks/discriminant.py --part corners --write

projections  five nearest neighbours in the projected space, share of rows held out that are put into the right class;
             the classifier of the projection itself beside it, and seconds of the fit. Data sets: digits (40 % held
             out), MNIST (10 000 held out), MNIST with 200 rows for training, which is wide (784 columns), and 300 rows
             of 20 000 columns, 100 of which differ by class, two thirds for training.
corners      largest relative difference to PCA and LDA of scikit-learn, on its own data sets.
scale        seconds and memory of kernel discriminants: products with the whole matrix, and landmarks. MNIST (784
             columns) and ten columns, five classes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from peak_memory import PeakMemory
from quadrature_field_page import machine
from result_page import write_table
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from mercer import FisherDiscriminant, Gaussian, RoweisDiscriminant, SupervisedPCA
from mercer.datasets import load_real

Array = np.ndarray[Any, Any]
RESULTS = Path(__file__).parent / "results" / "discriminant.md"
NCA_UP_TO = 3000  # training rows


class Split(NamedTuple):
    """A data set cut in two."""

    name: str
    X: Array
    y: Array
    new: Array
    truth: Array


def digits(seed: int) -> Split:
    """8 × 8 pixels."""
    X, y = load_digits(return_X_y=True)
    A, B, a, b = train_test_split(X / 16, y, test_size=0.4, random_state=seed, stratify=y)
    return Split("digits", A, a, B, b)


def mnist(seed: int, rows: int, name: str) -> Split:
    """28 × 28 pixels, so many rows to learn from."""
    arrays = load_real("mnist")
    X, y = arrays["x_train"], arrays["y_train"]
    chosen = np.random.default_rng(seed).permutation(len(X))[: rows + 10_000]
    X, y = np.asarray(X[chosen], float).reshape(chosen.size, -1) / 255, np.asarray(y[chosen])
    return Split(name, X[:rows], y[:rows], X[rows:], y[rows:])


def wide(seed: int) -> Split:
    """Three classes in 20 000 columns."""
    rng = np.random.default_rng(seed)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 20_000))
    X[:, :100] += rng.normal(size=(3, 100))[y]
    return Split("20 000 columns", X[:200], y[:200], X[200:], y[200:])


def ways(split: Split) -> dict[str, Any]:
    """Projections on one direction fewer than there are classes."""
    count, n = len(np.unique(split.y)) - 1, len(split.y)
    many = {"landmarks": 1000, "random_state": 0} if n > 4000 else {}
    found: dict[str, Any] = {
        "PCA (scikit-learn)": PCA(count, random_state=0),
        "LDA (scikit-learn)": LinearDiscriminantAnalysis(),
        "LDA, shrinkage auto (scikit-learn)": LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
        "NCA (scikit-learn)": NeighborhoodComponentsAnalysis(count, random_state=0, max_iter=50),
        "SupervisedPCA()": SupervisedPCA(),
        "FisherDiscriminant()": FisherDiscriminant(),
        "FisherDiscriminant(regularization='shrinkage')": FisherDiscriminant(regularization="shrinkage"),
        "FisherDiscriminant(regularization='cv')": FisherDiscriminant(regularization="cv", random_state=0),
        "RoweisDiscriminant(0.5, 0.5)": RoweisDiscriminant(0.5, 0.5),
        "RoweisDiscriminant(0.9, 0.99)": RoweisDiscriminant(0.9, 0.99),
        "RoweisDiscriminant(1, 1)": RoweisDiscriminant(1, 1),
        "SupervisedPCA(Gaussian())": SupervisedPCA(Gaussian(), **many),
        "FisherDiscriminant(Gaussian())": FisherDiscriminant(Gaussian(), **many),
        "FisherDiscriminant(Gaussian(), regularization='cv')": FisherDiscriminant(
            Gaussian(), regularization="cv", **({"random_state": 0} | many)
        ),
    }
    if n > NCA_UP_TO or split.X.shape[1] > 1000:
        found.pop("NCA (scikit-learn)")
    if split.X.shape[1] > 1000:  # d × d
        found.pop("LDA, shrinkage auto (scikit-learn)")
    return found


def projected(split: Split, model: Any) -> tuple[float, float, float]:
    """The share that neighbours get right, that the projection's own classifier does, and the seconds of the fit."""
    start = time.perf_counter()
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - start
    neighbours = KNeighborsClassifier(5).fit(model.transform(split.X), split.y)
    own = model.score(split.new, split.truth) if hasattr(model, "predict") else np.nan
    return neighbours.score(model.transform(split.new), split.truth), own, seconds


def projections(rows: int, repeats: int, say: Callable[[str], None]) -> list[str]:
    """The table of projections."""
    kinds: list[Callable[[int], Split]] = [
        digits,
        lambda seed: mnist(seed, rows, f"MNIST, {rows} rows"),
        lambda seed: mnist(seed, 200, "MNIST, 200 rows"),
        wide,
    ]
    lines = ["| data | projection | kNN | own | s |", "| --- | --- | --- | --- | --- |"]
    for kind in kinds:
        splits = [kind(seed) for seed in range(repeats)]
        for name in ways(splits[0]):
            runs = np.array([projected(split, ways(split)[name]) for split in splits])
            accuracy, own = runs[:, 0].mean(), runs[:, 1].mean()
            shown = "–" if np.isnan(own) else f"{own:.4f}"
            lines.append(f"| {splits[0].name} | `{name}` | {accuracy:.4f} | {shown} | {runs[:, 2].min():.2f} |")
            say(lines[-1])
    return lines


def difference(found: Array, expected: Array) -> str:
    """The largest difference, columns turned alike, as a part of the largest entry."""
    signs = np.sign(np.sum(found * expected, axis=0))
    return f"{np.abs(found * signs - expected).max() / np.abs(expected).max():.0e}"


def corners(say: Callable[[str], None]) -> list[str]:
    """The table of corners."""
    lines = ["| data | (0, 0) and PCA | (0, 1) and LDA | λ - 1 and LDA's ratios |", "| --- | --- | --- | --- |"]
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        pca = difference(RoweisDiscriminant(0, 0, n_components=4).fit_transform(X), PCA(4).fit_transform(X))
        model, peer = FisherDiscriminant().fit(X, y), LinearDiscriminantAnalysis().fit(X, y)
        ratios = (model.eigenvalues_ - 1) / (model.eigenvalues_ - 1).sum()
        spectrum = np.abs(ratios / peer.explained_variance_ratio_ - 1).max()
        lda = difference(model.transform(X), peer.transform(X))
        lines.append(f"| {load.__name__.removeprefix('load_')} | {pca} | {lda} | {spectrum:.0e} |")
        say(lines[-1])
    return lines


def few_columns(n: int) -> tuple[Array, Array]:
    """Five classes on a circle in two of ten columns, and one that tells odd from even."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, n)
    X = rng.normal(size=(n, 10))
    X[:, :3] += 1.5 * np.stack([np.cos(1.3 * y), np.sin(1.3 * y), y % 2], axis=1)
    return X, y


def scale(sizes: Sequence[int], most_mnist: int, say: Callable[[str], None]) -> list[str]:
    """The table of costs; MNIST, whose products take a hundred times as long, up to some number of rows."""
    lines = ["| data | n | projection | s | GB | held-out accuracy |", "| --- | --- | --- | --- | --- | --- |"]
    for n in sizes:
        X, y = few_columns(n + 10_000)
        splits = [Split("10 columns", X[:n], y[:n], X[n:], y[n:])]
        splits += [mnist(0, n, "MNIST")] if n <= most_mnist else []
        for split in splits:
            models = {
                "SupervisedPCA(Gaussian())": SupervisedPCA(Gaussian()),
                "FisherDiscriminant(Gaussian())": FisherDiscriminant(Gaussian(), random_state=0),
                "the same, landmarks=1000": FisherDiscriminant(Gaussian(), landmarks=1000, random_state=0),
            }
            for name, model in models.items():
                with PeakMemory() as peak:
                    start = time.perf_counter()
                    model.fit(split.X, split.y)
                    seconds = time.perf_counter() - start
                score = model.score(split.new[:2000], split.truth[:2000])
                cost = f"{seconds:.1f} | {peak.peak / 1e9:.2f}"
                lines.append(f"| {split.name} | {len(split.y)} | `{name}` | {cost} | {score:.4f} |")
                say(lines[-1])
    return lines


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["projections", "corners", "scale", "all"], default="all")
    parser.add_argument("--mnist", type=int, default=2000, help="rows of MNIST to learn from")
    parser.add_argument("--repeats", type=int, default=1, help="splits, of which the mean is shown")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000])
    parser.add_argument("--most-mnist", type=int, default=50_000, help="rows of MNIST in the table of costs, at most")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {RESULTS.name}")
    options = parser.parse_args()
    FisherDiscriminant(Gaussian(), landmarks=50).fit(*few_columns(600))  # compiled code is loaded
    FisherDiscriminant(Gaussian()).fit(*few_columns(600))
    parts: dict[str, tuple[Callable[[], list[str]], str]] = {
        "projections": (
            lambda: projections(options.mnist, options.repeats, print),
            f"--mnist {options.mnist} --repeats {options.repeats}",
        ),
        "corners": (lambda: corners(print), ""),
        "scale": (
            lambda: scale(options.sizes, options.most_mnist, print),
            f"--sizes {' '.join(map(str, options.sizes))} --most-mnist {options.most_mnist}",
        ),
    }
    for name in parts if options.part == "all" else [options.part]:
        run, arguments = parts[name]
        lines = run()
        if options.write:
            command = f"`benchmarks/discriminant.py --part {name} {arguments} --write`".replace("  ", " ")
            write_table(RESULTS, name, [f"Written by {command} on {machine()}.", "", *lines])


if __name__ == "__main__":
    main()
