"""Quadratures on 1, 2, 4, … threads: Sω, vertex exchange, the active set, landmarks and refined eigenpairs.

    python benchmarks/many_cores_quadrature.py            # about a minute on 16 cores
    python benchmarks/many_cores_quadrature.py --n 10000

``benchmarks/many_cores.py`` takes :func:`timings` for its table. Forty Gaussian clusters in ten dimensions, σ half the
median distance. Every job starts from the same programme, whose Sω is the first job; results must be the same, bit for
bit, for any number of threads. Compiled code is loaded beforehand. The best of ``repeats`` runs counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import Gaussian, GramOperator, config_context
from mercer.backends.config import usable_cores
from mercer.problems import Discrepancy
from mercer.quadrature import approximate_eigenpairs, eliminate
from mercer.solvers import Goal, exchange, solve
from mercer.solvers.measure.active_set import solve_exactly
from mercer.solvers.measure.swapping import Swapping

Array = np.ndarray[Any, Any]
THREADS = (1, 2, 4, 8, 16)
TRACE = 0.7
PENALTY = 0.05  # of α₀
LANDMARKS = 200


def points(n: int, d: int = 10, seed: int = 0) -> Array:
    """Forty clusters of different widths."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((40, d))
    return centres[rng.integers(0, 40, n)] + rng.standard_normal((n, d)) * rng.uniform(0.2, 1.0, d)


class Jobs:
    """One sample, and what is timed on it."""

    def __init__(self, n: int) -> None:
        self.X = points(n)
        self.kernel = Gaussian(Gaussian().resolve(self.X[:2000]).sigma / 2)
        self.problem = self._problem()
        measure = solve_exactly(self.problem.regularised(PENALTY * self.problem.largest_alpha), tol=1e-2)
        heaviest = np.argsort(-measure.point.values)[: 3 * LANDMARKS]
        self.nodes = np.sort(measure.point.nodes[heaviest])

    def _problem(self) -> Discrepancy:
        n = len(self.X)
        return Discrepancy(GramOperator(self.kernel**2, self.X), np.full(n, 1 / n), np.ones(n))

    def distortion(self) -> Array:
        """Sω: one product with the squared kernel matrix."""
        return self._problem().distortion

    def vertex_exchange(self) -> Array:
        """Blocks of exchanges under dᵀv = ϰ to a gap of 1e-4."""
        return exchange(self.problem.constrained(TRACE), tol=1e-4).point.values

    def active_set(self) -> Array:
        """The exact solution of the regularised programme."""
        return solve_exactly(self.problem.regularised(PENALTY * self.problem.largest_alpha)).point.values

    def landmarks(self) -> Array:
        """Elimination of two nodes in three, then one sweep of swaps."""
        sequence = eliminate(self.problem, self.nodes, n_nodes=LANDMARKS)
        left = sequence.left(sequence.removed.size)
        return np.asarray(solve(self.problem, Swapping(), left, goal=Goal(0.0, max_iter=1)).point, float)

    def eigenpairs(self) -> Array:
        """Twenty refined eigenpairs from 600 nodes, with the Υ-test on the whole sample."""
        n = len(self.X)
        ones = np.ones(len(self.nodes))
        found = approximate_eigenpairs(self.kernel, self.X, np.full(n, 1 / n), self.nodes, ones, 20, refine=True)
        assert found.upsilon is not None
        return found.upsilon

    def all(self) -> dict[str, Callable[[], Array]]:
        """The jobs by the names of their rows."""
        return {
            "Sω": self.distortion,
            "vertex exchange": self.vertex_exchange,
            "active set": self.active_set,
            "landmarks": self.landmarks,
            "eigenpairs": self.eigenpairs,
        }


def timings(
    threads: tuple[int, ...] = THREADS, n: int = 20_000, repeats: int = 1
) -> dict[str, tuple[dict[int, float], bool]]:
    """Seconds of every job by the number of threads, and whether the results were the same, bit for bit."""
    for job in Jobs(1500).all().values():  # load what is compiled
        job()
    jobs = Jobs(n).all()
    out = {}
    for name, job in jobs.items():
        seconds, results = {}, []
        for count in threads:
            with config_context(n_threads=count, memory_limit="4GB"):
                runs = []
                for _ in range(repeats):
                    began = time.perf_counter()
                    results.append(job())
                    runs.append(time.perf_counter() - began)
            seconds[count] = min(runs)
        same = all(np.array_equal(results[0], other) for other in results[1:])
        out[name] = (seconds, same)
    return out


def table(found: dict[str, tuple[dict[int, float], bool]]) -> list[str]:
    """One line a job: seconds, and in brackets how many times faster than one thread."""
    threads = list(next(iter(found.values()))[0])
    lines = ["| job | " + " | ".join(f"{count}" for count in threads) + " | same bits |"]
    lines.append("|" + " --- |" * (len(threads) + 2))
    for name, (seconds, same) in found.items():
        cells = [f"{seconds[count]:.2f} s ({seconds[threads[0]] / seconds[count]:.1f})" for count in threads]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {'yes' if same else 'NO'} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, nargs="+", default=[t for t in THREADS if t <= usable_cores()])
    given = parser.parse_args()
    print("\n".join(table(timings(tuple(given.threads), given.n, given.repeats))))


if __name__ == "__main__":
    main()
