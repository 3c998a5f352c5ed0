"""What every problem has: a count of products with a budget, and words for what a method must be able to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ProductBudgetError(RuntimeError):
    """A product would pass the budget of columns."""


class Problem:
    """An objective with its constraints, independent of any solver.

    Attributes
    ----------
    n_columns : int
        Columns of its operator that have been multiplied by or evaluated so far.
    max_columns : int or None
        A product that would pass this many raises :class:`ProductBudgetError`.
    """

    n_columns: int = 0
    max_columns: int | None = None

    @property
    def needs(self) -> frozenset[str]:
        """What a method must be able to handle, in the words of an error message, such as "a linear term"."""
        return frozenset()

    def spend(self, columns: int) -> None:
        """Count columns of a product that is about to be made."""
        if self.max_columns is not None and self.n_columns + columns > self.max_columns:
            raise ProductBudgetError(f"The budget of {self.max_columns} columns is spent.")
        self.n_columns += columns

    def so_far(self) -> int | None:
        """What a journal keeps of it: its own count of columns."""
        return vars(self).get("n_columns")

    def go_on_from(self, columns: int | None) -> None:
        """Be as it was when :meth:`so_far` said this."""
        if columns is not None:
            self.n_columns = columns

    @contextmanager
    def within(self, columns: int | None) -> Iterator[None]:
        """Hold the problem to a budget, counted from the first column it ever saw."""
        self.max_columns = columns
        try:
            yield
        finally:
            self.max_columns = None
