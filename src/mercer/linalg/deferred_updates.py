"""A matrix that rank-one terms are added to one by one, some of which wait and are then added together.

Each term alone would read and write the whole matrix. Kept apart as U W they cost little where a row, a column or a
combination of rows is asked for, and added at once they are one matrix product.
"""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array, namespace
from mercer.linalg.dense_products import over_rows, product

_WAITING = 32


@final
class DeferredUpdates:
    """M + U W, of which M is stored and the columns of U and rows of W wait to be added to it.

    Parameters
    ----------
    matrix : array of shape (n, p)
        M; it is changed in place.
    waiting : int, default=32
        So many terms wait at most.
    """

    def __init__(self, matrix: Array, waiting: int = _WAITING) -> None:
        self._matrix, self._most = matrix, waiting
        self._allocate()

    def _allocate(self) -> None:
        """Room for the terms that wait, none of which is there yet."""
        matrix, xp = self._matrix, namespace(self._matrix)
        rows, columns = matrix.shape
        self._left = xp.zeros((rows, self._most), dtype=matrix.dtype, device=matrix.device)
        self._right = xp.zeros((self._most, columns), dtype=matrix.dtype, device=matrix.device)
        self._count = 0

    def row(self, place: int) -> Array:
        """One row of the sum."""
        return self._matrix[place] + self._left[place, : self._count] @ self._right[: self._count]

    def column(self, place: int) -> Array:
        """One column of the sum."""
        return self._matrix[:, place] + self._left[:, : self._count] @ self._right[: self._count, place]

    def combined(self, shares: Array) -> Array:
        """The rows of the sum, times these shares and added up."""
        waiting = (shares @ self._left[:, : self._count]) @ self._right[: self._count]
        return product(self._matrix.T, shares) + waiting

    def add(self, left: Array, right: Array) -> None:
        """Add the outer product of two vectors."""
        if self._count == self._most:
            self.settle()
        self._left[:, self._count] = left
        self._right[self._count] = right
        self._count += 1

    def settle(self) -> None:
        """Add the terms that wait."""
        left, right, matrix = self._left[:, : self._count], self._right[: self._count], self._matrix

        def add(rows: slice) -> None:
            matrix[rows] += left[rows] @ right

        if self._count:
            over_rows(add, int(matrix.shape[0]), int(matrix.shape[1]) * self._count)
        self._count = 0

    def keep(self, places: Array) -> None:
        """Leave out all rows and columns of a square matrix but these."""
        self.settle()
        self._matrix = self._matrix[places][:, places]
        self._allocate()

    @property
    def is_full(self) -> bool:
        """Whether the next term makes the others be added."""
        return self._count == self._most

    @property
    def matrix(self) -> Array:
        """The sum, with nothing left that waits."""
        self.settle()
        return self._matrix
