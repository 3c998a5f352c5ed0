"""What is to be explained, as vectors: the features of y in the space of its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, Labels, distinct_rows, is_tensor, to_numpy
from mercer.backends.rounding import EPS
from mercer.kernels import Categories, Gaussian, Kernel, Mixed
from mercer.kernels.checks import as_points
from mercer.kernels.tables import Table, is_frame
from mercer.linalg.eigen import positive_eigenpairs
from mercer.linalg.pivoted_cholesky import rp_cholesky
from mercer.operators import GramOperator
from mercer.validation import checked_kernel, require_points, resolved_kernel

_PIVOTS = 100  # values of y from which its features are made
_LEFT_OUT = 1e-5  # of the variance of the features, in directions that are left out
_FEW = 20  # different whole numbers that are taken for classes


@dataclass(frozen=True, eq=False)
class Codes:
    """How values of y become numbers: the columns of a data frame, or of an array the values of every class column."""

    table: Table | None
    classes: tuple[Labels | None, ...]

    @classmethod
    def of(cls, y: Any, *, whole_are_classes: bool) -> Codes:
        """Those of the values of a fit; texts are classes, and a few different whole numbers where that is asked."""
        if is_frame(y):
            return cls(Table.of(y), ())
        columns = _as_columns(y)
        return cls(None, tuple(_classes(column, whole_are_classes) for column in columns.T))

    @property
    def default_kernel(self) -> Kernel:
        """Of numbers the Gaussian, a bandwidth for each column, of classes whether they are equal; products of both."""
        if self.table is not None:
            return Mixed().bound(self.table)
        classes = [k for k, values in enumerate(self.classes) if values is not None]
        numbers = [k for k, values in enumerate(self.classes) if values is None]
        of_numbers = Gaussian() if len(numbers) == 1 else Gaussian("columns")
        if not classes or not numbers:
            return Categories() if classes else of_numbers
        return of_numbers.on(numbers) * Categories().on(classes)

    def refuse(self, kernel: Kernel) -> None:
        """Refuse a kernel that calculates with the codes of classes."""
        if self.table is not None:
            self.table.require_numbers(kernel)
            return
        wrong = [k for k in sorted(kernel.read_as_numbers(len(self.classes))) if self.classes[k] is not None]
        if wrong:
            raise ValueError(
                f"Column {wrong[0]} of y holds classes, and y_kernel={kernel!r} calculates with numbers: leave it out, "
                "or use Categories()."
            )

    def __call__(self, y: Any) -> Array:
        """The values as numbers, n × q; a class that was not there in the fit is equal to none that was."""
        if self.table is not None:
            return np.asarray(as_points(self.table.coded(y), "y"))
        columns = _as_columns(y)
        if columns.shape[1] != len(self.classes):
            raise ValueError(f"y has {columns.shape[1]} columns, but the fit had {len(self.classes)}.")
        coded = [_coded(column, known) for column, known in zip(columns.T, self.classes, strict=True)]
        return np.asarray(as_points(np.column_stack(coded), "y"))


def _as_columns(y: Any) -> Array:
    values = to_numpy(y) if is_tensor(y) else np.asarray(y)
    if values.ndim not in (1, 2) or not values.size:
        raise ValueError(f"y has the shape {values.shape}: it must be a vector, or have a column for each output.")
    return values[:, None] if values.ndim == 1 else values


def _classes(column: Array, whole_are_classes: bool) -> Array | None:
    """The different values of a column of classes, in order; None of one of numbers."""
    kind = column.dtype.kind
    if kind == "O":
        _refuse_missing(column)
        kind = "U" if any(isinstance(value, str) for value in column) else "f"
    if kind not in "biufUS":
        raise ValueError(f"y holds {column.dtype}: it must be numbers, or classes.")
    if kind == "f" or (kind in "iu" and not whole_are_classes):
        return None
    found = np.unique(column.astype(str) if kind in "US" else column)
    return found if kind not in "iu" or found.size <= _FEW else None


def _refuse_missing(column: Array) -> None:
    for row, value in enumerate(column):
        if value is None or value != value:
            raise ValueError(f"y has no value in row {row}: leave that row out, or fill it first.")
        if not isinstance(value, str | Real | np.bool_):
            raise ValueError(f"y has {value!r} in row {row}: it must be numbers, or classes.")


def _coded(column: Array, known: Array | None) -> Array:
    if known is None:
        return column.astype(np.float64)
    values = column.astype(str) if known.dtype.kind == "U" else column
    place = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.where(known[place] == values, place, known.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Response:
    """Features f(y) with ⟨f(y), f(y')⟩ about the centred kernel: (l(y, J) - l̄)T, J some values of y.

    The directions are the principal ones of the sample, without those that hold a hundred-thousandth of the variance
    together.
    """

    kernel: Kernel
    codes: Codes
    nodes: Array
    means: Array
    directions: Array

    def __call__(self, y: Any) -> Array:
        """The features of values y, n × r."""
        return self.of_points(self.codes(y))

    def of_points(self, points: Array) -> Array:
        """The same of values that are numbers already."""
        features: Array = (self.kernel.matrix(points, self.nodes).dense() - self.means) @ self.directions
        return features


def learn_response(y: Any, y_kernel: Any, shares: Array, rng: np.random.Generator) -> tuple[Response, Array]:
    """The features of a sample of y whose rows have shares that sum to one, and the map that makes them.

    They are made from all values where few are different, otherwise from the pivots of a randomly pivoted Cholesky
    factorisation: n r evaluations of the kernel and n r² flops for r of them, 100 at most.
    """
    require_points(y_kernel, "y_kernel compares values of y")
    codes = Codes.of(y, whole_are_classes=y_kernel is None)
    kernel = codes.default_kernel if y_kernel is None else checked_kernel(y_kernel)
    kernel = kernel if codes.table is None else kernel.bound(codes.table)
    codes.refuse(kernel)
    points = codes(y)
    if not (points != points[:1]).any():
        raise ValueError("y is the same in every row: there is nothing to explain.")
    kernel = resolved_kernel(kernel, points, shares)
    nodes = points[_pivots(kernel, points, shares, rng)]
    values, vectors = positive_eigenpairs(kernel(nodes), EPS)
    sections = kernel.matrix(points, nodes).dense()
    means = shares @ sections
    rough = (sections - means) @ (vectors / np.sqrt(values))
    spread, rotation = np.linalg.eigh(rough.T @ (shares[:, None] * rough))
    kept = np.cumsum(spread) > _LEFT_OUT * spread.sum()
    rotation = rotation[:, kept][:, ::-1]
    response = Response(kernel, codes, nodes, means, (vectors / np.sqrt(values)) @ rotation)
    return response, rough @ rotation


def _pivots(kernel: Kernel, points: Array, shares: Array, rng: np.random.Generator) -> Array:
    distinct = distinct_rows(points)[0]
    if distinct.size <= _PIVOTS:
        return np.asarray(distinct)
    chosen = rp_cholesky(GramOperator(kernel, points), _PIVOTS, rng, weights=shares, tolerance=_LEFT_OUT / 10)
    return np.asarray(chosen.landmarks)
