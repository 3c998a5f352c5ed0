"""What a kink of the regularisation path costs: Cholesky updates beside a new factor at every kink.

Both follow the same path of the same problem in the same process with the same code for columns, gradients and the next
kink; only the factor differs. Times are medians over the kinks at about so many nodes; the two runs alternate, so that
a busy moment of the machine touches both.

    python benchmarks/quadrature_path.py
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.stats import qmc

from mercer import Gaussian, GramOperator
from mercer.problems import Discrepancy
from mercer.solvers import Goal, Iteration, Run
from mercer.solvers.measure.regularisation_path import PathLimits, follow

RESULTS = Path(__file__).parent / "results" / "quadrature_path.md"
WIDTH = 0.06  # of the number of nodes: the window a median is taken over


def halton_problem(sigma: float, n: int = 2016) -> Discrepancy:
    points = qmc.Halton(2, scramble=False).random(n + 1)[1:] * 2 - 1
    return Discrepancy(GramOperator(Gaussian(sigma=sigma) ** 2, points), np.full(n, 1 / n), np.ones(n))


def seconds_by_nodes(problem: Discrepancy, most: int, *, refactor: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and seconds of every kink."""
    stamps: list[float] = []
    nodes: list[int] = []

    def note(step: Iteration) -> None:
        stamps.append(time.perf_counter())
        nodes.append(step.n_nodes)

    follow(problem, PathLimits(n_nodes=most), refactor=refactor, run=Run(Goal(0.0), callbacks=(note,)))
    return np.array(nodes[:-1]), np.diff(stamps)


def medians(problem: Discrepancy, counts: list[int], repeats: int) -> list[tuple[int, float, float]]:
    most = int(max(counts) * (1 + WIDTH)) + 1
    runs = {True: [], False: []}
    for _ in range(repeats):
        for refactor in (False, True):
            runs[refactor].append(seconds_by_nodes(problem, most, refactor=refactor))
    rows = []
    for count in counts:
        times = {}
        for refactor, parts in runs.items():
            inside = [s[np.abs(n - count) <= max(2, WIDTH * count)] for n, s in parts]
            times[refactor] = float(np.median(np.concatenate(inside)))
        rows.append((count, times[False], times[True]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    follow(halton_problem(0.4, 200), PathLimits(n_nodes=20))  # compile
    follow(halton_problem(0.4, 200), PathLimits(n_nodes=20), refactor=True)
    lines = [
        "# A kink of the regularisation path",
        "",
        "Median time of a kink, N = 2016 Halton points, float64, two cores: rows of the Cholesky factor updated, and",
        "a new factor at each kink with the same code for everything else (`benchmarks/quadrature_path.py`).",
        "",
        "| kernel | nodes | updated, ms | new factor, ms | ratio |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for sigma, counts in ((0.4, [40, 80, 160, 300]), (0.2, [160, 300, 450, 600])):
        for count, updated, new in medians(halton_problem(sigma), counts, options.repeats):
            lines.append(
                f"| Gaussian({sigma}) | {count} | {1e3 * updated:.3f} | {1e3 * new:.3f} | {new / updated:.1f} |"
            )
            print(lines[-1], flush=True)
    lines += [
        "",
        "The rest of a kink is the gradient: 4 N n flops on 8 N n bytes, which is what it costs to read the n active",
        "columns once (both sums are formed in one reading). An update takes n² to 3 n² flops, a new factor n³/3.",
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
