"""The semi-definite programme of some points: its operator, its low-rank form, a stand-in, and where to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, cast, dtype_name, like, namespace
from mercer.backends.rounding import gamma, unit_of
from mercer.certificates import EmbeddingCertificate
from mercer.embedding.degeneracy import widened
from mercer.embedding.prescribed import Prescribed
from mercer.kernels import Kernel
from mercer.linalg import Definiteness, prove_definiteness, rp_cholesky
from mercer.linalg.tall import row_lengths
from mercer.operators import (
    DiffusionOperator,
    GramOperator,
    LinearMap,
    LowRankOperator,
    ProjectedOperator,
    RankOneUpdate,
    SplitOperator,
)
from mercer.problems import Elliptope
from mercer.progress import Phases
from mercer.support import Support

_PART, _MOST, _LEAST = 4, 1500, 64  # a stand-in has at most n/4 and this many columns; with fewer than the last, none:
# products with a stored matrix of so few rows take less than it takes to make one
_LEFT_OUT = 1e-8  # of the trace: a stand-in that leaves out less is as good as the matrix
_FACTOR_SHARE, _STORED_SHARE = 1 / 8, 0.5  # of the memory limit: a factor, and a matrix that is stored
_AT_ONCE = 1024  # rows of a matrix that is stored before the first product: every fit has more of them
_WARM_NOISE = 0.03
_PRODUCT = 4  # roundings of a prescribed length times a weight, and of what single precision makes of both
_ROOM = 1e-6  # of the first level's trace: what is left for a level beyond is nothing to look at

AnyOperator = DiffusionOperator | ProjectedOperator
Operator = TypeVar("Operator", bound=AnyOperator)


@final
@dataclass
class DiffusionProblem(Generic[Operator]):
    """max ⟨Ã, B⟩ subject to B ≽ 0, diag B = diag Ã, for the diffusion operator Ã of weighted points.

    The diagonal may be the user's, and then it may be one that B need not reach, diag B ≤ d (PSD22 (SDP)). If
    Ãᵢᵢ ≥ 0 for all i, raising the diagonal of B to d loses nothing, so that the two programmes have the same optimum;
    only rows with Ãᵢᵢ < 0 gain by being short. These stand twice in the low-rank forms, each time half, see
    :class:`mercer.operators.SplitOperator`.

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
    prescribed : Prescribed or None
        The user's diagonal; None for that of Ã.
    """

    operator: Operator
    working: Elliptope
    exact: Elliptope
    rng: np.random.Generator
    phases: Phases
    definiteness: Definiteness
    prescribed: Prescribed | None = None

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        points: Any,
        weights: Array | None,
        rng: np.random.Generator,
        phases: Phases | None = None,
        prescribed: Prescribed | None = None,
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
        short = _may_be_short(operator, found, prescribed)
        proof = _low_rank_form(operator, found, prescribed, short)
        if exact is gram:
            return DiffusionProblem(operator, proof, proof, rng, phases, found, prescribed)
        single = DiffusionOperator(gram)
        working = _low_rank_form(single, found, prescribed, short)
        return DiffusionProblem(single, working, proof, rng, phases, found, prescribed)

    def complement(self, basis: Array) -> DiffusionProblem[ProjectedOperator] | None:
        """The programme of a further level, on the complement of the columns Q of a basis; None where nothing is left.

        Its diagonal is that of PÃP, P = I - QQᵀ, or zero where that of an indefinite matrix is negative; one that the
        user prescribes is that of every level. The basis is that of all earlier levels: this is the problem of the
        first.
        """
        first: Any = self.exact_operator
        exact, found, prescribed = ProjectedOperator(first, basis), self.definiteness, self.prescribed
        if not self._leaves_room(exact):
            return None
        short = _may_be_short(exact, found, prescribed)
        proof = _low_rank_form(exact, found, prescribed, short)
        if self.exact is self.working:
            return DiffusionProblem(exact, proof, proof, self.rng, self.phases, found, prescribed)
        first = self.operator
        single = ProjectedOperator(first, basis)
        working = _low_rank_form(single, found, prescribed, short)
        return DiffusionProblem(single, working, proof, self.rng, self.phases, found, prescribed)

    def _leaves_room(self, rest: ProjectedOperator) -> bool:
        """Whether there is anything left to look at; a negative diagonal of an indefinite matrix does not tell."""
        if self.prescribed is not None and self.definiteness.shift > 0:
            return bool(rest.basis.shape[1] < rest.shape[0] - 1)
        first: Any = self.exact_operator
        return float(rest.room().sum()) > _ROOM * float(first.diagonal().sum())

    @property
    def exact_operator(self) -> AnyOperator:
        """Ã in double precision, every point once."""
        operator: Any = self.exact.operator
        whole: AnyOperator = operator.inner if isinstance(operator, SplitOperator) else operator
        return whole

    @property
    def split(self) -> SplitOperator | None:
        """The operator in which rows that may be short stand twice; None where there are none."""
        return self.working.split

    def multipliers_of(self, y: Array) -> Array:
        """Dual variables of the points from those of a low-rank form; of two halves, what they prove of the whole.

        Diag(y', y'') ≽ ¼(J J; J J) means cᵀJc ≤ Σ aᵢ²y'ᵢ + bᵢ²y''ᵢ for all a + b = 2c; the least of these sums has
        y = 4y'y''/(y' + y'').
        """
        if self.split is None:
            return y
        xp, n, rows = namespace(y), self.operator.shape[0], self.split.rows
        halves = xp.clip(y[rows], 0.0, None), xp.clip(y[n:], 0.0, None)
        total = halves[0] + halves[1]
        whole = xp.asarray(y[:n], copy=True)
        whole[rows] = 4 * halves[0] * halves[1] / xp.where(total > 0, total, 1.0)
        return whole

    def multipliers_for(self, y: Array | None) -> Array | None:
        """The dual variables of a low-rank form from those of the points: each half has half of them."""
        return y if y is None or self.split is None else self.split.halved(as_double(like(y, self.working.scale)))

    def in_units(self, support: Support, values: Array, power: int = 1) -> Array:
        """Lengths of this problem, or their squares, in the user's unit, which is that of a prescribed diagonal."""
        return support.lengths(values, power) if self.prescribed is None else values

    def diagonal_in_units(self, support: Support) -> Array:
        """d of every point in the user's unit."""
        if self.prescribed is not None:
            return self.prescribed.values
        return support.lengths(self.working.diagonal / self.operator.weights, 2)

    def certificate_in_units(self, support: Support, proof: EmbeddingCertificate) -> EmbeddingCertificate:
        """Bounds of this problem, whose weights are scaled, in the user's; those of Ã's own diagonal have no unit."""
        return proof if self.prescribed is None else proof.in_units(support.unit**2)

    def trace_of(self, coordinates: Array) -> float:
        """Tr B of coordinates in the scaled weights."""
        if self.split is None:
            return float(namespace(self.exact.diagonal).sum(self.exact.diagonal))
        return float(as_double(self.operator.weights) @ row_lengths(as_double(coordinates)) ** 2)

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
        return None if factored is None else RankOneUpdate(factored, self.working.removed, -1.0)

    def first_point(self, rank: int, last: Array | None) -> Array:
        """Random rows, or those of the last solution turned a little out of its dimensions."""
        problem, rank = self.working, min(rank, self.working.size)
        if last is None or last.shape[0] != self.operator.shape[0]:
            return problem.random_point(rank, self.rng)
        last = like(last, problem.scale)
        if self.split is None:
            last = last / abs(last).max()  # lengths of any unit, whose squares are finite
        else:
            xp = namespace(last)
            lengths = problem.lengths_of_rows / xp.sqrt(self.operator.weights)
            last = problem.point_of(last / xp.where(lengths > 0, lengths, 1.0)[:, None])
        wide = widened(last, max(rank, last.shape[1]))
        elsewhere = problem.random_point(wide.shape[1], self.rng)
        noise = _WARM_NOISE * row_lengths(last)[:, None] * elsewhere
        return cast(problem.project(wide + noise, elsewhere), problem.operator.dtype)


