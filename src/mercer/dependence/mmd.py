"""The maximum mean discrepancy of two samples (SOS section 2, RKHS (118)), in one pass over the pairs of points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from mercer.backends.arrays import Array, as_double, is_source, like, namespace
from mercer.backends.chunks import THREAD_BYTES, THREAD_ENTRIES, panel_rows, row_chunks, rows_within, source_rows
from mercer.backends.collections import takes_dask
from mercer.backends.matrix import KernelMatrix
from mercer.backends.row_source import regrouped
from mercer.backends.threads import run_chunks_of, watch
from mercer.dependence.vectors import as_tables
from mercer.kernels import Kernel
from mercer.kernels.checks import in_one_unit
from mercer.operators import GramOperator
from mercer.operators.signed_measure import (
    difference,
    energy,
    in_units,
    joined,
    overflowing,
    require_room_for_pairs,
)
from mercer.validation import (
    checked_kernel,
    one_of,
    require_points,
    resolved_kernel,
    two_samples,
    warn_if_not,
    whole_number,
)

Estimator = Literal["biased", "unbiased", "linear"]
_POINTS_AT_ONCE = 512  # points of small blocks whose kernel matrix is made in one go
ALIKE = "different distributions can be at distance zero, so that a small distance does not say they are alike."
_HEAVY = 0.5  # Σpᵢ² above which what is left of one loses digits


@overload
def mmd(
    X: Any,
    Y: Any,
    kernel: Any = ...,
    *,
    x_weights: Any = ...,
    y_weights: Any = ...,
    estimator: Estimator = ...,
    block_size: int | None = ...,
    squared: bool = ...,
    return_std: Literal[False] = ...,
    progress: Callable[[float], None] | None = ...,
) -> float: ...


@overload
def mmd(
    X: Any,
    Y: Any,
    kernel: Any = ...,
    *,
    x_weights: Any = ...,
    y_weights: Any = ...,
    estimator: Estimator = ...,
    block_size: int | None = ...,
    squared: bool = ...,
    return_std: Literal[True],
    progress: Callable[[float], None] | None = ...,
) -> tuple[float, float]: ...


@takes_dask
def mmd(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    x_weights: Any = None,
    y_weights: Any = None,
    estimator: Estimator = "biased",
    block_size: int | None = None,
    squared: bool = True,
    return_std: bool = False,
    progress: Callable[[float], None] | None = None,
) -> float | tuple[float, float]:
    """How far two samples are apart: MMD² = ‖w_μ - w_ν‖², w_μ = ∫ k(x, ·) dμ(x) being the mean embedding of μ.

    Three estimators of the same number, from samples x₁ … x_n of μ and y₁ … y_m of ν with weights a and b:

    ``"biased"``
        The distance of the two weighted samples themselves, ΣΣ aᵢaⱼ k(xᵢ,xⱼ) + ΣΣ bᵢbⱼ k(yᵢ,yⱼ) - 2 ΣΣ aᵢbⱼ k(xᵢ,yⱼ).
        Never negative; as an estimator of the distance of μ and ν too large by O(1/n).
    ``"unbiased"``
        The first two sums without their diagonals, and scaled by s²/(s² - Σaᵢ²), s = Σaᵢ, to make up for them
        (Gretton et al. 2012, Lemma 6). It may be negative.
    ``"linear"``
        The unbiased one in blocks of some rows of each sample, averaged over the blocks (Zaremba et al. 2013): the time
        is linear in n, and the spread of the blocks gives a standard error. Rows must be in random order, without
        weights. The smaller the block, the cheaper and the noisier.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), vectors, or data frames with the same columns
        The two samples.
    kernel : Kernel, optional
        k; the Gaussian with the median bandwidth if left out. What depends on the data is fixed from both samples
        together, each point counting with its weight: from at most 1 000 of them, see :mod:`mercer.kernels.bandwidth`.
        One that is known not to be characteristic is named in a warning.
    x_weights, y_weights : array or float, optional
        Weights that are not negative, and not all zero. They are used as they are, and need not sum to one. Left out,
        they are 1/n and 1/m. They are brought to a unit near one and back, so that no square of a weight leaves double
        precision; a result that does so is refused.
    estimator : {"biased", "unbiased", "linear"}, default="biased"
        See above.
    block_size : int, optional
        Of the linear estimator: rows of the smaller sample in a block, at least 2; its square root if left out. There
        are b = min(n, m) // block_size blocks, of n // b rows of X and m // b rows of Y; rows beyond are not used.
    squared : bool, default=True
        Return MMD²; if False, its square root, where a negative estimate counts as zero.
    return_std : bool, default=False
        Of the linear estimator: return the standard error of MMD² as well, from the spread of the b blocks. It is
        unbiased as a variance; intervals of 1.96 of it hold the truth in 95 % of all samples once there are some dozen
        blocks, and with few of them call for Student's law with b - 1 degrees of freedom.
    progress : callable, optional
        Called with the fraction done, from any thread.

    Returns
    -------
    float, or two of them
        MMD² or MMD; and the standard error of MMD², where it is asked for.

    Notes
    -----
    Cost: (n + m)²/2 kernel evaluations in tiles, made and used once; about 2(n + m) block_size of the linear
    estimator. Memory: linear in n + m, never n × m: some copies of the points, a tile a thread, and partial row sums
    that keep the result the same whatever the number of threads; together about a kilobyte a point, less of the linear
    estimator.

    The biased estimator adds up the weights of equal points first, so that what the samples have in common leaves no
    rounding error. What is left is wrong by ε times the sum of the three terms, ε being the precision of the
    configuration.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, mmd
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[0.0], [3.0]])
    >>> round(mmd(X, Y, Gaussian(sigma=1.0)), 6)
    0.490842
    >>> mmd(X, X[::-1], Gaussian(sigma=1.0))
    0.0
    """
    one_of("biased", "unbiased", "linear")(estimator, "estimator")
    _check_options(estimator, x_weights, y_weights, block_size, return_std)
    require_points(kernel, "The discrepancy evaluates the kernel at the points of both samples")
    kernel, X, Y = checked_kernel(kernel).read(*as_tables(X, Y))
    X, Y, a, b = two_samples(X, Y, x_weights, y_weights)
    both = joined(X, Y)
    if not is_source(both):
        require_room_for_pairs(X.shape[0] + Y.shape[0], X.shape[1])
    fixed = resolved_kernel(kernel, both, namespace(a).concat([a, b]))
    warn_if_not("characteristic", fixed, ALIKE)
    a, b, power = in_one_unit(a, b) if estimator != "linear" else (a, b, 0)
    error = 0.0
    with nullcontext() if progress is None else watch(progress), np.errstate(over="ignore", invalid="ignore"):
        if estimator == "biased":
            value = energy(fixed, *difference(X, a, Y, b))
        elif estimator == "unbiased":
            value = _unbiased(fixed, X, Y, a, b)
        else:
            value, error = _linear(fixed, X, Y, block_size)
    if not np.isfinite(value) or not np.isfinite(error):
        raise ValueError(overflowing(fixed))
    if not squared:
        return in_units(float(np.sqrt(max(value, 0.0))), power, "MMD")
    return (value, error) if return_std else in_units(value, 2 * power, "MMD²")


def _check_options(estimator: str, x_weights: Any, y_weights: Any, block_size: Any, return_std: bool) -> None:
    if estimator == "linear":
        if x_weights is not None or y_weights is not None:
            raise ValueError('estimator="linear" takes no weights: leave them out, or use another estimator.')
    elif block_size is not None or return_std:
        option = "block_size" if block_size is not None else "return_std"
        raise ValueError(f'{option} belongs to estimator="linear", not to {estimator!r}: leave it out.')


def _unbiased(kernel: Kernel, X: Array, Y: Array, a: Array, b: Array) -> float:
    """The U-statistic: one product of the Gram matrix of both samples with two columns gives all three sums."""
    n = X.shape[0]
    xp, points = namespace(a), joined(X, Y)
    columns = xp.zeros((points.shape[0], 2), dtype=a.dtype, device=a.device)
    columns[:n, 0], columns[n:, 1] = a, b
    for weights, name in ((a, "X"), (b, "Y")):
        if int((weights != 0).sum()) < 2:
            raise ValueError(f'{name} has one point of positive weight: estimator="unbiased" needs two in each sample.')
    product = as_double(GramOperator(kernel, points) @ columns)
    diagonal = as_double(GramOperator(kernel, points).diagonal())
    within = _without_diagonal(kernel, X, a, product[:n, 0], diagonal[:n])
    within += _without_diagonal(kernel, Y, b, product[n:, 1], diagonal[n:])
    return within - 2 * float(a @ product[:n, 1])


def _without_diagonal(kernel: Kernel, X: Array, weights: Array, sums: Array, diagonal: Array) -> float:
    """An unbiased estimate of ‖s w_μ‖² from the sums Σⱼ aⱼ k(xᵢ,xⱼ).

    Where one weight outweighs the others, what is left without the diagonal is lost in those sums: they are formed
    anew without it, and 1 - Σaᵢ²/s² likewise.
    """
    mass, largest = float(weights.sum()), float(weights.max())
    if largest == 0:  # beside the other sample
        return 0.0
    xp = namespace(weights)
    shares = (weights / largest) / float((weights / largest).sum())
    heaviest = int(xp.argmax(shares))
    others = 1.0 - shares
    others[heaviest] = float(xp.concat([shares[:heaviest], shares[heaviest + 1 :]]).sum())
    if float(shares @ shares) > _HEAVY:
        off = float(shares @ _sums_of_others(kernel, X, shares))
    else:
        off = float(shares @ (sums / mass - shares * diagonal))
    return mass**2 * (off / float(shares @ others))


def _sums_of_others(kernel: Kernel, X: Array, shares: Array) -> Array:
    """Σ_{j≠i} pⱼ k(xᵢ,xⱼ), some rows at a time."""
    xp, matrix, out = namespace(X), kernel.matrix(X), namespace(shares).empty_like(shares)

    def fill(rows: slice) -> None:
        block = as_double(matrix.block(rows, slice(None)))
        own = xp.arange(rows.stop - rows.start, device=X.device)
        block[own, rows.start + own] = 0.0
        out[rows] = block @ shares

    run_chunks_of(X, fill, row_chunks(X.shape[0], panel_rows(X.shape[0], most=THREAD_BYTES)))
    return out


def _linear(kernel: Kernel, X: Array, Y: Array, block_size: int | None) -> tuple[float, float]:
    """The mean of the unbiased estimates of blocks of rows, and its standard error."""
    least = min(X.shape[0], Y.shape[0])
    size = max(2, int(np.sqrt(least))) if block_size is None else whole_number(block_size, "block_size", 2)
    count = least // size
    if count < 2:
        raise ValueError(
            f"Samples of {X.shape[0]} and {Y.shape[0]} rows give {count} blocks of {size} rows, and the linear "
            "estimator needs two: take a smaller block_size or another estimator."
        )
    n, m = X.shape[0] // count, Y.shape[0] // count
    if is_source(X) or is_source(Y):
        return _linear_by_blocks(kernel, X, Y, count)
    xp, coefficients = namespace(X), _u_statistic(n, m, X)
    parts = (xp.reshape(points[: count * rows], (count, rows, -1)) for points, rows in ((X, n), (Y, m)))
    blocks = xp.reshape(xp.concat(tuple(parts), axis=1), (count * (n + m), -1))
    matrix = kernel.matrix(blocks)  # of whose entries the blocks on the diagonal are made
    together = max(1, _POINTS_AT_ONCE // (n + m))
    chunks = row_chunks(count, together * rows_within(THREAD_ENTRIES, (together * (n + m)) ** 2))

    def of_chunk(chunk: slice) -> Array:
        groups = row_chunks(chunk.stop - chunk.start, together)
        return xp.concat([_block_values(matrix, group, chunk.start, coefficients) for group in groups])

    values = xp.concat(run_chunks_of(X, of_chunk, chunks))
    return float(xp.mean(values)), float(xp.std(values, correction=1)) / float(np.sqrt(count))


def _linear_by_blocks(kernel: Kernel, X: Any, Y: Any, count: int) -> tuple[float, float]:
    """As :func:`_linear` of so many blocks, of rows that come a block at a time: some blocks of the estimate each."""
    n, m = X.shape[0] // count, Y.shape[0] // count
    together = max(1, source_rows(4 * X.shape[1]) // (n + m))
    coefficients, values = _u_statistic(n, m, np.empty(0)), []
    for x, y in zip(_runs(X, count * n, together * n), _runs(Y, count * m, together * m), strict=True):
        size = x.shape[0] // n
        blocks = np.concatenate([x.reshape(size, n, -1), y.reshape(size, m, -1)], axis=1).reshape(size * (n + m), -1)
        of_part = partial(_block_values, kernel.matrix(blocks), first=0, coefficients=coefficients)
        values += run_chunks_of(blocks, of_part, row_chunks(size, max(1, _POINTS_AT_ONCE // (n + m))))
    found = np.concatenate(values)
    return float(found.mean()), float(found.std(ddof=1)) / float(np.sqrt(count))


def _runs(points: Any, n: int, most: int) -> Iterator[Array]:
    """The first n rows, so many at a time, of an array or a source."""
    if not is_source(points):
        yield from (points[rows] for rows in row_chunks(n, most))
        return
    for rows, block in regrouped((block for _, block in points.blocks(most)), most):
        if rows.start < n:
            yield block[: n - rows.start]


def _u_statistic(n: int, m: int, X: Array) -> Array:
    """The matrix whose inner product with the Gram matrix of n and m points is the unbiased estimate."""
    M = np.full((n + m, n + m), -1 / (n * m))
    M[:n, :n] = 1 / (n * (n - 1))
    M[n:, n:] = 1 / (m * (m - 1))
    np.fill_diagonal(M, 0.0)
    return like(M, X)


def _block_values(matrix: KernelMatrix, group: slice, first: int, coefficients: Array) -> Array:
    """The unbiased estimates of some blocks, counted from the first.

    Small blocks are evaluated together: what is made of the pairs between two blocks is thrown away, which costs less
    than a call for each of them.
    """
    count, size = group.stop - group.start, coefficients.shape[0]
    points = slice((first + group.start) * size, (first + group.stop) * size)
    xp, gram = namespace(coefficients), matrix.block(points, points)
    own = xp.arange(count, device=coefficients.device)
    of_blocks = as_double(xp.reshape(gram, (count, size, count, size))[own, :, own])
    return xp.einsum("bij,ij->b", of_blocks, coefficients)
