"""What products cost with a bandwidth for each column, with kernels on columns and with categories.

    python benchmarks/columns.py            # n = 20 000, a minute on two cores
    python benchmarks/columns.py --quick    # n = 4 000

Every kernel is multiplied with four columns; the time is the best of five. ``--covtype`` adds the accuracy of support
vectors on a part of covtype (MERCER_DATA), whose wilderness areas and soils are categories. Writes columns.md to
benchmarks/results, or to --output.
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

from mercer import Categories, Gaussian, Laplacian, Matern, Mixed, get_config
from mercer.datasets import data_folder

RESULTS = Path(__file__).parent / "results"
FEATURES = (2, 4, 10, 30)
REPEATS = 5


def kernels(d: int, lengths: np.ndarray[Any, Any]) -> dict[str, tuple[Any, Any]]:
    """Pairs to compare: one length for all columns, and what this page is about."""
    one = float(np.exp(np.log(lengths).mean()))
    half = list(range(d // 2))
    return {
        "Gaussian, a length for each column": (Gaussian(one), Gaussian(lengths)),
        "Laplacian, a length for each column": (Laplacian(one), Laplacian(lengths)),
        "Matérn 3/2, a length for each column": (Matern(1.5, one), Matern(1.5, lengths)),
        "Gaussian on half of the columns": (Gaussian(one), Gaussian(one).on(half)),
        "product of two on halves": (
            Gaussian(one) * Laplacian(one),
            Gaussian(lengths[half]).on(half) * Categories(1.0).on(list(range(d // 2, d))),
        ),
    }


def best_times(pair: tuple[Any, Any], X: Any, V: Any) -> list[float]:
    """The best time of a product with either kernel, taken in turn so that a busy machine disturbs both."""
    found = [np.inf, np.inf]
    for repeat in range(REPEATS + 1):
        for which, kernel in enumerate(pair):
            matrix = kernel.matrix(X)
            start = time.perf_counter()
            matrix.multiply(V)
            if repeat:
                found[which] = min(found[which], time.perf_counter() - start)
    return found


def product_table(n: int) -> list[str]:
    lines = ["| kernel | dtype | d | one length [ms] | this [ms] | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    rng = np.random.default_rng(0)
    for d in FEATURES:
        lengths = np.sqrt(d) * rng.uniform(1, 2, d)
        for dtype in ("float64", "float32"):
            X = rng.normal(size=(n, d))
            X[:, d // 2 :] = X[:, d // 2 :].round(1)
            V = rng.normal(size=(n, 4)).astype(dtype)
            for name, pair in kernels(d, lengths).items():
                one, this = best_times(pair, X.astype(dtype), V)
                lines.append(f"| {name} | {dtype} | {d} | {1e3 * one:.0f} | {1e3 * this:.0f} | {this / one:.2f} |")
    return lines


def covtype_table(n: int) -> list[str]:
    """Accuracy of support vectors on rows that were not seen, for a few kernels, the best of three penalties."""
    import pandas
    from sklearn.svm import SVC

    data = np.load(data_folder() / "covtype.npz")
    rows = np.random.default_rng(0).permutation(len(data["y"]))[: 2 * n]
    X, y = data["X"][rows].astype(np.float64), data["y"][rows]
    table = pandas.DataFrame(X[:, :10], columns=[f"quantity {k}" for k in range(10)])
    table["wilderness"] = [f"area {k}" for k in X[:, 10:14].argmax(1)]
    table["soil"] = [f"soil {k}" for k in X[:, 14:].argmax(1)]
    tries: dict[str, tuple[Any, Any]] = {
        "54 numbers, `Gaussian()`": (X, Gaussian()),
        '10 quantities, `Gaussian("columns")`': (X[:, :10], Gaussian("columns")),
        '54 numbers, `Gaussian("columns")`': (X, Gaussian("columns")),
        "data frame, `Mixed()`": (table, Mixed()),
        'data frame, `Gaussian("columns").on(…) + Categories().on(…)`': (
            table,
            Gaussian("columns").on(list(table.columns[:10])) + Categories().on(["wilderness", "soil"]),
        ),
    }
    lines = [f"| covtype, {n} rows, {n} others | accuracy |", "| --- | --- |"]
    for name, (points, kernel) in tries.items():
        fixed = kernel.resolve(points[:n])
        seen, new = fixed(points[:n]), fixed(points[n:], points[:n])
        scores = [SVC(C=C, kernel="precomputed").fit(seen, y[:n]).score(new, y[n:]) for C in (1, 10, 100)]
        lines.append(f"| {name} | {max(scores):.3f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--covtype", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    n = 4000 if given.quick else 20_000
    lines = ["# Columns of several kinds", ""]
    flags = "".join(f" --{name}" for name in ("quick", "covtype") if getattr(given, name))
    lines.append(
        f"`python benchmarks/columns.py{flags}` on {platform.machine()}, {get_config().threads} threads, n = {n}."
    )
    lines += ["", *product_table(n)]
    if given.covtype:
        lines += ["", *covtype_table(1500 if given.quick else 3000)]
    given.output.mkdir(exist_ok=True)
    (given.output / "columns.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
