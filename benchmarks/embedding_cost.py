"""What a certified embedding costs, in columns the exact operator is applied to.

    MERCER_DATA=... python benchmarks/embedding_cost.py            # writes benchmarks/results/embedding_cost.md

Baseline: the papers' projected power method with ten columns, in the same run, stopped by an oracle at the first step
whose true relative gap is at most 1e-6; the oracle and a certificate cost it nothing. Ours pays for every column:
solver, certificates that failed on the way, the final certificate.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from mercer import DiffusionOperator, Gaussian, GramOperator, SDPEmbedding, datasets
from mercer.datasets.tables import standardized
from mercer.problems import Elliptope
from mercer.solvers import ProjectedPower

RESULT = Path(__file__).parent / "results" / "embedding_cost.md"
COLUMNS = 10
MOST_STEPS = 40_000
TOL, FINE = 1e-6, 1e-10
SMALL, FEW = 2000, 500


@dataclass(frozen=True)
class Row:
    name: str
    X: Any
    sigma: Any


def rows(quick: bool) -> list[Row]:
    moons, wine = standardized(datasets.two_moons()[0]), datasets.wine()[0]
    small = [Row("two moons", moons, sigma) for sigma in (0.1, 0.4)]
    small += [Row("three clusters, outliers", datasets.three_clusters()[0], 1.2)]
    small += [Row("wine", wine, sigma) for sigma in (0.7, 1.0, 2.0, 3.0)]
    small += [Row("iris", datasets.iris()[0], 1.0)]
    if quick:
        return small
    pulsars = datasets.htru2(n=6000)[0]
    return [
        *small,
        Row("swiss roll", datasets.swiss_roll(2000)[0], 0.3),
        Row("digits", datasets.digits()[0], 2.0),
        Row("MNIST 1/4", datasets.mnist_pair(n=3775)[0], 10.0),
        Row("HTRU2", pulsars, 5.0),
        Row("HTRU2", pulsars, 10.0),
        Row("marrow", datasets.marrow(), "median"),
    ]


class Oracle:
    """The true relative gap, from the whole matrix."""

    def __init__(self, problem: Elliptope) -> None:
        self._J = problem.scale[:, None] * problem.operator.to_dense() * problem.scale

    def gap(self, H: Any, G: Any) -> float:
        z = np.einsum("ij,ij->i", H, G)
        if z.min() <= 0:
            return np.inf
        n, root = z.size, 1 / np.sqrt(z)
        if n <= 500:
            return float(eigh(root[:, None] * self._J * root, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0]) - 1
        map_ = LinearOperator((n, n), matvec=lambda v: root * (self._J @ (root * np.ravel(v))), dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n) + np.sqrt(z) * H.sum(axis=1)
        return float(eigsh(map_, k=2, which="LA", v0=start, ncv=30, tol=1e-8, return_eigenvectors=False).max()) - 1


def plain_steps(problem: Elliptope, oracle: Oracle) -> int | None:
    """Block products until the gap is at most 1e-6, looked for at steps 3 % apart (10 % for large n); None: never."""
    H = problem.random_point(COLUMNS, np.random.default_rng(0))
    method, step, look = ProjectedPower(), 1, 10
    H, G = method.start(problem, H)
    while step < MOST_STEPS:
        H, G = method.step(problem)
        step += 1
        if step >= look:
            if oracle.gap(H, G) <= TOL:
                return step
            look = max(step + 1, int((1.03 if problem.size <= SMALL else 1.1) * step))
    return None


def fit(row: Row, tol: float, residual_tol: float, certify: str | bool) -> tuple[SDPEmbedding, float]:
    began = time.perf_counter()
    model = SDPEmbedding(
        Gaussian(sigma=row.sigma),
        initial_rank=COLUMNS,
        tol=tol,
        residual_tol=residual_tol,
        certify=certify,
        max_iter=MOST_STEPS,
        random_state=0,
    ).fit(row.X)
    return model, time.perf_counter() - began


def measure(row: Row) -> list[str]:
    kernel = Gaussian(sigma=row.sigma).resolve(row.X)
    operator = DiffusionOperator(GramOperator(kernel, row.X))
    problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
    n = problem.size
    oracle = Oracle(problem)
    plain = plain_steps(problem, oracle)
    # a factorisation reads n columns of entries: from some hundred points on, products alone prove the gap with fewer
    proof, residual_tol = (True, 1e-4) if n <= FEW or n > SMALL else ("deflated-lanczos", 1e-5)
    model, seconds = fit(row, TOL, residual_tol, proof)
    total, certificate = columns_of(model), model.certificate_
    solver = total - certificate.n_products
    ratio = (MOST_STEPS if plain is None else plain) * COLUMNS / total
    fine = "–"
    if n <= SMALL:
        finer, _ = fit(row, FINE, 1e-7, "factorisation")
        fine = f"{finer.certificate_.relative_gap:.0e}, {finer.n_products_}"
    blocks = f"> {MOST_STEPS}" if plain is None else f"{plain}"
    chance = "none" if certificate.failure_probability == 0 else f"{certificate.failure_probability:.0e}"
    return [
        row.name,
        str(n),
        f"{kernel.sigma:.3g}",
        blocks,
        str(solver),
        str(certificate.n_products),
        f"{total / COLUMNS:.1f}",
        f"{'> ' if plain is None else ''}{ratio:.1f}",
        f"{certificate.relative_gap:.0e}",
        f"{certificate.method}, {chance}",
        str(certificate.stand_in_rank),
        str(model.n_stand_in_products_),
        f"{model.rank_}",
        f"{seconds:.2f}",
        fine,
    ]


def columns_of(model: SDPEmbedding) -> int:
    """Columns of exact products, and columns whose entries a factorisation formed."""
    entries = model.certificate_.n_products if model.certificate_.method == "factorisation proof" else 0
    return int(model.n_products_ + entries)


HEAD = (
    "data", "n", "σ", "plain: blocks of 10", "ours: solver columns", "final certificate columns",
    "ours: blocks of 10, all told", "times fewer", "certified gap", "by, failure probability", "stand-in rank",
    "stand-in columns", "rank of B", "s", "gap and columns at tol 1e-10",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small data sets only, printed and not written")
    parser.add_argument("--only", help="rows whose name begins so, printed and not written")
    arguments = parser.parse_args()
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    for row in (row for row in rows(arguments.quick) if row.name.startswith(arguments.only or "")):
        lines.append("| " + " | ".join(measure(row)) + " |")
        print(lines[-1], flush=True)
    if not arguments.quick and not arguments.only:
        write_table(RESULT, "table", lines)


if __name__ == "__main__":
    main()
