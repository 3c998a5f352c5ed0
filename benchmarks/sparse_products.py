"""Products with sparse affinities: threads against one thread, and against SciPy, which has one.

Run: python benchmarks/sparse_products.py [points] [neighbours]
Prints milliseconds a product, the least of several, and milliards of terms a second.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from mercer import config_context
from mercer.kernels import Precomputed


def best(call: Callable[[], Any], repeats: int = 9) -> float:
    """The least seconds of several calls, after one that compiles."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Print the table."""
    n, neighbours = (int(a) for a in (sys.argv[1:] + ["100000", "30"][len(sys.argv) - 1 :])[:2])
    rng = np.random.default_rng(0)
    cores = os.cpu_count() or 1
    threads = [t for t in (1, 2, 4, 8, 16, 32) if t <= cores]
    print(f"{n} points, {neighbours} neighbours, {cores} cores")
    print(f"{'':>12} {'columns':>8} {'scipy':>9} " + " ".join(f"{t:>6} thr" for t in threads) + "   terms/s")
    for dtype in (np.float64, np.float32):
        rows, cols = np.repeat(np.arange(n), neighbours), rng.integers(0, n, n * neighbours)
        graph = scipy.sparse.csr_array((np.ones(rows.size, dtype), (rows, cols)), shape=(n, n))
        graph = (graph + graph.T).tocsr()
        matrix = Precomputed().matrix(graph)
        for columns in (1, 3, 10, 32):
            v = rng.normal(size=(n, columns)).astype(dtype)
            times = []
            for count in threads:
                with config_context(n_threads=count):
                    times.append(best(partial(matrix.multiply, v)))
            scipys = best(partial(graph.__matmul__, v))
            shown = " ".join(f"{1e3 * t:>10.2f}" for t in times)
            rate = graph.nnz * columns / min(times) / 1e9
            print(f"{dtype.__name__:>12} {columns:>8} {1e3 * scipys:>9.2f} {shown}   {rate:.2f}e9")


if __name__ == "__main__":
    main()
