"""What makes two samples different: the columns that carry the difference, and the rows that show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.dependence.aggregation import standardised
from mercer.dependence.feature_contrasts import contrast_statistics
from mercer.dependence.mean_embedding import MeanEmbedding
from mercer.dependence.pooled_sample import pooled_sample
from mercer.dependence.principal_features import centred_factor
from mercer.dependence.resampling import permutation_pvalue
from mercer.dependence.vectors import as_tables
from mercer.kernels import Categories, Gaussian, Kernel, Mixed
from mercer.kernels.checks import as_generator
from mercer.kernels.tables import Table, is_frame
from mercer.validation import require_points, resolved_kernel, whole_number
from mercer.wording import brief

_WIDTHS = (0.25, 1.0, 4.0)  # of the Gaussians of a column, times its median difference
_COLUMN_RANK, _ROW_RANK = 40, 100
_LEFT_OUT_UP_TO = 30  # columns up to which each is left out in turn
_LEVEL = 0.05  # of the sentence


@final
@dataclass(frozen=True)
class FeatureDifference:
    """What one column has to do with the difference.

    Attributes
    ----------
    name : str or int
        Of the column, or its number.
    statistic : float
        The standardised MMD² of the column alone, about normal where its two laws are equal.
    pvalue : float
        That the laws of the column differ, corrected for there being many columns.
    pvalue_without : float or None
        Of all other columns together: large where the difference is gone with this column. None if not asked for.
    """

    name: Any
    statistic: float
    pvalue: float
    pvalue_without: float | None


@final
@dataclass(frozen=True, eq=False)
class DifferenceExplanation:
    """What :func:`mercer.explain_difference` found; ``str`` says it in one sentence.

    Attributes
    ----------
    features : tuple of FeatureDifference
        In the order of the columns.
    x_values, y_values : arrays of shape (n,) and (m,)
        The witness function at the rows: how much more alike a row is to the other rows of X than to those of Y. Rows
        of X with a large value, and rows of Y with a very negative one, show the difference.
    kernel : Kernel
        Of the witness function.
    n_resamples : int
        Relabellings behind the p-values.
    """

    features: tuple[FeatureDifference, ...]
    x_values: Array
    y_values: Array
    kernel: Kernel
    n_resamples: int

    def __repr__(self) -> str:
        return brief(self, "features", "n_resamples", "kernel")

    @property
    def ranking(self) -> tuple[FeatureDifference, ...]:
        """The columns, those that differ most first."""
        return tuple(sorted(self.features, key=lambda feature: (feature.pvalue, -feature.statistic)))

    def telling_rows(self, count: int = 10) -> tuple[Array, Array]:
        """The numbers of the rows of X, and of Y, that show the difference best, the best first."""
        count = whole_number(count, "count", 1)
        return np.argsort(-self.x_values, kind="stable")[:count], np.argsort(self.y_values, kind="stable")[:count]

    def __str__(self) -> str:
        found = [feature for feature in self.ranking if feature.pvalue <= _LEVEL]
        if not found:
            least = self.ranking[0]
            return f"No column alone shows a difference: {least.name!r} comes nearest (p = {least.pvalue:.2g})."
        named = ", ".join(f"{feature.name!r} (p = {feature.pvalue:.2g})" for feature in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        return f"{len(found)} of {len(self.features)} columns differ: {named}{more}."


def explain_difference(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    leave_out: bool | None = None,
    n_resamples: int = 999,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> DifferenceExplanation:
    """Which columns carry the difference of two samples, and which rows show it.

    Every column is tested alone, by the MMD² of kernels from narrow to wide, on the same relabellings of the pooled
    rows. Its p-value counts the relabellings in which *any* column that was not found before it reaches as far
    (Westfall and Young 1993): the probability to name one that does not differ is at most α, if all those that do not
    differ have jointly one law. A difference that no column shows alone, such as one of their correlation, is found by
    :func:`mercer.mmd_test`, and by ``pvalue_without``: without either of the columns it is gone.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), or data frames with the same columns
        The two samples.
    kernel : Kernel, optional
        Of the witness function, on all columns together; if left out the Gaussian with a bandwidth for each column, or
        :class:`mercer.Mixed` where there are categories, which is what ``pvalue_without`` takes in any case.
    leave_out : bool, optional
        Whether to test the other columns without each of them; if left out, up to 30 columns.
    n_resamples : int, default=999
        Relabellings.
    rng : int, Generator or None
        The source of chance.
    progress : callable, optional
        Called with the fraction of relabellings done.

    Returns
    -------
    DifferenceExplanation

    Notes
    -----
    Cost: N r for each relabelling and column, with factors of rank r = 40 at most; as much, with r = 100, for each
    column that is left out; and N² kernel evaluations for the rows, N = n + m. Memory: N r d.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import explain_difference
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(80, 4)), rng.normal(size=(90, 4))
    >>> Y[:, 2] += 1.0
    >>> print(explain_difference(X, Y, rng=0))
    1 of 4 columns differ: 2 (p = 0.001).
    """
    require_points(kernel, "The columns of both samples are looked at one by one")
    count, generator = whole_number(n_resamples, "n_resamples", 1), as_generator(rng)
    X, Y = as_tables(X, Y)
    table = Table.of(X, Y) if is_frame(X) else None
    pooled = pooled_sample(X, Y, _on_rows(table, X, Y) if kernel is None else kernel, None, None, generator)
    points, sizes = np.asarray(to_numpy(pooled.points), np.float64), (pooled.n, pooled.m)
    if min(sizes) < 2:
        raise ValueError(f"The samples have {sizes[0]} and {sizes[1]} rows: a difference needs two of each.")
    d = points.shape[1]
    if leave_out is None:
        leave_out = d <= _LEFT_OUT_UP_TO
    alone = [_column_factors(points[:, k : k + 1], table, k, generator) for k in range(d)]
    without = [_without(points, table, k, generator) for k in range(d)] if leave_out and d > 1 else []
    factors = [factor for of_column in alone for factor in of_column] + without
    statistics, roundings = contrast_statistics(factors, sizes, count, generator, progress)
    scores = standardised(statistics, roundings)
    ends = np.cumsum([0, *map(len, alone)])
    columns = standardised(np.stack([scores[lo:hi].max(axis=0) for lo, hi in pairwise(ends)]))
    others = [permutation_pvalue(row[0], row[1:]) for row in scores[ends[-1] :]] if without else [None] * d
    names = range(d) if table is None else table.names
    corrected = step_down_pvalues(columns)
    return DifferenceExplanation(
        tuple(map(FeatureDifference, names, columns[:, 0].tolist(), corrected.tolist(), others)),
        *_witness(pooled.kernels[0], points[: pooled.n], points[pooled.n :]),
        kernel=pooled.kernels[0],
        n_resamples=count,
    )


def step_down_pvalues(scores: Array) -> Array:
    """P-values of many hypotheses from the same resamples, corrected for their number (Westfall and Young 1993).

    The hypothesis with the largest score is compared with the largest of all scores of each resample, the next one with
    the largest of those without it, and so on; no p-value is smaller than one before it.

    Parameters
    ----------
    scores : array of shape (K, 1 + B)
        Row by row the hypotheses; the first column is the data's.
    """
    order = np.argsort(-scores[:, 0], kind="stable")
    largest = np.maximum.accumulate(scores[order[::-1]], axis=0)[::-1]  # of each hypothesis and all after it
    found = [permutation_pvalue(scores[k, 0], row[1:]) for k, row in zip(order, largest, strict=True)]
    out = np.empty(order.size)
    out[order] = np.maximum.accumulate(found)
    return out


def _on_rows(table: Table | None, X: Any, Y: Any) -> Kernel:
    """The default kernel of the witness: of the categories alone where all numbers are the same in every row."""
    if table is None or not table.texts:
        return _default(table)
    numbers = [k for k in range(len(table.names)) if k not in table.texts]
    rows = np.concatenate([table.coded(X), table.coded(Y)])[:, numbers]
    return _default(table) if (rows != rows[:1]).any() else Categories().on(sorted(table.texts))


def _default(table: Table | None) -> Kernel:
    return Mixed() if table is not None and table.texts else Gaussian("columns")


def _column_factors(column: Array, table: Table | None, k: int, rng: np.random.Generator) -> list[Array]:
    """Factors of the kernel matrices of one column: two widths of numbers, one kernel of categories or two values."""
    if np.ptp(column) == 0:
        return [np.zeros_like(column)]
    if (table is not None and k in table.texts) or np.unique(column).size == 2:
        kernels: list[Kernel] = [Categories(1.0)]
    else:
        length = float(resolved_kernel(Gaussian(), column).get_params()["sigma"])
        kernels = [Gaussian(width * length) for width in _WIDTHS]
    return [centred_factor(kernel, column, _COLUMN_RANK, rng) for kernel in kernels]


def _without(points: Array, table: Table | None, k: int, rng: np.random.Generator) -> Array:
    """A factor of the default kernel of all columns but one."""
    rest = [column for column in np.flatnonzero(np.ptp(points, axis=0)).tolist() if column != k]
    if not rest:
        return np.zeros((points.shape[0], 1))
    kept = points[:, rest]
    kernel = _default(table)
    if table is not None:
        kernel = kernel.bound(table.some(rest))
    return centred_factor(resolved_kernel(kernel, kept), kept, _ROW_RANK, rng)


def _witness(kernel: Kernel, X: Array, Y: Array) -> tuple[Array, Array]:
    """Mean similarity to the rows of X less that to the rows of Y, a row itself not counted among its own."""
    first, second = MeanEmbedding(kernel, X), MeanEmbedding(kernel, Y)
    n, m = X.shape[0], Y.shape[0]
    own_x, own_y = (n * first(X) - kernel.diag(X)) / (n - 1), (m * second(Y) - kernel.diag(Y)) / (m - 1)
    return own_x - second(X), first(Y) - own_y
