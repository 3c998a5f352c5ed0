"""Vertex exchange under dᵀv = ϰ: the paper's rule, the second-order rule and blocks, side by side in one process.

    MERCER_DATA=... python benchmarks/quadrature_exchange.py                  # four to five minutes on two cores
    MERCER_DATA=... python benchmarks/quadrature_exchange.py --only halton    # halton, htru2 or covtype
    MERCER_DATA=... python benchmarks/quadrature_exchange.py --large          # covtype, 100 000 points: nine minutes

Writes the tables of benchmarks/results/quadrature_exchange.md (or --page); the text around them stays.

Every rule gets the same problem with the same Sω, a cache of 1 GB of its own and the same time. A column operation is a
multiple of one column of A, length N, added to the gradient: two for a single exchange, as many as weights changed for
a block. The relative gap is the Frank-Wolfe bound over the value of the measure. Compiled code is loaded beforehand.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gram_products import PeakMemory
from result_page import write_table
from scipy.stats import qmc

from mercer import Gaussian, GramOperator
from mercer.datasets import load_real
from mercer.datasets.tables import standardized
from mercer.linalg.column_cache import ColumnCache
from mercer.problems import Discrepancy
from mercer.solvers import Goal, Iteration, Solution, SparseMeasure, exchange
from mercer.solvers import Run as SolverRun

RESULT = Path(__file__).parent / "results" / "quadrature_exchange.md"
RULES = ("plain", "second-order", "block")
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
CACHE_BYTES = 10**9
Array = np.ndarray[Any, Any]


@dataclass
class Case:
    title: str
    X: Array
    sigma: float
    kappa: float
    limit: float  # seconds for each rule


def halton() -> Case:
    X = qmc.Halton(2, scramble=False).random(2017)[1:] * 2 - 1
    return Case("Halton points of the paper", X, 0.4, 0.81, 15)


def htru2() -> Case:
    X = standardized(load_real("htru2")["X"].astype(np.float64))
    return Case("HTRU2, standardised, σ = median/4", X, Gaussian().resolve(X).sigma / 4, 0.8, 45)


def covtype(n: int, limit: float) -> Case:
    X = standardized(load_real("covtype")["X"][:n, :10].astype(np.float64))
    return Case(
        "Covtype, first rows, ten quantities standardised, σ = median/2", X, Gaussian().resolve(X).sigma / 2, 0.7, limit
    )


CASES = {
    "halton": halton,
    "htru2": htru2,
    "covtype": lambda: covtype(30_000, 45),
    "large": lambda: covtype(100_000, 150),
}


@dataclass
class Run:
    rule: str
    measure: Solution[SparseMeasure]
    made: int
    peak_mb: float
    lines: list[tuple[Iteration, int]] = field(default_factory=list)

    def reached(self, level: float) -> str:
        """Seconds and column operations to the first line of the history at this relative gap."""
        for line, operations in self.lines:
            if line.gap <= level * line.value:
                return f"{line.seconds:.1f} s, {operations}"
        return "–"


def run(case: Case, problem: Discrepancy, rule: str) -> Run:
    cache = ColumnCache(problem.columns, problem.size, CACHE_BYTES)
    lines: list[tuple[Iteration, int]] = []

    def watch(line: Iteration) -> bool:
        lines.append((line, cache.hits + cache.misses))
        return line.seconds > case.limit

    with PeakMemory() as memory:
        shared = SolverRun(Goal(0.0), callbacks=(watch,))
        measure = exchange(problem.constrained(case.kappa), rule=rule, tol=LEVELS[-1], cache=cache, run=shared)
    lines.append((measure.history[-1], cache.hits + cache.misses))
    return Run(rule, measure, cache.misses, memory.peak / 1e6, lines)


def table(case: Case) -> list[str]:
    n = len(case.X)
    began = time.perf_counter()
    squared = GramOperator(Gaussian(case.sigma) ** 2, case.X)
    problem = Discrepancy(squared, np.full(n, 1 / n), np.ones(n))
    seconds = time.perf_counter() - began
    lines = [
        f"{case.title}: N = {n}, {case.X.shape[1]} columns, σ = {case.sigma:.3g}, ϰ = {case.kappa}; the product Sω "
        f"took {seconds:.1f} s.",
        "",
        "| rule | " + " | ".join(f"gap {level:.0e}" for level in LEVELS) + " | at the end | MB |",
        "|" + " --- |" * (len(LEVELS) + 3),
    ]
    for rule in RULES:
        done = run(case, problem, rule)
        last = done.measure.history[-1]
        lines.append(
            f"| {rule} | {' | '.join(done.reached(level) for level in LEVELS)} | {last.seconds:.0f} s, {last.number} "
            f"steps, {done.made} columns made, D = {last.value:.6e}, gap {last.gap / last.value:.0e}, {last.n_nodes} "
            f"nodes | {done.peak_mb:.0f} |"
        )
        print(lines[-1], flush=True)
    return lines


def warm_up() -> None:
    X = np.random.default_rng(0).standard_normal((300, 5))
    for points in (X, X[:, :2]):
        problem = Discrepancy(GramOperator(Gaussian(1.0) ** 2, points), np.full(300, 1 / 300), np.ones(300))
        for rule in RULES:
            exchange(problem.constrained(0.7), rule=rule, max_iter=5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[name for name in CASES if name != "large"])
    parser.add_argument("--large", action="store_true", help="covtype with 100 000 points, and nothing else")
    parser.add_argument("--page", type=Path, default=RESULT, help="the file that the tables go to")
    options = parser.parse_args()
    warm_up()
    for name in ("large",) if options.large else (options.only,) if options.only else ("halton", "htru2", "covtype"):
        write_table(options.page, name, table(CASES[name]()))


if __name__ == "__main__":
    main()