def _may_be_short(operator: AnyOperator, found: Definiteness, prescribed: Prescribed | None) -> Array | None:
    """The rows that diag B ≤ d lets be short with any gain: those of which Ãᵢᵢ ≥ 0 is not certain.

    A positive semi-definite kernel has none of them, nor has the diagonal of Ã itself, which is zero there.
    """
    if prescribed is None or not prescribed.at_most or _surely_definite(operator):
        return None
    certain = _own(operator) > operator.rounding().diagonal
    rows = namespace(certain).nonzero(~certain & (prescribed.values > 0))[0]
    return rows if rows.shape[0] else None


def _surely_definite(operator: AnyOperator) -> bool:
    return bool(operator.gram.kernel.properties.positive_definite)


def _own(operator: AnyOperator) -> Array:
    """The diagonal of Ã with its sign."""
    return as_double(operator.diagonal() if isinstance(operator, ProjectedOperator) else operator.signed_diagonal())


def _low_rank_form(
    operator: AnyOperator, found: Definiteness, prescribed: Prescribed | None = None, short: Array | None = None
) -> Elliptope:
    """The programme of an operator; one on a complement reaches no further below zero than the whole."""
    if prescribed is not None:
        return _prescribed_form(operator, found, prescribed, short)
    diagonal = operator.room() if isinstance(operator, ProjectedOperator) else operator.diagonal()
    return Elliptope(
        operator,
        diagonal,
        shift=found.shift * diagonal,  # J = Diag(√d) Ã Diag(√d)
        removed=operator.stationary,
        lengths=namespace(diagonal).sqrt(diagonal / operator.weights),
        failure_probability=found.failure_probability,
    )


