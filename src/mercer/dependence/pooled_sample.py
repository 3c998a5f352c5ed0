"""Two samples as one, with the kernels that compare them: what every test of two samples reads.

What is chosen from the data, a bandwidth above all, is chosen from both samples together and from rows in random order:
it is then a function that treats all rows alike, and the p-value of a permutation test stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, is_source, like, namespace, to_numpy
from mercer.backends.matrix import KernelMatrix
from mercer.dependence.kernel_collection import default_kernels
from mercer.dependence.vectors import as_tables
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.bandwidth import MOST_POINTS
from mercer.kernels.tables import Table, is_frame
from mercer.operators.signed_measure import joined
from mercer.validation import (
    checked_kernel,
    checked_weights,
    is_precomputed,
    resolved_kernel,
    scale_free,
    two_samples,
)


class PooledSample(NamedTuple):
    """Both samples, X first, without rows of weight zero.

    Attributes
    ----------
    kernels : tuple of Kernel
        With their parameters fixed.
    points : array of shape (n + m, d)
        Of ``Precomputed()`` the joint kernel matrix.
    weights : array of shape (n + m,)
        Positive, in any unit.
    n, m : int
        Rows of the two samples.
    handicaps : array of shape (K,)
        What is taken from the score of each kernel in a test over several.
    table : Table or None
        The columns of the data frames, if they are some.
    """

    kernels: tuple[Kernel, ...]
    points: Any
    weights: Array
    n: int
    m: int
    handicaps: Array
    table: Table | None

    @property
    def several(self) -> bool:
        """Whether the test is over several kernels."""
        return len(self.kernels) > 1

    def matrices(self) -> list[KernelMatrix]:
        """The kernel matrices of all rows, in double precision whatever that of the points."""
        double = namespace(self.points).float64 if not hasattr(self.points, "toarray") else np.float64
        return [kernel.matrix(*kernel._checked(self.points, None), dtype=double) for kernel in self.kernels]


def pooled_sample(
    X: Any, Y: Any, kernel: Any, x_weights: Any, y_weights: Any, rng: np.random.Generator
) -> PooledSample:
    """Read two samples and one kernel, several in a list, or the default collection if it is None."""
    if is_precomputed(kernel):
        return _precomputed(X, Y, kernel, x_weights, y_weights)
    X, Y = as_tables(X, Y)
    table = Table.of(X, Y) if is_frame(X) else None
    given = None if kernel is None else listed_kernels(kernel, table)
    if table is not None:
        X, Y = table.coded(X), table.coded(Y)
    X, Y, a, b = two_samples(X, Y, x_weights, y_weights)
    n, points, weights = X.shape[0], joined(X, Y), namespace(a).concat([a, b])
    points, weights, n = _positive(points, _in_one_unit(weights, x_weights, y_weights), n)
    m = points.shape[0] - n
    seen, their = points, None if bool((weights == weights[0]).all()) else weights
    if n + m > MOST_POINTS:  # of which bandwidths are chosen from some, by their place
        order = like(rng.permutation(n + m), points)
        if is_source(points):
            order = np.sort(order[:MOST_POINTS])  # in one pass; all of them are looked at
        seen, their = points[order], None if their is None else their[order]
    elif is_source(points):
        seen = points[:]
    if given is None:
        kernels, handicaps = default_kernels(seen, their, table)
    else:
        kernels, handicaps = [resolved_kernel(each, seen, their) for each in given], np.zeros(len(given))
    return PooledSample(tuple(kernels), points, to_numpy(weights), n, m, handicaps, table)


def _in_one_unit(weights: Any, x_weights: Any, y_weights: Any) -> Any:
    """The weights of all rows: those given as they are in one unit, and one for all where none are given."""
    if x_weights is None and y_weights is None:
        return namespace(weights).ones_like(weights)
    if x_weights is None or y_weights is None:
        missing = "x_weights" if x_weights is None else "y_weights"
        raise ValueError(
            f"{missing} is left out beside weights of the other sample: give both, in one unit, since rows change "
            "samples with their weights."
        )
    return scale_free(weights)


def listed_kernels(kernel: Any, table: Table | None) -> list[Kernel]:
    """The user's kernels, on the columns of a data frame if there is one."""
    several = isinstance(kernel, list | tuple)
    kernels = [checked_kernel(each) for each in (kernel if several else [kernel])]
    if not kernels:
        raise ValueError("kernel is an empty list: give at least one kernel, or None for the default collection.")
    if any(isinstance(each, Precomputed) for each in kernels):
        raise ValueError("Precomputed() stands alone: a list of kernels takes points.")
    if table is not None:
        kernels = [each.bound(table) for each in kernels]
        for each in kernels:
            table.require_numbers(each)
    return kernels


def _positive(points: Any, weights: Any, n: int) -> tuple[Any, Any, int]:
    """Without the rows of weight zero, which count nowhere."""
    kept = weights > 0
    if bool(kept.all()):
        return points, weights, n
    if is_source(points):
        raise ValueError("Rows that are read a block at a time all count: give positive weights, or none.")
    return points[kept], weights[kept], int(kept[:n].sum())


def _precomputed(X: Any, Y: Any, kernel: Any, x_weights: Any, y_weights: Any) -> PooledSample:
    """Rows of the joint kernel matrix: n × (n + m) of the first sample, m × (n + m) of the second."""
    kernel = checked_kernel(kernel)
    n, m = (_rows(block, name) for block, name in ((X, "X"), (Y, "Y")))
    for block, name in ((X, "X"), (Y, "Y")):
        if block.shape[1] != n + m:
            raise ValueError(
                f"With a precomputed kernel {name} must hold rows of the joint kernel matrix, one column for each of "
                f"the {n + m} rows of X and Y: it has {block.shape[1]}."
            )
    joint, _ = kernel._checked(_stacked(X, Y), None)
    ones = [1.0 if each is None else each for each in (x_weights, y_weights)]
    parts = [checked_weights(each, k, name) for each, k, name in zip(ones, (n, m), _WEIGHTS, strict=True)]
    weights = _in_one_unit(np.concatenate([to_numpy(each) for each in parts]), x_weights, y_weights)
    kept = np.flatnonzero(weights > 0)
    if kept.shape[0] < n + m:
        joint, n = joint[kept][:, kept], int((kept < n).sum())
    return PooledSample((kernel,), joint, weights[kept], n, kept.shape[0] - n, np.zeros(1), None)


_WEIGHTS: Sequence[str] = ("x_weights", "y_weights")


def _rows(block: Any, name: str) -> int:
    if getattr(block, "ndim", 0) != 2:
        raise ValueError(f"{name} must be an array of two dimensions: rows of the joint kernel matrix.")
    return int(block.shape[0])


def _stacked(X: Any, Y: Any) -> Any:
    """One block below the other, dense or sparse."""
    if hasattr(X, "toarray") or hasattr(Y, "toarray"):
        from scipy.sparse import vstack

        return vstack([X, Y], format="csr")
    xp = namespace(X, Y)
    return xp.concat([like(X, Y) if xp is not np else np.asarray(X), like(Y, X) if xp is not np else np.asarray(Y)])
