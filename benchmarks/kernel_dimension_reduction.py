"""Kernel dimension reduction beside sliced inverse regression and SAVE: angles, numbers of directions, cost.

    python benchmarks/kernel_dimension_reduction.py                      # quick: some minutes on two cores
    python benchmarks/kernel_dimension_reduction.py --samples 100 --jobs 16 --sizes 1000 5000 20000 100000 --write

Samples with known directions (``benchmarks/dimension_reduction_baselines.py``), all estimators at their defaults and
told how many there are. An angle is the largest between the subspace found and the true one, in degrees; a direction
at random in ten dimensions is some 72 away.

    angles      the mean over the samples, and the standard deviation
    numbers     how often ``n_components="test"`` says how many directions there are, at its default level of 0.05
    digits      five nearest neighbours among scikit-learn's digits after few directions, beside PCA and LDA
    landmarks   angle and seconds at n = 2000, by the number of landmarks
    sizes       seconds and memory of a fit with its four starts at the peak, beyond the data,
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from dimension_reduction_baselines import EXAMPLES, Array, sliced_average_variance, sliced_inverse_regression
from peak_memory import PeakMemory
from quadrature_field_page import machine
from result_page import write_table
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from mercer import KernelDimensionReduction, config_context

RESULTS = Path(__file__).parent / "results" / "kernel_dimension_reduction.md"
POLYNOMIAL = 5  # the example whose size grows


def kdr(X: Array, y: Array, count: int, **options: Any) -> Array:
    """The directions of KernelDimensionReduction."""
    return KernelDimensionReduction(count, random_state=0, **options).fit(X, y).subspace_


WAYS = {
    "SIR": sliced_inverse_regression,
    "SAVE": sliced_average_variance,
    "gKDR": lambda X, y, count: kdr(X, y, count, method="gkdr"),
    "KDR": kdr,
}


def degrees(found: Array, truth: Array) -> float:
    """The largest angle between two subspaces."""
    return float(np.degrees(subspace_angles(found, truth).max()))


def angles_of(task: tuple[int, int]) -> list[float]:
    """The angle of every way on one sample of an example."""
    which, seed = task
    example = EXAMPLES[which]
    X, y = example.draw(np.random.default_rng([which, seed]), example.n)
    with config_context(n_threads=1):
        return [degrees(way(X, y, example.count), example.basis) for way in WAYS.values()]


def number_of(task: tuple[int, int]) -> int:
    """How many directions the test says there are in one sample; zero where it sees no dependence."""
    which, seed = task
    example = EXAMPLES[which]
    X, y = example.draw(np.random.default_rng([which, seed, 1]), example.n)
    with config_context(n_threads=1):
        model = KernelDimensionReduction("test", n_restarts=1, random_state=0)
        tests = model.fit(X, y).dimension_tests_
    return tests[-1].n_components


def angle_table(run: Any, samples: int) -> list[str]:
    """Mean and standard deviation of the angles, a row for each example."""
    tasks = [(which, seed) for which in range(len(EXAMPLES)) for seed in range(samples)]
    found = np.reshape(list(run(angles_of, tasks)), (len(EXAMPLES), samples, len(WAYS)))
    lines = [f"| example | n | d | directions | {' | '.join(WAYS)} |", "| --- " * (4 + len(WAYS)) + "|"]
    for example, angles in zip(EXAMPLES, found, strict=True):
        best = int(np.argmin(angles.mean(axis=0)))
        cells = [
            f"{mean:.1f} ({spread:.1f})" for mean, spread in zip(angles.mean(axis=0), angles.std(axis=0), strict=True)
        ]
        cells[best] = f"**{cells[best]}**"
        head = f"{example.title} | {example.n} | {len(example.basis)} | {example.count}"
        lines.append(f"| {head} | {' | '.join(cells)} |")
    return lines


def number_table(run: Any, samples: int) -> list[str]:
    """How often the test says each number of directions."""
    tasks = [(which, seed) for which in range(len(EXAMPLES)) for seed in range(samples)]
    found = np.reshape(list(run(number_of, tasks)), (len(EXAMPLES), samples))
    lines = ["| example | n | directions | right | fewer | more |", "| --- " * 6 + "|"]
    for example, numbers in zip(EXAMPLES, found, strict=True):
        shares = [np.mean(numbers == example.count), np.mean(numbers < example.count), np.mean(numbers > example.count)]
        head = f"{example.title} | {example.n} | {example.count}"
        lines.append(f"| {head} | {' | '.join(f'{share:.2f}' for share in shares)} |")
    return lines


def landmark_table(samples: int) -> list[str]:
    """Angle and seconds by the number of landmarks."""
    lines = ["| landmarks | angle, two directions | seconds |", "| --- | --- | --- |"]
    example = EXAMPLES[POLYNOMIAL]
    for count in (25, 50, 100, 200, 400, 800):
        angles, seconds = [], []
        for seed in range(samples):
            X, y = example.draw(np.random.default_rng(seed), 2000)
            began = time.perf_counter()
            angles.append(degrees(kdr(X, y, example.count, landmarks=count), example.basis))
            seconds.append(time.perf_counter() - began)
        lines.append(f"| {count} | {np.mean(angles):.2f} ({np.std(angles):.2f}) | {min(seconds):.2f} |")
    return lines


def size_table(sizes: Sequence[int]) -> list[str]:
    """Seconds, memory and angle as the sample grows."""
    lines = ["| n | seconds KDR | seconds gKDR | MB | angle KDR | angle gKDR |", "| --- " * 6 + "|"]
    example = EXAMPLES[POLYNOMIAL]
    kdr(*example.draw(np.random.default_rng(0), 6000), example.count)  # loads what is compiled
    for n in sizes:
        X, y = example.draw(np.random.default_rng(0), n)
        seconds, angles, megabytes = [], [], 0.0
        for method in ("kdr", "gkdr"):
            with PeakMemory() as memory:
                began = time.perf_counter()
                angles.append(degrees(kdr(X, y, example.count, method=method), example.basis))
                seconds.append(time.perf_counter() - began)
            megabytes = max(megabytes, memory.peak / 1e6)
        cells = [
            f"{n}",
            *(f"{value:.1f}" for value in seconds),
            f"{megabytes:.0f}",
            *(f"{value:.2f}" for value in angles),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def digit_table(splits: int) -> list[str]:
    """The share of right answers of five nearest neighbours among the digits, after few directions of 64 columns."""
    X, y = load_digits(return_X_y=True)
    lines = ["| directions | PCA | LDA | KDR |", "| --- | --- | --- | --- |"]
    for count in (1, 2, 4, 8):
        ways = (PCA(count), LinearDiscriminantAnalysis(n_components=count), KernelDimensionReduction(count, tol=1e-4))
        scores = np.zeros((splits, len(ways)))
        for split in range(splits):
            order = np.random.default_rng(split).permutation(y.size)
            train, test = order[:1000], order[1000:]
            for k, way in enumerate(ways):
                chain = make_pipeline(clone(way), KNeighborsClassifier())
                scores[split, k] = chain.fit(X[train], y[train]).score(X[test], y[test])
        lines.append(f"| {count} | {' | '.join(f'{score:.3f}' for score in scores.mean(axis=0))} |")
    return lines


def main() -> None:
    """Print the tables, and write them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4, help="samples of every example")
    parser.add_argument("--jobs", type=int, default=1, help="processes for angles and numbers")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 5000], help="rows of the last table")
    parser.add_argument("--parts", nargs="*", default=["angles", "numbers", "digits", "landmarks", "sizes"])
    parser.add_argument("--write", action="store_true", help=f"write the tables to {RESULTS.name}")
    given = parser.parse_args()
    with ProcessPoolExecutor(given.jobs) as pool:
        run = pool.map if given.jobs > 1 else map
        tables = {
            "angles": lambda: angle_table(run, given.samples),
            "numbers": lambda: number_table(run, given.samples),
            "digits": lambda: digit_table(max(1, given.samples // 10)),
            "landmarks": lambda: landmark_table(max(1, given.samples // 10)),
            "sizes": lambda: size_table(given.sizes),
        }
        for name in given.parts:
            lines = tables[name]()
            options = f"--samples {given.samples} --sizes {' '.join(map(str, given.sizes))}"
            made = f"Made by `benchmarks/kernel_dimension_reduction.py {options}` on {machine()}."
            print("\n".join(lines), flush=True)
            if given.write:
                write_table(RESULTS, name, [made, "", *lines])


if __name__ == "__main__":
    main()
