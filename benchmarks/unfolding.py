"""What maximum variance unfolding costs as points grow, and what it keeps, beside scikit-learn's Isomap.

    python benchmarks/unfolding.py                  # n = 250, 500 and the comparison at n = 400; some minutes
    python benchmarks/unfolding.py --full           # n = 250 … 2000, landmarks of 20 000 points; an hour on two cores

Writes benchmarks/results/unfolding.md. *Share* is the part of the variance that two coordinates have: for Isomap, of
the positive eigenvalues of its doubly centred matrix. *Median* and *worst* are by what part the distance of a neighbour
pair differs in two coordinates from the one in the data; *all* is the worst in all coordinates, which the certificate
speaks of. *Order* is the rank correlation of the first coordinate with the known one along the sheet.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import PeakMemory
from result_page import exponent, write_table
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap

from mercer import MaximumVarianceUnfolding
from mercer.datasets import swiss_roll

RESULT = Path(__file__).parent / "results" / "unfolding.md"
NEIGHBOURS = 6
KINDS = ("kept", "not exceeded")
Array = np.ndarray[Any, Any]


def roll_with_a_hole(n: int) -> tuple[Array, Array]:
    """A Swiss roll from which a rectangle in the middle of the sheet is cut."""
    X, angle = swiss_roll(2 * n, random_state=1)
    low, high = np.quantile(X[:, 1], [0.35, 0.65])
    inside = (X[:, 1] > low) & (X[:, 1] < high) & (angle > 8.0) & (angle < 11.5)
    return X[~inside][:n], angle[~inside][:n]


def digits(n: int) -> tuple[Array, Array]:
    """Images of handwritten digits; nothing is known along which they lie."""
    data = load_digits().data
    chosen = np.random.default_rng(0).permutation(len(data))[:n]
    return data[chosen], np.full(n, np.nan)


DATA = {
    "Swiss roll": swiss_roll,
    "noisy Swiss roll": lambda n: swiss_roll(n, noise=0.3),
    "Swiss roll with a hole": roll_with_a_hole,
    "digits": digits,
}


def changes(pairs: Array, X: Array, Y: Array) -> Array:
    """By what part the distances of pairs differ."""
    i, j = pairs.T
    return np.abs(np.linalg.norm(Y[i] - Y[j], axis=1) / np.linalg.norm(X[i] - X[j], axis=1) - 1)


def isomap_share(model: Isomap) -> float:
    squares = model.dist_matrix_**2
    centred = squares - squares.mean(axis=0)
    values = np.linalg.eigvalsh(-0.5 * (centred - centred.mean(axis=1)[:, None]))
    return float(values[-2:].sum() / values[values > 0].sum())


def order(Y: Array, along: Array) -> str:
    return "–" if np.isnan(along).any() else f"{abs(spearmanr(Y[:, 0], along).statistic):.4f}"


def unfolded(X: Array, **options: Any) -> tuple[MaximumVarianceUnfolding, float, float]:
    with PeakMemory() as memory:
        began = time.perf_counter()
        model = MaximumVarianceUnfolding(NEIGHBOURS, connect=True, **options).fit(X)
        seconds = time.perf_counter() - began
    return model, seconds, memory.peak / 1e6


def comparison(n: int, tol: float) -> list[str]:
    lines = [
        f"n = {n}, {NEIGHBOURS} neighbours, tol = {tol:g}.",
        "",
        "| data | method | share | median | worst | all | order | certified gap | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, make in DATA.items():
        X, along = make(n)
        for kind in KINDS:
            model, seconds, _ = unfolded(X, distances=kind, tol=tol)
            flat, whole = (changes(model.pairs_, X, Y) for Y in (model.embedding_, model.coordinates_))
            lines.append(
                f"| {name} | {kind} | {model.explained_variance_ratio_[:2].sum():.4f} | {np.median(flat):.4f} | "
                f"{flat.max():.3f} | {whole.max():.4f} | {order(model.embedding_, along)} | "
                f"{model.certificate_.relative_gap:.1e} | {seconds:.1f} |"
            )
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts that it joins
            other = Isomap(n_neighbors=NEIGHBOURS).fit(X)
        seconds = time.perf_counter() - began
        flat = changes(model.pairs_, X, other.embedding_)
        lines.append(
            f"| {name} | Isomap | {isomap_share(other):.4f} | {np.median(flat):.4f} | {flat.max():.3f} | – | "
            f"{order(other.embedding_, along)} | none | {seconds:.1f} |"
        )
    return lines


def cost(sizes: list[int], tol: float) -> list[str]:
    lines = [
        f"Swiss roll, {NEIGHBOURS} neighbours, tol = {tol:g}.",
        "",
        "| distances | n | pairs | steps | s | MB | share | certified gap | violation |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in KINDS:
        times = []
        for n in sizes:
            model, seconds, megabytes = unfolded(swiss_roll(n)[0], distances=kind, tol=tol)
            times.append(seconds)
            lines.append(
                f"| {kind} | {n} | {len(model.pairs_)} | {model.n_iter_} | {seconds:.1f} | {megabytes:.0f} | "
                f"{model.explained_variance_ratio_[:2].sum():.4f} | {model.certificate_.relative_gap:.1e} | "
                f"{model.violation_:.1e} |"
            )
        lines.append(f"| {kind}, exponent of n | | | | {exponent(sizes, times)} | | | | |")
    return lines


def landmarks(n: int, counts: list[int], tol: float) -> list[str]:
    X, angle = swiss_roll(n)
    lines = [
        f"Swiss roll, n = {n}, tol = {tol:g}; the other rows are placed by their neighbours among the landmarks.",
        "",
        "| landmarks | share | order, landmarks | order, all rows | certified gap | s | MB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for count in counts:
        model, seconds, megabytes = unfolded(X, landmarks=count, tol=tol)
        chosen = model.landmarks_
        lines.append(
            f"| {count} | {model.explained_variance_ratio_[:2].sum():.4f} | "
            f"{order(model.embedding_[chosen], angle[chosen])} | {order(model.embedding_, angle)} | "
            f"{model.certificate_.relative_gap:.1e} | {seconds:.1f} | {megabytes:.0f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="n up to 2000, and landmarks of 20 000 points")
    parser.add_argument("--tol", type=float, default=1e-4, help="certified relative gap")
    parser.add_argument("--only", choices=["cost", "landmarks", "comparison"], help="one of the three tables")
    parser.add_argument("--sizes", type=int, nargs="+", help="points of the table of costs")
    options = parser.parse_args()
    sizes = options.sizes or ([250, 500, 1000, 2000] if options.full else [250, 500])
    machine = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}."
    )
    tables = {
        "comparison": lambda: comparison(1000 if options.full else 400, options.tol),
        "cost": lambda: cost(sizes, options.tol),
        "landmarks": lambda: landmarks(20_000 if options.full else 5_000, [500, 1000] if options.full else [300], 1e-3),
    }
    for name, make in tables.items():
        if options.only in (None, name):
            write_table(RESULT, name, [machine, "", *make()])


if __name__ == "__main__":
    main()
