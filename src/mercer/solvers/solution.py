"""What a solver returns, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from mercer.backends.arrays import Array


class Status(Enum):
    """Why a loop ended; the value says what to do next."""

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
        "rows of this one do not settle to residual_tol. Choose a larger bandwidth, or take it as one of many."
    )
    CRAWLING = (
        "The certified gap hardly falls any more for the work it takes: this is the best iterate so far. Choose a "
        "larger bandwidth, or accept the gap that the certificate states."
    )
    SLOW = "The method falls behind its pace: another one should take over."
    STALLED = (
        "The iterate no longer moves, at the limit of rounding: the tolerances are out of reach in this arithmetic, "
        "or the rank is too small. Loosen tol or raise initial_rank."
    )
    INTERRUPTED = "The run was interrupted: this is the best iterate so far."
    STOPPED = "A callback asked to stop."

    @property
    def message(self) -> str:
        """One or two sentences for a person."""
        return self.value


@dataclass(frozen=True)
class Iteration:
    """One line of the history.

    Attributes
    ----------
    number : int
        The step.
    objective : float
        Its value.
    row_residual : float
        How far the iterate is from its fixed point.
    n_columns : int
        Columns of the operator so far.
    seconds : float
        Since the solver began.
    relative_gap : float or None
        As proved by a certificate, where one was asked for; of an interior point that of its primal-dual pair.
    phase : str
        ``"climb"``, or ``"interior point"``.
    """

    number: int
    objective: float
    row_residual: float
    n_columns: int
    seconds: float
    relative_gap: float | None = None
    phase: str = "climb"

    def following(self, last: Iteration) -> Iteration:
        """The same line with number and seconds running on from another."""
        return replace(self, number=self.number + last.number, seconds=self.seconds + last.seconds)


@dataclass(frozen=True)
class SolverResult:
    """The last iterate, its product with J, and how it came about."""

    H: Array
    G: Array
    status: Status
    history: tuple[Iteration, ...]

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return self.history[-1].number if self.history else 0

    def following(self, last: Iteration) -> SolverResult:
        """The result with the numbers and seconds of its history running on from another line."""
        return replace(self, history=tuple(iteration.following(last) for iteration in self.history))

    def after(self, earlier: SolverResult) -> SolverResult:
        """The result with the history of an earlier one before its own."""
        return replace(self, history=(*earlier.history, *self.history))
