"""The scatter matrices of some features, and the directions that maximise a quotient of them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular, svd
from scipy.linalg.lapack import dpocon

from mercer.backends.arrays import Array
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.config import require_free_memory
from mercer.backends.rounding import EPS
from mercer.discriminant.labels import LabelBasis
from mercer.discriminant.quotient import Quotient

_SINGULAR = 4 * EPS  # times the order: what of S_W is less than this, with S_T scaled to ones, is rounding
_ROUNDING = 16 * EPS  # of the mean of a column: what points of a constant one may differ from it
_NULL = 1e-12  # times the order: eigenvalues of a correlation matrix below this are rounding


class SingularScatterError(ValueError):
    """The within-class scatter vanishes in a direction in which points differ: the quotient has no maximum."""

    def __init__(self) -> None:
        super().__init__(
            "The within-class scatter vanishes in a direction in which the points differ, so that the quotient has no "
            "maximum: pass a positive regularization, such as 1e-3, or r2 below 1."
        )


class _Factor(NamedTuple):
    """L of R₂ = LLᵀ in a basis of the features; None for the identity, and for the features themselves."""

    basis: Array | None
    lower: Array | None

    def divided(self, right: Array) -> Array:
        """L⁻¹Bᵀ times a block."""
        right = right if self.basis is None else self.basis.T @ right
        return right if self.lower is None else np.asarray(solve_triangular(self.lower, right, lower=True))

    def carried_back(self, vectors: Array) -> Array:
        """B L⁻ᵀ times a block."""
        found = vectors if self.lower is None else solve_triangular(self.lower, vectors, lower=True, trans="T")
        return np.asarray(found if self.basis is None else self.basis @ found)


class Directions(NamedTuple):
    """Eigenvalues μ in falling order and directions u, columns with uᵀR₂u = 1."""

    values: Array
    vectors: Array


@final
class FeatureScatter:
    """The scatter of features about their mean, of whole classes and within them.

    Parameters
    ----------
    features : array of shape (n, q)
        In any precision; sums are double.
    root : array of shape (n,)
        Roots of the shares of the rows, a unit vector.
    labels : LabelBasis
        Of the same rows.

    Attributes
    ----------
    mean : array of shape (q,)
        Of the features.
    total_variance : float
        The trace of S_T.

    Notes
    -----
    Cost: n q² flops and q × q memory where the scatter within classes is needed, n q c otherwise.
    """

    def __init__(self, features: Array, root: Array, labels: LabelBasis) -> None:
        self.features, self._root, self.labels = features, root, labels
        self._constant: Array = np.zeros(features.shape[1], bool)
        self.mean = sum((root[rows] ** 2) @ features[rows] for rows in row_chunks(root.size, TALL_ROWS))
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named
            parts = [np.sum(self._scaled(rows) ** 2, axis=0) for rows in row_chunks(root.size, TALL_ROWS)]
        variances = np.sum(parts, axis=0)
        self._constant = np.sqrt(variances) <= _ROUNDING * np.abs(self.mean)
        self.total_variance = finite_variance(float(np.sum(variances[~self._constant])))

    @cached_property
    def between(self) -> Array:
        """QᵀZ, c × q."""
        sums = np.zeros((self.labels.basis.shape[1], self.mean.size))
        for rows in row_chunks(self._root.size, TALL_ROWS):
            sums += self.labels.basis[rows].T @ self._scaled(rows)
        return sums

    @cached_property
    def within(self) -> Array:
        """S_W, from what the labels leave of every row: a difference of scatter matrices would lose digits."""
        order = self.mean.size
        require_free_memory(3.0 * 8 * order**2, f"The scatter matrices of {order} features take", "pass landmarks")
        total = np.zeros((order, order))
        for rows in row_chunks(self._root.size, TALL_ROWS):
            block = self._left(rows)
            total += block.T @ block
        return total

    @property
    def effective_size(self) -> float:
        """The number of rows of equal weight that tell as much as these (Kish)."""
        return float(1 / np.sum(self._root**4))

    def moments_within(self) -> tuple[float, float, float, float]:
        """Σ pᵢ‖vᵢ‖⁴ of what the labels leave of every row, ‖S_W‖², the trace of S_W and the total variance.

        They are in a unit of length, a power of two, in which fourth powers are numbers.
        """
        unit = math.ldexp(1.0, math.frexp(self.total_variance)[1] // 2)
        fourth, within = 0.0, self.within / unit / unit
        for rows in row_chunks(self._root.size, TALL_ROWS):
            share = np.maximum(self._root[rows] ** 2, np.finfo(float).tiny)
            fourth += float(np.sum(np.sum((self._left(rows) / unit) ** 2, axis=1) ** 2 / share))
        return fourth, float(np.sum(within**2)), float(np.trace(within)), self.total_variance / unit / unit

    def leading(self, quotient: Quotient, count: int) -> Directions:
        """The ``count`` leading directions, or as many as there are.

        Cost: a Cholesky factor of order q, and an eigenproblem of the order of the labels where β = 0, else of order q.
        """
        weights = quotient.label_weights(self.labels.strengths, self.labels.explained)
        factor = self._denominator(quotient)
        if quotient.spread == 0:
            left = factor.divided((np.sqrt(weights)[:, None] * self.between).T)
            vectors, roots, _ = svd(left, full_matrices=False, lapack_driver="gesvd")
            values = roots**2
        else:
            values, vectors = _leading_pairs(factor.divided(factor.divided(self._numerator(quotient)).T), count)
        largest = float(np.max(values, initial=0.0))  # of no values, where the labels are all alike
        kept = min(count, int(np.sum(values > _NULL * largest * self.mean.size)))
        return Directions(values[:kept], factor.carried_back(vectors[:, :kept]))

    def _numerator(self, quotient: Quotient) -> Array:
        """Zᵀ(βI + QmQᵀ)Z."""
        weights = quotient.label_weights(self.labels.strengths, self.labels.explained)
        explained = quotient.spread * self.labels.explained + weights
        return quotient.spread * self.within + (self.between.T * explained) @ self.between

    def embedded(self, vectors: Array) -> Array:
        """The coordinates of the rows along some directions."""
        parts = [(self.features[rows] - self.mean) @ vectors for rows in row_chunks(self._root.size, TALL_ROWS)]
        return np.concatenate(parts)

    def is_singular(self) -> bool:
        """Whether S_W vanishes, to rounding, in a direction in which points differ."""
        return self._unpenalised is None

    def _scaled(self, rows: slice) -> Array:
        """Rows about their mean times the roots of shares; rounding in constant columns is none of their scatter."""
        block = self._root[rows, None] * (self.features[rows] - self.mean)
        block[:, self._constant] = 0.0
        return block

    def _left(self, rows: slice) -> Array:
        """What labels do not account for of scaled rows."""
        removed = (1 - np.sqrt(1 - self.labels.explained))[:, None] * self.between
        return self._scaled(rows) - self.labels.basis[rows] @ removed

    def _denominator(self, quotient: Quotient) -> _Factor:
        """The factor of R₂."""
        if quotient.r2 == 0:
            return _Factor(None, None)
        plain = quotient.r2 == 1 and quotient.penalty == 0
        factor = self._unpenalised if plain else self._factor(quotient)
        if factor is None:
            raise SingularScatterError
        return factor

    @cached_property
    def _unpenalised(self) -> _Factor | None:
        return self._factor(Quotient(0.0, 1.0))

    def _factor(self, quotient: Quotient) -> _Factor | None:
        """The factor of R₂ in all features, or in a basis where they depend on each other; None if it is singular."""
        matrix, total = quotient.r2 * self.within, quotient.r2 * self._total()
        for each in (matrix, total):
            each[np.diag_indices_from(each)] += quotient.identity
        lower = _factored(matrix, np.diagonal(total))
        if lower is not None:
            return _Factor(None, lower)
        basis = _range(total)
        lower = _factored(basis.T @ matrix @ basis, np.ones(basis.shape[1]))
        return None if lower is None else _Factor(basis, lower)

    def _total(self) -> Array:
        """S_T."""
        return self.within + (self.between.T * self.labels.explained) @ self.between


def _range(total: Array) -> Array:
    """A basis in which S_T is the identity: constant columns and copies of others go."""
    scale = np.sqrt(np.diagonal(total))
    scale = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    values, vectors = eigh(scale[:, None] * total * scale)
    kept = values > _NULL * total.shape[0] * max(float(values[-1]), 0.0)
    return np.asarray(scale[:, None] * vectors[:, kept] / np.sqrt(values[kept]))


def finite_variance(value: float) -> float:
    """The total variance of features, refused where it overflows."""
    if not np.isfinite(value):
        raise ValueError("The squares of the entries of X exceed the largest number: divide X by a constant.")
    return value


def _factored(matrix: Array, sizes: Array) -> Array | None:
    """The Cholesky factor of a matrix; None where it is singular to rounding beside a larger one's diagonal.

    What vanishes in both, a constant column, is given a one: nothing is sought there.
    """
    scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
    scaled = matrix / scale / scale[:, None]
    scaled[np.diag_indices_from(scaled)] += sizes <= 0
    try:
        factor = cholesky(scaled, lower=True)
    except np.linalg.LinAlgError:
        return None
    norm = float(np.abs(scaled).sum(axis=0).max())
    least = norm * dpocon(factor, norm, uplo="L")[0]  # one over the norm of the inverse
    return None if least < _SINGULAR * matrix.shape[0] else np.asarray(scale[:, None] * factor)


def _leading_pairs(matrix: Array, count: int) -> tuple[Array, Array]:
    order = matrix.shape[0]
    values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=[max(0, order - count), order - 1])
    return values[::-1], vectors[:, ::-1]
