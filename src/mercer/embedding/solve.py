"""From a posed embedding to a point that is proved: which solver runs, from where, and the certificate of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

from mercer.backends.arrays import Array, like
from mercer.certificates import EmbeddingCertificate, certify_elliptope
from mercer.embedding.checkpoint import LevelCheckpoint
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.operators import LowRankOperator
from mercer.operators.base import is_sparse
from mercer.solvers import (
    AcceleratedPower,
    Climb,
    Goal,
    Iteration,
    ProjectedPower,
    Run,
    Solution,
    Status,
    TrustRegion,
    solve_conic,
)
from mercer.solvers.elliptope.method import ElliptopeMethod, Iterate

METHODS: dict[str, Callable[[], ElliptopeMethod]] = {
    "power": ProjectedPower,
    "accelerated": AcceleratedPower,
    "trust-region": TrustRegion,
    "conic": TrustRegion,  # takes what the conic solver found to the boundary
}
SOLVERS = ("auto", *METHODS, "interior-point")
_CHEAP, _LARGE = 256, 8000  # up to the first a spectrum is cheap; beyond the second a certificate is not made twice


class Settings(NamedTuple):
    """The parameters of :class:`mercer.SDPEmbedding` that concern its solver, by the same names."""

    solver: str
    certify: bool | str
    tol: float
    residual_tol: float
    rank_tol: float
    initial_rank: int
    max_iter: int
    max_products: int | None
    callback: Callable[[Iteration], Any] | None
    verbose: bool

    @classmethod
    def of(cls, model: Any) -> Settings:
        """Those of an estimator."""
        return cls(*(getattr(model, name) for name in cls._fields))


@dataclass(frozen=True, eq=False)
class Solved:
    """A point H with unit rows, at the rank that is counted, its certificate, and how it came about.

    The multipliers are those of the points, one for each.
    """

    H: Array
    certificate: EmbeddingCertificate | None
    status: Status
    history: tuple[Iteration, ...]
    multipliers: Array | None
    n_stand_in_columns: int


@final
class EmbeddingSolver:
    """One solve of a posed embedding.

    Parameters
    ----------
    posed : DiffusionProblem
        What to solve.
    settings : Settings
        How.
    checkpoint : LevelCheckpoint or None
        Where the best iterate is kept while the solver runs, and where to go on from if it holds one.
    """

    def __init__(self, posed: DiffusionProblem[Any], settings: Settings, checkpoint: LevelCheckpoint | None) -> None:
        self._posed, self._settings, self._checkpoint = posed, settings, checkpoint
        self._kept = None if checkpoint is None else checkpoint.read()
        self._factored = self._factor()
        goal = Goal(
            settings.tol,
            residual_tol=settings.residual_tol,
            max_iter=settings.max_iter,
            max_products=settings.max_products,
        )
        run: Run[Iterate] = Run(
            goal,
            certify=self._proof_on_the_way if settings.certify else None,
            callbacks=() if settings.callback is None else (settings.callback,),
            save=None if checkpoint is None else checkpoint.keep,
            shown=settings.verbose,
        )
        self._climb = Climb(
            posed.working,
            run if self._kept is None else run.after(self._kept[1]),
            settings.rank_tol,
            posed.rng,
            posed.phases.begin,
        )

    def solve(self, last: Array | None) -> Solved:
        """Run the solver that was asked for, from a checkpoint, from the last solution if there is one, or afresh."""
        solution, climb = self._solution(last), self._climb
        history = tuple(climb.run.history)
        if self._checkpoint is not None:
            self._checkpoint.keep(solution.point, history)
            self._checkpoint.flush()
        H, certificate = self._certified(solution)
        status = self._status(solution.status, certificate)
        multipliers = climb.multipliers if climb.multipliers is None else self._posed.multipliers_of(climb.multipliers)
        return Solved(H, certificate, status, history, multipliers, climb.n_stand_in_columns)

    def _factor(self) -> LowRankOperator | None:
        if self._settings.solver != "auto" or not self._posed.stand_in_rank:
            return None
        self._posed.phases.begin("factoring a stand-in")
        return self._posed.cholesky()

    def _solution(self, last: Array | None) -> Solution[Iterate]:
        solver, climb = self._settings.solver, self._climb
        if solver == "interior-point":
            return climb.interior()
        H = self._first_point(last)
        if solver == "auto":
            return climb.automatic(H, self._posed.stand_in(self._factored), rough=self._kept is None)
        return climb.by(METHODS[solver], H)

    def _first_point(self, last: Array | None) -> Array:
        posed = self._posed
        if self._kept is not None and self._kept[0].shape[0] == posed.working.size:
            return like(self._kept[0], posed.working.scale, dtype=posed.operator.dtype)
        if self._settings.solver == "conic":
            return solve_conic(posed.working)
        return posed.first_point(self._settings.initial_rank, last)

    def _proof_on_the_way(self, iterate: Iterate) -> EmbeddingCertificate:
        """A proof to stop by; of a sparse matrix without forming it, since that of what is stored follows anyway."""
        size, exact = self._posed.working.size, self._posed.exact
        if self._settings.certify is True and _CHEAP < size <= _LARGE and is_sparse(exact.operator):
            return self._proof(iterate.H, spectrum=False, method="chebyshev-filter")
        return self._proof(iterate.H, spectrum=size > _LARGE or (self._factored is None and size <= _CHEAP))

    def _proof(self, H: Array, *, spectrum: bool = True, method: str = "auto") -> EmbeddingCertificate:
        """The certificate of H, by the user's method where one was named; the clock is set to proving meanwhile."""
        settings, posed = self._settings, self._posed
        with self._proving():
            return certify_elliptope(
                posed.exact,
                H,
                rng=posed.rng,
                stand_in=self._factored,
                tol=settings.tol,
                method=settings.certify if isinstance(settings.certify, str) else method,
                spectrum=spectrum,
                multipliers=self._climb.multipliers,
            )

    @contextmanager
    def _proving(self) -> Iterator[None]:
        before = self._posed.phases.begin("proving the bound")
        try:
            yield
        finally:
            self._posed.phases.begin(before, shown=False)

    def _certified(self, solution: Solution[Iterate]) -> tuple[Array, EmbeddingCertificate | None]:
        """The point to store, at the rank that is counted, and its certificate; the whole of it where that is flat."""
        for rank_tol in (self._settings.rank_tol, 0.0):
            H = self._posed.working.reduced(solution.point.H, rank_tol)
            certificate = self._final_certificate(solution, H)
            if solution.status is not Status.FLAT or certificate is None or certificate.holds(self._settings.tol):
                break
        return H, certificate

    def _final_certificate(self, solution: Solution[Iterate], H: Array) -> EmbeddingCertificate | None:
        """The certificate of H. One that ended the solve is not computed twice: H is the same but for a rotation."""
        if not self._settings.certify:
            return None
        same = H.shape == solution.point.H.shape and self._posed.split is None
        proof = solution.certificate if same else None
        if proof is not None and proof.least_eigenvalues.shape[0]:
            return proof
        certificate = self._proof(H)
        if proof is not None and proof.relative_gap < certificate.relative_gap:  # another draw of the random numbers
            return replace(proof, least_eigenvalues=certificate.least_eigenvalues)
        return certificate

    def _status(self, status: Status, certificate: EmbeddingCertificate | None) -> Status:
        """The solver's, unless what is stored is less than what converged, or rounding denies it the proof."""
        tol = self._settings.tol
        if status is not Status.CONVERGED or certificate is None or certificate.holds(tol):
            return status
        return Status.STALLED if certificate.gap_beyond_rounding <= tol else Status.CUT_SHORT
