"""Gram products and row sums on the CPU, beside their peers, in one process.

    python benchmarks/gram_products.py            # the whole table, about 20 minutes on two cores
    python benchmarks/gram_products.py --quick    # n = 4000, a minute or two

Writes benchmarks/results/gram_products.md. Needs the extra ``bench`` (KeOps) and a C++ compiler for KeOps.
Methods that do not use symmetry are timed on the first 4096 rows (2048 at d = 784); rates are per entry either way.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import PeakMemory
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from threadpoolctl import threadpool_limits

import mercer
from mercer.datasets import data_folder, load_real

RESULTS = Path(__file__).parent / "results" / "gram_products.md"
TILE = 1024
KERNELS = ("gaussian", "laplacian", "matern")
Array = np.ndarray[Any, Any]


@dataclass
class Row:
    kernel: str
    dtype: str
    d: int
    job: str
    method: str
    rate: float
    memory: float
    error: float


def ours(kernel: str, sigma: float) -> Any:
    return {
        "gaussian": mercer.Gaussian(sigma),
        "laplacian": mercer.Laplacian(sigma),
        "matern": mercer.Matern(1.5, sigma),
    }[kernel]


def numpy_tile(kernel: str, X: Array, Y: Array, x2: Array, y2: Array, sigma: float) -> Array:
    """One tile as a careful NumPy user writes it: in place, norms at hand; l1 distances by scipy's C loop."""
    if kernel == "laplacian":
        T = cdist(X, Y, "cityblock").astype(X.dtype, copy=False)
        T *= X.dtype.type(-1 / sigma)
        return np.exp(T, out=T)
    T = X @ Y.T
    T *= X.dtype.type(-2)
    T += x2[:, None]
    T += y2
    np.maximum(T, 0, out=T)
    if kernel == "gaussian":
        T *= X.dtype.type(-1 / sigma**2)
        return np.exp(T, out=T)
    np.sqrt(T, out=T)
    T *= X.dtype.type(np.sqrt(3) / sigma)
    E = np.exp(-T)
    T += 1
    T *= E
    return T


def numpy_product(kernel: str, X: Array, sigma: float, V: Array | None, rows: int, threads: int) -> Array:
    """K @ V (row sums if V is None) in NumPy tiles on so many threads, BLAS on one thread each."""
    squares = np.einsum("ij,ij->i", X, X)
    out = np.zeros((rows, 1 if V is None else V.shape[1]), X.dtype)

    def panel(lo: int) -> None:
        hi = min(lo + TILE, rows)
        for c in range(0, len(X), TILE):
            T = numpy_tile(kernel, X[lo:hi], X[c : c + TILE], squares[lo:hi], squares[c : c + TILE], sigma)
            out[lo:hi] += T.sum(axis=1, keepdims=True) if V is None else T @ V[c : c + TILE]

    with threadpool_limits(1 if threads > 1 else None), ThreadPoolExecutor(threads) as pool:
        list(pool.map(panel, range(0, rows, TILE)))
    return out


def sklearn_product(kernel: str, X: Array, sigma: float, V: Array | None, rows: int) -> Array:
    if kernel == "gaussian":
        K = rbf_kernel(X[:rows], X, gamma=1 / sigma**2)
    elif kernel == "laplacian":
        K = laplacian_kernel(X[:rows], X, gamma=1 / sigma)
    else:
        K = SklearnMatern(sigma, nu=1.5)(X[:rows], X)
    return K.sum(axis=1, keepdims=True) if V is None else K @ V.astype(K.dtype)


def keops_product(kernel: str, X: Array, sigma: float, V: Array | None, rows: int) -> Array:
    from pykeops.numpy import LazyTensor

    x, y = LazyTensor(X[:rows, None, :].copy()), LazyTensor(X[None, :, :].copy())
    if kernel == "gaussian":
        K = (-((x - y) ** 2).sum(-1) / sigma**2).exp()
    elif kernel == "laplacian":
        K = (-(x - y).abs().sum(-1) / sigma).exp()
    else:
        s = np.sqrt(3) / sigma * ((x - y) ** 2).sum(-1).sqrt()
        K = (1 + s) * (-s).exp()
    return K.sum(axis=1) if V is None else K @ V


def reference(kernel: str, X: Array, sigma: float, V: Array | None, rows: Array) -> Array:
    """Rows of the product in double precision from differences, summed in extended precision."""
    out = []
    X64 = X.astype(np.float64)
    for i in rows:
        difference = X64[i] - X64
        if kernel == "laplacian":
            K = np.exp(-np.abs(difference).sum(axis=1, dtype=np.longdouble) / sigma)
        else:
            t = np.einsum("ij,ij->i", difference, difference).astype(np.longdouble) / np.longdouble(sigma) ** 2
            s = np.sqrt(3 * t)
            K = np.exp(-t) if kernel == "gaussian" else (1 + s) * np.exp(-s)
        out.append([K.sum()] if V is None else K @ V.astype(np.longdouble))
    return np.array(out, dtype=np.float64)


