"""Further coordinates, each set of them a proved optimum: the same programme on the complement of the earlier ones.

The first level is the programme of the data. With Q a basis of all coordinates found so far and P = I - QQᵀ, the next
level is the same programme of PÃP, with its diagonal: it has its own certificate, and its own extension to new points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

from mercer.backends.arrays import Array, as_double, namespace
from mercer.certificates import EmbeddingCertificate
from mercer.embedding.checkpoint import Checkpoint
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.embedding.extension import SolvedLevel
from mercer.embedding.solve import EmbeddingSolver, Settings, Solved
from mercer.linalg.eigen import deterministic_signs
from mercer.operators import DiffusionOperator
from mercer.operators.diffusion import DegenerateKernelError
from mercer.problems.elliptope import principal_coordinates
from mercer.solvers import Iteration, Status
from mercer.support import Support
from mercer.wording import brief

_KEEPS = 0.5  # of a level in one step of the walk: a further one that keeps less is noise
_ENOUGH = 3  # levels, where nobody asked for a number
_SOONEST = 0.01  # of a level, lost in one step: slower ones count as if they lost that much
_MINOR = 1e-3  # of the trace of a level: directions with less of it take none away from the levels that follow
_NOTHING = 1e-20  # of the trace: what rounding leaves of a mean of vectors that cancel
_NO_LEVEL = 1e-9  # of Σd, on the scale of a Markov matrix, whose eigenvalues are one at most
_ENDED = (Status.INTERRUPTED, Status.STOPPED, Status.MAX_ITER, Status.MAX_PRODUCTS)


@final
@dataclass(frozen=True, eq=False)
class Level:
    """One set of coordinates of an embedding, the solution of one semi-definite programme.

    Attributes
    ----------
    coordinates : array of shape (m, rank)
        The solution on the points it was solved on, all dimensions of it, not weighed.
    eigenvalues : array of shape (rank,)
        Of B / Tr B, in falling order.
    diagonal : array of shape (m,)
        The prescribed squared lengths of the rows of ``coordinates``; where it is a bound these may be shorter.
    correlation : float
        ⟨Ã, B⟩/Tr B: the part of the level that one step of the walk between the points keeps.
    weight : float
        By what the coordinates are multiplied where they stand beside those of the other levels.
    certificate : EmbeddingCertificate or None
        Bounds on the optimum of this level's programme.
    status, history : Status and tuple of Iteration
        Why its solver stopped, and its steps.
    multipliers : array of shape (m,) or None
        Dual variables of the interior-point method where it ran: a hint that certificates check and never believe.
    n_products, n_stand_in_products : int
        Columns the operator was applied to, or whose entries were formed, and columns of a low-rank stand-in.
    """

    coordinates: Array
    eigenvalues: Array
    diagonal: Array
    correlation: float
    weight: float
    certificate: EmbeddingCertificate | None
    status: Status
    history: tuple[Iteration, ...]
    multipliers: Array | None
    n_products: int
    n_stand_in_products: int

    def __repr__(self) -> str:
        return brief(self, "rank", "correlation", "status", "certificate")

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return int(self.coordinates.shape[1])

    @property
    def purity(self) -> float:
        """Tr ϱ² of ϱ = B/Tr B, between 1/rank and 1 (PSD17 Remark 5)."""
        return float((as_double(self.eigenvalues) ** 2).sum())


class Extent(NamedTuple):
    """How far to go: as many coordinates or levels as are asked for, or as long as the walk remembers.

    Attributes
    ----------
    n_components, n_levels : int or None
        As a user gives them.
    is_local : bool
        Whether the kernel sees neighbours only, so that one level does not tell all.
    """

    n_components: int | None
    n_levels: int | None
    is_local: bool

    def wants_another(self, levels: Sequence[Level]) -> bool:
        """Whether another level should follow these."""
        if levels[-1].status in _ENDED or (self.n_levels is not None and len(levels) >= self.n_levels):
            return False
        if self.n_components is not None:
            return sum(level.rank for level in levels) < self.n_components
        if self.n_levels is not None:
            return True
        return self.is_local and len(levels) < _ENOUGH

    def drops(self, level: Level) -> bool:
        """Whether a further level says too little to be kept, and none should follow."""
        return self.n_components is None and self.n_levels is None and level.correlation < _KEEPS


class Complement(NamedTuple):
    """An orthonormal basis of all coordinates so far, in the order of the levels, and how the last of it was made.

    Directions that carry next to nothing of a level, such as those that a loose solve leaves behind, are left out. With
    F the weighed coordinates of a level and Q the basis before it, its columns are (F - Q·across)·turn. New points
    take part by the same formula.

    Attributes
    ----------
    basis : array of shape (m, q)
        Q and the new columns.
    across : array of shape (q before, rank)
        QᵀF.
    turn : array of shape (rank, rank)
        (LᵀL)^-½ for what is left of F, L = F - Q·across, without directions in which nothing is left.
    """

    basis: Array
    across: Array
    turn: Array

    @classmethod
    def after(cls, basis: Array | None, coordinates: Array, weights: Array) -> Complement:
        """The basis widened by the coordinates of another level, rows weighed by the roots of their weights."""
        xp = namespace(coordinates)
        F = xp.sqrt(as_double(weights))[:, None] * as_double(coordinates)
        Q = F[:, :0] if basis is None else basis
        across = Q.T @ F
        left = F - Q @ across
        again = Q.T @ left  # once more: what rounding left of the span of Q
        across, left = across + again, left - Q @ again
        _, sizes, turn = xp.linalg.svd(left, full_matrices=False)
        kept = sizes**2 > _MINOR * float(xp.sum(F**2))
        turn = (turn[kept].T / sizes[kept]) @ turn[kept]  # the same whatever signs an SVD has, and where sizes agree
        return cls(xp.concat([Q, left @ turn], axis=1), across, turn)


class PosedLevel(NamedTuple):
    """A level, the problem it solves, its coordinates in the scaled weights, and the basis up to and with them."""

    level: Level
    posed: DiffusionProblem[Any]
    coordinates: Array
    complement: Complement

    def for_extension(self) -> SolvedLevel:
        """What an extension to new points is made of."""
        operator = self.posed.exact_operator
        lengths = self.posed.exact.diagonal[: operator.shape[0]] / as_double(operator.weights)
        return SolvedLevel(operator, self.coordinates, lengths, self.level.weight, *self.complement[1:])


def solve_levels(
    posed: DiffusionProblem[DiffusionOperator],
    support: Support,
    settings: Settings,
    extent: Extent,
    checkpoint: Checkpoint | None = None,
    before: Sequence[Array] = (),
) -> list[PosedLevel]:
    """Solve level after level.

    Parameters
    ----------
    posed : DiffusionProblem
        The programme of the first level.
    support : Support
        Which points it is of.
    settings : Settings
        How every level is solved.
    extent : Extent
        How many there are.
    checkpoint : Checkpoint or None
        Where iterates are kept.
    before : sequence of arrays
        Coordinates to start levels from.
    """
    found: list[PosedLevel] = []
    problem: DiffusionProblem[Any] | None = posed
    while problem is not None:
        number = len(found)
        kept = None if checkpoint is None else checkpoint.of_level(number)
        solved = EmbeddingSolver(problem, settings, kept).solve(before[number] if number < len(before) else None)
        if _is_nothing(problem, solved):
            if found:
                break
            raise DegenerateKernelError(
                "No direction of the affinities is positive beside the stationary one, so that the best B with "
                "diag B ≤ d is zero: use diagonal_constraint='equal', or give the affinities a larger diagonal."
            )
        latest = recorded(problem, solved, support, found)
        if found and extent.drops(latest.level):
            break
        found.append(latest)
        if not extent.wants_another([each.level for each in found]):
            break
        problem = posed.complement(found[-1].complement.basis)
    weights = level_weights(found)
    return [each._replace(level=replace(each.level, weight=w)) for each, w in zip(found, weights, strict=True)]


def level_weights(levels: Sequence[PosedLevel]) -> list[float]:
    """By what coordinates are multiplied: squared lengths go as the steps after which the walk has forgotten a level.

    A level of correlation c loses the part 1 - c of itself in a step. All have the mean squared length 1/(1 - c), in
    units of the first level, whose weight is one.
    """
    traces = [each.posed.trace_of(each.coordinates) for each in levels]
    losses = [max(1 - each.level.correlation, _SOONEST) for each in levels]
    return [(traces[0] * losses[0] / (trace * loss)) ** 0.5 for trace, loss in zip(traces, losses, strict=True)]


def _is_nothing(posed: DiffusionProblem[Any], solved: Solved) -> bool:
    """Whether a level in which rows may be short has come to nothing: its optimum, or its B where none is proved."""
    if posed.split is None:
        return False
    lengths = as_double(posed.working.lengths_of_rows)
    rows = lengths[:, None] * posed.working.rows_of(solved.H)
    size = float((rows**2).sum()) if solved.certificate is None else solved.certificate.upper
    return size <= _NO_LEVEL * float((lengths**2).sum())


def _value(posed: DiffusionProblem[Any], solved: Solved) -> float:
    """⟨Ã, B⟩ of what is stored, which a run that was broken off did not see last."""
    if solved.certificate is not None:
        return solved.certificate.objective
    return posed.working.objective(solved.H, posed.working.apply(solved.H))


def recorded(
    posed: DiffusionProblem[Any], solved: Solved, support: Support, earlier: Sequence[PosedLevel]
) -> PosedLevel:
    """What a solved problem is as a level, and the basis that its coordinates widen."""
    weights = posed.operator.weights
    xp = namespace(weights)
    weighed, eigenvalues = principal_coordinates(
        posed.working.lengths_of_rows[:, None] * posed.working.rows_of(solved.H)
    )
    if posed.split is not None:  # the dimension in which halves differ is none of B
        weighed, eigenvalues = weighed[:, eigenvalues > _NOTHING], eigenvalues[eigenvalues > _NOTHING]
    coordinates = weighed / xp.sqrt(weights)[:, None]
    coordinates *= deterministic_signs(coordinates)  # those of a row repeated are those of its weight
    level = Level(
        posed.in_units(support, coordinates),
        eigenvalues,
        posed.diagonal_in_units(support),
        _value(posed, solved) / posed.trace_of(coordinates),
        1.0,
        None if solved.certificate is None else posed.certificate_in_units(support, solved.certificate),
        solved.status,
        solved.history,
        solved.multipliers,
        posed.n_columns,
        solved.n_stand_in_columns,
    )
    basis = earlier[-1].complement.basis if earlier else None
    return PosedLevel(level, posed, coordinates, Complement.after(basis, coordinates, weights))
