"""What a certified sum-of-squares density costs, in seconds and memory, as the number of support points grows.

    python benchmarks/density_cost.py                 # m = 50 … 2000; about half an hour on two cores
    python benchmarks/density_cost.py --quick         # m = 50 … 200; about a minute

Writes the tables of benchmarks/results/density_cost.md; the text around them stays.

Beside ours a plain implementation of the paper, as its authors publish it, in NumPy: the tensor of m³ numbers is stored
and contracted, the step constant comes from a power iteration (theirs forms the m² × m² Hessian), and FISTA projects
with a full eigendecomposition. It gets a jitter on W where Cholesky fails. Every line runs in a process of its own, so
that the memory is that of the fit: peak resident size less what the imports had taken. Both stop at a certified gap of
1e-6 of ‖P_m v‖² by the same oracle; the plain one also after the time limit. BLAS has one thread up to m = 700, for
both: two of them wait for each other on small matrices.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from result_page import exponent, write_table
from scipy.linalg import eigh

from mercer import Gaussian
from mercer.backends.threads import blas_for
from mercer.datasets import two_moons
from mercer.kernels.integrals import kernel_integrals
from mercer.kernels.integrals.measures import Lebesgue
from mercer.problems import SumOfSquares
from mercer.solvers.run import Goal, solve
from mercer.solvers.spectrahedron.low_rank import LowRank

RESULT = Path(__file__).parent / "results" / "density_cost.md"
SIZES = (50, 100, 200, 500, 1000, 2000)
TOL = 1e-6
LARGEST_TENSOR = 500  # 1 GB
Array = np.ndarray[Any, Any]

# name: (data of so many points, σ, λ). In the plane W has a rank far below m; in five dimensions it has full rank.
CASES: dict[str, tuple[str, Callable[[int], Array], float, float]] = {
    "plane": ("Two moons in the plane, σ = 0.3, λ = 1e-4", lambda n: two_moons(n)[0], 0.3, 1e-4),
    "five": (
        "A normal law in five dimensions, σ = 1.5, λ = 0.01",
        lambda n: np.random.default_rng(0).standard_normal((n, 5)),
        1.5,
        1e-2,
    ),
}


def data(case: str, m: int) -> tuple[Array, Array, float, float]:
    _, make, sigma, regularization = CASES[case]
    X = make(2 * m)
    X = X[np.random.default_rng(1).permutation(X.shape[0])]
    return X, X[:m], sigma, regularization


def best_of_five(call: Callable[[], object]) -> float:
    """Seconds of the quickest of five calls."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def ours(case: str, m: int, limit: float) -> dict[str, Any]:
    X, support, sigma, regularization = data(case, m)
    kernel = Gaussian(sigma)
    began = time.perf_counter()
    integrals = kernel_integrals(kernel, support, Lebesgue())
    target = np.asarray(kernel(support, X).mean(axis=1))
    problem = SumOfSquares(integrals, kernel(support), target, regularization=regularization)
    goal = Goal(0.0, absolute=TOL * problem.constant)
    result = solve(problem, LowRank(goal), goal=goal)
    seconds = time.perf_counter() - began
    last = min(result.history, key=lambda line: line.gap)
    return {
        "seconds": seconds,
        "gradient": best_of_five(lambda: problem.gradient(problem.residual(result.point))),
        "steps": result.n_iter,
        "objective": last.objective,
        "gap": last.gap / problem.constant,
        "note": f"order {problem.dimension}, rank {result.point.shape[1]}",
    }


