"""From a posed kernelised programme to coordinates that are proved: the solve, the rank, the certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.certificates import EmbeddingCertificate
from mercer.certificates.kernelized import KernelizedProof
from mercer.linalg.eigen import deterministic_signs
from mercer.problems.kernelized import KernelizedProgramme
from mercer.progress import Phases
from mercer.solvers import Goal, Iteration, Method, Run, Solution, Status
from mercer.solvers.kernelized import HilbertInteriorPoint, HilbertPair
from mercer.solvers.kernelized_conic import HilbertConic
from mercer.solvers.kernelized_polish import polished

METHODS: dict[str, Callable[[], Method[KernelizedProgramme, HilbertPair]]] = {
    "auto": HilbertInteriorPoint,
    "interior-point": HilbertInteriorPoint,
    "conic": HilbertConic,
}
_SHARP = 1e-12  # the relative gap that the solver aims at: two steps more than a millionth takes, and the coordinates,
# which are as good as the root of the gap, have six digits
_CUTS = (1.0, 1e-3, 1e-6, 0.0)  # times rank_tol: where the fewest dimensions do not do, more are kept
_NOISE = 1e-14
_LOST = 0.1  # of the tolerance, that fewer dimensions may cost
_FINE = (Status.CONVERGED, Status.STALLED)  # a certificate decides whether the end was one


@dataclass(frozen=True, eq=False)
class SolvedKernel:
    """Coordinates with rows of the prescribed lengths, in principal order, and how they came about."""

    coordinates: Array
    eigenvalues: Array
    multipliers: Array
    certificate: EmbeddingCertificate | None
    status: Status
    history: tuple[Iteration, ...]


@final
@dataclass(frozen=True, eq=False)
class KernelizedSolver:
    """One solve of a posed programme; ``proof`` is None where nothing is to be proved."""

    programme: KernelizedProgramme
    proof: KernelizedProof | None
    phases: Phases
    tol: float
    rank_tol: float
    max_iter: int
    solver: str
    callback: Callable[[Iteration], Any] | None
    verbose: bool

    @classmethod
    def of(
        cls, model: Any, programme: KernelizedProgramme, proof: KernelizedProof | None, phases: Phases
    ) -> KernelizedSolver:
        """The solver that an estimator's parameters ask for."""
        names = ("tol", "rank_tol", "max_iter", "solver", "callback", "verbose")
        return cls(programme, proof, phases, *(getattr(model, name) for name in names))

    def solve(self) -> SolvedKernel:
        """Solve, bring the solution to low rank, and prove it."""
        self.phases.begin("solving")
        goal = Goal(_SHARP, max_iter=self.max_iter)
        callbacks = () if self.callback is None else (self.callback,)
        run: Run[HilbertPair] = Run(goal, callbacks=callbacks, shown=self.verbose)
        solution = run.phase(self.programme, METHODS[self.solver]())
        self.phases.begin("going to the boundary")
        y = solution.point.multipliers
        coordinates = self._of_low_rank(solution.point.B)
        if solution.status in _FINE:
            working = self.programme if self.proof is None else self.proof.working(coordinates)
            coordinates, y = polished(working, coordinates, y)
        self.phases.begin("proving the bound")
        certificate = None if self.proof is None else self.proof.certificate(coordinates, y)
        status = self._status(solution, certificate)
        return SolvedKernel(*self._principal(coordinates), y, certificate, status, solution.history)

    def _of_low_rank(self, B: Array) -> Array:
        """The fewest principal directions of LBLᵀ with which the value is kept, rows brought to their lengths."""
        values, vectors = np.linalg.eigh(B)
        kept = values > _NOISE * values[-1]
        V = self.programme.factor @ (vectors[:, kept] * np.sqrt(values[kept]))
        sizes, turn = np.linalg.eigh(V.T @ V)
        best = self.programme.rescaled(V @ turn)
        most = self.programme.objective(best)
        for cut in _CUTS[:-1]:
            few = self.programme.rescaled(V @ turn[:, sizes > cut * self.rank_tol * sizes.sum()])
            if most - self.programme.objective(few) <= _LOST * self.tol * abs(most):
                return few
        return best

    def _status(self, solution: Solution[HilbertPair], certificate: EmbeddingCertificate | None) -> Status:
        """Converged where the gap is proved, or without a proof that of the solver's pair, is below the tolerance."""
        if solution.status not in _FINE:
            return solution.status
        gap = solution.history[-1].relative_gap if certificate is None else certificate.relative_gap
        return Status.CONVERGED if gap is not None and gap <= self.tol else Status.STALLED

    def _principal(self, coordinates: Array) -> tuple[Array, Array]:
        """The coordinates turned to their principal axes under the shares, and what each has of the whole."""
        root = np.sqrt(self.programme.shares)[:, None]
        _, sizes, turn = np.linalg.svd(root * coordinates, full_matrices=False)
        turned = coordinates @ turn.T
        turned = turned * deterministic_signs(turned)
        return np.asarray(turned), np.asarray(sizes**2 / np.sum(sizes**2))
