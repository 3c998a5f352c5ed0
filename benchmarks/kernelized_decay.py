"""The kernelised embedding: how its constraints decay between the points, what λ does, and what a large sample costs.

    python benchmarks/kernelized_decay.py                   # the first two tables, a minute or two
    python benchmarks/kernelized_decay.py --landmarks 2000  # and the third: 20 000 points, up to so many landmarks

Writes benchmarks/results/kernelized_decay.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from peak_memory import PeakMemory
from result_page import write_table
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from mercer import KernelizedSDPEmbedding, Matern
from mercer.experiments.psd22.section4 import DOMAINS, measure_decay

RESULTS = Path(__file__).parent / "results" / "kernelized_decay.md"
SHARES = (0.3, 0.1, 0.03, 0.01, 0.001)
SIZES = {"interval": (10, 20, 40, 80, 160), "disk": (25, 50, 100, 200, 400)}


def decay_table() -> list[str]:
    lines = [
        "| domain | ν | n | h | max error | error inside | certified gap | exponent, proved |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for domain in DOMAINS:
        for nu in (1.5, 2.5):
            decay = measure_decay(domain, nu, SIZES[domain])
            rows = zip(decay.sizes, decay.fill_distances, decay.errors, decay.inner_errors, decay.gaps, strict=True)
            for n, h, error, inner, gap in rows:
                last = f"**{decay.measured:.2f}**, {decay.proved}" if n == decay.sizes[-1] else ""
                lines.append(f"| {domain} | {nu:g} | {n} | {h:.4f} | {error:.1e} | {inner:.1e} | {gap:.0e} | {last} |")
    return lines


def samples() -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    rng = np.random.default_rng(0)
    found: dict[str, tuple[np.ndarray, np.ndarray | None]] = {"square": (rng.uniform(-1, 1, (400, 2)), None)}
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        chosen = rng.permutation(len(X))[:400]
        X = X / 16 if name == "digits" else StandardScaler().fit_transform(X)
        found[name] = X[chosen], y[chosen]
    return found


def strength_table() -> list[str]:
    lines = [
        "| data | λ/σ² | rank | shares | alignment | Tr 𝔹 | mean error of b(x, x) on new points | 5-NN on new points |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, (X, y) in samples().items():
        half = len(X) // 2
        top = KernelizedSDPEmbedding(Matern(2.5)).fit(X[:half]).regularization_ / 0.1
        for share in SHARES:
            model = KernelizedSDPEmbedding(Matern(2.5), regularization=share * top).fit(X[:half])
            new = model.transform(X[half:])
            error = np.abs(np.sum(new**2, axis=1) - 1).mean()
            score = "–"
            if y is not None:
                score = f"{KNeighborsClassifier(5).fit(model.embedding_, y[:half]).score(new, y[half:]):.3f}"
            shares = ", ".join(f"{value:.2f}" for value in model.eigenvalues_[:4])
            lines.append(
                f"| {name} | {share:g} | {model.rank_} | {shares} | {model.alignment_:.4f} | {model.trace_:.1f} | "
                f"{error:.3f} | {score} |"
            )
    return lines


def one_large(m: int) -> None:
    """Fit 20 000 points by m landmarks and print a line of the table; in a process of its own, for its memory."""
    X = np.random.default_rng(0).uniform(-1, 1, (20_000, 3))
    KernelizedSDPEmbedding(landmarks=10, random_state=0).fit(X[:100])  # compile
    started = time.perf_counter()
    with warnings.catch_warnings(), PeakMemory() as memory:
        warnings.simplefilter("ignore")
        model = KernelizedSDPEmbedding(Matern(2.5, 1.0), landmarks=m, random_state=0).fit(X)
    seconds, peak = time.perf_counter() - started, memory.peak / 1e6
    gap = model.certificate_.relative_gap
    error = np.abs(np.sum(model.embedding_**2, axis=1) - 1).max()
    print(f"| {m} | {seconds:.1f} | {peak:.0f} | {8 * m * m / 1e6:.0f} | {model.n_iter_} | {gap:.0e} | {error:.1e} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--landmarks", type=int, default=0, help="the most landmarks of the third table; 0 leaves it")
    parser.add_argument("--one", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_large(options.one)
        return
    write_table(RESULTS, "decay", decay_table())
    write_table(RESULTS, "strength", strength_table())
    if options.landmarks:
        lines = [
            "| landmarks m | seconds | peak MB beyond X | one m × m matrix, MB | steps | certified gap | max error |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for m in (250, 500, 1000, 2000):
            if m <= options.landmarks:
                command = [sys.executable, __file__, "--one", str(m)]
                lines.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        write_table(RESULTS, "landmarks", lines)


if __name__ == "__main__":
    main()
