"""What the maximum mean discrepancy of two samples costs, in seconds and memory, as they grow.

    python benchmarks/mmd_cost.py                 # n = 1 000 … 100 000; under five minutes on two cores
    python benchmarks/mmd_cost.py --quick         # n = 500, 1 000, 2 000; some seconds

Writes benchmarks/results/mmd_cost.md: two normal samples of n points each in ten dimensions, Gaussian kernel.

Beside ours the three lines most people write, with scikit-learn's ``rbf_kernel``: the matrices of X with X, of Y with Y
and of X with Y, one after the other, and their sums. Every n has a process of its own, in which the two take turns on
the same arrays. Seconds are the best of some rounds, where a round is short. Memory is the resident size above that at
the start of a call, sampled every millisecond; freed memory is handed back to the system first. The plain method is
left out where one of its matrices would take more than a gigabyte.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import PeakMemory
from result_page import exponent
from sklearn.metrics.pairwise import rbf_kernel

from mercer import Gaussian, mmd

RESULT = Path(__file__).parent / "results" / "mmd_cost.md"
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
QUICK_SIZES = (500, 1_000, 2_000)
FEATURES, SIGMA = 10, 4.0
SHIFT = 0.1  # of the mean of Y in each coordinate
LARGEST_MATRIX = 10**9  # bytes
LONG = 5.0  # seconds after which a method is not timed again
ROUNDS = 3
Array = np.ndarray[Any, Any]
Method = Callable[[Array, Array], float]


def plain_biased(X: Array, Y: Array) -> float:
    gamma = 1 / SIGMA**2
    within = rbf_kernel(X, gamma=gamma).mean() + rbf_kernel(Y, gamma=gamma).mean()
    return float(within - 2 * rbf_kernel(X, Y, gamma=gamma).mean())


def plain_unbiased(X: Array, Y: Array) -> float:
    gamma, n, m = 1 / SIGMA**2, len(X), len(Y)
    K_sum, L_sum = rbf_kernel(X, gamma=gamma).sum(), rbf_kernel(Y, gamma=gamma).sum()
    cross = rbf_kernel(X, Y, gamma=gamma).mean()
    return float((K_sum - n) / (n * (n - 1)) + (L_sum - m) / (m * (m - 1)) - 2 * cross)


def ours(estimator: Any) -> Method:
    return lambda X, Y: float(mmd(X, Y, Gaussian(SIGMA), estimator=estimator))


METHODS: dict[str, Method] = {
    "biased, ours": ours("biased"),
    "biased, rbf_kernel": plain_biased,
    "unbiased, ours": ours("unbiased"),
    "unbiased, rbf_kernel": plain_unbiased,
    "linear, ours": ours("linear"),
}


def one(n: int) -> None:
    """Time every method on samples of n points, in turns, and print what was found."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, FEATURES)), rng.standard_normal((n, FEATURES)) + SHIFT
    methods = {name: run for name, run in METHODS.items() if "rbf" not in name or 8 * n**2 <= LARGEST_MATRIX}
    for run in methods.values():
        run(X[:300], Y[:300])  # compiles, and starts the threads
    rows: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for name, run in methods.items():
            row = rows.setdefault(name, {"seconds": np.inf, "MB": 0.0})
            if row["seconds"] < LONG or np.isinf(row["seconds"]):
                with PeakMemory() as memory:
                    began = time.perf_counter()
                    row["value"] = run(X, Y)
                    seconds = time.perf_counter() - began
                row["seconds"], row["MB"] = min(row["seconds"], seconds), max(row["MB"], memory.peak / 1e6)
    print(json.dumps(rows))


def measured(n: int) -> dict[str, dict[str, float]]:
    answer = subprocess.run(
        [sys.executable, __file__, "--one", str(n)], capture_output=True, text=True, check=True, env=os.environ
    )
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def lines_of(name: str, found: dict[int, dict[str, dict[str, float]]]) -> list[str]:
    sizes = [n for n in found if name in found[n]]
    lines = []
    for n in sizes:
        row = found[n][name]
        rival = found[n].get(name.replace("ours", "rbf_kernel")) if "ours" in name else None
        ratio = f"{rival['seconds'] / row['seconds']:.1f}" if rival else ""
        lines.append(f"| {name} | {n} | {row['seconds']:.3f} | {row['MB']:.0f} | {row['value']:.6e} | {ratio} |")
    slopes = [exponent(sizes, [found[n][name][key] for n in sizes]) for key in ("seconds", "MB")]
    return [*lines, f"| {name}, exponent of n | | {slopes[0]} | {slopes[1]} | | over the last three sizes |"]


def page(found: dict[int, dict[str, dict[str, float]]]) -> str:
    table = [line for name in METHODS for line in lines_of(name, found)]
    head = [
        "# The cost of a maximum mean discrepancy",
        "",
        "Written by `benchmarks/mmd_cost.py`, whose first lines say how: two normal samples of n points each in ten",
        "dimensions, a Gaussian kernel, double precision. *Ours* makes tiles of the kernel matrix and uses them at",
        "once; *rbf_kernel* is scikit-learn's, with its three matrices of n² numbers, while one of them fits into a",
        "gigabyte. The linear estimator averages over blocks of √n rows, and is another, noisier, number. The last",
        "column is how many times as long the plain method takes on the same arrays in the same process.",
        "",
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}.",
        "",
        "| method | n | s | MB | MMD² | rbf_kernel / ours |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *table]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small samples only")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one)
        return
    RESULT.write_text(page({n: measured(n) for n in (QUICK_SIZES if options.quick else SIZES)}))


if __name__ == "__main__":
    main()
