"""Support-vector machines with fewer vectors, by the kernel discrepancy of their measures (QUAD section 10).

    MERCER_DATA=... python benchmarks/quadrature_machines.py          # a minute on two cores

Writes the tables of benchmarks/results/quadrature_machines.md; the text around them stays.

A one-class machine is the function of a measure, f = Σ βᵢ k(·, xᵢ) with β > 0; one that classifies is the difference of
two, that of the vectors of either class. Each measure is sparsified on its own with ``discrepancy="mmd"``, which
minimises ‖f - f̃‖ in the space of the kernel, so that |f(x) - f̃(x)| ≤ ‖f - f̃‖ √k(x, x) everywhere; the offset stays.
Beside it: as many of the vectors, those of largest weight or at random, with their weights scaled to the same sum.
"Settled" are weights of any sign that bring the function nearest to f in the span of the vectors left, all together.
HTRU2, standardised, a random third for training; Gaussian kernel, γ = 1/8; C = 10, and ν = 0.1 without labels.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.svm import SVC, OneClassSVM

from mercer import Gaussian, QuadratureSparsifier
from mercer.datasets import load_real
from mercer.datasets.tables import standardized

Array = np.ndarray[Any, Any]
Measure = tuple[Array, Array]  # points, and their positive weights
PAGE = Path(__file__).parent / "results" / "quadrature_machines.md"
GAMMA, PARTS = 1 / 8, (0.5, 0.25, 0.1, 0.05)
KERNEL = Gaussian(sigma=GAMMA**-0.5)


def optimal(points: Array, weights: Array, count: int, rng: Any) -> Measure:
    """The best of few nodes, in the norm of the space."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer nodes may do it all
        model = QuadratureSparsifier(KERNEL, n_nodes=count, discrepancy="mmd").fit(points, sample_weight=weights)
    return model.components_, weights.sum() * model.weights_


def heaviest(points: Array, weights: Array, count: int, rng: Any) -> Measure:
    chosen = np.argsort(-weights)[:count]
    return points[chosen], weights[chosen] * (weights.sum() / weights[chosen].sum())


def at_random(points: Array, weights: Array, count: int, rng: Any) -> Measure:
    chosen = rng.choice(len(points), count, replace=False)
    return points[chosen], weights[chosen] * (weights.sum() / weights[chosen].sum())


WAYS: dict[str, Callable[..., Measure]] = {"optimal nodes": optimal, "heaviest": heaviest, "at random": at_random}


def function(measures: list[tuple[float, Measure]], X: Array) -> Array:
    """Σ ± Σ βᵢ k(x, xᵢ)."""
    return sum((sign * (KERNEL(X, points) @ weights) for sign, (points, weights) in measures), np.zeros(len(X)))


def rows(signed: list[tuple[float, Measure]], offset: float, X: Array, judge: Callable[[Array], str]) -> list[str]:
    """The whole machine, then each way to make it smaller at each size."""
    whole, total = function(signed, X), sum(len(points) for _, (points, _) in signed)
    lines = [f"| all | {total} | 0 | {judge(whole + offset)} | 0 | {judge(whole + offset)} |"]
    for part in PARTS:
        for name, way in WAYS.items():
            rng = np.random.default_rng(0)
            fewer = [(sign, way(*m, max(1, round(part * len(m[0]))), rng)) for sign, m in signed]
            count = sum(len(points) for _, (points, _) in fewer)
            cells = [cell(values, whole, offset, judge) for values in (function(fewer, X), settled(fewer, signed, X))]
            lines.append(f"| {name} | {count} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def settled(fewer: list[tuple[float, Measure]], signed: list[tuple[float, Measure]], X: Array) -> Array:
    """The best function in the span of the vectors left, with weights of any sign: K_II w = f(I)."""
    points = np.concatenate([points for _, (points, _) in fewer])
    weights = np.linalg.lstsq(KERNEL(points), function(signed, points), rcond=1e-12)[0]
    return np.asarray(KERNEL(X, points) @ weights)


def cell(values: Array, whole: Array, offset: float, judge: Callable[[Array], str]) -> str:
    """The error in units of the spread of f, and the verdict."""
    error = np.sqrt(np.mean((values - whole) ** 2)) / np.std(whole)
    return f"{error:.4f} | {judge(values + offset)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    data = load_real("htru2")
    X, y = standardized(data["X"].astype(float)), data["y"].astype(int)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[: len(X) // 3], order[len(X) // 3 :]
    head = ["| vectors | how many | error of f | {} | error of f, settled | {} |", "|" + " --- |" * 6]

    machine = SVC(C=10.0, gamma=GAMMA).fit(X[train], y[train])
    beta, vectors = machine.dual_coef_[0], machine.support_vectors_
    both = [(sign, (vectors[sign * beta > 0], np.abs(beta[sign * beta > 0]))) for sign in (1.0, -1.0)]
    lines = rows(both, float(machine.intercept_[0]), X[test], lambda f: f"{f1_score(y[test], f > 0):.4f}")
    write_table(PAGE, "classes", [head[0].format(*["F₁ of the pulsars"] * 2), head[1], *lines])

    single = OneClassSVM(nu=0.1, gamma=GAMMA).fit(X[train])
    one = [(1.0, (single.support_vectors_, single.dual_coef_[0]))]
    offset, outlying = float(single.intercept_[0]), y[test] == 1
    whole = function(one, X[test]) + offset < 0

    def judge(f: Array) -> str:
        return f"{roc_auc_score(outlying, -f):.4f}; {100 * np.mean((f < 0) == whole):.2f} % as the whole"

    lines = rows(one, offset, X[test], judge)
    write_table(PAGE, "one class", [head[0].format(*["area under the curve; same verdict"] * 2), head[1], *lines])


if __name__ == "__main__":
    main()
