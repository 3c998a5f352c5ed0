"""Products with a kernel matrix that is not stored, against KeOps, torch, NumPy and scikit-learn.

python -m benchmarks race products      # writes benchmarks/results/race_products.md
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gram_products import keops_product, median_distance, numpy_product, reference, relative_error, sklearn_product
from race_setting import machine, one_thread
from result_page import write_table

from mercer import Gaussian, GramOperator, config_context

RESULT = Path(__file__).parent / "results" / "race_products.md"
ROWS, SLAB, COLUMNS, CHECKED = 20_000, 2048, 18, 40
FEATURES = (3, 10, 100)
Array = np.ndarray[Any, Any]
Product = Callable[[Array, float, Array | None, int], Array]


def ours(X: Array, sigma: float, V: Array | None, rows: int) -> Array:
    gram = GramOperator(Gaussian(sigma), X)
    return gram.row_sums()[:, None] if V is None else gram @ V


def torch_product(X: Array, sigma: float, V: Array | None, rows: int) -> Array:
    """A panel of rows at a time, as a careful user writes it."""
    import torch

    x, out = torch.from_numpy(X), []
    squares = (x * x).sum(1)
    v = None if V is None else torch.from_numpy(V)
    for low in range(0, rows, 512):
        panel = torch.addmm(squares, x[low : low + 512], x.T, alpha=-2).add_(squares[low : low + 512, None])
        panel.clamp_(min=0).mul_(-1 / sigma**2).exp_()
        out.append(panel.sum(1, keepdim=True) if v is None else panel @ v)
    return torch.cat(out).numpy()


METHODS: dict[str, tuple[Product, bool]] = {  # and whether it takes all rows, because it knows of the symmetry
    "**mercer**": (ours, True),
    "KeOps": (lambda X, s, V, r: keops_product("gaussian", X, s, V, r), False),
    "torch": (torch_product, False),
    "NumPy": (lambda X, s, V, r: numpy_product("gaussian", X, s, V, r, 1), False),
    "scikit-learn": (lambda X, s, V, r: sklearn_product("gaussian", X, s, V, r), False),
}


def rate(product: Product, whole: bool, X: Array, sigma: float, V: Array | None) -> tuple[float, Array]:
    """Billions of entries a second of a processor, the best of three, and the first rows."""
    rows = len(X) if whole else SLAB
    product(X[:600], sigma, None if V is None else V[:600], 600)  # compiles
    seconds = []
    for _ in range(3):
        began = time.process_time()
        value = product(X, sigma, V, rows)
        seconds.append(time.process_time() - began)
    return rows * len(X) / min(seconds) / 1e9, value[:CHECKED]


def lines(d: int, dtype: str, columns: int | None) -> list[str]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, d)).astype(dtype)
    V = None if columns is None else rng.standard_normal((ROWS, columns)).astype(dtype)
    sigma = median_distance(X, "euclidean")
    exact = reference("gaussian", X, sigma, V, np.arange(CHECKED))
    found = []
    for name, (product, whole) in METHODS.items():
        job = "row sums" if V is None else f"{columns} columns"
        try:
            speed, value = rate(product, whole, X, sigma, V)
        except Exception as problem:  # a peer that does not compile here
            found.append(f"| {d} | {dtype} | {job} | {name} | {type(problem).__name__} | |")
            continue
        found.append(f"| {d} | {dtype} | {job} | {name} | {speed:.2f} | {relative_error(value, exact):.0e} |")
    return found


def main() -> None:
    table = [
        "| d | arithmetic | product | by | 10⁹ entries a second | error |",
        "| ---: | --- | --- | --- | ---: | ---: |",
    ]
    with one_thread(), config_context(memory_limit=0):
        for d in FEATURES:
            for dtype in ("float32", "float64"):
                for columns in (COLUMNS, None):
                    table += lines(d, dtype, columns)
                    print("\n".join(table[-len(METHODS) :]), flush=True)
    write_table(RESULT, "table", [machine("pykeops", "torch", "numpy", "scikit-learn"), "", *table])


if __name__ == "__main__":
    main()
