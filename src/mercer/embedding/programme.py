"""The semi-definite programme of some points: its operator, its low-rank form, a stand-in, and where to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends import get_config
from mercer.kernels import Kernel
from mercer.linalg import Definiteness, prove_definiteness, rp_cholesky
from mercer.operators import DiffusionOperator, GramOperator, LowRankOperator, RankOneUpdate
from mercer.problems import Elliptope

Array = np.ndarray[Any, np.dtype[Any]]

_PART, _MOST, _LEAST = 4, 1500, 8  # a stand-in has at most n/4 and this many columns; with fewer than the last, none
_LEFT_OUT = 1e-8  # of the trace: a stand-in that leaves out less is as good as the matrix
_FACTOR_SHARE, _STORED_SHARE = 1 / 8, 0.5  # of the memory limit: a factor, and a matrix that is stored
_WARM_NOISE = 0.03


@final
@dataclass
class Programme:
    """max ⟨Ã, B⟩ subject to B ≽ 0, diag B = diag Ã, for the diffusion operator Ã of weighted points.

    Attributes
    ----------
    operator : DiffusionOperator
        Ã.
    problem : Elliptope
        Its low-rank form.
    proof : Elliptope
        The same in double precision, which certificates speak of: the problem itself unless that is in single.
    rng : numpy.random.Generator
        Every random number of a fit.
    last_proof : tuple
        The last iterate that was certified, and its certificate.
    """

    operator: DiffusionOperator
    problem: Elliptope
    proof: Elliptope
    rng: np.random.Generator
    last_proof: tuple[Array | None, Any] = (None, None)

    @classmethod
    def of(cls, kernel: Kernel, points: Any, weights: Array | None, rng: np.random.Generator) -> Programme:
        """The programme of points under a resolved kernel; one pass of row sums, two for points in single precision."""
        gram = GramOperator(kernel, points, weights=weights)
        exact = gram if gram.dtype == np.float64 else GramOperator(kernel, points, weights=weights, dtype=np.float64)
        gram.stored_share = exact.stored_share = _STORED_SHARE
        operator = DiffusionOperator(exact)
        found = _definiteness(operator, kernel, rng)
        operator.below_zero = found.slack if found.shift == 0 else None
        proof = _low_rank_form(operator, found)
        if exact is gram:
            return cls(operator, proof, proof, rng)
        single = DiffusionOperator(gram)
        return cls(single, _low_rank_form(single, found), proof, rng)

    @property
    def n_columns(self) -> int:
        """Columns the kernel matrix was multiplied by, in either precision."""
        return self.problem.n_columns + (self.proof.n_columns if self.proof is not self.problem else 0)

    def cholesky(self) -> LowRankOperator | None:
        """A partial Cholesky factor of the diffusion matrix where it helps: psd, and of a rank well below n.

        Where the matrix is sparse, a product with it takes less than one with a factor, and the factor is left out.
        """
        n = self.problem.size
        rank = min(n // _PART, _MOST, get_config().share(_FACTOR_SHARE) // (8 * n))
        if self.problem.shift > 0 or rank < _LEAST or self.operator.gram.row_entries < rank:
            return None
        exact: Any = self.proof.operator
        return rp_cholesky(exact.undeflated(), rank, self.rng, tolerance=_LEFT_OUT)

    def stand_in(self, factored: LowRankOperator | None) -> RankOneUpdate | None:
        """The factored matrix without its stationary part, below Ã in the order of matrices."""
        return None if factored is None else RankOneUpdate(factored, self.operator.stationary, -1.0)

    def first_point(self, rank: int, last: Array | None) -> Array:
        """Random rows, or those of the last solution turned a little out of its dimensions."""
        problem, rank = self.problem, min(rank, self.problem.size)
        if last is None or last.shape[0] != problem.size:
            return problem.random_point(rank, self.rng)
        last = last / np.max(np.abs(last))  # lengths of any unit, whose squares are finite
        widened = np.pad(last, ((0, 0), (0, max(0, rank - last.shape[1]))))
        elsewhere = problem.random_point(widened.shape[1], self.rng)
        noise = _WARM_NOISE * np.linalg.norm(last, axis=1, keepdims=True) * elsewhere
        return problem.project(widened + noise, elsewhere).astype(problem.operator.dtype)


def _low_rank_form(operator: DiffusionOperator, found: Definiteness) -> Elliptope:
    diagonal = operator.diagonal()
    return Elliptope(
        operator,
        diagonal,
        shift=found.shift * float(diagonal.max()),  # J = Diag(√d) Ã Diag(√d)
        removed=operator.stationary,
        lengths=np.sqrt(diagonal / operator.weights),
        failure_probability=found.failure_probability,
    )


def _definiteness(operator: DiffusionOperator, kernel: Kernel, rng: np.random.Generator) -> Definiteness:
    """How far below zero the spectrum of the diffusion matrix can reach: nothing of a positive semi-definite kernel."""
    if kernel.properties.positive_definite:
        return Definiteness(0.0)
    return prove_definiteness(
        operator.undeflated(), operator.stationary, rng=rng, nonnegative=operator.gram.nonnegative
    )
