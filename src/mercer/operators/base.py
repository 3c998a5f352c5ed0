"""The interface every operator shares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, cast, contiguous, is_tensor, like, namespace, positions
from mercer.backends.chunks import ENTRY_ROWS, depth_of_sum, row_chunks
from mercer.backends.rounding import gamma, unit_of

Index = Any
_SPARSE = 1 / 8  # of the entries, at most, that a product with a sparse matrix meets
_STEPS = 16  # roundings of a product beside those of its sums: scales, casts
_RUN = 2048  # rows over which an inner product is summed at a time


@dataclass(frozen=True)
class MapRounding:
    """How far a map is, in floating point, from the symmetric matrix M it stands for.

    Attributes
    ----------
    norm : float
        A bound on the norm of M with every part of it taken by its absolute value.
    product : float
        A product errs by no more than ``product * norm * ‖x‖``.
    entries : float
        A bound on the norm of the difference between M and the matrix of the entries that ``block`` gives, or of those
        that a product meets on its way.
    diagonal : array of shape (n,)
        A bound on the error of every entry of ``diagonal()``, in double precision and in the library of the map.
    nonnegative : bool
        Whether the parts of M have no negative entry.
    semidefinite : bool
        Whether M is positive semi-definite for certain.
    apart : float
        A bound on the norm of the difference between two of those evaluated matrices, or one and its transpose;
        infinite where nothing is known of it but ``entries``.
    """

    norm: float
    product: float
    entries: float
    diagonal: Array
    nonnegative: bool = False
    semidefinite: bool = False
    apart: float = math.inf


class LinearMap(ABC):
    """A matrix known by what it does.

    A subclass gives ``_multiply``, ``diagonal`` and ``block``, and ``_transpose_multiply`` unless it is symmetric;
    everything else follows. ``block`` takes slices or index arrays and returns a dense array, so that any part of the
    matrix can be looked at.

    A map works in one array library, that of the array it was made from: NumPy, or torch on some device. What it is
    multiplied with is brought there, and what it gives back lies there.

    Parameters
    ----------
    shape : tuple of int
        (n, m).
    dtype : dtype
        Of the products, in the library of the map.
    symmetric : bool
        Whether the map is its own transpose.
    reference : array, optional
        Any array of the library and on the device where the map works; NumPy's if left out.

    Attributes
    ----------
    reference : array of shape (0,)
        An empty array of this library, device and dtype: ``like(values, map.reference)`` brings values here.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, *, symmetric: bool, reference: Any = None) -> None:
        self.shape = shape
        if is_tensor(reference):
            from mercer.backends.torch.precision import require_full_precision

            require_full_precision(dtype)
            self.reference = namespace(reference).empty(0, dtype=dtype, device=reference.device)
        else:
            self.reference = np.empty(0, dtype)
        self.dtype = self.reference.dtype
        self.symmetric = symmetric

    @abstractmethod
    def _multiply(self, v: Array) -> Array:
        """The product with an m × r block of this dtype."""

    def _transpose_multiply(self, v: Array) -> Array:
        """The product of the transpose with an n × r block; a symmetric map has no need to say more than this."""
        return self._multiply(v)

    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal of a square matrix."""

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns (slices or index arrays)."""

    def row_sums(self) -> Array:
        """The sum of every row."""
        return self @ self.ones(self.shape[1])

    @final
    def ones(self, n: int) -> Array:
        """A vector of n ones where this map works."""
        return namespace(self.reference).ones(n, dtype=self.dtype, device=self.reference.device)

    def rounding(self) -> MapRounding:
        """What floating point does to this map; entries are taken as they are given unless a subclass knows better.

        Cost: every entry is looked at once, a few rows at a time.
        """
        n, xp = self.shape[0], namespace(self.reference)
        norm = 0.0
        for rows in row_chunks(n, ENTRY_ROWS):
            norm = max(norm, float(xp.max(xp.sum(xp.abs(self.block(rows, slice(None))), axis=1))))
        product = gamma(self.shape[1] + _STEPS, unit_of(self.dtype))
        return MapRounding(norm, product, 0.0, xp.zeros(n, dtype=xp.float64, device=self.reference.device))

    @final
    def to_dense(self) -> Array:
        """The whole matrix, n × m, in memory."""
        return self.block(slice(None), slice(None))

    @final
    def __matmul__(self, v: Any) -> Array:
        """Return the product with a vector or a block of columns."""
        return self._apply(v, self.shape[1], self._multiply)

    @property
    def T(self) -> LinearMap:
        """The transposed map."""
        return self if self.symmetric else _Transposed(self)

    @final
    def as_scipy(self) -> Any:
        """Return a :class:`scipy.sparse.linalg.LinearOperator` of this map; SciPy takes maps on NumPy arrays only."""
        if is_tensor(self.reference):
            raise TypeError("A map on tensors is no operator of SciPy, which works on NumPy arrays: pass NumPy points.")
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(
            self.shape,
            matvec=lambda v: self @ np.ravel(v),
            matmat=lambda v: self @ v,
            rmatvec=lambda v: self.T @ np.ravel(v),
            rmatmat=lambda v: self.T @ v,
            dtype=self.dtype,
        )

    def _apply(self, v: Any, length: int, multiply: Any) -> Array:
        v = like(v, self.reference)
        if v.ndim not in (1, 2) or v.shape[0] != length:
            raise ValueError(
                f"A product with this {self.shape[0]} × {self.shape[1]} map takes {length} rows, not {tuple(v.shape)}."
            )
        if v.dtype.is_complex if is_tensor(v) else v.dtype.kind == "c":
            raise ValueError("A product with a complex block is not supported: multiply its parts.")
        block = multiply(contiguous(cast(v[:, None] if v.ndim == 1 else v, self.dtype)))
        return block[:, 0] if v.ndim == 1 else block

    def __repr__(self) -> str:
        """Return the kind, the shape and the dtype."""
        return f"<{type(self).__name__} {self.shape[0]} × {self.shape[1]} {self.dtype}>"


