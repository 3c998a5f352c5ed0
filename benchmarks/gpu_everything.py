"""Every kind of fit on a card beside this machine's processor: seconds, and how far apart answers are.

    python benchmarks/gpu_everything.py                                # some minutes on a card
    python benchmarks/gpu_everything.py --device torch --n 300         # without a card: that it runs

Writes benchmarks/results/gpu_everything.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from gpu_card import options, peak_gigabytes, timed, told
from sklearn.linear_model import Ridge

import mercer
from mercer import Gaussian, config_context

K = Gaussian(3.0)
FITS: dict[str, tuple[Callable[[], Any], str]] = {
    "SDPEmbedding": (lambda: mercer.SDPEmbedding(K, random_state=0), "transform"),
    "SDPEmbedding, 300 landmarks": (lambda: mercer.SDPEmbedding(K, landmarks=300, random_state=0), "transform"),
    "DiffusionMaps": (lambda: mercer.DiffusionMaps(K, random_state=0), "transform"),
    "KernelPCA": (lambda: mercer.KernelPCA(K, random_state=0), "transform"),
    "QuadratureSparsifier": (lambda: mercer.QuadratureSparsifier(K, n_nodes=50), "transform"),
    "SumOfSquaresDensity": (lambda: mercer.SumOfSquaresDensity(K, support=100, random_state=0), "score_samples"),
    "RobustKernelRegressor": (lambda: mercer.RobustKernelRegressor(K, radius=0.05, tol=1e-3), "predict"),
    "FisherDiscriminant": (lambda: mercer.FisherDiscriminant(K), "transform"),
    "ConditionalMeanEmbedding": (lambda: mercer.ConditionalMeanEmbedding(K, regularization=1e-3), "predict"),
    "Kernelized ridge": (lambda: mercer.Kernelized(Ridge(), K, landmarks=300, random_state=0), "predict"),
}


def asked(name: str, X: Any, y: Any, device: str) -> tuple[float, float, Any]:
    """The seconds of a fit and of its answers, and the answers."""
    make, method = FITS[name]
    with config_context(device=device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit, model = timed(lambda: make().fit(X, y), device)
        answer, values = timed(lambda: getattr(model, method)(X[:1000] + 0.01), device)
    return fit, answer, values


def row(name: str, n: int, device: str) -> str:
    """A line of the table; what fails on either side says so."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)) + 2 * rng.integers(0, 3, size=(n, 1))
    y = np.where(np.sin(X[:, 0]) + 0.1 * X[:, 1] > 0, 1.0, 0.0)
    try:
        asked(name, X[:200], y[:200], device)  # compiles
        here, there = asked(name, X, y, "cpu"), asked(name, X, y, device)
    except Exception as error:
        return f"| {name} | {n} | {type(error).__name__}: {error} | | | | | |"
    apart = float(np.abs(here[2] - there[2]).max() / max(np.abs(here[2]).max(), 1e-300))
    times = f"{here[0]:.2f} | {there[0]:.2f} | {here[1]:.3f} | {there[1]:.3f}"
    return f"| {name} | {n} | {times} | {apart:.1e} | {peak_gigabytes(device)} |"


def main() -> None:
    """Run all fits and write the page."""
    given = options(__doc__, n=[5_000])
    head = "| fit | n | fit, processor | fit, card | answers, processor | answers, card | answers apart | peak, GB |"
    table = [head, "|---" * 8 + "|"]
    for n in given.n:
        for name in FITS:
            table.append(row(name, n, given.device))
            print(table[-1], flush=True)
    words = (
        "Seconds of fits to n rows of ten features, and of answers for 1 000 new rows, one run each after a small one."
    )
    told(given, "gpu_everything", "Every fit on a card", words, table)


if __name__ == "__main__":
    main()
