"""What is said of fits before they are begun, beside what they then take.

python benchmarks/estimates.py --out benchmarks/results/estimates.md
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np

import mercer
from mercer import Gaussian, estimate_cost

MODELS = {
    "SDPEmbedding()": (lambda: mercer.SDPEmbedding(random_state=0), (2000, 5000, 10_000)),
    "SDPEmbedding(Gaussian())": (lambda: mercer.SDPEmbedding(Gaussian(), random_state=0), (2000, 5000, 10_000)),
    "QuadratureSparsifier(n_nodes=100)": (lambda: mercer.QuadratureSparsifier(n_nodes=100), (4000, 16_000, 40_000)),
    "SumOfSquaresDensity()": (lambda: mercer.SumOfSquaresDensity(random_state=0), (2000, 8000)),
    "MaximumVarianceUnfolding()": (lambda: mercer.MaximumVarianceUnfolding(), (400, 800)),
    "KernelPCA(n_components=5)": (lambda: mercer.KernelPCA(n_components=5, random_state=0), (4000, 16_000)),
}


def row(name: str, n: int, budget: float) -> str:
    """One fit: what was said, and what it took."""
    X = np.random.default_rng(0).normal(size=(n, 4))
    X[: n // 3] += 3
    make, began = MODELS[name][0], time.perf_counter()
    cost = estimate_cost(make(), X, budget=budget)
    estimating = time.perf_counter() - began
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        make().fit(X)
        seconds.append(time.perf_counter() - began)
    tracemalloc.start()
    make().fit(X)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    measured = min(seconds)
    span = f"{cost.fastest:.2g} to {cost.slowest:.2g}"
    inside = "yes" if cost.fastest <= measured <= cost.slowest else "no"
    last = cost.pilots[-1].rows
    return (
        f"| `{name}` | {n} | {last} | {estimating:.1f} | {cost.seconds:.2g} | {span} | {measured:.2g} | {inside} | "
        f"{cost.bytes / 1e6:.0f} | {held / 1e6:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=5.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with mercer.config_context(memory_limit="2GB"):
        for name, (_, sizes) in MODELS.items():
            for n in sizes:
                rows.append(row(name, n, options.budget))
                print(rows[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join([HEAD.format(budget=options.budget), *rows, ""]))


HEAD = """# Estimates

What `estimate_cost` says of a fit, beside what the fit takes: the lesser of two, in seconds, and the most memory beyond
the data that NumPy held at a time, in MB. "Tried" are the rows of the largest fit that was timed; "estimating" the
seconds that it all took, with a budget of {budget:g} s. Rows of four columns, a memory limit of 2 GB, two cores with
other jobs beside, which come and go between an estimate and its fit. Made by `python benchmarks/estimates.py`.

| fit | rows | tried | estimating | said | range | taken | inside | MB said | MB taken |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


if __name__ == "__main__":
    main()
