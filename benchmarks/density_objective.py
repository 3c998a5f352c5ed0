"""The whole MMD² against its projection on the support, as the objective of a density: what it gains and costs.

    python benchmarks/density_objective.py                    # m = 10 … 100; about a minute
    python benchmarks/density_objective.py --cost             # m = 50, 100, 200, 400 too; some minutes on two cores

Writes the tables of benchmarks/results/density_objective.md. Every line of the costs runs in a process of its own, so
that the memory is that of the fit: peak resident size less what the imports had taken.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table
from sklearn.datasets import make_moons

from mercer import Gaussian, SumOfSquaresDensity
from mercer.datasets import two_moons

RESULT = Path(__file__).parent / "results" / "density_objective.md"
OBJECTIVES = ("projection", "mmd")
SIZES, LARGER = (10, 20, 50, 100), (50, 100, 200, 400)
Array = np.ndarray[Any, Any]


def moons() -> Array:
    """The two moons of SOS Fig 2, whose first ten points lie in an unlucky place."""
    X, _ = make_moons(100, noise=0.1, random_state=2)
    return np.asarray(2 * X + np.array([-1.0, -0.2]))


def held_out(model: SumOfSquaresDensity, X: Array) -> float:
    return float(np.median(model.score_samples(X)))


def distances() -> list[list[str]]:
    """MMD of both fits to the sample, on the paper's setting, and to other draws of the same law."""
    X, (fresh, _) = moons(), make_moons(2000, noise=0.1, random_state=3)
    fresh = 2 * fresh + np.array([-1.0, -0.2])
    rows = []
    for m in SIZES:
        models = [
            SumOfSquaresDensity(Gaussian(1.0), support=X[:m], regularization=1e-3, objective=o).fit(X)
            for o in OBJECTIVES
        ]
        cells = [f"{value:.4f}" for model in models for value in (model.mmd_, model.projected_mmd_)]
        gaps = [f"{model.certificate_.upper - model.certificate_.lower:.0e}" for model in models]
        rows.append([str(m), *cells, *gaps, *(f"{held_out(model, fresh):.3f}" for model in models)])
    return rows


def measured(case: str, m: int, objective: str) -> dict[str, Any]:
    """One fit in this process."""
    rng = np.random.default_rng(0)
    X = two_moons(2 * m, noise=0.1, random_state=0)[0] if case == "plane" else rng.standard_normal((2 * m, 5))
    options = {"support": X[:m], "objective": objective}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SumOfSquaresDensity(support=X[:5], objective=objective).fit(X[:20])
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        model = SumOfSquaresDensity(**options).fit(X)
    seconds = time.perf_counter() - start
    proof = model.certificate_
    return {
        "seconds": seconds,
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        "mmd": model.mmd_,
        "gap": (proof.upper - proof.lower) / proof.upper,
        "rank": model.rank_,
    }


def costs() -> list[list[str]]:
    rows = []
    for case in ("plane", "five"):
        for m in LARGER:
            for objective in OBJECTIVES:
                command = [sys.executable, __file__, "--one", case, str(m), objective]
                done = subprocess.run(command, capture_output=True, text=True)
                where = "two moons" if case == "plane" else "normal law in 5 dimensions"
                if done.returncode:
                    rows.append([where, str(m), objective, "–", "–", "–", "–", "–"])
                    continue
                out = json.loads(done.stdout.splitlines()[-1])
                numbers = [f"{out['seconds']:.2f}", f"{out['megabytes']:.0f}", f"{out['mmd']:.5f}"]
                rows.append([where, str(m), objective, *numbers, f"{out['gap']:.0e}", str(out["rank"])])
    return rows


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cost", action="store_true", help="seconds and memory up to m = 400 too")
    parser.add_argument("--one", nargs=3, metavar=("CASE", "M", "OBJECTIVE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        case, m, objective = arguments.one
        print(json.dumps(measured(case, int(m), objective)))
        return
    head = ["m", "MMD", "seen", "MMD, whole", "seen, whole", "gap", "gap, whole", "median log p", "whole"]
    write_table(RESULT, "distances", table(head, distances()))
    if arguments.cost:
        head = ["data", "m", "objective", "s", "MB", "MMD", "relative gap", "rank"]
        write_table(RESULT, "costs", table(head, costs()))


if __name__ == "__main__":
    main()