class Plain:
    """SOS (14) with everything stored."""

    def __init__(self, X: Array, support: Array, sigma: float, regularization: float) -> None:
        m, d = support.shape
        squares = np.sum((support[:, None] - support) ** 2, axis=2)
        W = (np.pi * sigma**2 / 2) ** (d / 2) * np.exp(-squares / (2 * sigma**2))
        K = np.exp(-squares / sigma**2)
        G = np.exp(-squares / (3 * sigma**2))
        self.tensor = (np.pi * sigma**2 / 3) ** (d / 2) * (G[:, :, None] * G[:, None, :] * G[None, :, :])
        self.inverse = np.linalg.inv(self._root(W))
        self.K_inverse = np.linalg.inv(K + 1e-10 * np.eye(m))
        self.target = np.exp(-np.sum((support[:, None] - X) ** 2, axis=2) / sigma**2).mean(axis=1)
        self.penalty = regularization * self.inverse.T @ K @ self.inverse
        self.constant = float(self.target @ self.K_inverse @ self.target)

    def _root(self, W: Array) -> Array:
        """The upper factor R of W = RᵀR, with as much jitter as it takes (Remark 1)."""
        for jitter in (0.0, 1e-12, 1e-10, 1e-8, 1e-6):
            try:
                return np.linalg.cholesky(W + jitter * np.trace(W) / len(W) * np.eye(len(W))).T
            except np.linalg.LinAlgError:
                continue
        raise ArithmeticError("W is not positive definite.")

    def value_and_gradient(self, C: Array) -> tuple[float, Array]:
        B = self.inverse @ C @ self.inverse.T
        residual = np.tensordot(self.tensor, B, 2) - self.target
        z = self.K_inverse @ residual
        inner = np.tensordot(z, self.tensor, 1)
        return float(residual @ z + np.sum(self.penalty * C)), 2 * self.inverse.T @ inner @ self.inverse + self.penalty

    def curvature(self) -> float:
        C, size = np.eye(len(self.target)), 0.0
        zero = self.value_and_gradient(np.zeros_like(C))[1]
        for _ in range(30):
            C = self.value_and_gradient(C / np.linalg.norm(C))[1] - zero
            size = float(np.linalg.norm(C))
        return 1.05 * size


def project(M: Array) -> Array:
    values, vectors = eigh((M + M.T) / 2)
    falling = values[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, values.size + 1)
    weights = np.maximum(values - excess[np.flatnonzero(falling > excess)[-1]], 0)
    return (vectors * weights) @ vectors.T


def plain(case: str, m: int, limit: float) -> dict[str, Any]:
    began = time.perf_counter()
    problem = Plain(*data(case, m))
    step = 1 / problem.curvature()
    C = Y = np.eye(m) / m
    momentum, number, gap, value = 1.0, 0, np.inf, np.inf
    while gap > TOL and time.perf_counter() - began < limit:
        new = project(Y - step * problem.value_and_gradient(Y)[1])
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        Y = new + (momentum - 1) / following * (new - C)
        C, momentum, number = new, following, number + 1
        if number % 20 == 0:
            value, G = problem.value_and_gradient(C)
            gap = (np.sum(G * C) - eigh(G, eigvals_only=True, subset_by_index=[0, 0])[0]) / problem.constant
    seconds = time.perf_counter() - began
    gradient = best_of_five(lambda: problem.value_and_gradient(C))
    return {
        "seconds": seconds, "gradient": gradient, "steps": number, "objective": value, "gap": float(gap), "note": "",
    }  # fmt: skip


METHODS = {"ours": ours, "plain": plain}


def one(case: str, method: str, m: int, limit: float) -> None:
    """A line in this process, printed as JSON."""
    METHODS["ours"](case, 20, limit)  # compiled code is loaded before the clock and the memory are read
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with blas_for(m):
        row = METHODS[method](case, m, limit)
    row["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps(row))


def measured(case: str, method: str, m: int, limit: float) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", case, method, str(m), str(limit)]
    return dict(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


HEAD = ("method", "m", "s", "steps", "objective", "gap", "one gradient, ms", "MB", "")


def table(case: str, sizes: list[int], limit: float) -> list[str]:
    lines = [f"{CASES[case][0]}, 2 m points.", "", "| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    for method in METHODS:
        done: list[tuple[int, dict[str, Any]]] = []
        for m in (m for m in sizes if method == "ours" or m <= LARGEST_TENSOR):
            row = measured(case, method, m, limit)
            done.append((m, row))
            lines.append(
                f"| {method} | {m} | {row['seconds']:.2f} | {row['steps']} | {row['objective']:.6e} | {row['gap']:.0e} "
                f"| {1000 * row['gradient']:.1f} | {row['memory']:.0f} | {row['note']} |"
            )
            print(lines[-1], flush=True)
        ended = [(m, row) for m, row in done if row["gap"] <= TOL]  # seconds up to a time limit say nothing
        slopes = [
            exponent([m for m, _ in rows], [row[key] for _, row in rows])
            for key, rows in (("seconds", ended), ("gradient", done), ("memory", done))
        ]
        lines.append(
            f"| {method}, exponent of m | | {slopes[0]} | | | | {slopes[1]} | {slopes[2]} | "
            "last three sizes certified |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="m = 50, 100, 200 only, ten seconds for the plain method")
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        case, method, m, limit = options.one
        one(case, method, int(m), float(limit))
        return
    sizes, limit = (list(SIZES[:3]), 10.0) if options.quick else (list(SIZES), 300.0)
    for case in (options.only,) if options.only else CASES:
        write_table(RESULT, case, table(case, sizes, limit))


if __name__ == "__main__":
    main()