def _prescribed_form(
    operator: AnyOperator, found: Definiteness, prescribed: Prescribed, short: Array | None
) -> Elliptope:
    """The same with the diagonal that a user prescribes, times the weights, and the rows named ``short`` split."""
    xp, weights = namespace(operator.reference), operator.weights
    values = like(prescribed.values, operator.reference)
    diagonal = cast(as_double(weights) * values, operator.dtype)
    parts = {
        "shift": found.shift * diagonal,
        "lengths": cast(xp.sqrt(values), operator.dtype),
        "diagonal_error": _error_of_product(diagonal, values),
        "repulsion": xp.clip(-as_double(diagonal) * _own(operator), 0.0, None),
    }
    removed = operator.stationary
    whole: LinearMap = operator
    if short is not None:
        split = SplitOperator(operator, short)
        diagonal, removed = split.repeated(diagonal), split.halved(removed)
        parts = {name: split.repeated(part) for name, part in parts.items()}
        parts["repulsion"] = xp.clip(-as_double(diagonal) * split.quartered(_own(operator)), 0.0, None)
        whole = split
    if not bool((parts["repulsion"] > 0).any()):
        del parts["repulsion"]
    return Elliptope(whole, diagonal, removed=removed, failure_probability=found.failure_probability, **parts)


def _error_of_product(diagonal: Array, values: Array) -> Array:
    """How far w·d may be from the true product, which may be too small for the arithmetic."""
    least = float(np.finfo(dtype_name(diagonal.dtype)).tiny)
    return gamma(_PRODUCT, unit_of(diagonal.dtype)) * as_double(diagonal) + least * (values > 0)


def _definiteness(operator: DiffusionOperator, kernel: Kernel, rng: np.random.Generator) -> Definiteness:
    """How far below zero the spectrum of the diffusion matrix can reach: nothing of a positive semi-definite kernel."""
    if kernel.properties.positive_definite:
        return Definiteness(0.0)
    return prove_definiteness(
        operator.undeflated(), operator.stationary, rng=rng, nonnegative=operator.gram.nonnegative
    )
