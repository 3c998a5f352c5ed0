"""The semi-definite programme of some points: its operator, its low-rank form, a stand-in, and where to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, cast, like, namespace
from mercer.embedding.degeneracy import widened
from mercer.kernels import Kernel
from mercer.linalg import Definiteness, prove_definiteness, rp_cholesky
from mercer.linalg.tall import row_lengths
from mercer.operators import DiffusionOperator, GramOperator, LowRankOperator, ProjectedOperator, RankOneUpdate
from mercer.problems import Elliptope
from mercer.progress import Phases

_PART, _MOST, _LEAST = 4, 1500, 64  # a stand-in has at most n/4 and this many columns; with fewer than the last, none:
# products with a stored matrix of so few rows take less than it takes to make one
_LEFT_OUT = 1e-8  # of the trace: a stand-in that leaves out less is as good as the matrix
_FACTOR_SHARE, _STORED_SHARE = 1 / 8, 0.5  # of the memory limit: a factor, and a matrix that is stored
_AT_ONCE = 1024  # rows of a matrix that is stored before the first product: every fit has more of them
_WARM_NOISE = 0.03
_ROOM = 1e-6  # of the first level's trace: what is left for a level beyond is nothing to look at

AnyOperator = DiffusionOperator | ProjectedOperator
Operator = TypeVar("Operator", bound=AnyOperator)


@final
@dataclass
class DiffusionProblem(Generic[Operator]):
    """max ⟨Ã, B⟩ subject to B ≽ 0, diag B = diag Ã, for the diffusion operator Ã of weighted points.

    Attributes
    ----------
    operator : DiffusionOperator or ProjectedOperator
        Ã, or Ã on the complement of earlier levels.
    working : Elliptope
        Its low-rank form, in the arithmetic of the fit.
    exact : Elliptope
        The same in double precision, which certificates speak of: the working one unless that is in single.
    rng : numpy.random.Generator
        Every random number of a fit.
    phases : Phases
        What the fit is at, and how long it was at what.
    definiteness : Definiteness
        How far below zero the spectrum of Ã can reach.
    """

    operator: Operator
    working: Elliptope
    exact: Elliptope
    rng: np.random.Generator
    phases: Phases
    definiteness: Definiteness

    @classmethod
    def of(
        cls, kernel: Kernel, points: Any, weights: Array | None, rng: np.random.Generator, phases: Phases | None = None
    ) -> DiffusionProblem[DiffusionOperator]:
        """The programme of points under a resolved kernel; one pass of row sums, two for points in single precision."""
        phases = Phases("") if phases is None else phases
        gram = GramOperator(kernel, points, weights=weights)
        double = namespace(gram.reference).float64
        exact = gram if gram.dtype == double else GramOperator(kernel, points, weights=weights, dtype=double)
        gram.stored_share = exact.stored_share = _STORED_SHARE
        if gram.shape[0] <= _AT_ONCE:
            with np.errstate(over="ignore", invalid="ignore"):  # sums that are not finite are named
                exact.store()
        operator = DiffusionOperator(exact)
        found = _definiteness(operator, kernel, rng)
        operator.below_zero = found.slack if found.shift == 0 else None
        proof = _low_rank_form(operator, found)
        if exact is gram:
            return DiffusionProblem(operator, proof, proof, rng, phases, found)
        single = DiffusionOperator(gram)
        return DiffusionProblem(single, _low_rank_form(single, found), proof, rng, phases, found)

    def complement(self, basis: Array) -> DiffusionProblem[ProjectedOperator] | None:
        """The programme of a further level, on the complement of the columns Q of a basis; None where nothing is left.

        Its diagonal is that of PÃP, P = I - QQᵀ, or zero where that of an indefinite matrix is negative. The basis is
        that of all earlier levels: this is the problem of the first.
        """
        first: Any = self.exact.operator
        exact = ProjectedOperator(first, basis)
        proof = _low_rank_form(exact, self.definiteness)
        if float(proof.diagonal.sum()) <= _ROOM * float(self.exact.diagonal.sum()):
            return None
        if self.exact is self.working:
            return DiffusionProblem(exact, proof, proof, self.rng, self.phases, self.definiteness)
        first = self.operator
        single = ProjectedOperator(first, basis)
        working = _low_rank_form(single, self.definiteness)
        return DiffusionProblem(single, working, proof, self.rng, self.phases, self.definiteness)

    @property
    def n_columns(self) -> int:
        """Columns the kernel matrix was multiplied by, in either precision."""
        return self.working.n_columns + (self.exact.n_columns if self.exact is not self.working else 0)

    @property
    def stand_in_rank(self) -> int:
        """How many columns a stand-in may have; none where it does not help: matrices that are small, or not psd.

        Nor does it help a sparse matrix: a product with it takes less than one with a factor.
        """
        n = self.working.size
        if self.working.indefinite or n // _PART < _LEAST:
            return 0
        rank = min(n // _PART, _MOST, get_config().share(_FACTOR_SHARE) // (8 * n))
        return rank if _LEAST <= rank <= self.operator.gram.row_entries else 0

    def cholesky(self) -> LowRankOperator:
        """A partial Cholesky factor of the diffusion matrix, of that rank at most."""
        exact: Any = self.exact.operator
        return rp_cholesky(exact.undeflated(), self.stand_in_rank, self.rng, tolerance=_LEFT_OUT)

    def stand_in(self, factored: LowRankOperator | None) -> RankOneUpdate | None:
        """The factored matrix without its stationary part, below Ã in the order of matrices."""
        return None if factored is None else RankOneUpdate(factored, self.operator.stationary, -1.0)

    def first_point(self, rank: int, last: Array | None) -> Array:
        """Random rows, or those of the last solution turned a little out of its dimensions."""
        problem, rank = self.working, min(rank, self.working.size)
        if last is None or last.shape[0] != problem.size:
            return problem.random_point(rank, self.rng)
        last = like(last, problem.scale)
        last = last / abs(last).max()  # lengths of any unit, whose squares are finite
        wide = widened(last, max(rank, last.shape[1]))
        elsewhere = problem.random_point(wide.shape[1], self.rng)
        noise = _WARM_NOISE * row_lengths(last)[:, None] * elsewhere
        return cast(problem.project(wide + noise, elsewhere), problem.operator.dtype)


def _low_rank_form(operator: AnyOperator, found: Definiteness) -> Elliptope:
    """The programme of an operator; one on a complement reaches no further below zero than the whole."""
    diagonal = operator.room() if isinstance(operator, ProjectedOperator) else operator.diagonal()
    return Elliptope(
        operator,
        diagonal,
        shift=found.shift * diagonal,  # J = Diag(√d) Ã Diag(√d)
        removed=operator.stationary,
        lengths=namespace(diagonal).sqrt(diagonal / operator.weights),
        failure_probability=found.failure_probability,
    )


def _definiteness(operator: DiffusionOperator, kernel: Kernel, rng: np.random.Generator) -> Definiteness:
    """How far below zero the spectrum of the diffusion matrix can reach: nothing of a positive semi-definite kernel."""
    if kernel.properties.positive_definite:
        return Definiteness(0.0)
    return prove_definiteness(
        operator.undeflated(), operator.stationary, rng=rng, nonnegative=operator.gram.nonnegative
    )
