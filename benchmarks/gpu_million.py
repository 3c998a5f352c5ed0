"""Certified embeddings of 100 000 to a million points on a card, for a user of NumPy.

    python benchmarks/gpu_million.py                                   # minutes on a card
    python benchmarks/gpu_million.py --device torch --n 2000           # without a card: that it runs

Writes benchmarks/results/gpu_million.md. Points are rows of covtype, the ten columns that are lengths and angles,
standardised and drawn again with a little noise where there are not enough, from MERCER_DATA; without it a mixture in
ten dimensions. The bandwidth is the median distance. A size that does not fit the card says so in its line.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gpu_card import options, peak_gigabytes, timed, told

from mercer import Gaussian, SDPEmbedding, config_context

TOLERANCE = 1e-6


def points(n: int) -> tuple[Any, str]:
    """Rows of covtype, or of a mixture where its file is not there."""
    rng = np.random.default_rng(0)
    file = Path(os.environ.get("MERCER_DATA", ".")) / "covtype.npz"
    if not file.exists():
        return rng.normal(size=(n, 10)) + 3 * rng.integers(0, 3, size=(n, 1)), "a mixture of three normals"
    rows = np.load(file)["X"][:, :10].astype(float)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return rows[rng.choice(len(rows), n, replace=n > len(rows))] + 0.02 * rng.normal(size=(n, 10)), "covtype"


def row(n: int, device: str, dtype: str) -> str:
    """A fit of one size: seconds, what is proved, and the card's memory."""
    X, source = points(n)
    model = SDPEmbedding(Gaussian("median"), tol=TOLERANCE, random_state=0)
    head = f"| {source} | {n} | {dtype} | "
    with config_context(device=device, dtype=dtype), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seconds, fitted = timed(lambda: model.fit(X), device)
        except (MemoryError, ValueError, ArithmeticError) as error:
            return head + f"{type(error).__name__}: {error} | | | | |"
    proof = fitted.certificate_
    gap = "none" if proof is None else f"{proof.relative_gap:.1e}"
    return head + f"{seconds:.1f} | {gap} | {fitted.rank_} | {fitted.n_products_} | {peak_gigabytes(device)} |"


def main() -> None:
    """Run all sizes and write the page."""
    given = options(__doc__, n=[100_000, 300_000, 1_000_000])
    table = [
        "| points | n | precision | seconds | relative gap | rank | columns multiplied | peak, GB |",
        "|---" * 8 + "|",
    ]
    row(1000, given.device, "float64")  # compiles
    for n in given.n:
        for dtype in ("float64", "float32"):
            table.append(row(n, given.device, dtype))
            print(table[-1], flush=True)
    words = f"Fits of NumPy arrays from the call to the arrays that come back, with proofs; tolerance {TOLERANCE:g}."
    told(given, "gpu_million", "A million points on a card", words, table)


if __name__ == "__main__":
    main()
