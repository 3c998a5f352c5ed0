"""A quadrature of half a million rows with three hundred tested eigen-directions, beside the paper's SUSY (QUAD 9.2).

    MERCER_DATA=... python benchmarks/quadrature_section9.py                                # quick: 20 000 rows
    MERCER_DATA=... python benchmarks/quadrature_section9.py --full --stages nodes          # three minutes, 16 cores
    MERCER_DATA=... python benchmarks/quadrature_section9.py --full --stages upsilon        # five minutes, 16 cores
    MERCER_DATA=... python benchmarks/quadrature_section9.py --full --stages plain          # as long as --seconds says
    python benchmarks/quadrature_section9.py --page                                         # the page from the rows

SUSY is not at hand: the ten quantities of covtype, standardised, stand in for it, 500 000 of the rows drawn at random,
ω = 1/N, d = 1, ϰ = 0.3, and a Gaussian kernel exp(-ℓ‖x - y‖²) whose ℓ = 1.2 asks for about as many nodes as the paper's
ℓ = 0.4 does in 18 columns. Stages: ``nodes`` computes Sω, solves by blocks of exchanges until the Frank-Wolfe bound is
the part 1.8e-4 of D at which the paper stopped, and merges down to 7000 nodes and on to one; ``upsilon`` extends 300
directions from the 7000 nodes to all rows and tests them, a hundred at a time, in single precision; ``plain`` makes the
paper's single exchanges from e₁, in batches of 50 000. The memory limit is the 16 GB of the paper's machine. Every
stage writes its line at once into the folder --out, which is $OUT where that is set, and the nodes into the folder
--keep, where ``upsilon`` finds them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import PeakMemory
from result_page import write_table

from mercer import Gaussian, GramOperator, config_context
from mercer.backends.config import get_config, usable_cores
from mercer.datasets import load_real
from mercer.datasets.tables import standardized
from mercer.linalg.column_cache import ColumnCache
from mercer.problems import Discrepancy
from mercer.quadrature import approximate_eigenpairs, merge
from mercer.solvers import Goal, Iteration, Run, exchange

Array = np.ndarray[Any, Any]
RESULTS = Path(__file__).parent / "results"
PAGE = RESULTS / "quadrature_section9.md"
KAPPA, PAPER_GAP = 0.3, 7.0928e-9 / 3.931629e-5  # the bound over D at which the paper stopped
LEVELS = (0.99, 0.95, 0.9)
CHUNK = 100  # directions tested at a time

SIZES: dict[str, dict[str, Any]] = {
    "quick": {"n": 20_000, "nodes": 1_000, "directions": 60, "batch": 2_000},
    "full": {"n": 500_000, "nodes": 7_000, "directions": 300, "batch": 50_000},
}


class Job:
    """One size of the problem, where its results go, and the clock."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.size = SIZES["full" if options.full else "quick"]
        self.n, self.limit, self.first = self.size["n"], options.seconds, options.first
        self.kernel = Gaussian(sigma=options.ell**-0.5)
        self.out, self.keep = Path(options.out), Path(options.keep)
        self.began = time.perf_counter()
        X = standardized(load_real("covtype")["X"][:, :10].astype(float))
        self.X = X[np.sort(np.random.default_rng(0).choice(len(X), self.n, replace=False))]

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.limit - (time.perf_counter() - self.began)

    @property
    def nodes_file(self) -> Path:
        return self.keep / f"quadrature_section9_{self.n}.npz"

    def tell(self, stage: str, **found: Any) -> None:
        """Write a line of results at once."""
        self.out.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"n": self.n, "cores": usable_cores(), "stage": stage, **found})
        with (self.out / "quadrature_section9.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)

    def problem(self) -> Discrepancy:
        """The programme, with the time of Sω told."""
        began, n = time.perf_counter(), self.n
        problem = Discrepancy(GramOperator(self.kernel**2, self.X), np.full(n, 1 / n), np.ones(n))
        self.tell("distortion", seconds=time.perf_counter() - began, empty=problem.constant)
        return problem


def nodes(job: Job) -> None:
    """Sω, blocks of exchanges to the paper's gap, and all weak merges."""
    problem, lines = job.problem(), []

    def watch(line: Iteration) -> bool:
        lines.append([line.seconds, line.objective, line.gap, line.size])
        return job.left < 130  # the merges need some

    with PeakMemory() as memory:
        shared: Run[Any] = Run(Goal(0.0), callbacks=(watch,))
        found = exchange(problem.constrained(KAPPA), tol=PAPER_GAP, run=shared)
    measure = found.point
    job.tell("exchange", status=found.status.name, lines=lines, columns=problem.n_columns, MB=memory.peak / 1e6)
    began = time.perf_counter()
    merges = merge(problem, measure.nodes, measure.values, strategy="weak", gradient=measure.gradient)
    seconds, n_nodes = time.perf_counter() - began, min(job.size["nodes"], measure.nodes.size)
    left, values = merges.at(n_nodes=n_nodes)
    growth = float(merges.values[measure.nodes.size - left.size] / merges.values[0] - 1)
    job.tell("merges", seconds=seconds, merges=len(merges.values) - 1, nodes=int(left.size), growth=growth)
    job.keep.mkdir(parents=True, exist_ok=True)
    for folder in {job.keep, job.out}:
        np.savez(folder / job.nodes_file.name, nodes=left, values=values)


def upsilon(job: Job) -> None:
    """Directions extended to all rows and normalised, then tested against T_μ."""
    stored, n = np.load(job.nodes_file), job.n
    X, weights = job.X.astype(np.float32), np.full(n, 1 / n)
    with PeakMemory() as memory:
        began = time.perf_counter()
        wanted = job.size["directions"]
        pairs = approximate_eigenpairs(job.kernel, X, weights, stored["nodes"], stored["values"], wanted, upsilon=False)
        seconds, count = time.perf_counter() - began, pairs.canonical.size
        job.tell("directions", seconds=seconds, directions=int(count), canonical=pairs.canonical.tolist())
        gram, found, hats = GramOperator(job.kernel, X), [], []
        began = time.perf_counter()
        for first in range(job.first, count, CHUNK):
            functions = pairs.functions[:, first : first + CHUNK]
            images = (gram @ (functions / n).astype(np.float32)).astype(float)
            hat = np.sqrt(np.einsum("ij,ij->j", images, images) / n)
            found += (np.einsum("ij,ij->j", functions, images) / n / hat).tolist()
            hats += hat.tolist()
            spent = time.perf_counter() - began
            job.tell("upsilon", first=job.first, seconds=spent, upsilon=found, eigenvalues=hats, MB=memory.peak / 1e6)
            if job.left < 1.05 * spent / len(found) * CHUNK:
                break


def plain(job: Job) -> None:
    """Four batches of the paper's single exchanges, as far as the time goes."""
    problem, start = job.problem(), (np.array([0]), np.array([KAPPA]))
    level = problem.constrained(KAPPA)
    cache = ColumnCache(problem.columns, problem.size, get_config().memory_bytes // 4)
    batch_steps = job.size["batch"]
    for batch in range(1, 5):
        began = time.perf_counter()
        shared: Run[Any] = Run(Goal(0.0), callbacks=(lambda line: job.left < 20,))
        found = exchange(level, start, rule="plain", tol=1e-12, max_iter=batch_steps, cache=cache, run=shared)
        start, last = (found.point.nodes, found.point.values), found.history[-1]
        job.tell(
            "plain", batch=batch, seconds=time.perf_counter() - began, steps=last.number, objective=last.objective,
            gap=last.gap, nodes=last.size, status=found.status.name,
        )  # fmt: skip
        if job.left < 30:
            return


# --- the page ----------------------------------------------------------------------------------------------------


def page(rows: list[dict[str, Any]]) -> None:
    """The tables from the lines of the largest size."""
    most = max(row["n"] for row in rows)
    by = {row["stage"]: row for row in rows if row["n"] == most}
    by["upsilon"] = joined([row for row in rows if row["n"] == most and row["stage"] == "upsilon"])
    batches = [row for row in rows if row["n"] == most and row["stage"] == "plain"]
    write_table(PAGE, "times", times(by, batches))
    write_table(PAGE, "exchanges", exchanges(by["exchange"]["lines"], batches))
    write_table(PAGE, "upsilon", accuracy(by))


def joined(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The tests of all directions, from the last line of each run that began at another of them."""
    last = {row.get("first", 0): row for row in rows}
    parts = [last[first] for first in sorted(last)]
    out: dict[str, Any] = {name: [*chain(*(part[name] for part in parts))] for name in ("upsilon", "eigenvalues")}
    return {**out, "seconds": sum(part["seconds"] for part in parts), "MB": max(part["MB"] for part in parts)}


def times(by: dict[str, Any], batches: list[dict[str, Any]]) -> list[str]:
    """Seconds of every stage beside the paper's."""
    steps, spent = sum(row["steps"] for row in batches), sum(row["seconds"] for row in batches)
    last, merges, tested = by["exchange"]["lines"][-1], by["merges"], by["upsilon"]
    rows = [
        ("Sω", "5 665.6", f"{by['distortion']['seconds']:.1f}"),
        ("single exchanges, a thousand", "23.1", f"{1000 * spent / steps:.1f}" if steps else "–"),
        ("exchanges to a bound of 1.8e-4 of D", "4 624.6", f"{last[0]:.1f} (blocks), to {last[2] / last[1]:.1e}"),
        (f"weak merges ({merges['merges']}; 20 673)", "78.9", f"{merges['seconds']:.1f}"),
        (
            f"directions extended ({by['directions']['directions']}; 300)",
            "3 313.6",
            f"{by['directions']['seconds']:.1f}",
        ),
        (f"Υ-test ({len(tested['upsilon'])}; 300)", "191 622.3", f"{tested['seconds']:.1f}"),
        ("peak memory beyond the data, MB", "below 16 000", f"{max(by['exchange']['MB'], tested['MB']):.0f}"),
    ]
    return ["| seconds | paper, SUSY | here, covtype |", "| --- | --- | --- |"] + [
        f"| {name} | {paper} | {here} |" for name, paper, here in rows
    ]


def exchanges(lines: list[list[float]], batches: list[dict[str, Any]]) -> list[str]:
    """The analogue of Table 9.2: batches of single exchanges, then blocks."""
    out = ["| exchanges | seconds so far | bound ε | ε/D | nodes |", "| --- | --- | --- | --- | --- |"]
    spent = steps = 0.0
    for row in batches:
        spent, steps = spent + row["seconds"], steps + row["steps"]
        ratio = row["gap"] / row["objective"]
        out.append(f"| {steps:.0f} single | {spent:.1f} | {row['gap']:.4e} | {ratio:.1e} | {row['nodes']} |")
    chosen = sorted({*np.linspace(1, len(lines) - 1, 6).astype(int).tolist()})
    for number in chosen:
        seconds, objective, gap, size = lines[number]
        out.append(f"| {number} blocks | {seconds:.1f} | {gap:.4e} | {gap / objective:.1e} | {size:.0f} |")
    return out


def accuracy(by: dict[str, Any]) -> list[str]:
    """Directions by Υ, merging, and the sum of the eigenvalues found."""
    found, merges = np.array(by["upsilon"]["upsilon"]), by["merges"]
    objective = by["exchange"]["lines"][-1]
    rows = [
        ("nodes of the solution", "20 664", f"{objective[3]:.0f}"),
        ("D of the solution", "3.931629e-5", f"{objective[1]:.6e}"),
        ("D(0)", "not printed", f"{by['distortion']['empty']:.6e}"),
        ("nodes after merging", "7 000", f"{merges['nodes']}"),
        ("growth of D, %", "1.34", f"{100 * merges['growth']:.2f}"),
        *[
            (f"directions with Υ ≥ {level}, of {found.size}", paper, f"{int((found >= level).sum())}")
            for level, paper in zip(LEVELS, ("64", "224", "299"), strict=True)
        ],
        ("least Υ", "0.8826657", f"{found.min():.7f}"),
        ("sum of λ̂", "drawn", f"{sum(by['upsilon']['eigenvalues']):.5f}"),
    ]
    return ["| quantity | paper, SUSY | here, covtype |", "| --- | --- | --- |"] + [
        f"| {name} | {paper} | {here} |" for name, paper, here in rows
    ]


STAGES = {"nodes": nodes, "upsilon": upsilon, "plain": plain}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="500 000 rows; 20 000 otherwise")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--first", type=int, default=0, help="the directions that an earlier run has tested already")
    parser.add_argument("--ell", type=float, default=1.2, help="ℓ of the kernel")
    parser.add_argument("--seconds", type=float, default=500, help="after which a stage ends with what it has")
    parser.add_argument("--memory", default="16GB", help="the memory limit")
    parser.add_argument("--out", default=os.environ.get("OUT", "build/section9"), help="the folder of the results")
    parser.add_argument("--keep", default="build/section9", help="the folder of the nodes, kept between stages")
    parser.add_argument("--page", action="store_true", help="write the page from the lines in --out")
    options = parser.parse_args()
    if options.page:
        lines = (Path(options.out) / "quadrature_section9.jsonl").read_text(encoding="utf-8").splitlines()
        page([json.loads(line) for line in lines])
        return
    with config_context(memory_limit=options.memory):
        warm = Gaussian(sigma=1.0)
        exchange(Discrepancy(GramOperator(warm, np.eye(300)), np.full(300, 1 / 300), np.ones(300)).constrained(0.5))
        job = Job(options)
        for stage in options.stages:
            STAGES[stage](job)


if __name__ == "__main__":
    main()
