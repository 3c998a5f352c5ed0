"""The sum of two kernel matrices that are known by other things: one by points, say, and one by its entries."""

from __future__ import annotations

from typing import ClassVar, final

from mercer.backends.arrays import Array
from mercer.backends.rounding import EntryError, unit_of
from mercer.operators.base import Index, LinearMap
from mercer.operators.gram import GramOperator


@final
class GramSum(LinearMap):
    """K + Σ, both symmetric, n × n and without negative entries.

    Kernels of the same points are better added as kernels; this is for a matrix Σ that is given, and costs what the
    two of them cost.
    """

    _made_from: ClassVar = {"left": "left", "right": "right"}

    def __init__(self, left: GramOperator, right: GramOperator) -> None:
        super().__init__(left.shape, left.dtype, symmetric=True, reference=left.reference)
        self.left, self.right = left, right

    @property
    def entry_error(self) -> EntryError:
        """How far an entry can be from the sum of the two values."""
        return self.left.entry_error.plus(self.right.entry_error, nonnegative=True, unit=unit_of(self.dtype))

    @property
    def positive_definite(self) -> bool:
        """Whether both kernels are known to be positive semi-definite."""
        return all(part.kernel.properties.positive_definite is True for part in (self.left, self.right))

    def _multiply(self, v: Array) -> Array:
        return (self.left @ v) + (self.right @ v)

    def diagonal(self) -> Array:
        """The sum of the diagonals."""
        return self.left.diagonal() + self.right.diagonal()

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        return self.left.block(rows, cols) + self.right.block(rows, cols)