@final
class _Transposed(LinearMap):
    """The transpose of a map, sharing its work."""

    def __init__(self, inner: LinearMap) -> None:
        super().__init__((inner.shape[1], inner.shape[0]), inner.dtype, symmetric=False, reference=inner.reference)
        self._inner = inner

    def _multiply(self, v: Array) -> Array:
        return self._inner._transpose_multiply(v)

    def _transpose_multiply(self, v: Array) -> Array:
        return self._inner._multiply(v)

    def diagonal(self) -> Array:
        return self._inner.diagonal()

    def block(self, rows: Index, cols: Index) -> Array:
        return self._inner.block(cols, rows).T

    @property
    def T(self) -> LinearMap:
        return self._inner


def part_of(values: Array, which: Index) -> Array:
    """Some entries of a vector or rows of a matrix, by any index that ``block`` takes; torch knows fewer of them."""
    return values[positions(which, values.shape[0], values)] if is_tensor(values) else values[which]


def inner_by_runs(unit: Array, v: Array) -> Array:
    """sᵀv of every column, runs of rows summed on their own: rounding grows with their length and their number."""
    if is_tensor(v) or v.shape[0] <= _RUN:
        return unit @ v
    return sum(unit[rows] @ v[rows] for rows in row_chunks(v.shape[0], _RUN))


def inner_depth(n: int, reference: Array) -> int:
    """Roundings that a term of :func:`inner_by_runs` over n rows goes through at most."""
    return n if is_tensor(reference) else depth_of_sum(n, _RUN)


def is_sparse(map_: LinearMap) -> bool:
    """Whether most entries are zeros that a product does not meet."""
    gram = getattr(map_, "gram", map_)
    return bool(getattr(gram, "row_entries", np.inf) <= _SPARSE * map_.shape[0])


def require_square(map_: LinearMap) -> None:
    """Refuse to take the diagonal of a rectangle."""
    if map_.shape[0] != map_.shape[1]:
        raise ValueError(f"A {map_.shape[0]} × {map_.shape[1]} map has no diagonal.")
