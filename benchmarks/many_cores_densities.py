"""How discrepancies, mean embeddings and densities use the cores of a machine.

    python benchmarks/many_cores_densities.py            # 1, 2, 4, 8, 16 threads; half a minute on 16 cores
    python benchmarks/many_cores_densities.py --quick    # a tenth of the points; some seconds

Prints a table: for each task the seconds at every number of threads, and how many times as fast as one thread. Each
task is a function without arguments that returns its numbers, so that :func:`scaling` can see that they are the same to
the last bit for any number of threads; `benchmarks/many_cores.py` calls :func:`tasks` and :func:`scaling`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from mercer import Gaussian, MeanEmbedding, SumOfSquaresDensity, config_context, mmd

THREADS = (1, 2, 4, 8, 16)
FEATURES, SIGMA, SHIFT = 10, 4.0, 0.1
SAMPLE, QUERIES, SUPPORT, FITTED = 20_000, 200_000, 100, 2_000
LONG = 1.0  # seconds after which a task is not timed again
ROUNDS = 3
Task = Callable[[], Any]


class Row(NamedTuple):
    """A task at a number of threads: its best seconds, and whether its numbers are those of the first line."""

    name: str
    threads: int
    seconds: float
    same: bool


def tasks(scale: float = 1.0) -> dict[str, Task]:
    """The tasks by name; ``scale`` multiplies the numbers of points."""
    rng, n, queries = np.random.default_rng(0), int(scale * SAMPLE), int(scale * QUERIES)
    X, Y = rng.standard_normal((n, FEATURES)), rng.standard_normal((n, FEATURES)) + SHIFT
    kernel, Z = Gaussian(SIGMA), rng.standard_normal((queries, FEATURES))
    model = SumOfSquaresDensity(kernel, support=SUPPORT, random_state=0).fit(rng.standard_normal((FITTED, FEATURES)))
    marginal = model.marginal([0, 1, 2])
    return {
        f"mmd, {n} + {n} points": lambda: mmd(X, Y, kernel),
        f"mmd, unbiased, {n} + {n} points": lambda: mmd(X, Y, kernel, estimator="unbiased"),
        f"mmd, linear, {n} + {n} points": lambda: mmd(X, Y, kernel, estimator="linear"),
        f"mean embedding of {n} points at {n}": lambda: MeanEmbedding(kernel, X)(Y),
        f"density at {queries} points": lambda: model.density(Z),
        f"marginal density at {queries} points": lambda: marginal.density(Z[:, :3]),
    }


def scaling(todo: dict[str, Task], threads: Iterable[int] = THREADS) -> list[Row]:
    """Every task at every number of threads, compiled before; seconds are the best of three unless one is long."""
    rows = []
    for name, task in todo.items():
        expected = np.asarray(task())
        for count in threads:
            with config_context(n_threads=count):
                seconds, same = np.inf, True
                for _ in range(ROUNDS):
                    began = time.perf_counter()
                    same = np.array_equal(np.asarray(task()), expected) and same
                    seconds = min(seconds, time.perf_counter() - began)
                    if seconds > LONG:
                        break
            rows.append(Row(name, count, seconds, same))
    return rows


def table(rows: list[Row]) -> list[str]:
    """The lines of a table in Markdown: seconds, and the gain over the first number of threads."""
    counts = sorted({row.threads for row in rows})
    lines = ["| task | " + " | ".join(f"{count} threads" for count in counts) + " | same bits |"]
    lines.append("| --- " * (len(counts) + 2) + "|")
    for name in dict.fromkeys(row.name for row in rows):
        found = {row.threads: row for row in rows if row.name == name}
        first = found[counts[0]].seconds
        cells = [f"{found[c].seconds:.3g} s (×{first / found[c].seconds:.2g})" for c in counts]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {all(row.same for row in found.values())} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the points")
    quick = parser.parse_args().quick
    print("\n".join(table(scaling(tasks(0.1 if quick else 1.0)))))


if __name__ == "__main__":
    main()
