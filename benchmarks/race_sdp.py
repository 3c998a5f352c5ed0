"""The programme of the embedding against other solvers: seconds to the same proved gap.

    python -m benchmarks race sdp      # writes benchmarks/results/race_sdp.md

max ⟨J, X⟩ over X ≽ 0 with diag X = 1, J = Diag(√d) Ã Diag(√d), Ã the diffusion operator of pulsars. Peers are handed J;
ours is handed the points.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from race_setting import machine, one_thread
from result_page import write_table
from scipy.linalg import LinAlgError, cho_factor, eigh

from mercer import DiffusionOperator, Gaussian, GramOperator, SDPEmbedding, datasets

RESULT = Path(__file__).parent / "results" / "race_sdp.md"
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
GOALS = (1e-4, 1e-6)
SIGMA = 2.0
PATIENCE = 60.0  # seconds of a processor that a cell may take
LARGEST = {"cvxpy, SCS": 200, "cvxpy, Clarabel": 100}  # beyond: more than patience has

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Programme:
    """J, and the points that it was made of."""

    X: Array
    J: Array

    @classmethod
    def of(cls, n: int) -> Programme:
        X = datasets.htru2(n=n)[0]
        operator = DiffusionOperator(GramOperator(Gaussian(sigma=SIGMA), X))
        root = np.sqrt(operator.diagonal())
        dense = root[:, None] * operator.to_dense() * root
        return cls(X, (dense + dense.T) / 2)

    @property
    def rank(self) -> int:
        """From which no local optimum is worse than the global one, but for exceptions (Barvinok, Pataki)."""
        return math.ceil(math.sqrt(2 * self.J.shape[0])) + 1

    def value(self, H: Array) -> float:
        return float(np.sum(H * (self.J @ H)))

    def reached(self, H: Array, goal: float, dual: Array | None = None) -> bool:
        """Whether the gap of H is proved to be within the goal, by multipliers lifted to be feasible.

        Σy + n·t bounds the optimum where Diag(y + t) ≽ J, which one Cholesky factor decides. The multipliers are those
        of H, or those of a solver that has its own.
        """
        n, value = self.J.shape[0], self.value(H)
        for y in (np.sum(H * (self.J @ H), axis=1), dual):
            if y is None:
                continue
            lift = (value * (1 + goal) - float(y.sum())) / n
            try:
                cho_factor(np.diag(y + lift) - self.J, lower=True, overwrite_a=True)
            except LinAlgError:
                continue
            return True
        return False


def unit_rows(H: Array) -> Array:
    return H / np.linalg.norm(H, axis=1)[:, None]


@dataclass
class Finish:
    """When a solver came within each goal, what it had then, and whether it proves so itself."""

    seconds: dict[float, float | None]
    value: float = float("nan")


# --- solvers: each yields its factor again and again, with the seconds spent so far -----------------------------------

Steps = Iterator[tuple[float, Array, Array | None]]


@njit(cache=True)
def sweep(J: Array, H: Array) -> None:
    """One pass of the mixing method (Wang, Chang and Kolter 2017): each row along the sum of the others."""
    for i in range(J.shape[0]):
        g = J[i] @ H - J[i, i] * H[i]
        length = np.sqrt(np.sum(g * g))
        if length > 0:
            H[i] = g / length


def mixing(programme: Programme, rng: np.random.Generator) -> Steps:
    H = unit_rows(rng.standard_normal((programme.J.shape[0], programme.rank)))
    sweep(programme.J[:2, :2].copy(), H[:2].copy())  # compiles
    spent, count = 0.0, 1
    while True:
        began = time.process_time()
        for _ in range(count):
            sweep(programme.J, H)
        spent += time.process_time() - began
        yield spent, H, None
        count = max(count + 1, count * 3 // 2)


def trust_region(programme: Programme, rng: np.random.Generator) -> Steps:
    """Pymanopt's Riemannian trust region on the product of spheres, with a gradient and a Hessian by hand."""
    import pymanopt
    from pymanopt.manifolds import Oblique
    from pymanopt.optimizers import TrustRegions

    manifold, J = Oblique(programme.rank, programme.J.shape[0]), programme.J
    cost = pymanopt.function.numpy(manifold)(lambda V: -float(np.sum(V * (V @ J))))
    slope = pymanopt.function.numpy(manifold)(lambda V: -2 * V @ J)
    bend = pymanopt.function.numpy(manifold)(lambda V, W: -2 * W @ J)
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=slope, euclidean_hessian=bend)
    point, spent = unit_rows(rng.standard_normal((J.shape[0], programme.rank))).T, 0.0
    size = float(np.abs(J).sum())
    for tolerance in 10.0 ** np.arange(-2, -9, -0.5):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = TrustRegions(verbosity=0, max_time=4 * PATIENCE, min_gradient_norm=tolerance * size / len(J))
            point = optimizer.run(problem, initial_point=point).point
        spent += time.process_time() - began
        yield spent, point.T, None


