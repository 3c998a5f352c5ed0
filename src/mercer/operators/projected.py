"""A diffusion operator on the complement of a few vectors: what further levels of an embedding are solved on."""

from __future__ import annotations

import math
from typing import NamedTuple, final

from mercer.backends.arrays import Array, as_double, cast, like, namespace
from mercer.backends.rounding import UNIT, gamma, unit_of
from mercer.operators.base import Index, LinearMap, MapRounding, part_of
from mercer.operators.diffusion import DiffusionOperator
from mercer.operators.lowrank import LowRankOperator

_ENTRY = 8  # roundings of an entry beside those of its sums
_NOISE = 8  # times the rounding of the diagonal: less than that is none
_MORE = 1.01


class _Sizes(NamedTuple):
    """Bounds on the norms of Q (Frobenius' and the spectral one), W and S (Frobenius')."""

    whole: float
    spectral: float
    image: float
    middle: float


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
        middle = self.basis.T @ self.image
        self.middle = (middle + middle.T) / 2
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
        return as_double(self.inner.signed_diagonal()) + namespace(inside).sum(self.basis * inside, axis=1)

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
        staying = abs(as_double(self.inner.signed_diagonal()))
        return staying + 2 * lengths * norm(self.image, axis=1) + lengths**2 * float(norm(self.middle))

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        left, right = part_of(self.basis, rows), part_of(self.basis, cols)
        values = as_double(self.inner.block(rows, cols)) - left @ part_of(self.image, cols).T
        values += (left @ self.middle - part_of(self.image, rows)) @ right.T
        return cast(values, self.dtype)

    def rounding(self) -> MapRounding:
        """What floating point adds to the errors of M.

        Let σ = ‖Q‖ and φ its Frobenius norm; ‖P‖ = p ≤ max(1, σ² - 1). Where products with P err by a, those with M by
        a part b of its norm N, those with PMP err by N(2pa + a² + b(p + a)²); an inner product with a column of Q errs
        by γ of the depth of its sum, whatever the signs (Cauchy–Schwarz). Entries and the diagonal are made of the
        image W = MQ + D and of S = QᵀW, symmetric to the last bit: D changes entries by no more than (2σ + σ³)‖D‖ and a
        diagonal entry by (2‖Qᵢ‖ + σ‖Qᵢ‖²)‖D‖. An error E that all evaluations of M share becomes PEP; by what they
        differ counts in full.
        """
        given, unit, xp = self.inner.rounding(), unit_of(self.dtype), namespace(self.basis)
        sizes, (n, q) = self._sizes(), self.basis.shape
        lengths = _MORE * xp.linalg.vector_norm(self.basis, axis=1)
        wide, norm = sizes.spectral, given.norm + given.entries
        stretch = max(1.0, wide**2 - 1)  # ‖P‖
        casting = 2 * unit * (1 + wide**2)
        projecting = _MORE * (gamma(self._span.inner_depth, unit) + gamma(q + 2, unit)) * sizes.whole * wide + casting
        product = norm * (2 * stretch * projecting + projecting**2 + given.product * (stretch + projecting) ** 2)
        of_image = (given.product + casting) * norm * sizes.whole
        of_middle = gamma(n + 2, UNIT) * sizes.whole * sizes.image
        parts = norm + 2 * sizes.whole * sizes.image + sizes.whole**2 * sizes.middle
        apart = min(given.apart, 2 * given.entries)
        entries = stretch**2 * given.entries + (1 + 4 * wide**2 + wide**4) * apart
        entries += (2 + wide**2) * wide * of_image + wide**2 * of_middle
        entries += (gamma(2 * q + _ENTRY, UNIT) + unit) * parts
        entries = max(entries, float(xp.max(given.diagonal)))  # low-rank proofs take the diagonal for that of entries
        of_image += wide * given.entries
        diagonal = given.diagonal + gamma(2 * q + _ENTRY, UNIT) * self._parts_of_diagonal()
        diagonal = _MORE * (diagonal + 2 * lengths * of_image + lengths**2 * (wide * of_image + of_middle))
        values = self.diagonal()  # of a row that takes no part only what may lie above zero counts
        diagonal = xp.where(self.room() == 0, xp.clip(values + diagonal, 0.0, None), diagonal)
        return MapRounding(
            _MORE * parts, product / parts, _MORE * entries, diagonal, False, given.semidefinite, 2 * _MORE * entries
        )

    def _sizes(self) -> _Sizes:
        norm, gram = namespace(self.basis).linalg.vector_norm, abs(self.basis.T @ self.basis)
        spectral = math.sqrt(float(gram.sum(axis=0).max())) if gram.shape[0] else 0.0
        return _Sizes(
            *(_MORE * float(size) for size in (norm(self.basis), spectral, norm(self.image), norm(self.middle)))
        )
