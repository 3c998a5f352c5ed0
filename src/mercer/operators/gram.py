"""The Gram matrix of a kernel as a linear map, evaluated in tiles or stored where that pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, cast, is_sparse_tensor, is_tensor, like, namespace
from mercer.backends.chunks import STORED_ROWS, row_chunks
from mercer.backends.entries import Side
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import TINY, EntryError
from mercer.kernels.base import Kernel
from mercer.kernels.checks import as_points, first_place
from mercer.kernels.precomputed import Precomputed
from mercer.operators.base import Index, LinearMap, part_of, require_square

_PRODUCTS_BEFORE_STORING = 1
_MEASURED = 2**26  # entries, up to which two precisions are compared and not only bounded
_VANISHING = 1e-6  # of √(kᵢᵢkⱼⱼ): smaller entries may err by a part of that instead of a part of themselves


class NarrowError(NamedTuple):
    """Between a symmetric kernel matrix in the precision of its points and in a wider one.

    Attributes
    ----------
    entries : EntryError
        Of single entries.
    rows : array of shape (n,)
        Of Σⱼ wⱼ k(xᵢ, xⱼ), without what ``entries.scaled`` and ``entries.absolute`` add to it.
    diagonal : array of shape (n,)
        Of k(xᵢ, xᵢ).
    """

    entries: EntryError
    rows: Array
    diagonal: Array


@final
class GramOperator(LinearMap):
    """The matrix k(X, Y), or k(X, X), applied without being stored.

    With weights w on the points of Y it is K Diag(w): a sum over a weighted sample, Σⱼ wⱼ k(xᵢ, yⱼ) vⱼ, whose row sums
    are Σⱼ wⱼ k(xᵢ, yⱼ).

    Parameters
    ----------
    kernel : Kernel
        A resolved kernel.
    X : array of shape (n, d)
        Points of the rows, whose library and device are those of everything that comes out. For ``Precomputed()``, the
        kernel matrix itself, dense or sparse.
    Y : array of shape (m, d), optional
        Points of the columns; X if left out.
    weights : array of shape (m,), optional
        Non-negative weights of the columns.
    dtype : dtype, optional
        The arithmetic of entries and products, that of the points if left out. A wider one widens the points tile by
        tile and copies none of them: float64 products of float32 points, as proofs want them.

    Attributes
    ----------
    points : array of shape (n, d)
        X, as it was given.
    stored_share : float, default=1
        The part of the memory limit that a stored matrix may take; a caller that needs room beside it sets less.

    Notes
    -----
    A product costs n m (d + r) flops and as many kernel evaluations as there are entries (half if symmetric); its
    memory is a tile a thread. From the second product on the matrix is stored if it fits the memory limit of the
    configuration *and* reading it is cheaper than evaluating it: when it fits the cache, or the points have many
    features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, GramOperator
    >>> gram = GramOperator(Gaussian(sigma=1.0), np.array([[0.0], [1.0]]))
    >>> gram @ np.array([1.0, 2.0])
    array([1.73575888, 2.36787944])
    """

    _made_from: ClassVar = {"kernel": "kernel", "X": "points", "Y": "_others", "weights": "weights", "dtype": "dtype"}

    def __init__(self, kernel: Kernel, X: Any, Y: Any = None, *, weights: Any = None, dtype: Any = None) -> None:
        self.kernel = kernel
        self.points, self._others = X, Y
        self.stored_share = 1.0
        points = kernel._checked(X, Y)
        self._matrix = kernel.matrix(*points, dtype=dtype)
        self._narrow = points if points[0].dtype != self._matrix.dtype else None
        symmetric = self._matrix.symmetric and weights is None
        super().__init__(self._matrix.shape, self._matrix.dtype, symmetric=symmetric, reference=points[0])
        self.weights = None if weights is None else self._checked_weights(weights)
        self._products = 0
        if not (kernel.properties.bounded or self._matrix.is_stored):  # values that are given were looked at
            self._require_finite()

    def _require_finite(self) -> None:
        """Refuse points at which the kernel leaves floating point: of a semi-definite one the diagonal says so."""
        sides: tuple[tuple[Side, str], ...] = (("rows", "X"), ("cols", "Y"))
        for side, name in sides[: 1 if self._matrix.symmetric else 2]:
            with np.errstate(over="ignore", invalid="ignore"):
                finite = namespace(self.reference).isfinite(self._matrix.diagonal(side))
            if not bool(finite.all()):
                raise ValueError(
                    f"{self.kernel!r} overflows at row {first_place(~finite)[0]} of {name}: bring the points, or its "
                    "parameters, to a size near one."
                )

    @property
    def is_stored(self) -> bool:
        """Whether the matrix lies in memory."""
        return self._matrix.is_stored

    @property
    def entry_error(self) -> EntryError:
        """How far an entry of K, without weights, can be from the kernel's value at the points given."""
        return self._matrix.entry_error

    def narrow_error(self, weights: Array) -> NarrowError | None:
        """How far the matrix in the precision of the points is from this one, where products run in a wider one.

        It is measured up to some thousand points and bounded beyond; None where the two are the same.
        """
        if self._narrow is None:
            return None
        narrow = self.kernel.matrix(*self._narrow)
        if self.shape[0] * self.shape[1] <= _MEASURED:
            return self._measured(narrow, like(weights, self.reference))
        error = narrow.entry_error
        diagonal = (error.relative + error.scaled) * abs(as_double(self._matrix.diagonal())) + error.absolute
        rows = error.relative * self.absolute_product(weights) if error.relative else 0 * diagonal
        return NarrowError(error, rows, diagonal)

    def _measured(self, narrow: KernelMatrix, weights: Array) -> NarrowError:
        """Entries relative to themselves where they are not vanishing, row sums, and the diagonal."""
        xp = namespace(self.reference)
        own = as_double(self._matrix.diagonal())
        root, weights = xp.sqrt(xp.abs(own)), as_double(weights)
        relative = scaled = 0.0
        rows = xp.empty_like(own)
        for part in row_chunks(self.shape[0], STORED_ROWS):
            wide = as_double(self._matrix.block(part, slice(None)))
            off = as_double(narrow.block(part, slice(None))) - wide
            rows[part] = xp.abs(off @ weights)
            off, wide = xp.abs(off), xp.abs(wide)
            size = xp.maximum(root[part][:, None] * root, xp.full_like(root, TINY))
            large = wide > _VANISHING * size
            relative = max(relative, _largest(off[large] / wide[large]))
            scaled = max(scaled, _largest(off[~large] / size[~large]))
        diagonal = xp.abs(as_double(narrow.diagonal()) - own)
        return NarrowError(EntryError(relative, scaled), rows, diagonal)

    @property
    def summation_depth(self) -> int:
        """Roundings that a term of a product goes through, as the matrix lies at present."""
        return self._matrix.summation_depth

    @property
    def product_depth(self) -> int:
        """Roundings that a term of any product goes through, whether entries come to be stored or not."""
        return self.shape[1] if self._storing_pays() else self._matrix.summation_depth

    def absolute_product(self, v: Array) -> Array:
        """Σⱼ ``abs(k(xᵢ, yⱼ))`` vⱼ for one vector, without weights: entries a few rows at a time."""
        return self._matrix.absolute_product(like(v, self.reference))

    @property
    def row_entries(self) -> float:
        """Entries of a row that a product meets, on average: all of them unless the matrix is sparse."""
        return self._matrix.row_entries

    def entrywise(self, function: Callable[[Any, Any, Any], Any]) -> KernelMatrix | None:
        """The sparse matrix of a function of every entry and its place that keeps zeros; None of a dense matrix."""
        return self._matrix.entrywise(function)

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is negative, for certain."""
        return self._matrix.nonnegative

    def unweighted(self) -> GramOperator:
        """The same map without its weights, sharing points and stored entries."""
        if self.weights is None:
            return self
        twin = object.__new__(GramOperator)
        twin.__dict__.update(self.__dict__, weights=None, symmetric=self._matrix.symmetric)
        return twin

    def _multiply(self, v: Array) -> Array:
        return self._kernel_product(v if self.weights is None else self.weights[:, None] * v, transpose=False)

    def _transpose_multiply(self, v: Array) -> Array:
        product = self._kernel_product(v, transpose=True)
        return product if self.weights is None else self.weights[:, None] * product

    def _kernel_product(self, v: Array, *, transpose: bool) -> Array:
        if self._products >= _PRODUCTS_BEFORE_STORING:
            self.store()
        self._products += 1
        return self._matrix.multiply(v, transpose=transpose)

    def store(self) -> None:
        """Store the entries where that pays and fits the memory limit: for a caller that knows of products to come."""
        if not self.is_stored and self._storing_pays():
            self._matrix = self._matrix.stored()

    def so_far(self) -> tuple[int, bool]:
        """What a journal keeps of it: how many products there were, and whether entries are stored since."""
        return self._products, self.is_stored

    def go_on_from(self, told: tuple[int, bool]) -> None:
        """Be as it was when :meth:`so_far` said this: a product with stored entries is rounded otherwise."""
        self._products, stored = told
        if stored:
            self.store()

    def _storing_pays(self) -> bool:
        return self._matrix.worth_storing(get_config().share(self.stored_share))

    def row_sums(self) -> Array:
        """Σⱼ wⱼ k(xᵢ, yⱼ)."""
        if not self.is_stored and self.weights is None:
            return self._matrix.row_sums()
        return self @ self.ones(self.shape[1])

    def diagonal(self) -> Array:
        """wᵢ k(xᵢ, xᵢ), or the entries (i, i) of a square block of two sets of points."""
        require_square(self)
        if self._matrix.symmetric:
            values = self._matrix.diagonal()
        else:
            ones = [self._matrix.block(slice(i, i + 1), slice(i, i + 1))[0] for i in range(self.shape[0])]
            values = namespace(self.reference).concat(ones) if ones else self.reference
        return values if self.weights is None else values * self.weights

    def kernel_diagonal(self, side: Literal["rows", "cols"] = "rows") -> Array:
        """k(x, x) of the points of the rows or of the columns, without weights, for rectangular blocks too."""
        return self._matrix.diagonal(side)

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns."""
        values = self._matrix.block(rows, cols)
        return values if self.weights is None else values * part_of(self.weights, cols)

    def between(self, places: Array) -> GramOperator | None:
        """The matrix between some of the points alone; None where its entries are not made from dense points."""
        parts = (self.kernel, *self.kernel.get_params(deep=True).values())
        given = self.weights is not None or self._others is not None or any(isinstance(k, Precomputed) for k in parts)
        if given or hasattr(self.points, "toarray") or is_sparse_tensor(self.points):
            return None
        return GramOperator(self.kernel, self.points[places], dtype=self.dtype)

    def log_rows(self, lo: int, hi: int) -> Array:
        """Log k of rows lo to hi against every column, finite where k underflows."""
        return self._matrix.log_block(slice(lo, hi), slice(None))

    def scaled_product(self, v: Any) -> tuple[Array, Array]:
        """K Diag(w) v = exp(s) P, row by row, in double precision, defined however far a point is from all others.

        Returns the logarithms s of the scales, of shape (n,), and P, of shape (n, r).
        """
        v = like(v, self.reference)
        return self._matrix.scaled_product(v if self.weights is None else self.weights[:, None] * v)

    def _checked_weights(self, weights: Any) -> Array:
        column = weights.reshape(-1, 1) if is_tensor(weights) else np.reshape(weights, (-1, 1))
        weights = as_points(column, "weights")[:, 0]
        if weights.shape[0] != self.shape[1]:
            raise ValueError(f"weights has {weights.shape[0]} entries for {self.shape[1]} points.")
        if bool((weights < 0).any()) or not bool((weights > 0).any()):
            raise ValueError("weights must not be negative, and at least one must be positive.")
        return cast(like(weights, self.reference), self.dtype)


def _largest(values: Array) -> float:
    return float(values.max()) if values.shape[0] else 0.0
