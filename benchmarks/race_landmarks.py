"""Weighted landmarks that stand for a sample, against the ways to choose them that others have.

python -m benchmarks race landmarks      # writes benchmarks/results/race_landmarks.md
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from landmark_choices import METHODS, Unavailable, best_weights
from race_setting import machine, one_thread
from result_page import write_table

from mercer import GramOperator, datasets
from mercer.kernels import Gaussian

RESULT = Path(__file__).parent / "results" / "race_landmarks.md"
SIZES, NODES, SEEDS = (1000, 5000, 17_000), (50, 200), (0, 1, 2)
Array = np.ndarray[Any, Any]


class Judge:
    """How far measures on a few rows are from the sample's, by the squared kernel and by the kernel itself."""

    def __init__(self, kernel: Any, X: Array) -> None:
        ones = np.full(len(X), 1 / len(X))
        self._grams = {"operators": GramOperator(kernel**2, X), "functions": GramOperator(kernel, X)}
        self._means = {name: gram @ ones for name, gram in self._grams.items()}
        self._norms = {name: float(ones @ mean) for name, mean in self._means.items()}

    def distances(self, rows: Array, weights: Array) -> dict[str, float]:
        """The distances, each as a part of the length of the sample's mean."""
        found = {}
        for name, gram in self._grams.items():
            square = (
                weights @ gram.block(rows, rows) @ weights - 2 * weights @ self._means[name][rows] + self._norms[name]
            )
            found[name] = float(np.sqrt(max(square, 0.0) / self._norms[name]))
        return found

    def best(self, rows: Array) -> Array:
        """The weights of these rows that are nearest to the sample by the squared kernel."""
        gram = self._grams["operators"]
        return best_weights(gram.block(rows, rows), self._means["operators"][rows])


def one(name: str, kernel: Any, X: Array, m: int, judge: Judge) -> str:
    """A line: the median over the seeds, with the method's own weights and with the best ones on its rows."""
    method = METHODS[name]
    found = []
    for seed in SEEDS if method.random else SEEDS[:1]:
        began = time.process_time()
        try:
            assert method.choose is not None
            rows, weights = method.choose(kernel, X, m, seed)
        except (Unavailable, ImportError, AssertionError):
            return f"| {len(X)} | {m} | {name} | not installed | | | |"
        seconds = time.process_time() - began
        rows = np.asarray(rows)
        own, again = judge.distances(rows, np.asarray(weights)), judge.distances(rows, judge.best(rows))
        found.append((seconds, own["operators"], again["operators"], own["functions"]))
    shown = [f"{value:.2g}" for value in np.median(found, axis=0)]
    return f"| {len(X)} | {m} | {name} | " + " | ".join(shown) + " |"


def main() -> None:
    table = [
        "| n | landmarks | chosen by | s | distance, own weights | the same rows, best weights | MMD, own weights |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    with one_thread():
        for n in SIZES:
            X = datasets.htru2(n=n)[0]
            kernel = Gaussian("median").resolve(X)
            judge = Judge(kernel, X)
            for m in NODES:
                for name, method in METHODS.items():
                    if method.choose is not None:
                        METHODS[name].choose(kernel, X[:300], 5, 0) if "ours" in name else None
                        table.append(one(name, kernel, X, m, judge))
                        print(table[-1], flush=True)
    write_table(RESULT, "table", [machine("goodpoints", "scikit-learn"), "", *table])


if __name__ == "__main__":
    main()
