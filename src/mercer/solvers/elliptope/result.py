"""What a solver returns, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mercer.backends.arrays import Array
from mercer.solvers.solution import Status


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


__all__ = ["Iteration", "SolverResult", "Status"]
