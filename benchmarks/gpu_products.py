"""Products and row sums on a card: fused by Triton, by tiles of torch, and by KeOps where it is installed.

    python benchmarks/gpu_products.py                                  # a minute or two on a card
    python benchmarks/gpu_products.py --n 200000
    python benchmarks/gpu_products.py --device torch --n 2000          # without a card: that it runs

Writes benchmarks/results/gpu_products.md. Rates are entries of the whole matrix a second, errors the largest of 200
rows relative to Σ |k||v|, against float64 NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gpu_card import best_of, options, told

from mercer.kernels import Gaussian, Kernel, Laplacian, Matern, Polynomial

KERNELS = {
    "Gaussian": lambda d: Gaussian(float(np.sqrt(2 * d))),
    "Laplacian": lambda d: Laplacian(float(d)),
    "Matérn 3/2": lambda d: Matern(1.5, float(np.sqrt(2 * d))),
    "cubic": lambda d: Polynomial(3, 1 / d, 1.0),
}
CASES = [("Gaussian", d, r) for d in (3, 10, 64, 784) for r in (0, 1, 3, 4, 16)]
CASES += [(name, 10, r) for name in KERNELS if name != "Gaussian" for r in (0, 3)]
CHECKED = 200  # rows that are compared with NumPy


@contextmanager
def fused(on: bool) -> Iterator[None]:
    """Whether products may be fused."""
    before = os.environ.get("MERCER_FUSED")
    os.environ["MERCER_FUSED"] = "1" if on else "0"
    try:
        yield
    finally:
        os.environ.pop("MERCER_FUSED")
        if before is not None:
            os.environ["MERCER_FUSED"] = before


def error(kernel: Kernel, X: Any, V: Any | None, product: torch.Tensor) -> float:
    """Of the first rows, against NumPy."""
    K = kernel(X[:CHECKED], X)
    ones = np.ones((X.shape[0], 1)) if V is None else V
    found = product.double().cpu().numpy().reshape(X.shape[0], -1)[:CHECKED]
    return float((abs(found - K @ ones) / (abs(K) @ abs(ones))).max())


def keops(X: torch.Tensor, V: torch.Tensor | None, sigma: float) -> Any:
    """The Gaussian product of KeOps; None where it is not installed."""
    try:
        from pykeops.torch import LazyTensor
    except ImportError:
        return None
    x, y = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
    K = (-((x - y) ** 2).sum(-1) / sigma**2).exp()
    return (lambda: K.sum(1)) if V is None else (lambda: K @ V)


def row(case: tuple[str, int, int], dtype: str, n: int, device: str) -> str:
    """A line of the table."""
    name, d, r = case
    rng, kernel = np.random.default_rng(0), KERNELS[name](d)
    X, V = (rng.standard_normal((n, width)).astype(dtype).astype(float) for width in (d, max(r, 1)))
    place = "cpu" if device == "torch" else device
    points, columns = (torch.as_tensor(each, device=place, dtype=getattr(torch, dtype)) for each in (X, V))
    cells = []
    for on in (True, False):
        with fused(on):
            matrix = kernel.matrix(points)

            def work(matrix: Any = matrix) -> torch.Tensor:
                return matrix.multiply(columns) if r else matrix.row_sums()

            seconds = best_of(work, device)
            ours = "–" if on and matrix._fused is None else f"{n * n / seconds / 1e9:.3g}"
            cells += [ours, f"{error(kernel, X, V if r else None, work()):.1e}"]
    peer = keops(points, columns if r else None, float(np.sqrt(2 * d))) if name == "Gaussian" else None
    cells.append("–" if peer is None else f"{n * n / best_of(peer, device) / 1e9:.3g}")
    return f"| {name} | {dtype} | {d} | {r or 'row sums'} | {n} | " + " | ".join(cells) + " |"


def main() -> None:
    """Run all cases and write the page."""
    given = options(__doc__, n=[50_000])
    head = [
        "| kernel | precision | features | columns | n | fused, 10⁹/s | error | tiles, 10⁹/s | error | KeOps, 10⁹/s |"
    ]
    table = [*head, "|---" * 10 + "|"]
    for n in given.n:
        for dtype in ("float32", "float64"):
            for case in CASES:
                table.append(row(case, dtype, n, given.device))
                print(table[-1], flush=True)
    words = "Entries of the whole matrix a second, the best of several calls after one that compiles."
    told(given, "gpu_products", "Products on a card", words, table)


if __name__ == "__main__":
    main()
