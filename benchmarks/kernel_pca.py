"""What kernel PCA costs, in seconds and memory, as the sample grows, beside scikit-learn's.

    python benchmarks/kernel_pca.py                    # n = 500, 1 000, 2 000 on screen; some seconds
    taskset -c 0,1 python benchmarks/kernel_pca.py --full     # n = 1 000 … 100 000; about 25 minutes on two cores

``--full`` fills the tables of benchmarks/results/kernel_pca.md (``--output``: of another page), those of ``--samples``
alone if given. Two components, a Gaussian kernel with the median bandwidth of the sample, double precision, two threads
for all: a swiss roll (three columns, eigenvalues fall fast), a normal sample of ten columns (ten eigenvalues lie close
together), and where the variable MERCER_DATA names a folder with them, HTRU2 (17 898 × 8) and covtype (54 columns, rows
at random), every column brought to variance one.

Every n has a process of its own. Seconds, of the clock and of all threads together, are the best of some rounds, where
a round is short; their quotient beside scikit-learn's *auto* is that of the clock. Memory is the resident size above
that at the start of a call, sampled every millisecond. scikit-learn's is left out beyond n = 20 000, where its two
matrices would take more than six gigabytes. *Agreement* is the largest difference of a training coordinate from
scikit-learn's, up to sign, as a part of the largest coordinate; *bound* is the largest of ``residual_bounds_`` as a
part of the largest eigenvalue.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import PeakMemory
from result_page import exponent, write_table
from sklearn.datasets import make_swiss_roll
from sklearn.decomposition import KernelPCA as Reference
from threadpoolctl import threadpool_limits

from mercer import Gaussian, KernelPCA, config_context
from mercer.datasets.real import data_folder, load_real

RESULT = Path(__file__).parent / "results" / "kernel_pca.md"
SIZES = (1_000, 3_000, 10_000, 20_000, 50_000, 100_000)
QUICK_SIZES = (500, 1_000, 2_000)
COMPONENTS, THREADS, LANDMARKS = 2, 2, 500
LARGEST_REFERENCE = 20_000
LONG, ROUNDS = 3.0, 3  # seconds after which a method is not timed again
ONLY_PLAIN = 20_000  # beyond, our method is not run with its certificate
Array = np.ndarray[Any, Any]
Fit = Callable[[Array, float], Any]


def swiss_roll(n: int) -> Array:
    return np.asarray(make_swiss_roll(n, noise=0.1, random_state=0)[0])


def normal(n: int) -> Array:
    return np.random.default_rng(0).standard_normal((n, 10))


def real(name: str) -> Callable[[int], Array]:
    def sample(n: int) -> Array:
        X = np.asarray(load_real(name)["X"], np.float64)
        X = X[np.random.default_rng(0).permutation(len(X))[:n]]
        spread = X.std(axis=0)
        return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)

    return sample


SAMPLES = {"swiss roll": swiss_roll, "normal": normal, "htru2": real("htru2"), "covtype": real("covtype")}


def ours(**options: Any) -> Fit:
    return lambda X, sigma: KernelPCA(Gaussian(sigma), n_components=COMPONENTS, random_state=0, **options).fit(X)


def theirs(solver: str) -> Fit:
    settings: dict[str, Any] = {"kernel": "rbf", "eigen_solver": solver, "random_state": 0}
    return lambda X, sigma: Reference(COMPONENTS, gamma=sigma**-2, **settings).fit(X)


METHODS: dict[str, Fit] = {
    "ours": ours(),
    "ours, certified": ours(certify=True),
    f"ours, {LANDMARKS} landmarks": ours(landmarks=LANDMARKS),
    "scikit-learn, auto": theirs("auto"),
    "scikit-learn, randomized": theirs("randomized"),
}


def runs(name: str, n: int) -> bool:
    return n <= (LARGEST_REFERENCE if "scikit" in name else ONLY_PLAIN if "certified" in name else np.inf)


def timed(run: Fit, X: Array, sigma: float) -> tuple[Any, dict[str, float]]:
    with PeakMemory() as memory:
        began, worked = time.perf_counter(), time.process_time()
        model = run(X, sigma)
        costs = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - worked}
    return model, costs | {"MB": memory.peak / 1e6}


def coordinates(model: Any) -> Array:
    found = model.embedding_ if hasattr(model, "embedding_") else model.eigenvectors_ * np.sqrt(model.eigenvalues_)
    return np.asarray(found)


def apart(found: Array, reference: Array) -> float:
    signs = np.sign(np.sum(found * reference, axis=0))
    return float(np.abs(found * signs - reference).max() / np.abs(reference).max())


def one(sample: str, n: int) -> None:
    """Time every method on a sample of n points, in turns, and print what was found."""
    X = SAMPLES[sample](n)
    sigma = float(Gaussian().resolve(X).sigma)
    rows: dict[str, dict[str, float]] = {}
    reference = None
    with config_context(n_threads=THREADS), threadpool_limits(THREADS):
        methods = {name: run for name, run in METHODS.items() if runs(name, len(X))}
        for run in methods.values():
            run(X[:600], sigma)  # compiles, and starts the threads
        for _ in range(ROUNDS):
            for name, run in reversed(methods.items()):
                row = rows.setdefault(name, {"n": len(X), "seconds": np.inf, "cpu": np.inf, "MB": np.inf})
                if row["seconds"] < LONG or np.isinf(row["seconds"]):
                    model, costs = timed(run, X, sigma)
                    row |= {key: min(row[key], value) for key, value in costs.items()}
                    if name == "scikit-learn, auto":
                        reference = coordinates(model)
                    elif reference is not None:
                        row["apart"] = apart(coordinates(model), reference)
                    if hasattr(model, "residual_bounds_"):
                        row["bound"] = float(model.residual_bounds_.max() / model.eigenvalues_[0])
    print(json.dumps(rows))


def measured(sample: str, n: int) -> dict[str, dict[str, float]]:
    command = [sys.executable, __file__, "--one", sample, str(n)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def lines_of(sample: str, found: list[dict[str, dict[str, float]]]) -> list[str]:
    lines = []
    for name in METHODS:
        rows = [each[name] for each in found if name in each]
        for each in found:
            if name in each:
                row, rival = each[name], each.get("scikit-learn, auto")
                times = f"{rival['seconds'] / row['seconds']:.1f}" if rival and "ours" in name else ""
                marks = (f"{row[key]:.0e}" if key in row else "" for key in ("apart", "bound"))
                costs = (f"{row['seconds']:.2f}", f"{row['cpu']:.2f}", f"{row['MB']:.0f}")
                cells = (sample, name, f"{row['n']}", *costs, times, *marks)
                lines.append(f"| {' | '.join(cells)} |")
        sizes = [int(row["n"]) for row in rows]
        slopes = [exponent(sizes, [row[key] for row in rows]) for key in ("seconds", "cpu", "MB")]
        lines.append(f"| {sample} | {name}, exponent of n | | {' | '.join(slopes)} | | | |")
    return lines


def table(sample: str, sizes: tuple[int, ...]) -> list[str]:
    most = 17_898 if sample == "htru2" else max(sizes)
    return [
        "| data | method | n | s | CPU s | MB | scikit-learn / ours | agreement | bound |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *lines_of(sample, [measured(sample, n) for n in sorted({min(n, most) for n in sizes})]),
    ]


HEAD = f"""# The cost of kernel PCA

Written by `taskset -c 0,1 python benchmarks/kernel_pca.py --full`, whose first lines say how: two components, a
Gaussian kernel, {THREADS} threads for all. scikit-learn stores two n × n matrices; ours evaluates entries as it
multiplies, some ten times. Its two solvers are those that it has for few components (*auto* is ARPACK).

{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all sizes, and the page of results")
    parser.add_argument("--sizes", type=int, nargs="+", help="other sizes")
    parser.add_argument("--samples", nargs="+", choices=list(SAMPLES), help="some of the samples")
    parser.add_argument("--output", type=Path, default=RESULT, help="where --full writes its page")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], int(options.one[1]))
        return
    folder = data_folder()
    there = [
        name for name in SAMPLES if " " in name or name == "normal" or (folder and (folder / f"{name}.npz").exists())
    ]
    sizes = tuple(options.sizes or (SIZES if options.full else QUICK_SIZES))
    if options.full and not options.output.exists():
        options.output.write_text(HEAD, encoding="utf-8")
    for sample in options.samples or there:
        lines = table(sample, sizes)
        print("\n".join(lines), flush=True)
        if options.full:
            write_table(options.output, sample, lines)


if __name__ == "__main__":
    main()