def best_time(function: Callable[[], Array], repeats: int) -> tuple[float, Array]:
    """The best wall time of a few calls, after one that warms caches and compilers."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = function()
        times.append(time.perf_counter() - start)
    return min(times), value


def relative_error(value: Array, exact: Array) -> float:
    """Largest error relative to the size of the exact column."""
    return float(np.max(np.abs(value - exact) / np.abs(exact).max(axis=0)))


def median_distance(X: Array, metric: str) -> float:
    sample = X[np.random.default_rng(0).choice(len(X), min(len(X), 1000), replace=False)].astype(np.float64)
    return float(np.median(cdist(sample, sample, metric)[np.triu_indices(len(sample), 1)]))


def slab(method: str, d: int, n: int) -> int:
    """How many rows a method is timed on: without symmetry its cost an entry does not depend on their number."""
    if method == "mercer":
        return n
    return min(n, 2048 if d > 100 else 4096)  # two tiles at least, one for each thread of NumPy


def measure(
    X: Array, kernel: str, sigma: float, V: Array | None, repeats: int
) -> list[tuple[str, float, float, float]]:
    """Rate, peak memory and error of every method."""
    n, d = X.shape
    picked = np.random.default_rng(1).choice(1024, 50, replace=False)
    exact = reference(kernel, X, sigma, V, picked)
    resolved = ours(kernel, sigma)

    def product(gram: mercer.GramOperator) -> Array:
        return gram.row_sums()[:, None] if V is None else gram @ V[: gram.shape[1]]

    methods: dict[str, Callable[[int], Array]] = {
        "NumPy tiles": lambda r: numpy_product(kernel, X, sigma, V, r, 1),
        "NumPy tiles, 2 threads": lambda r: numpy_product(kernel, X, sigma, V, r, 2),
        "KeOps": lambda r: keops_product(kernel, X, sigma, V, r),
        "scikit-learn": lambda r: sklearn_product(kernel, X, sigma, V, r),
        "mercer": lambda r: product(mercer.GramOperator(resolved, X[:r])),
        "mercer, rectangular": lambda r: product(mercer.GramOperator(resolved, X[:r], X)),
    }
    rows = []
    with mercer.config_context(memory_limit=0):
        for name, run in methods.items():
            r = slab(name, d, n)
            run(600)  # compile and warm up
            with PeakMemory() as memory:
                seconds, value = best_time(lambda run=run, r=r: run(r), 1 if d > 100 else repeats)
            rows.append((name, r * n / seconds / 1e9, memory.peak / 1e6, relative_error(value[picked], exact)))
    return rows


def machine_limits() -> list[str]:
    """What the machine can do at most: arithmetic, exponentials, memory."""
    from mercer.backends.cpu.rows import exponential
    from mercer.backends.threads import run_chunks

    lines = []
    for dtype in (np.float32, np.float64):
        A = np.random.default_rng(0).standard_normal((2048, 2048)).astype(dtype)
        seconds, _ = best_time(lambda A=A: A @ A, 5)
        tiles = [np.full((256, 256), 0.5, dtype) for _ in range(2)]
        exponential(tiles[0], 256, 256, False)

        def many(tile: Array) -> Array:
            for _ in range(400):
                exponential(tile, 256, 256, False)
            return tile

        exp_seconds, _ = best_time(lambda tiles=tiles: run_chunks(many, tiles), 3)
        rate = 2 * 400 * 256 * 256 / exp_seconds / 1e9
        lines.append(f"| {np.dtype(dtype).name} | {2 * 2048**3 / seconds / 1e9:.0f} | {rate:.2f} |")
    source = np.ones(2**26)
    target = np.empty_like(source)

    def copy(part: int) -> None:
        half = source.size // 2
        target[part * half : (part + 1) * half] = source[part * half : (part + 1) * half]

    seconds, _ = best_time(lambda: run_chunks(copy, range(2)), 3)
    lines.append(f"\nCopy bandwidth on two threads: {2 * source.nbytes / seconds / 1e9:.1f} GB/s.")
    return lines


def accuracy_cases() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    clusters = rng.standard_normal((4000, 18))
    clusters[2000:, 0] += 100 * 6.0
    cases = {"two clusters 100σ apart": clusters}
    if data_folder() is not None:
        cases["raw HTRU2"] = load_real("htru2")["X"][:6000].astype(np.float64)
    return cases


def accuracy_table() -> list[str]:
    """Row-sum errors on data that inner products handle badly."""
    lines = ["| data | kernel | dtype | mercer | NumPy tiles | scikit-learn |", "|---|---|---|---|---|---|"]
    for name, data in accuracy_cases().items():
        for kernel in KERNELS:
            for dtype in (np.float32, np.float64):
                X = data.astype(dtype)
                metric = "cityblock" if kernel == "laplacian" else "euclidean"
                sigma = 6.0 if "clusters" in name else median_distance(X, metric)
                picked = np.arange(0, len(X), len(X) // 50)
                exact = reference(kernel, X, sigma, None, picked)
                values = (
                    mercer.GramOperator(ours(kernel, sigma), X).row_sums()[:, None],
                    numpy_product(kernel, X, sigma, None, len(X), 2),
                    sklearn_product(kernel, X, sigma, None, len(X)),
                )
                errors = " | ".join(f"{relative_error(value[picked], exact):.0e}" for value in values)
                lines.append(f"| {name} | {kernel} | {np.dtype(dtype).name} | {errors} |")
    return lines


def memory_table(n: int) -> list[str]:
    """Peak memory beyond the data for a large sample."""
    lines = [f"| dtype | d | job | seconds | peak beyond the data (MB), n = {n} |", "|---|---|---|---|---|"]
    for dtype in (np.float32, np.float64):
        for d in (3, 18, 100):
            X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
            V = np.random.default_rng(1).standard_normal((n, 10)).astype(dtype)
            gram = mercer.GramOperator(mercer.Gaussian(float(np.sqrt(2 * d))), X)
            gram.block(slice(0, 600), slice(0, 600))
            for job in ("row sums", "10 columns"):
                with PeakMemory() as memory, mercer.config_context(memory_limit="100MB"):
                    start = time.perf_counter()
                    gram.row_sums() if job == "row sums" else gram @ V
                    seconds = time.perf_counter() - start
                lines.append(f"| {np.dtype(dtype).name} | {d} | {job} | {seconds:.1f} | {memory.peak / 1e6:.0f} |")
    return lines


def summary(rows: list[Row]) -> list[str]:
    """The ratios that matter: against threaded NumPy in the same dtype, and against the best peer."""
    lines = [
        "| kernel | dtype | d | job | mercer / threaded NumPy | mercer / best peer | rectangular / threaded NumPy |",
        "|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((r.kernel, r.dtype, r.d, r.job) for r in rows):
        rate = {r.method: r.rate for r in rows if (r.kernel, r.dtype, r.d, r.job) == key}
        best = max(v for m, v in rate.items() if not m.startswith("mercer"))
        threaded = rate["NumPy tiles, 2 threads"]
        numbers = (rate["mercer"] / threaded, rate["mercer"] / best, rate["mercer, rectangular"] / threaded)
        lines.append(f"| {' | '.join(map(str, key))} | {' | '.join(f'{v:.2f}' for v in numbers)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    n, repeats = (4000, 1) if options.quick else (20_000, 2)
    table: list[Row] = []
    for kernel in KERNELS:
        for dtype in (np.float32, np.float64):
            for d in (3, 18, 100, 784):
                X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
                V = np.random.default_rng(1).standard_normal((n, 10)).astype(dtype)
                sigma = median_distance(X, "cityblock" if kernel == "laplacian" else "euclidean")
                for job, block in (("row sums", None), ("10 columns", V)):
                    for method, rate, memory, error in measure(X, kernel, sigma, block, repeats):
                        table.append(Row(kernel, np.dtype(dtype).name, d, job, method, rate, memory, error))
                        print(table[-1], flush=True)
    limits = machine_limits()
    text = [
        "# Gram products and row sums on the CPU",
        "",
        f"n = {n}, normal data, σ = median distance, one run of `benchmarks/gram_products.py`, two threads. "
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; NumPy {np.__version__}.",
        "",
        "## Ratios",
        "",
        *summary(table),
        "",
        "## What the machine can do",
        "",
        "| dtype | matrix product, GFlop/s | our exp(-t), billion/s, tile in cache |",
        "|---|---|---|",
        *limits,
        "",
        "## All methods",
        "",
        "The symmetric product is timed whole, the others on the first 4096 rows (2048 at d = 784).",
        "Rates in billion entries of K a second. Memory is the peak beyond what was resident before the call. Errors",
        "are the largest relative to the column's largest entry, on 50 rows, against double precision, extended sums.",
        "",
        "| kernel | dtype | d | job | method | 10⁹ entries/s | peak MB | error |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {r.kernel} | {r.dtype} | {r.d} | {r.job} | {r.method} | {r.rate:.3f} | {r.memory:.0f} | {r.error:.1e} |"
            for r in table
        ),
        "",
        "## Data that inner products handle badly: error of the row sums",
        "",
        *accuracy_table(),
        "",
        "## Memory",
        "",
        *memory_table(20_000 if options.quick else 100_000),
        "",
    ]
    options.output.write_text("\n".join(text))
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
