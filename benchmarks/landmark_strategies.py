"""The survey's landmark selection measured: six strategies behind one interface, on five data sets.

    MERCER_DATA=... python benchmarks/landmark_strategies.py               # small samples, some minutes on two cores
    MERCER_DATA=... python benchmarks/landmark_strategies.py --full        # large ones, for a machine of many cores
    MERCER_DATA=... python benchmarks/landmark_strategies.py --data htru2  # one data set; the tables of the others stay

For every choice of m landmarks with weights, means over the seeds:

    trace      the share of tr K that the Nyström completion K̃ from the landmarks leaves out
    norm       ‖K - K̃‖ / ‖K‖ in operator norm, by Lanczos
    λ, span    the largest relative error of the ten leading eigenvalues, of K̃ beside K: what the span is worth
    λ, measure the same of W^½ K_II W^½, of the weighted landmarks alone: what the weights are worth
    MMD        between the weighted landmarks and the sample
    embedding  the distance between SDPEmbedding through the landmarks and that of all points, in the stationary measure
               after the best rotation, as a share of its size
    loss       how far the objective of the extension on all points falls short of the optimum, a share of it
    seconds    to choose

How QuadratureSparsifier compares with peers from other packages is measured in quadrature_field.py.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from quadrature_embedding import Sample, fitted, loss, rotated_error
from quadrature_field_page import machine
from result_page import write_table
from scipy.sparse.linalg import LinearOperator, eigsh

from mercer import Gaussian, GramOperator, Landmarks, QuadratureSparsifier, mmd, nystrom
from mercer.datasets import data_folder, load_real, standardized, swiss_roll
from mercer.datasets.tables import htru2, mnist_pair
from mercer.landmarks import STRATEGIES
from mercer.linalg import leading_eigenpairs

Array = np.ndarray[Any, Any]
RESULTS = Path(__file__).parent / "results" / "landmark_strategies.md"
COLUMNS = ("trace", "norm", "λ, span", "λ, measure", "MMD", "embedding", "loss", "seconds")
QUADRATURE = "quadrature"
LEADING = 10


# --- data -------------------------------------------------------------------------------------------------------


def pulsars(full: bool) -> Sample:
    return Sample("htru2", "HTRU2, pulsar candidates", htru2(12_000 if full else 2000)[0], Gaussian(sigma=5.0))


def digits(full: bool) -> Sample:
    return Sample("mnist", "MNIST, digits 1 and 4", mnist_pair(n=8000 if full else 1500)[0], Gaussian(sigma=10.0))


def forest(full: bool) -> Sample:
    data = load_real("covtype")["X"]
    rows = np.random.default_rng(0).choice(len(data), 20_000 if full else 2000, replace=False)
    X = standardized(np.asarray(data[np.sort(rows), :10], np.float64))
    return Sample("covtype", "Covertype, ten measured columns", X, Gaussian("median").resolve(X))


def roll(full: bool) -> Sample:
    X = swiss_roll(10_000 if full else 1500)[0]
    return Sample("roll", "Swiss roll", X, Gaussian(sigma=0.6))


def clusters(full: bool) -> Sample:
    from mercer.datasets import three_clusters

    X, _ = three_clusters(*((3000, 300) if full else (450, 45)))
    return Sample("clusters", "Three clusters with outliers", X, Gaussian(sigma=1.2))


SAMPLES: dict[str, Callable[[bool], Sample]] = {
    "clusters": clusters,
    "roll": roll,
    "htru2": pulsars,
    "mnist": digits,
    "covtype": forest,
}


# --- measures ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Whole:
    """What is known of the whole sample."""

    sample: Sample
    gram: GramOperator
    leading: Array
    embedding: Any

    @classmethod
    def of(cls, sample: Sample) -> Whole:
        gram = GramOperator(sample.kernel, sample.X)
        values, _ = leading_eigenpairs(gram, LEADING, rng=np.random.default_rng(0))
        return cls(sample, gram, values, fitted(sample.kernel, sample.X)[0])


def chosen(strategy: str, sample: Sample, m: int, seed: int) -> tuple[Array, Array, float]:
    """Rows, weights that sum to the number of points, and seconds."""
    began = time.perf_counter()
    if strategy == QUADRATURE:
        chooser: Any = QuadratureSparsifier(sample.kernel, n_nodes=m)
    else:
        chooser = Landmarks(m, strategy=strategy, kernel=sample.kernel, random_state=seed)
    chooser.fit(sample.X)
    seconds = time.perf_counter() - began
    return chooser.indices_, chooser.weights_ * len(sample.X) / chooser.weights_.sum(), seconds


def measured(whole: Whole, strategy: str, m: int, seed: int) -> dict[str, float]:
    sample, n = whole.sample, len(whole.sample.X)
    rows, weights, seconds = chosen(strategy, sample, m, seed)
    low = nystrom(whole.gram, rows)
    rest = LinearOperator((n, n), matvec=lambda v: whole.gram @ v.ravel() - low @ v.ravel(), dtype=np.float64)
    span = np.sort(np.linalg.eigvalsh(low.factor.T @ low.factor))[::-1][:LEADING]
    root = np.sqrt(weights)
    measure = np.sort(np.linalg.eigvalsh(root[:, None] * whole.gram.block(rows, rows) * root))[::-1][:LEADING]
    model, _ = fitted(sample.kernel, sample.X, (rows, weights))
    start = np.random.default_rng(0).standard_normal(n)
    return {
        "trace": float(low.residual_diagonal.sum() / whole.gram.diagonal().sum()),
        "norm": float(eigsh(rest, 1, which="LA", tol=1e-2, v0=start, return_eigenvectors=False)[0] / whole.leading[0]),
        "λ, span": _worst(span, whole.leading),
        "λ, measure": _worst(measure, whole.leading),
        "MMD": mmd(sample.X, sample.X[rows], sample.kernel, y_weights=weights / n, squared=False),
        "embedding": rotated_error(whole.embedding, model),
        "loss": loss(sample, whole.embedding, model),
        "seconds": seconds,
    }


def _worst(values: Array, exact: Array) -> float:
    padded = np.pad(values, (0, LEADING - len(values)))
    return float(np.max(np.abs(padded - exact) / exact))


# --- page -------------------------------------------------------------------------------------------------------


def head(sample: Sample, seeds: int) -> list[str]:
    about = f"N = {len(sample.X)}, {sample.X.shape[1]} columns, σ = {sample.kernel.sigma:.4g}"
    titles = "| m | strategy | " + " | ".join(COLUMNS) + " |"
    return [f"### {sample.title}", "", f"{about}; {seeds} seeds; {machine()}.", "", titles, "|" + " --- |" * 10]


def row(whole: Whole, strategy: str, m: int, seeds: int) -> str:
    tries = 1 if strategy in ("greedy", QUADRATURE) else seeds
    found = [measured(whole, strategy, m, seed) for seed in range(tries)]
    means = [float(np.mean([each[name] for each in found])) for name in COLUMNS]
    line = f"| {m} | {strategy} | " + " | ".join(f"{value:.2g}" for value in means) + " |"
    print(whole.sample.name, line, flush=True)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=tuple(SAMPLES), action="append")
    parser.add_argument("--full", action="store_true", help="large samples and more landmarks")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    counts = (50, 200, 500) if options.full else (30, 100)
    for name in options.data or list(SAMPLES):
        if name not in ("clusters", "roll") and data_folder() is None:
            print(f"{name} is left out: MERCER_DATA names no folder with real data.")
            continue
        sample = SAMPLES[name](options.full)
        Landmarks(5, kernel=sample.kernel).fit(sample.X[:60])  # compiled code is loaded, as in a session that has run
        whole, lines = Whole.of(sample), head(sample, options.seeds)
        title = f"{name}, {'large' if options.full else 'small'}"
        for m in counts:
            lines += [row(whole, strategy, m, options.seeds) for strategy in (*STRATEGIES, QUADRATURE)]
            write_table(options.output, title, lines)  # what there is so far


if __name__ == "__main__":
    main()
