"""Centring in feature space."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

from mercer.backends.arrays import Array, as_double, cast, like, namespace
from mercer.backends.rounding import UNIT, gamma, unit_of
from mercer.kernels.checks import checked_weights, scale_free
from mercer.operators.base import (
    Index,
    LinearMap,
    MapRounding,
    inner_by_runs,
    inner_depth,
    part_of,
    require_square,
)
from mercer.operators.gram import GramOperator

_ENTRY = 12  # roundings of an entry beside those of the kernel and of its means
_MORE = 1.01  # for products of errors, and for the rounding of these bounds


class _GramErrors(NamedTuple):
    """Bounds for B = W^½KW^½ and K."""

    norm: float  # of the absolute values of B
    product: float  # the error of a product with B, as a part of that norm
    entries: float  # the norm of the error of the entries of B
    means: Array  # the errors of the means of the rows of K
    diagonal: Array  # the errors of the diagonal of K


@final
class CenteredOperator(LinearMap):
    """The Gram matrix of features with their training mean removed.

    For training points it is H K H, H = I - 11ᵀ/n. For new points, a t × n block K_t against the training points
    becomes K_t - (1/n) K_t 11ᵀ - (1/n) 1 1ᵀK + (1/n²) 1 (1ᵀK1) 1ᵀ (the survey's (65) with its third term put right).

    With weights w the mean is the weighted one and the map is W^½ K̆ W^½, or K̆_t W^½ for new points: its eigenvalues are
    those of the sample in which a point of weight two stands twice. With P = I - ssᵀ, s = √(w / Σw), the first is
    P W^½ K W^½ P.

    Parameters
    ----------
    gram : LinearMap
        The n × n map of the training points, or a t × n map between new points and training points.
    weights : array of shape (n,), optional
        Weights of the training points, not negative; ones if left out.
    reference : CenteredOperator, optional
        The centred map of the training points; needed for a block of new points, which takes its weights.

    Attributes
    ----------
    column_means : array of shape (n,)
        The weighted mean of every column of K over the training points.
    mean : float
        The weighted mean of ``column_means``.
    unit : array of shape (n,)
        s, a unit vector, which the map of the training points takes to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import CenteredOperator, GramOperator, Linear
    >>> X = np.array([[1.0], [3.0]])
    >>> train = CenteredOperator(GramOperator(Linear(), X))
    >>> train.to_dense()
    array([[ 1., -1.],
           [-1.,  1.]])
    >>> CenteredOperator(GramOperator(Linear(), [[2.0]], X), reference=train).to_dense()
    array([[0., 0.]])
    """

    def __init__(self, gram: LinearMap, *, weights: Any = None, reference: CenteredOperator | None = None) -> None:
        if reference is None and not gram.symmetric:
            raise ValueError("Centring new points needs reference=, the centred operator of the training points.")
        if reference is not None and gram.shape[1] != reference.shape[0]:
            raise ValueError(f"gram has {gram.shape[1]} columns for {reference.shape[0]} training points.")
        if reference is not None and weights is not None:
            raise ValueError("New points are centred with the weights of reference=: leave weights out.")
        super().__init__(gram.shape, gram.dtype, symmetric=reference is None, reference=gram.reference)
        self.gram = gram
        self.weights: Array | None = None if reference is None else self._here(reference.weights)
        if weights is not None:
            self.weights = self._here(checked_weights(weights, gram.shape[1], "weights", reference=self.reference))
        xp = namespace(self.reference)
        shares = self.ones(gram.shape[1]) if self.weights is None else scale_free(self.weights)
        shares = as_double(shares)
        self._shares = shares / max(float(xp.sum(shares)), 1e-300)
        self.unit: Array = self._here(xp.sqrt(self._shares))
        self._root = None if self.weights is None else xp.sqrt(self.weights)
        self._row_means = self._means_of_rows()
        self.column_means: Array = self._row_means if reference is None else self._here(reference.column_means)
        self.mean = float(as_double(self.column_means) @ self._shares)

    def _here(self, values: Array | None) -> Array | None:
        return None if values is None else like(values, self.reference, dtype=self.dtype)

    def _means_of_rows(self) -> Array:
        if self.weights is None:
            return self.gram.row_sums() / self.gram.shape[1]
        return self.gram @ cast(self._shares, self.dtype)

    def _weighed(self, v: Array) -> Array:
        return v if self._root is None else self._root[:, None] * v

    def _complement(self, v: Array) -> Array:
        """Pv, what of v is orthogonal to s."""
        return v - self.unit[:, None] * inner_by_runs(self.unit, v)

    def centred_factor(self, factor: Array) -> Array:
        """P W^½ F of some columns F: of K ≈ F Fᵀ, a factor of this map of the training points."""
        return self._complement(self._weighed(factor))

    def _multiply(self, v: Array) -> Array:
        v = self._weighed(self._complement(v))
        if not self.symmetric:
            return self.gram @ v - self.column_means @ v
        return self._complement(self._weighed(self.gram @ v))

    def _transpose_multiply(self, v: Array) -> Array:
        if self.symmetric:
            return self._multiply(v)
        product = self.gram.T @ v - self.column_means[:, None] * v.sum(axis=0)
        return self._complement(self._weighed(product))

    def diagonal(self) -> Array:
        """k(xᵢ, xᵢ) - row mean - column mean + mean, times wᵢ."""
        require_square(self)
        values = self.gram.diagonal() - self._row_means - self.column_means + self.mean
        if self.weights is None:
            return values
        return values * (self.weights if self.symmetric else self._root)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        shift = part_of(self._row_means, rows)[:, None] + part_of(self.column_means, cols) - self.mean
        values = self.gram.block(rows, cols) - shift
        if self._root is None:
            return values
        values = values * part_of(self._root, cols)
        return values * part_of(self._root, rows)[:, None] if self.symmetric else values

    def rounding(self) -> MapRounding:
        """What the errors of entries, of means and of the arithmetic amount to; of new points, of the arithmetic alone.

        B = W^½KW^½ has absolute values of a norm of N = maxᵢ Σⱼ wⱼ ``abs(k(xᵢ, xⱼ))`` at most (Collatz and Wielandt's
        quotient of √w). A product with P errs by a part a of the length of what it is given, so that one with PBP errs
        by N(2a + a² + b(1 + a)²), b that of B. What entries err by is projected with them; entries of ``block`` err by
        what their means do as well, each of which changes two rank-one matrices.
        """
        if not self.symmetric:
            return super().rounding()
        unit, n, xp = unit_of(self.dtype), self.shape[0], namespace(self.reference)
        inner = self._gram_errors()
        of_unit = 4 * unit + gamma(n, UNIT)  # of s, entry by entry
        a = _MORE * (gamma(inner_depth(n, self.reference) + 4, unit) + 2 * of_unit + 4 * unit)
        product = inner.norm * (2 * a + a**2 + inner.product * (1 + a) ** 2)
        weights = as_double(self._weights())
        of_mean = float(self._shares @ inner.means) + gamma(n, UNIT) * inner.norm / float(xp.sum(weights))
        largest = float(xp.max(inner.means)) or 1.0  # whose square need not be a number
        of_means = 2 * largest * math.sqrt(float(weights @ (inner.means / largest) ** 2) * float(xp.sum(weights)))
        entries = inner.entries + 4 * of_unit * inner.norm + _MORE * (of_means + of_mean * float(xp.sum(weights)))
        entries += 4 * gamma(_ENTRY, unit) * inner.norm
        size = abs(as_double(self.gram.diagonal())) + 2 * abs(as_double(self._row_means)) + abs(self.mean)
        diagonal = weights * (inner.diagonal + 2 * inner.means + of_mean + gamma(_ENTRY, unit) * size)
        definite = isinstance(self.gram, GramOperator) and bool(self.gram.kernel.properties.positive_definite)
        norm = 4 * inner.norm
        share = product / norm if norm else 0.0
        return MapRounding(_MORE * norm, _MORE * share, _MORE * entries, _MORE * diagonal, False, definite)

    def _weights(self) -> Array:
        return self.ones(self.shape[1]) if self.weights is None else self.weights

    def _gram_errors(self) -> _GramErrors:
        """Of a Gram operator from the errors of its entries; of any other map from what it says itself."""
        unit, xp, weights = unit_of(self.dtype), namespace(self.reference), as_double(self._weights())
        total = float(xp.sum(weights))
        if not isinstance(self.gram, GramOperator):
            given = self.gram.rounding()
            norm = given.norm * float(xp.max(weights))
            length = float(xp.linalg.vector_norm(self._shares))
            means = (given.entries + given.product * given.norm) * length * xp.ones_like(weights)
            return _GramErrors(norm, given.product, given.entries * float(xp.max(weights)), means, given.diagonal)
        error, depth = self.gram.entry_error.doubled(), gamma(self.gram.product_depth + _ENTRY, unit)
        if self.gram.nonnegative:  # the sums are known but for the rounding of shares
            sums = (1 + 4 * gamma(self.shape[0] + 4, UNIT)) * total * as_double(self._row_means)
        else:
            sums = as_double(self.gram.absolute_product(weights))
        sums = sums * (1 + 2 * depth + error.relative)
        own = abs(as_double(self.gram.diagonal()))
        rho = xp.sqrt(error.scaled * own) + math.sqrt(error.absolute)
        sums = sums + rho * float(weights @ rho)
        norm = float(xp.max(sums)) if self.shape[0] else 0.0
        means = (error.relative + depth) * sums / total + rho * float(self._shares @ rho)
        entries = error.relative * norm + float(weights @ rho**2)
        return _GramErrors(norm, depth, entries, means, (error.relative + error.scaled) * own + error.absolute)
