"""The one full product that a sparse quadrature needs, Sω, as the sample grows to the whole of covtype.

    MERCER_DATA=... python benchmarks/quadrature_distortion.py --sizes 20000 100000 581012

Shows a progress bar, and writes time and peak memory to benchmarks/results/quadrature_distortion.md.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np

from mercer import Gaussian
from mercer.datasets import load_real
from mercer.progress import make_visible, progress_bar
from mercer.quadrature.sample import make_problem, make_sample

RESULTS = Path(__file__).parent / "results" / "quadrature_distortion.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 50_000, 100_000])
    options = parser.parse_args()
    make_visible()
    whole = load_real("covtype")["X"].astype(np.float64)
    whole = (whole - whole.mean(axis=0)) / whole.std(axis=0)
    order = np.random.default_rng(0).permutation(len(whole))
    kernel = Gaussian().resolve(whole[order[:4000]])
    lines = [
        "# Sω on covtype",
        "",
        f"54 standardised features, {kernel!r}, float64, two cores. Made from the upper triangle of S, a",
        "tile at a time; nothing of size N × N or N × 54 is stored beside the data. For comparison: the authors report",
        "5 665.6 s for N = 500 000 points of 18 features (C, 8 threads, 2015).",
        "",
        "| N | seconds | billion entries a second | memory beyond the data, MB |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for size in options.sizes:
        X = np.ascontiguousarray(whole[order[:size]])
        sample = make_sample(X, kernel)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        with progress_bar(f"Sω, N = {size}") as report:
            make_problem(X, kernel, sample, report=report)
        seconds = time.perf_counter() - started
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
        lines.append(f"| {size} | {seconds:.1f} | {size**2 / seconds / 1e9:.2f} | {more:.0f} |")
        print(lines[-1], flush=True)
        RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
