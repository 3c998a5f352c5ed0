"""The search for the directions of kernel dimension reduction: starts, their comparison, and the last run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.dependence.gkdr import gradient_directions, gradient_outer_product
from mercer.dependence.kdr_objective import DimensionReduction
from mercer.dependence.landmark_regression import LandmarkRegression, Targets, fit_regression
from mercer.kernels import Kernel
from mercer.solvers.run import Callback, Goal, Run
from mercer.solvers.solution import Solution, Status
from mercer.solvers.stiefel.quasi_newton import StiefelQuasiNewton, retracted
from mercer.validation import resolved_kernel

_ROWS, _STEPS = 2000, 30  # of the sample on which starts are compared, and how far they go there
_ENDED = (Status.INTERRUPTED, Status.STOPPED)  # by the person who waits


class Sample(NamedTuple):
    """Points in the coordinates of the search, landmarks among them, and what is to be explained."""

    points: Array
    nodes: Array
    targets: Targets

    def some(self, rng: np.random.Generator) -> Sample:
        """At most 2 000 of the rows."""
        n = self.points.shape[0]
        if n <= _ROWS:
            return self
        rows = np.sort(rng.choice(n, _ROWS, replace=False))
        return Sample(self.points[rows], self.nodes, self.targets.of_rows(rows))


@dataclass(frozen=True)
class SearchOptions:
    """The kernel of projected points, resolved or not, ε, the random starts, and where a run ends."""

    kernel: Kernel
    regularization: float
    n_restarts: int
    tol: float
    max_iter: int
    callbacks: tuple[Callback, ...] = ()
    shown: bool = False


class Found(NamedTuple):
    """Orthonormal directions, the kernel that they were found with, the regression on them, and the run."""

    directions: Array
    regression: LandmarkRegression
    solution: Solution[Array]


class Search:
    """Finds the directions of a sample, for any number of them."""

    def __init__(self, sample: Sample, options: SearchOptions, rng: np.random.Generator) -> None:
        self.sample, self.options = sample, options
        self._rng = rng
        self._small = sample.some(rng)
        kernel = self._kernel_on(None)
        self.gradient_eigenvalues, self._start = gradient_directions(*sample, kernel, options.regularization)

    def by_gradients(self, count: int) -> Found:
        """The leading directions of the gradients alone."""
        return self._found(Solution(self._start[:, :count], Status.CONVERGED))

    def by_descent(self, count: int) -> Found:
        """The best of the descents from the gradients' directions and from random ones."""
        best = self._best_start(count)
        if best.status in _ENDED:
            return self._found(best)
        kernel = self._kernel_on(best.point)
        return self._found(self._descent(self.sample, best.point, kernel, self.options.max_iter), kernel)

    def _best_start(self, count: int) -> Solution[Array]:
        """Where the last run begins: after some steps from every start, on some rows, the one that explains most."""
        start, d = self._start[:, :count], self._start.shape[0]
        if not self.options.n_restarts or count == d:
            return Solution(start, Status.CONVERGED)
        kernel = self._kernel_on(start, self._small)
        runs: list[Solution[Array]] = []
        for k in range(self.options.n_restarts + 1):
            U = retracted(self._rng.standard_normal((d, count))) if k else start
            runs.append(self._descent(self._small, U, kernel, min(_STEPS, self.options.max_iter)))
            if runs[-1].status in _ENDED:
                return runs[-1]
        return min(runs, key=lambda run: min(line.objective for line in run.history))

    def _descent(self, sample: Sample, U: Array, kernel: Kernel, steps: int) -> Solution[Array]:
        options = self.options
        problem = DimensionReduction(*sample, kernel, options.regularization)
        goal = Goal(tol=1.0, residual_tol=options.tol, max_iter=steps)
        return Run[Array](goal, callbacks=options.callbacks, shown=options.shown).phase(
            problem, StiefelQuasiNewton(), U
        )

    def _kernel_on(self, U: Array | None, sample: Sample | None = None) -> Kernel:
        """The kernel with its length fixed from the points, or from their projections."""
        sample = self.sample if sample is None else sample
        points = sample.points if U is None else sample.points @ U
        return resolved_kernel(self.options.kernel, points, sample.targets.shares)

    def _found(self, solution: Solution[Array], kernel: Kernel | None = None) -> Found:
        """The directions sorted by how much the regression changes along them."""
        U, sample = solution.point, self.sample
        Z = sample.points @ U
        kernel = self._kernel_on(U) if kernel is None else kernel
        regression = fit_regression(kernel, Z, sample.nodes @ U, sample.targets, self.options.regularization)
        vectors = np.linalg.eigh(gradient_outer_product(regression, Z, sample.targets.shares))[1][:, ::-1]
        return Found(U @ vectors, replace(regression, nodes=regression.nodes @ vectors), solution)
