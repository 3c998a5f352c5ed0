"""A diffusion operator on the complement of a few vectors: what further levels of an embedding are solved on."""

from __future__ import annotations

import math
from typing import final

from mercer.backends.arrays import Array, as_double, cast, like, namespace
from mercer.backends.rounding import UNIT, gamma, unit_of
from mercer.operators.base import Index, LinearMap, MapRounding, part_of
from mercer.operators.diffusion import DiffusionOperator
from mercer.operators.lowrank import LowRankOperator

_ENTRY = 8  # roundings of an entry beside those of its sums
_NOISE = 8  # times the rounding of the diagonal: less than that is none
_MORE = 1.01


@final
class ProjectedOperator(LinearMap):
    """P M P with P = I - Q Qᵀ, for a diffusion operator M and a tall matrix Q of nearly orthonormal columns.

    P is what the entries of Q make it, whether these are orthonormal or not: the map is positive semi-definite where M
    is, and everything that is proved of it holds for this Q.

    Parameters
    ----------
    inner : DiffusionOperator
        M, n × n.
    basis : array of shape (n, q)
        Q.

    Attributes
    ----------
    inner, basis : DiffusionOperator and array
        As given, Q in double precision.
    image : array of shape (n, q)
        M Q.
    middle : array of shape (q, q)
        Qᵀ M Q.
    stationary : array of shape (n,)
        P v for the stationary part vvᵀ that M leaves out.

    Notes
    -----
    Building it costs a product with q columns, a product 4 n q flops a column more than one with M.
    """

    def __init__(self, inner: DiffusionOperator, basis: Array) -> None:
        super().__init__(inner.shape, inner.dtype, symmetric=True, reference=inner.reference)
        self.inner, self.basis = inner, as_double(like(basis, inner.reference))
        self._span = LowRankOperator(cast(self.basis, self.dtype))
        self.image = as_double(inner @ self.basis)
        self.middle = self.basis.T @ self.image
        self.stationary = self._complement(inner.stationary[:, None])[:, 0]
        self.weights, self.gram = inner.weights, inner.gram

    def undeflated(self) -> ProjectedOperator:
        """The same of the operator with its stationary part."""
        return ProjectedOperator(self.inner.undeflated(), self.basis)

    def _complement(self, v: Array) -> Array:
        return v - self._span @ v

    def _multiply(self, v: Array) -> Array:
        return self._complement(self.inner @ self._complement(v))

    def diagonal(self) -> Array:
        """mᵢᵢ - 2 Qᵢ·(MQ)ᵢ + Qᵢᵀ(QᵀMQ)Qᵢ; where M is not positive semi-definite it may be negative."""
        inside = self.basis @ self.middle - 2 * self.image
        return as_double(self.inner.diagonal()) + namespace(inside).sum(self.basis * inside, axis=1)

    def room(self) -> Array:
        """The diagonal where it is positive beyond the rounding of its parts, zero elsewhere."""
        values = self.diagonal()
        return namespace(values).where(values > self._noise(), values, 0.0)

    def _noise(self) -> Array:
        return gamma(_NOISE * (self.basis.shape[1] + _ENTRY), UNIT) * self._parts_of_diagonal()

    def _parts_of_diagonal(self) -> Array:
        """What the terms of the diagonal add up to without their signs."""
        norm = namespace(self.basis).linalg.vector_norm
        lengths = norm(self.basis, axis=1)
        staying = abs(as_double(self.inner.diagonal()))
        return staying + 2 * lengths * norm(self.image, axis=1) + lengths**2 * float(norm(self.middle))

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        left, right = part_of(self.basis, rows), part_of(self.basis, cols)
        values = as_double(self.inner.block(rows, cols)) - left @ part_of(self.image, cols).T
        values += (left @ self.middle - part_of(self.image, rows)) @ right.T
        return cast(values, self.dtype)

    def rounding(self) -> MapRounding:
        """What floating point adds to the errors of M.

        With ‖P‖ ≤ 1, products with P err by a, those with M by p times its norm N: together by N(2a + p) but for
        squares. An inner product with a column of Q errs by γₙ, whatever the signs (Cauchy–Schwarz). Entries and the
        diagonal are made of the image W = MQ, whose columns err as products do, and of S = QᵀW; an error E of M, ‖E‖ ≤
        e, changes the diagonal by Eᵢᵢ and by no more than e(2‖Qᵢ‖ + ‖Qᵢ‖²) beyond.
        """
        given, unit, xp = self.inner.rounding(), unit_of(self.dtype), namespace(self.basis)
        n, q = self.basis.shape
        size = _MORE * float(xp.sum(self.basis**2))  # ‖Q‖² in the Frobenius norm
        lengths = _MORE * xp.sqrt(xp.sum(self.basis**2, axis=1))
        root, norm = math.sqrt(size), given.norm
        projecting = _MORE * (gamma(n, unit) + gamma(q + 2, unit)) * root + 4 * unit
        product = _MORE * norm * (2 * projecting + given.product)
        of_image, of_middle = given.product * norm * root, gamma(n, UNIT) * size * norm
        formed = gamma(q + _ENTRY, unit) * (1 + size) ** 2 * norm
        entries = given.entries + _MORE * (3 * of_image + of_middle + formed)
        diagonal = given.diagonal + gamma(q + _ENTRY, UNIT) * self._parts_of_diagonal()
        diagonal = xp.where(self.room() == 0, diagonal + self._noise(), diagonal)
        diagonal = diagonal + 2 * lengths * (given.entries + of_image)
        diagonal = diagonal + lengths**2 * (given.entries + of_image + of_middle)
        whole = (1 + size) ** 2 * norm
        return MapRounding(whole, product / whole, entries, _MORE * diagonal, False, given.semidefinite)
