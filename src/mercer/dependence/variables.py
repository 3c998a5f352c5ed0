"""The two variables of a question about dependence: numbers, texts or data frames, and the kernels on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, is_source, is_tensor, to_numpy
from mercer.dependence.kernel_collection import column_units
from mercer.dependence.vectors import as_table
from mercer.kernels import Categories, Gaussian, Kernel, Laplacian, Mixed, Precomputed
from mercer.kernels.bandwidth import distance_quantiles
from mercer.kernels.checks import as_points
from mercer.kernels.tables import Table, is_frame
from mercer.validation import checked_kernel, is_precomputed, resolved_kernel

_SCALES = (1 / 16, 1 / 2, 1.0, 4.0)  # of the Gaussians of a collection, times the median distance
_COLLECTION = 5  # kernels, or more where there are categories
MEDIAN = 3  # the place of the one with the median distance
_ROUGH = 1 / 4  # of its Laplacian, times the median ℓ₁ distance


@dataclass(frozen=True)
class Variable:
    """One variable, with a row for each observation.

    Attributes
    ----------
    name : str
        "X" or "Y", for sentences.
    points : array of shape (n, d)
        Its values, categories as codes; the kernel matrix itself for a precomputed kernel.
    table : Table or None
        What is known of the columns of a data frame.
    kernels : tuple of Kernel
        One or several, with their parameters fixed.
    graded : bool
        Whether they are the default collection, from the narrowest to the widest.
    """

    name: str
    points: Any
    table: Table | None
    kernels: tuple[Kernel, ...]
    graded: bool

    @property
    def size(self) -> int:
        """Observations."""
        return int(self.points.shape[0])

    @property
    def is_precomputed(self) -> bool:
        """Whether the points are a kernel matrix."""
        return is_precomputed(self.kernels[0])

    def coded(self, values: Any) -> Array:
        """Further values of the same variable, as points."""
        values = _as_table(values)
        points = as_points(values if self.table is None else self.table.coded(values), self.name.lower())
        if points.shape[1] != self.points.shape[1]:
            raise ValueError(
                f"{self.name.lower()} has {points.shape[1]} columns, but {self.name} had {self.points.shape[1]}: "
                "they must agree."
            )
        return points

    def some(self, rows: Any) -> Variable:
        """The variable at some rows, with the same kernels."""
        return replace(self, points=self.points[rows][:, rows] if self.is_precomputed else self.points[rows])


def variable(values: Any, kernels: Any, name: str, *, weights: Any = None, several: bool = False) -> Variable:
    """Read a variable and fix its kernels from it, by a rule to which the order of the rows is nothing.

    Parameters
    ----------
    values : array, tensor or data frame
        A vector, a table of n rows, or texts; for a precomputed kernel the n × n matrix.
    kernels : Kernel, str, sequence of these, or None
        None is a default: one kernel, or a collection of bandwidths.
    name : str
        "X" or "Y".
    weights : array of shape (n,), optional
        With which bandwidths are chosen.
    several : bool, default=False
        Whether None stands for a collection.
    """
    if is_source(values):
        values.refuse_whole()
    given = [kernels] if isinstance(kernels, Kernel | str) or not isinstance(kernels, Sequence) else list(kernels)
    if not given:
        raise ValueError(f"{name.lower()}_kernel is an empty list: name a kernel, or leave it out.")
    if any(map(is_precomputed, given)):
        return _precomputed(values, given, name)
    values = _as_table(values)
    table = Table.of(values) if is_frame(values) else None
    points = as_points(values if table is None else table.coded(values), name).astype(get_config().dtype)
    if points.shape[0] < 2:
        raise ValueError(f"{name} has {points.shape[0]} rows: dependence is a matter of two observations or more.")
    order = np.lexsort(points.T)  # bandwidths may come from some of many rows, by their places
    ordered, sorted_weights = points[order], None if weights is None else weights[order]
    if given == [None]:
        chosen = _default(ordered, sorted_weights, table, several=several, name=name)
    else:
        chosen = [_on_table(checked_kernel(kernel), table) for kernel in given]
    fixed = tuple(resolved_kernel(kernel, ordered, sorted_weights) for kernel in chosen)
    return Variable(name, points, table, fixed, given == [None] and len(fixed) >= _COLLECTION)


def _precomputed(values: Any, given: list[Any], name: str) -> Variable:
    if len(given) > 1:
        raise ValueError(
            f"{name.lower()}_kernel has Precomputed() among others: a matrix has one kernel, give it alone."
        )
    kernel = given[0] if isinstance(given[0], Precomputed) else Precomputed()
    matrix, _ = kernel._checked(to_numpy(values) if is_tensor(values) else values, None)
    return Variable(name, matrix, None, (kernel,), False)


def _as_table(values: Any) -> Any:
    """A data frame, with the name of its column if it is one, or an array of NumPy with two axes."""
    if hasattr(values, "to_frame") and not is_frame(values):
        return values.to_frame()
    return as_table(to_numpy(values) if is_tensor(values) else values)


def _on_table(kernel: Kernel, table: Table | None) -> Kernel:
    if table is None:
        return kernel
    bound = kernel.bound(table)
    table.require_numbers(bound)
    return bound


def _default(points: Array, weights: Any, table: Table | None, *, several: bool, name: str) -> list[Kernel]:
    """The kernel that None stands for, or a collection from the narrowest to the widest.

    A table of both kinds has kernels on the numbers alone and on the categories alone beside their product, which would
    hide what only one kind tells.
    """
    if not (points != points[:1]).any():
        raise ValueError(
            f"{name} is the same in all {points.shape[0]} rows: a constant depends on nothing, leave it out."
        )
    if table is None or not table.texts:
        return _bandwidths(points, weights, several=several)
    numbers = [k for k in range(len(table.names)) if k not in table.texts]
    if not numbers:
        return [_on_table(Mixed(), table)]
    categories = Categories().on(sorted(table.texts))
    if not (points[:, numbers] != points[0, numbers]).any():
        return [categories]
    kernels = [kernel.on(numbers) for kernel in _bandwidths(points[:, numbers], weights, several=several)]
    if not several:
        return [kernels[0] * categories]
    *others, wide = kernels
    return [*others, categories, (others[-1] if others else wide) * categories, wide]


def _bandwidths(points: Array, weights: Any, *, several: bool) -> list[Kernel]:
    """Gaussians and a Laplacian around the median distance, from the narrowest to the widest.

    Columns whose units differ much are brought to one unit. Of two different values all centred kernels are multiples
    of each other, and one is enough.
    """
    units = column_units(points, weights)
    scaled = points if units is None else points / units
    middle = np.ones(1) if units is None else units
    (distance,) = distance_quantiles(scaled, "sqeuclidean", (0.5,), weights)
    if not several or np.unique(points, axis=0).shape[0] <= 2:
        return [Gaussian(_plain(distance * middle))]
    (of_columns,) = distance_quantiles(scaled, "cityblock", (0.5,), weights)
    narrow, *others = (Gaussian(_plain(scale * distance * middle)) for scale in _SCALES)
    return [narrow, Laplacian(_plain(_ROUGH * of_columns * middle)), *others]


def _plain(lengths: Array) -> float | tuple[float, ...]:
    return tuple(lengths.tolist()) if lengths.size > 1 else float(lengths[0])


def require_pairs(x: Variable, y: Variable, least: int = 2) -> int:
    """As many rows of both, at least ``least``: their number."""
    if x.size != y.size:
        raise ValueError(f"X has {x.size} rows and Y has {y.size}: each row of X needs its own row of Y.")
    if x.size < least:
        raise ValueError(f"X and Y have {x.size} rows: {least} are needed.")
    return x.size
