"""Entries of the matrix of a discrepancy between the points of a pool, of which rows are asked for again and again."""

from __future__ import annotations

from typing import ClassVar, final

from mercer.backends.arrays import Array, as_double
from mercer.backends.ordering import places as places_up_to
from mercer.operators import GramOperator
from mercer.problems.discrepancy import Discrepancy


@final
class PoolEntries:
    """A between the points of a pool, named by their places in it.

    The points of the pool are gathered once, and made ready for the kernel once; a row then costs little more than its
    entries. Where entries are not made from points, they are looked up one by one.

    Parameters
    ----------
    problem : Discrepancy
        The programme, A = S + Diag(ρ).
    pool : array of int of shape (p,)
        Its points.
    """

    _made_from: ClassVar = {"problem": "_problem", "pool": "_pool"}

    def __init__(self, problem: Discrepancy, pool: Array) -> None:
        self._problem, self._pool, self._ridge = problem, pool, problem.ridge[pool]
        squared, whole = problem.squared, int(pool.shape[0]) == problem.size
        self._own = squared if whole else squared.between(pool) if isinstance(squared, GramOperator) else None

    def rows(self, places: Array) -> Array:
        """Rows of A on the whole pool, k × p."""
        if self._own is None:
            return self._problem.block(self._pool[places], self._pool)
        rows = as_double(self._own.block(places, slice(None)))
        rows[places_up_to(int(places.shape[0]), places), places] += self._ridge[places]
        return rows

    def block(self, places: Array) -> Array:
        """Entries between some points of the pool, k × k."""
        return self._problem.block(self._pool[places], self._pool[places])
