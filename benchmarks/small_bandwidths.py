"""Embeddings from bandwidths far too small to far too large: every fit ends, and ends with a proof.

    MERCER_DATA=... python benchmarks/small_bandwidths.py               # writes benchmarks/results/small_bandwidths.md
    MERCER_DATA=... python benchmarks/small_bandwidths.py --only wine   # one sample, printed only
    MERCER_DATA=... python benchmarks/small_bandwidths.py --growth      # the interior-point method alone

1. σ from 1/32 of the median distance to 4 times it, in factors of two, with the defaults of ``SDPEmbedding`` (tolerance
   1e-6 on gap and residual), on the first 1 000 rows of scikit-learn's digits, standardised; wine; HTRU2 (2 000 rows);
   covtype (2 000 rows, its ten quantities standardised).
2. What the interior-point method costs as n grows: steps, seconds and floating-point operations a second.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table
from sklearn.exceptions import ConvergenceWarning

from mercer import Gaussian, SDPEmbedding, datasets
from mercer.datasets.tables import standardized
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.operators.diffusion import DegenerateKernelError
from mercer.solvers import solve_interior_point

RESULT = Path(__file__).parent / "results" / "small_bandwidths.md"
FACTORS = 2.0 ** np.arange(-5, 3)
SIZES = (250, 500, 1000, 2000)
FLOPS = 17 / 3  # times n³ a step: two products, three factorisations, an inverse


def digits(n: int) -> Any:
    from sklearn.datasets import load_digits

    return standardized(load_digits().data)[:n]


def covtype(n: int) -> Any:
    X = datasets.load_real("covtype")["X"][:, :10]
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:n])
    return standardized(X)[chosen]


SAMPLES = {
    "digits": lambda: digits(1000),
    "wine": lambda: datasets.wine()[0],
    "HTRU2": lambda: datasets.htru2(n=2000)[0],
    "covtype": lambda: covtype(2000),
}
HEAD = (
    "data", "n", "σ / median", "σ", "status", "certified gap", "by", "rank", "steps", "of them interior", "columns",
    "stand-in columns", "row residual", "seconds", "process seconds",
)  # fmt: skip


def measure(name: str, X: Any, factor: float) -> list[str]:
    sigma = factor * Gaussian().resolve(X).sigma
    began, used = time.perf_counter(), time.process_time()
    start = [name, str(len(X)), f"{factor:g}", f"{sigma:.3g}"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the status says it
            model = SDPEmbedding(Gaussian(sigma=sigma), random_state=0).fit(X)
    except DegenerateKernelError as error:
        return [*start, f"refused: {str(error).split(' under ')[0]}", *["–"] * 8, *clocks(began, used)]
    certificate = model.certificate_
    return [
        *start,
        model.status_.name,
        f"{certificate.relative_gap:.0e}",
        certificate.method,
        str(model.rank_),
        str(model.n_iter_),
        str(sum(line.phase == "interior point" for line in model.history_)),
        str(model.n_products_),
        str(model.n_stand_in_products_),
        f"{model.history_[-1].row_residual:.0e}",
        *clocks(began, used),
    ]


def clocks(began: float, used: float) -> tuple[str, str]:
    return f"{time.perf_counter() - began:.1f}", f"{time.process_time() - used:.1f}"


def sweep(only: str | None) -> list[str]:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    for name, sample in SAMPLES.items():
        if only not in (None, name):
            continue
        X = sample()
        for factor in FACTORS.tolist():
            lines.append("| " + " | ".join(measure(name, X, factor)) + " |")
            print(lines[-1], flush=True)
    return lines


def growth() -> list[str]:
    lines = [
        "| n | σ | steps to 1e-8 | seconds | process seconds | Gflop a step | Gflop/s |",
        "|" + " --- |" * 7,
    ]
    for n in SIZES:
        X = covtype(n)
        sigma = Gaussian().resolve(X).sigma / 8
        problem = DiffusionProblem.of(Gaussian(sigma=sigma), X, None, np.random.default_rng(0)).working
        J = problem.scale[:, None] * problem.operator.to_dense() * problem.scale
        began, used = time.perf_counter(), time.process_time()
        found = solve_interior_point((J + J.T) / 2, tol=1e-8)
        seconds, process = time.perf_counter() - began, time.process_time() - used
        steps, flops = found.history[-1].number, FLOPS * n**3 / 1e9
        rate = steps * flops / seconds
        lines.append(f"| {n} | {sigma:.3g} | {steps} | {seconds:.1f} | {process:.1f} | {flops:.2f} | {rate:.0f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=tuple(SAMPLES), help="one sample, printed and not written")
    parser.add_argument("--growth", action="store_true", help="the interior-point method alone")
    arguments = parser.parse_args()
    SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit(datasets.iris()[0])  # compiled code is loaded
    if arguments.growth or arguments.only is None:
        lines = growth()
        write_table(RESULT, "growth", lines)
    if not arguments.growth:
        lines = sweep(arguments.only)
        if arguments.only is None:
            write_table(RESULT, "sweep", lines)


if __name__ == "__main__":
    main()
