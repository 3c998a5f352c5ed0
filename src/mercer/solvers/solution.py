"""What every solver returns: a point, why the run ended there, how it got there, and the proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

Point = TypeVar("Point")


class Status(Enum):
    """Why a run ended; the value says what to do next."""

    CONVERGED = "The tolerances are met."
    MAX_ITER = "The iteration budget ran out: raise max_iter, or accept the gap that the certificate states."
    MAX_PRODUCTS = "The product budget ran out: raise max_products, or accept the gap that the certificate states."
    TRAPPED = (
        "The iterate is stationary for its rank but not proved optimal: raise initial_rank, or accept the gap that the "
        "certificate states."
    )
    CUT_SHORT = (
        "The solver converged, but rank_tol leaves dimensions out that the solution needs: lower rank_tol, or accept "
        "the gap that the certificate states."
    )
    FLAT = (
        "The gap is proved, but the optimum is nearly flat: other embeddings are as good to the tolerance, and the "
        "rows of this one do not settle to residual_tol. Choose a larger bandwidth (sigma) or more neighbours "
        "(n_neighbors), or take it as one of many."
    )
    CRAWLING = (
        "The certified gap hardly falls any more for the work it takes: this is the best iterate so far. Choose a "
        "larger bandwidth (sigma) or more neighbours (n_neighbors), or accept the gap that the certificate states."
    )
    SLOW = "The method falls behind its pace: another one should take over."
    STALLED = (
        "The iterate no longer moves, at the limit of rounding: the tolerances are out of reach in this arithmetic, "
        "or the rank is too small. Loosen tol or raise initial_rank."
    )
    INTERRUPTED = (
        "The run was interrupted: this is the best iterate so far. Fit again for the rest, or set max_iter or a larger "
        "tol to end sooner."
    )
    STOPPED = "A callback asked to stop."

    @property
    def message(self) -> str:
        """One or two sentences for a person."""
        return self.value


@dataclass(frozen=True)
class Iteration:
    """One line of the history of any solver; a callback receives each of them.

    Attributes
    ----------
    number : int
        Steps taken so far.
    objective : float
        Its value; of a game the least upper bound.
    seconds : float
        Since the solver began.
    gap : float or None
        How far the objective can be from the optimum, where that was proved; of an interior point that of its
        primal-dual pair.
    row_residual : float or None
        How far the iterate is from its fixed point, where the method has one.
    n_columns : int
        Columns of the operator so far.
    size : int
        What the iterate is made of: columns of a factor, nodes of a measure.
    phase : str
        What the solver is at, such as ``"climb"`` or ``"interior point"``.
    """

    number: int
    objective: float
    seconds: float = 0.0
    gap: float | None = None
    row_residual: float | None = None
    n_columns: int = 0
    size: int = 0
    phase: str = "climb"

    @property
    def relative_gap(self) -> float | None:
        """The gap in units of the objective; infinite where that is zero and the gap is not."""
        if self.gap is None or self.gap == 0:
            return self.gap
        return self.gap / abs(self.objective) if self.objective != 0 else float("inf")

    @property
    def value(self) -> float:
        """The objective, by the name that a measure's has."""
        return self.objective

    @property
    def n_nodes(self) -> int:
        """The size of a measure."""
        return self.size

    @property
    def rank(self) -> int:
        """The size of a factor."""
        return self.size

    @property
    def lower(self) -> float:
        """The proved lower bound of an objective that is minimised."""
        return float("-inf") if self.gap is None else self.objective - self.gap

    def __str__(self) -> str:
        """One line for the log."""
        kind = "certified gap" if self.phase == "climb" else "gap"
        residual = "" if self.row_residual is None else f", row residual {self.row_residual:.1e}"
        gap = "" if self.relative_gap is None else f", {kind} {self.relative_gap:.1e}"
        head = f"{self.phase}, step {self.number}: objective {self.objective:.9g}"
        return f"{head}{residual}{gap}, {self.seconds:.1f} s"


class Proof(Protocol):
    """What a run asks of a certificate."""

    @property
    def gap_beyond_rounding(self) -> float:
        """The relative gap that a better point could still close."""


@dataclass(frozen=True, eq=False)
class Solution(Generic[Point]):
    """The result of every solver.

    Attributes
    ----------
    point : object
        The best point; each family of problems has its own.
    status : Status
        Why the run ended.
    history : tuple of Iteration
        One line a step, or a line for several of them.
    certificate : Certificate or None
        Of this point, where one was asked for.
    """

    point: Point
    status: Status
    history: tuple[Iteration, ...] = ()
    certificate: Any = None

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return self.history[-1].number if self.history else 0

    def at(self, point: Point) -> Solution[Point]:
        """Another point in place of this one, without its certificate, which says nothing of the other."""
        return replace(self, point=point, certificate=None)

    def ended(self, status: Status, certificate: Any = None) -> Solution[Point]:
        """The same point with another reason to end, and with a certificate where one was found since."""
        return replace(self, status=status, certificate=certificate or self.certificate)
