"""What every core adds: products with kernel matrices, the other paths of n² or n·k² work, and whole fits.

    python benchmarks/many_cores.py --machine "16 cores"                # everything this machine's cores allow
    python benchmarks/many_cores.py --machine "2 cores" --only rectangles paths

Writes the tables of a machine into benchmarks/results/many_cores.md (or --page). The ceiling of a product is what as
many processes of one thread make side by side, each on points of its own: they share memory and clock, and no lock.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import embedding_scale
import many_cores_densities
import many_cores_quadrature
import numpy as np
from result_page import write_table
from scipy.sparse import random_array

from mercer import Gaussian, GramOperator, Precomputed, SDPEmbedding, config_context, rp_cholesky
from mercer.backends.config import usable_cores

PAGE = Path(__file__).parent / "results" / "many_cores.md"
FEATURES, COLUMNS = (3, 10, 18, 100, 784), (0, 1, 3, 10)  # no column means row sums
LEAST_SECONDS = 0.4  # that a rate is measured over


class Case(NamedTuple):
    """One product; a rectangle has as many rows and eight columns more."""

    dtype: str
    features: int
    columns: int
    square: bool

    @property
    def points(self) -> int:
        """Fewer where an entry costs more."""
        return 20_000 if self.features <= 18 else 12_000

    def product(self, seed: int = 0) -> tuple[Callable[[], Any], int]:
        """What is timed, and how many entries it uses."""
        rng, n, d = np.random.default_rng(seed), self.points, self.features
        X = rng.standard_normal((n, d)).astype(self.dtype)
        Y = None if self.square else rng.standard_normal((n + 8, d)).astype(self.dtype)
        gram = GramOperator(Gaussian(float(np.sqrt(2 * d))), X, Y)
        gram.stored_share = 0.0
        if not self.columns:
            return gram.row_sums, gram.shape[0] * gram.shape[1]
        V = rng.standard_normal((gram.shape[1], self.columns)).astype(self.dtype)
        return lambda: gram @ V, gram.shape[0] * gram.shape[1]


CASES = [
    Case(dtype, d, columns, square)
    for square in (True, False)
    for dtype in ("float64", "float32")
    for d in FEATURES
    for columns in COLUMNS
    if square or columns in (0, 10)
]
HEADLINE = Case("float64", 10, 10, True)


def rate(case: Case, threads: int, seed: int = 0, seconds: float = LEAST_SECONDS) -> float:
    """Billion entries a second."""
    with config_context(n_threads=threads):
        product, entries = case.product(seed)
        product()
        count, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds:
            product()
            count += 1
    return count * entries / spent / 1e9


def _alone(cases: list[Case], seed: int, together: Any, results: Any) -> None:
    """One process of one thread: all cases, each begun by all processes at the same time."""
    for at, case in enumerate(cases):
        together.wait()
        results.put((at, rate(case, 1, seed)))
        together.wait()


def side_by_side(cases: list[Case], processes: int) -> list[float]:
    """What processes of one thread make in all, by case."""
    context = multiprocessing.get_context("spawn")
    together, results = context.Barrier(processes), context.Queue()
    children = [context.Process(target=_alone, args=(cases, seed, together, results)) for seed in range(processes)]
    for child in children:
        child.start()
    rates = [0.0] * len(cases)
    for _ in range(processes * len(cases)):
        at, value = results.get()
        rates[at] += value
    for child in children:
        child.join()
    return rates


def products(cases: list[Case], cores: int) -> list[str]:
    """Rates on one, two and all threads beside processes, for every case."""
    for dtype in ("float64", "float32"):  # compiles, and leaves what was compiled to the processes
        Case(dtype, 3, 1, True).product()[0]()
    ceiling = side_by_side(cases, cores)
    counts = sorted({1, 2, cores})
    lines = [
        "| matrix | precision | features | columns | " + " | ".join(f"{t}" for t in counts)
        + f" | {cores} processes | 2 to 1 | all to processes |",
        "|" + " --- |" * (7 + len(counts)),
    ]  # fmt: skip
    for case, most in zip(cases, ceiling, strict=True):
        rounds = [{t: rate(case, t, seconds=LEAST_SECONDS / 2) for t in counts} for _ in range(2)]  # others may disturb
        rates = {t: max(found[t] for found in rounds) for t in counts}
        shown = "row sums" if not case.columns else str(case.columns)
        cells = [
            "square" if case.square else "rectangle", case.dtype, str(case.features), shown,
            *(f"{rates[t]:.3g}" for t in counts), f"{most:.3g}", f"{rates[2] / rates[1]:.2f}",
            f"{rates[cores] / most:.0%}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def curve(cores: int) -> list[str]:
    """The rate of one product by the number of threads and of processes."""
    counts = [t for t in (1, 2, 4, 8, 16, 32, 64) if t <= cores]
    threads = [f"{rate(HEADLINE, t, seconds=1.0):.2f}" for t in counts]
    processes = [f"{side_by_side([HEADLINE], t)[0]:.2f}" for t in counts]
    return [
        "| float64, 10 features, 10 columns | " + " | ".join(map(str, counts)) + " |",
        "|" + " --- |" * (1 + len(counts)),
        "| threads of one process | " + " | ".join(threads) + " |",
        "| processes of one thread | " + " | ".join(processes) + " |",
    ]


def other_paths() -> dict[str, Callable[[], Any]]:
    """Work that is no product with tiles: each returns its numbers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 10))
    kernel = Gaussian(4.0)
    gram = GramOperator(kernel, X)
    model = SDPEmbedding(kernel, random_state=0).fit(X[:2000])
    stored = GramOperator(Precomputed(), kernel(X[:12_000]))
    V = rng.standard_normal((20_000, 10))
    graph = random_array((200_000, 200_000), density=1e-4, rng=np.random.default_rng(1), format="csr")
    sparse = GramOperator(Precomputed(), graph + graph.T)
    W = rng.standard_normal((200_000, 10))
    return {
        "rp_cholesky, 20 000 points, rank 500": lambda: rp_cholesky(gram, 500, random_state=0).factor,
        "block, 20 000 × 2 000": lambda: gram.block(slice(None), slice(0, 2000)),
        "transform, 20 000 points of 2 000": lambda: model.transform(X),
        "novelty, 20 000 points of 2 000": lambda: model.novelty(X),
        "stored product, 12 000, 10 columns": lambda: stored @ V[:12_000],
        "sparse product, 200 000, 8 million entries, 10 columns": lambda: sparse @ W,
    }


