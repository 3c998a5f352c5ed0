"""A symmetric map in which some points stand twice, each half: what turns diag B ≤ d into diag B = d.

The mean of two unit vectors is any vector of the unit ball. So a row that may be shorter than prescribed is the mean of
two rows that have the prescribed length, and a programme with an inequality for some rows is one with equalities, with
these rows split: nothing that is proved of equalities need be proved again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

from mercer.backends.arrays import Array, namespace, positions
from mercer.backends.rounding import gamma, unit_of
from mercer.operators.base import Index, LinearMap, MapRounding

_SUM = 4  # roundings of the sum of two halves


@final
class SplitOperator(LinearMap):
    """E M Eᵀ, where E repeats some rows of the identity, halved, after all of them: ‖E‖ = 1, and halves are exact.

    Parameters
    ----------
    inner : LinearMap
        M, symmetric, n × n.
    rows : array of int, of shape (k,)
        The rows that stand twice: as themselves and, in their order, as the last k.

    Attributes
    ----------
    inner, rows
        As given.
    """

    def __init__(self, inner: Any, rows: Array) -> None:
        n = inner.shape[0] + rows.shape[0]
        super().__init__((n, n), inner.dtype, symmetric=True, reference=inner.reference)
        self.inner, self.rows, self.gram = inner, rows, inner.gram
        xp = namespace(self.reference)
        everyone = xp.arange(inner.shape[0], device=self.reference.device)
        self._place = xp.concat([everyone, rows])
        self._part = self.ones(n)
        self._part[rows] = self._part[inner.shape[0] :] = 0.5

    def undeflated(self) -> SplitOperator:
        """The same of the operator with its stationary part."""
        return SplitOperator(self.inner.undeflated(), self.rows)

    def repeated(self, values: Array) -> Array:
        """The entries or rows of the n points, those of the halves once more."""
        return values[self._place]

    def halved(self, values: Array) -> Array:
        """The same for a vector that M is made of, E v."""
        return self._part * values[self._place]

    def quartered(self, values: Array) -> Array:
        """The diagonal of E M Eᵀ from that of M."""
        return self._part**2 * values[self._place]

    def merged(self, values: Array) -> Array:
        """The mean of the two halves of every row that is split, and the other rows, of n + k given ones."""
        n = self.inner.shape[0]
        whole = namespace(values).asarray(values[:n], copy=True)
        whole[self.rows] = (values[self.rows] + values[n:]) / 2
        return whole

    def _multiply(self, v: Array) -> Array:
        n = self.inner.shape[0]
        halves = self._part[:, None] * v
        together = namespace(v).asarray(halves[:n], copy=True)
        together[self.rows] += halves[n:]
        return self._part[:, None] * (self.inner @ together)[self._place]

    def diagonal(self) -> Array:
        """That of M, a quarter of it at halves."""
        return self.quartered(self.inner.diagonal())

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        left, right = (positions(part, self.shape[0], self._place) for part in (rows, cols))
        values = self.inner.block(self._place[left], self._place[right])
        return self._part[left][:, None] * values * self._part[right]

    def rounding(self) -> MapRounding:
        """That of M, since ‖E‖ = 1 and halves are exact, with the sums of two halves that a product begins with."""
        given = self.inner.rounding()
        product = given.product + gamma(_SUM, unit_of(self.dtype)) * (1 + given.product)
        return replace(given, product=product, diagonal=self.quartered(given.diagonal))
