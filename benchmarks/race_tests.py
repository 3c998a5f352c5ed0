"""Tests of two samples and of independence against those that others offer: power and seconds on the same data.

    python -m benchmarks race tests      # writes benchmarks/results/race_tests.md

The peers are those of ``testing_peers.py``: hyppo's statistics, whose permutations are made there in one matrix product
and not in hyppo's loop, and classifiers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from race_setting import machine, one_thread
from result_page import write_table
from testing_peers import INDEPENDENCE_PEERS, RESAMPLES, TWO_SAMPLE_PEERS

import mercer

RESULT = Path(__file__).parent / "results" / "race_tests.md"
LEVEL, REPEATS, SIZES = 0.05, 40, (100, 400)
LARGE = 2000  # rows of a single data set, for the seconds alone
Array = np.ndarray[Any, Any]
Test = Callable[[Array, Array, np.random.Generator], float]

OURS: dict[str, dict[str, Test]] = {
    "two samples": {
        "**mmd_test**, no arguments": lambda X, Y, g: mercer.mmd_test(X, Y, n_resamples=RESAMPLES, rng=g).pvalue,
        "**mmd_test**, one Gaussian": lambda X, Y, g: (
            mercer.mmd_test(X, Y, mercer.Gaussian(), n_resamples=RESAMPLES, rng=g).pvalue
        ),
        "**mmd_test**, landmarks": lambda X, Y, g: (
            mercer.mmd_test(X, Y, compress="landmarks", n_resamples=RESAMPLES, rng=g).pvalue
        ),
    },
    "independence": {
        "**hsic_test**, no arguments": lambda X, Y, g: mercer.hsic_test(X, Y, n_resamples=RESAMPLES, rng=g).pvalue,
        "**hsic_test**, one Gaussian each": lambda X, Y, g: (
            mercer.hsic_test(X, Y, mercer.Gaussian(), mercer.Gaussian(), n_resamples=RESAMPLES, rng=g).pvalue
        ),
        "**hsic_test**, landmarks": lambda X, Y, g: (
            mercer.hsic_test(X, Y, compress="landmarks", n_resamples=RESAMPLES, rng=g).pvalue
        ),
    },
}


def scaled(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Normal samples in five columns, the second wider in one of them."""
    X, Y = rng.standard_normal((2, n, 5))
    Y[:, 0] *= 1 + 6 / np.sqrt(n)
    return X, Y


def ring(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points on a circle with noise: no correlation, and dependence all the same."""
    angle = rng.uniform(0, 2 * np.pi, n)
    off = 0.045 * np.sqrt(n) * rng.standard_normal((2, n, 1))
    return np.cos(angle)[:, None] + off[0], np.sin(angle)[:, None] + off[1]


SAMPLES = {"two samples": scaled, "independence": ring}
PEERS = {"two samples": TWO_SAMPLE_PEERS, "independence": INDEPENDENCE_PEERS}


def power(test: Test, problem: str, n: int) -> tuple[float, float]:
    """How often a test rejects, and its seconds of a processor."""
    pairs = [SAMPLES[problem](n, np.random.default_rng([n, k])) for k in range(REPEATS)]
    test(*pairs[0], np.random.default_rng(0))  # compiles
    began = time.process_time()
    rejected = [test(X, Y, np.random.default_rng(k)) <= LEVEL for k, (X, Y) in enumerate(pairs)]
    return float(np.mean(rejected)), (time.process_time() - began) / REPEATS


def seconds_of_one(test: Test, problem: str) -> float:
    X, Y = SAMPLES[problem](LARGE, np.random.default_rng(1))
    began = time.process_time()
    test(X, Y, np.random.default_rng(0))
    return time.process_time() - began


def main() -> None:
    heads = " | ".join(f"power, n = {n} | s" for n in SIZES)
    table = [f"| problem | test | {heads} | s, n = {LARGE} |", "| --- | --- |" + " ---: |" * (2 * len(SIZES) + 1)]
    with one_thread():
        for problem, own in OURS.items():
            for name, test in {**own, **PEERS[problem]}.items():
                cells = [f"{share:.2f} | {seconds:.2g}" for share, seconds in (power(test, problem, n) for n in SIZES)]
                table.append(f"| {problem} | {name} | {' | '.join(cells)} | {seconds_of_one(test, problem):.2g} |")
                print(table[-1], flush=True)
    write_table(RESULT, "table", [machine("numpy", "scipy", "scikit-learn"), "", *table])


if __name__ == "__main__":
    main()
