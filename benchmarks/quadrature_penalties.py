"""Penalties taken from the spectrum in the place of the trace (QUAD section 10): do they buy accuracy for nodes?

    MERCER_DATA=... python benchmarks/quadrature_penalties.py               # two minutes on two cores
    python benchmarks/quadrature_penalties.py --only halton

Writes the tables of benchmarks/results/quadrature_penalties.md; the text around them stays.

With the eigenpairs (λ_l, φ_l) of T_μ itself a penalty is d(x) = Σ f(λ_l) φ_l(x)²: f(λ) = λ is the trace, diag K. The
others are the leverage f = λ/(λ + λ₂₁), the head (λ for the first 21 directions alone, and a hundredth of it for the
rest), the tail (λ beyond the first 21, and a hundredth of it for these), and the root √λ. They need the spectrum that a
quadrature is to spare; the last one takes the tail from a hundred random points. Every penalty follows its own path to
the same numbers of nodes, where the directions with Υ ≥ 0.99 of the first 62 are counted and D is read off. The last
line is the estimator's own way to a number of nodes, whose weights are settled without a penalty.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

from mercer import Gaussian, QuadratureSparsifier
from mercer.datasets import halton_square, load_real
from mercer.datasets.tables import standardized
from mercer.quadrature import ApproximateEigenpairs, approximate_eigenpairs

Array = np.ndarray[Any, Any]
PAGE = Path(__file__).parent / "results" / "quadrature_penalties.md"
MAIN, SHARE, DIRECTIONS, LEVEL = 21, 0.01, 62, 0.99
NODES = (40, 80, 160)


def cases() -> dict[str, tuple[Array, Gaussian]]:
    """The paper's example, and rows of covtype."""
    found: dict[str, Any] = {"halton": lambda: (halton_square(2016), Gaussian(sigma=0.4))}

    def covtype() -> tuple[Array, Gaussian]:
        X = standardized(load_real("covtype")["X"][:, :10].astype(float))
        return X[np.random.default_rng(0).choice(len(X), 2000, replace=False)], Gaussian(sigma=3.0)

    return {**found, "covtype": covtype}


def penalties(X: Array, kernel: Gaussian) -> dict[str, Array]:
    """d by the name of its f, each with mean one over the sample."""
    n = len(X)
    values, vectors = np.linalg.eigh(kernel(X) / n)
    values, squares = np.maximum(values[::-1], 0.0), n * vectors[:, ::-1] ** 2
    main = np.where(np.arange(n) < MAIN, 1.0, SHARE)
    rest = np.where(np.arange(n) < MAIN, SHARE, 1.0)
    functions = {
        "trace, λ": values,
        "leverage, λ/(λ + λ₂₁)": values / (values + values[MAIN - 1]),
        "head of 21": values * main,
        "tail beyond 21": values * rest,
        "root, √λ": np.sqrt(values),
    }
    found = {name: squares @ function for name, function in functions.items()}
    found["tail, from 100 random points"] = cheap_tail(X, kernel)
    return {name: d / d.mean() for name, d in found.items()}


def cheap_tail(X: Array, kernel: Gaussian) -> Array:
    """The tail without the spectrum: the first 21 directions are those in the span of 100 points at random."""
    n, nodes = len(X), np.random.default_rng(0).choice(len(X), 100, replace=False)
    pairs = approximate_eigenpairs(kernel, X, np.full(n, 1 / n), nodes, np.ones(100), MAIN, upsilon=False, refine=True)
    head = pairs.functions**2 @ pairs.canonical
    return np.maximum(1.0 - head, 0.0) + SHARE * head


def measured(X: Array, kernel: Gaussian, d: Array) -> list[str]:
    """Directions with Υ ≥ 0.99 and D at each number of nodes."""
    n, cells = len(X), []
    path = QuadratureSparsifier(kernel, n_nodes=NODES[-1], penalty=d, solver="path").fit(X).path_
    for count in NODES:
        point = path.at(n_nodes=count)
        pairs = approximate_eigenpairs(
            kernel, X, np.full(n, 1 / n), point.indices, point.weights, min(DIRECTIONS, count)
        )
        cells.append(counted(pairs, point.discrepancy))
    return cells


def counted(pairs: ApproximateEigenpairs, discrepancy: float) -> str:
    """A cell: directions with Υ ≥ 0.99, and D."""
    assert pairs.upsilon is not None
    return f"{int((pairs.upsilon >= LEVEL).sum())}, D = {discrepancy:.1e}"


def table(X: Array, kernel: Gaussian) -> list[str]:
    """One line a penalty."""
    lines = ["| penalty | " + " | ".join(f"{count} nodes" for count in NODES) + " |", "|" + " --- |" * (1 + len(NODES))]
    for name, d in penalties(X, kernel).items():
        lines.append(f"| {name} | " + " | ".join(measured(X, kernel, d)) + " |")
        print(lines[-1], flush=True)
    found = [QuadratureSparsifier(kernel, n_nodes=count).fit(X) for count in NODES]
    cells = [counted(model.eigenpairs(min(DIRECTIONS, model.indices_.size)), model.discrepancy_) for model in found]
    return [*lines, "| none: ``n_nodes`` alone, by elimination | " + " | ".join(cells) + " |"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=cases())
    options = parser.parse_args()
    for name, make in cases().items():
        if options.only in (None, name):
            write_table(PAGE, name, table(*make()))


if __name__ == "__main__":
    main()
