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
    rng : numpy.random.Generator
        Every random number of a fit.
    last_proof : tuple
        The last iterate that was certified, and its certificate.
    """

    operator: DiffusionOperator
    problem: Elliptope
    rng: np.random.Generator
    last_proof: tuple[Array | None, Any] = (None, None)

    @classmethod
    def of(cls, kernel: Kernel, points: Any, weights: Array | None, rng: np.random.Generator) -> Programme:
        """The programme of points under a resolved kernel; one pass of row sums."""
        operator = DiffusionOperator(GramOperator(kernel, points, weights=weights))
        proof = _definiteness(operator, kernel, rng)
        operator.below_zero = proof.slack
        diagonal = operator.diagonal()
        lengths = np.sqrt(diagonal / operator.weights)
        problem = Elliptope(
            operator,
            diagonal,
            shift=proof.shift * float(diagonal.max()),  # J = Diag(√d) Ã Diag(√d)
            removed=operator.stationary,
            lengths=lengths,
            failure_probability=proof.failure_probability,
        )
        return cls(operator, problem, rng)

    def cholesky(self) -> LowRankOperator | None:
        """A partial Cholesky factor of the diffusion matrix where it helps: psd, and of a rank well below n."""
        n = self.problem.size
        rank = min(n // _PART, _MOST, get_config().memory_bytes // (8 * 8 * n))  # an eighth of the memory allowed
        if self.problem.shift > 0 or rank < _LEAST:
            return None
        return rp_cholesky(self.operator.undeflated(), rank, self.rng, tolerance=_LEFT_OUT)

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


def _definiteness(operator: DiffusionOperator, kernel: Kernel, rng: np.random.Generator) -> Definiteness:
    """How far below zero the spectrum of the diffusion matrix can reach: nothing of a positive semi-definite kernel."""
    if kernel.properties.positive_definite:
        return Definiteness(0.0)
    return prove_definiteness(
        operator.undeflated(), operator.stationary, rng=rng, nonnegative=operator.gram.nonnegative
    )