def conic(solver: str) -> Callable[[Programme, np.random.Generator], Steps]:
    """cvxpy's solvers at one tolerance after another, each counted from its own start."""

    def run(programme: Programme, rng: np.random.Generator) -> Steps:
        import cvxpy

        n = programme.J.shape[0]
        X = cvxpy.Variable((n, n), PSD=True)
        fixed = cvxpy.diag(X) == 1
        problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(programme.J @ X) / np.trace(programme.J)), [fixed])
        for exponent in range(-4, -10, -1):
            eps = 10.0**exponent
            options: dict[str, Any] = (
                {"eps_abs": eps, "eps_rel": eps, "time_limit_secs": 4 * PATIENCE, "max_iters": 10**6}
                if solver == "SCS"
                else {"tol_gap_rel": eps, "tol_gap_abs": eps, "tol_feas": eps, "time_limit": 4 * PATIENCE}
            )
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver=solver, **options)
            spent = time.process_time() - began
            if X.value is None:
                return
            values, vectors = eigh((X.value + X.value.T) / 2)
            H = unit_rows(vectors * np.sqrt(np.maximum(values, 0)))
            dual = np.asarray(fixed.dual_value) * np.trace(programme.J)
            yield spent, H, dual if dual.sum() > 0 else -dual

    return run


PEERS: dict[str, Callable[[Programme, np.random.Generator], Steps]] = {
    "mixing method (numba)": mixing,
    "Pymanopt, trust region": trust_region,
    "cvxpy, SCS": conic("SCS"),
    "cvxpy, Clarabel": conic("CLARABEL"),
}


def race(programme: Programme, steps: Steps) -> Finish:
    """Take steps until every goal is reached or patience is at its end; the looks at the gap are not counted."""
    found, goals = Finish(dict.fromkeys(GOALS)), list(GOALS)
    for seconds, H, dual in steps:
        while goals and programme.reached(H, goals[0], dual):
            found.seconds[goals.pop(0)] = seconds
            found.value = programme.value(H)
        if not goals or seconds > PATIENCE:
            break
    return found


def ours(programme: Programme, **options: Any) -> Finish:
    """Fits from the points on, kernel and proof included, each goal from the start."""
    found = Finish({})
    for goal in GOALS:
        model = SDPEmbedding(Gaussian(sigma=SIGMA), n_levels=1, tol=goal, residual_tol=0.5, random_state=0, **options)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(programme.X)
        spent = time.process_time() - began
        found.seconds[goal] = spent if model.certificate_.holds(goal) else None
        found.value = model.certificate_.objective
    return found


def shown(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.2g}" if seconds < 100 else f"{seconds:.0f}"


def line(n: int, name: str, found: Finish, proof: str) -> str:
    times = " | ".join(shown(found.seconds[goal]) for goal in GOALS)
    value = "–" if math.isnan(found.value) else f"{found.value:.8g}"
    return f"| {n} | {name} | {times} | {value} | {proof} |"


def main(sizes: tuple[int, ...] = SIZES) -> None:
    with one_thread():
        _main(sizes)


def _main(sizes: tuple[int, ...]) -> None:
    ours(Programme.of(60))  # compiles
    lines = [
        "| n | solver | s to a gap of 1e-4 | s to 1e-6 | objective | proves it itself |",
        "| ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for n in sizes:
        programme = Programme.of(n)
        lines.append(line(n, "**mercer**", ours(programme), "yes"))
        for name, peer in PEERS.items():
            if n <= LARGEST.get(name, n):
                proof = "a dual value, unproved" if name.startswith("cvxpy") else "no"
                lines.append(line(n, name, race(programme, peer(programme, np.random.default_rng(0))), proof))
            print(lines[-1], flush=True)
        write_table(RESULT, "table", [machine("scs", "clarabel", "cvxpy", "pymanopt"), "", *lines])


if __name__ == "__main__":
    main()