def paths(cores: int) -> list[str]:
    """Seconds by the number of threads, and whether the numbers are the same."""
    counts = [t for t in (1, 2, 4, 8, 16) if t <= cores]
    jobs = {**other_paths(), **many_cores_densities.tasks(), **many_cores_quadrature.Jobs(20_000).all()}
    lines = ["| seconds (times one thread) | " + " | ".join(map(str, counts)) + " | same bits |"]
    lines.append("|" + " --- |" * (2 + len(counts)))
    for name, job in jobs.items():
        job()  # loads what is compiled
        seconds, results = [], []
        for t in counts:
            with config_context(n_threads=t):
                began = time.perf_counter()
                results.append(np.array(job()))
                seconds.append(time.perf_counter() - began)
        cells = [f"{s:.3g} ({seconds[0] / s:.1f})" for s in seconds]
        same = all(np.array_equal(results[0], other) for other in results[1:])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {'yes' if same else 'NO'} |")
        print(lines[-1], flush=True)
    return lines


def fits(cores: int) -> list[str]:
    """Whole fits: covtype's ten quantities at the median distance, phase by phase."""
    counts, X, found = [cores], embedding_scale.data("covtype", 100_000), []
    SDPEmbedding(Gaussian("median"), random_state=0).fit(X[:3000])  # loads what is compiled
    for t in counts:
        with config_context(n_threads=t):
            began = time.perf_counter()
            model = SDPEmbedding(Gaussian("median"), random_state=0, tol=1e-3, residual_tol=2e-3).fit(X)
            found.append((t, time.perf_counter() - began, model))
        print(t, found[-1][1], model.certificate_, model.phase_seconds_, flush=True)
    names = list(dict.fromkeys(name for _, _, model in found for name in model.phase_seconds_))
    lines = ["| covtype, 100 000 points, seconds | " + " | ".join(f"{t} threads" for t, _, _ in found) + " |"]
    lines.append("|" + " --- |" * (1 + len(found)))
    for name in names:
        lines.append(f"| {name} | " + " | ".join(f"{m.phase_seconds_.get(name, 0.0):.2f}" for _, _, m in found) + " |")
    lines.append("| all | " + " | ".join(f"{s:.1f}" for _, s, _ in found) + " |")
    lines.append("| certified gap | " + " | ".join(f"{m.certificate_.relative_gap:.1e}" for _, _, m in found) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections: dict[str, Callable[[int], list[str]]] = {
        "curve": curve,
        "square, float64": partial(products, [case for case in CASES if case.square and case.dtype == "float64"]),
        "square, float32": partial(products, [case for case in CASES if case.square and case.dtype == "float32"]),
        "rectangles": partial(products, [case for case in CASES if not case.square]),
        "paths": paths,
        "fits": fits,
    }
    parser.add_argument("--machine", required=True, help="the name of the machine in the page")
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    for name in given.only:
        lines = sections[name](usable_cores())
        write_table(given.page, f"{given.machine}: {name}", [f"### {given.machine}: {name}", "", *lines])
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
