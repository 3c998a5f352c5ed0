"""Does Y depend on X? A test of independence by the Hilbert-Schmidt independence criterion."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.collections import takes_dask
from mercer.dependence.aggregation import kernel_parts, ranked
from mercer.dependence.block_length import series_block_length
from mercer.dependence.centred_gram import CentredGram
from mercer.dependence.compressed_hsic import compressed_reorderings
from mercer.dependence.hsic import ALIKE, Estimator, checked_counts, least_rows, scale
from mercer.dependence.hsic_nulls import (
    Resampling,
    Statistics,
    gamma_null,
    reordered,
    spectral_null,
    wild_bootstrap,
)
from mercer.dependence.hsic_result import HSICTestResult
from mercer.dependence.resampling import Scheme, default_block_length
from mercer.dependence.result import KernelPart
from mercer.dependence.variables import MEDIAN, Variable, require_pairs, variable
from mercer.journal import resumable
from mercer.kernels import Kernel
from mercer.kernels.checks import as_generator
from mercer.validation import one_of, warn_if_not, whole_number

Null = Literal["permutation", "gamma", "spectral", "wild bootstrap"]
_FORMULAS = ("gamma", "spectral")
_HANDICAP = 0.75  # standard deviations that a pair must be ahead of the customary ones, by power on other samples


@takes_dask
@resumable
def hsic_test(
    X: Any,
    Y: Any,
    x_kernel: Any = None,
    y_kernel: Any = None,
    *,
    estimator: Estimator = "biased",
    null: Null = "permutation",
    scheme: Scheme = "rows",
    block_length: int | None = None,
    n_resamples: int = 999,
    sample_weight: Any = None,
    compress: Any = None,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> HSICTestResult:
    """Test whether two variables are independent, from n pairs of observations.

    The statistic is HSIC, see :func:`mercer.hsic`. Without kernels it is one over several bandwidths of both variables,
    each standardised by the resamples, the largest counting; the p-value is one for all of them.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (n, e), vectors of numbers or texts, or data frames
        The observations, row by row in pairs.
    x_kernel, y_kernel : Kernel or list of Kernel, optional
        k and l; several are aggregated, every one of X with every one of Y. ``Precomputed()`` takes the n × n kernel
        matrix instead of the points.
    estimator : {"biased", "unbiased"}, default="biased"
        Of HSIC.
    null : {"permutation", "gamma", "spectral", "wild bootstrap"}, default="permutation"
        ``"permutation"`` is exact for rows that are exchangeable, whatever n. ``"gamma"`` and ``"spectral"`` are quick
        approximations for one kernel a variable and the biased estimator; the median bandwidth if left out. ``"wild
        bootstrap"`` is for long series whose rows depend on each other.
    scheme : {"rows", "blocks", "shifts"}, default="rows"
        What a permutation reorders: rows; or, of a stationary series, blocks of ``block_length`` consecutive rows,
        where those at the end that fill no block are left out, or the whole series in a circle.
    block_length : int, optional
        Of blocks, or over how many rows the multipliers of the wild bootstrap are alike; by the dependence of the
        rows on those before them if left out.
    n_resamples : int, default=999
        Resamples; fewer where there are not so many, and all there are where that is so.
    sample_weight : array of shape (n,), optional
        How often each row counts, with a sum above one; of the biased estimator and permutations. Weights stay with X
        where Y is reordered, which is valid if they do not depend on Y where X is given.
    compress : "landmarks", int or estimator, optional
        For many rows, in time linear in them: ``"landmarks"``, their number, or an unfitted :class:`mercer.Landmarks`
        or :class:`mercer.QuadratureSparsifier` makes features from a few rows of each variable. The level is exact.
    rng : int, Generator or None
        The source of chance.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    HSICTestResult
        The statistic, the p-value, the null distribution and the witness function.

    Notes
    -----
    A thousand reorderings cost little more than one: after rows have been put in a random order, the shifts in a
    circle are a group, over which the p-value is exact, and transforms of diagonals give the statistics of all of them
    in O(n² log n), with memory linear in n.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import hsic_test
    >>> x = np.linspace(-1, 1, 100)
    >>> result = hsic_test(x, x**2, rng=0)
    >>> print(result)
    Y depends on X: the largest standardised HSIC = 8.41, as large in 1 of 1000 reorderings of Y (p = 0.001).
    """
    one_of("biased", "unbiased")(estimator, "estimator")
    one_of("permutation", "gamma", "spectral", "wild bootstrap")(null, "null")
    one_of("rows", "blocks", "shifts")(scheme, "scheme")
    weights = checked_counts(sample_weight, X, estimator)
    _require_together(null, estimator, scheme, weights)
    if compress is not None:
        _require_compressible(null, estimator, weights)
    x, y, weights = _variables(X, Y, x_kernel, y_kernel, weights, several=null not in _FORMULAS)
    n = require_pairs(x, y, 4 if null in _FORMULAS else least_rows(estimator))
    count, length = whole_number(n_resamples, "n_resamples", 1), _block_length(x, y, null, scheme, block_length)
    resampling = Resampling(count, as_generator(rng), scheme, length, progress)
    n -= n % length if null == "permutation" else 0
    rows, unbiased = slice(0, n), estimator == "unbiased"
    x, y, weights = x.some(rows), y.some(rows), None if weights is None else weights[rows]
    pairs, factor = _pairs(x, y), scale(n, weights, estimator)
    if compress is None:
        of_x = [CentredGram(kernel, x.points, weights, unbiased=unbiased).weighed(weights) for kernel in x.kernels]
        of_y = [CentredGram(kernel, y.points, unbiased=unbiased) for kernel in y.kernels]
        found = _outcome(of_x, of_y, null, resampling, factor, pairs)
    else:
        found = _scaled(compressed_reorderings(x, y, compress, resampling), factor, pairs)
    if progress is not None:
        progress(1.0)
    return HSICTestResult(
        found.statistic,
        found.pvalue,
        found.null,
        null,
        len(found.null),
        pairs.kernels[found.telling],
        found.parts,
        estimator,
        weights,
        x,
        y,
    )


def _require_together(null: Null, estimator: Estimator, scheme: Scheme, weights: Array | None) -> None:
    """Refuse settings that do not go together."""
    if null in _FORMULAS and estimator != "biased":
        raise ValueError(f'null={null!r} is the law of the biased estimator: leave estimator="{estimator}" out.')
    if null != "permutation" and scheme != "rows":
        raise ValueError(f'scheme={scheme!r} belongs to null="permutation", not to {null!r}: leave it out.')
    if null != "permutation" and weights is not None:
        raise ValueError(f'sample_weight belongs to null="permutation", not to {null!r}: leave it out.')


def _block_length(x: Variable, y: Variable, null: Null, scheme: Scheme, given: int | None) -> int:
    """Rows that are moved or weighed together: as many as given, or as the dependence in the two series asks for."""
    wild = null == "wild bootstrap"
    if not wild and scheme != "blocks":
        if given is not None:
            raise ValueError(f'block_length belongs to scheme="blocks", not to {scheme!r}: leave it out.')
        return 1
    if given is None:
        known = [side.points for side in (x, y) if not side.is_precomputed]
        length = series_block_length(*known) if known else default_block_length(x.size)
    else:
        length = whole_number(given, "block_length", 1)
    if x.size // length < 2:
        raise ValueError(
            f"{x.size} rows make {x.size // length} blocks of {length} rows, and reordering needs two: take a smaller "
            "block_length."
        )
    return length


def _require_compressible(null: Null, estimator: Estimator, weights: Array | None) -> None:
    """Refuse what features of landmarks do not do."""
    if null != "permutation":
        raise ValueError(f'compress belongs to null="permutation", not to {null!r}: leave it out.')
    if estimator != "biased" or weights is not None:
        what = "weights" if weights is not None else f"estimator={estimator!r}"
        raise ValueError(f"compress does not go with {what}: leave one of them out.")


def _variables(
    X: Any, Y: Any, x_kernel: Any, y_kernel: Any, weights: Array | None, *, several: bool
) -> tuple[Variable, Variable, Array | None]:
    """The two variables and the weights, without rows of weight zero.

    Weights stay with X: a bandwidth of Y that heeded them would change with the order of Y.
    """
    present = None if weights is None or (weights > 0).all() else (weights > 0).astype(np.float64)
    x = variable(X, x_kernel, "X", weights=weights, several=several)
    y = variable(Y, y_kernel, "Y", weights=present, several=several)
    require_pairs(x, y)
    for side, given in ((x, x_kernel), (y, y_kernel)):
        for kernel in side.kernels if given is not None else ():
            warn_if_not("characteristic", kernel, ALIKE, f"{side.name.lower()}_kernel")
        if not several and len(side.kernels) > 1:
            raise ValueError('Several kernels are aggregated over resamples: give one, or null="permutation".')
    if present is None or weights is None:
        return x, y, weights
    rows = np.flatnonzero(weights)
    return x.some(rows), y.some(rows), weights[rows]


class _Pairs(NamedTuple):
    """The pairs of kernels that are looked at: their places in all pairs, the kernels, and the handicap of each."""

    places: Array
    kernels: list[tuple[Kernel, Kernel]]
    handicaps: Array


def _pairs(x: Variable, y: Variable) -> _Pairs:
    """All pairs; of two default collections the narrowest only with the widest, and the median only with the median.

    The narrowest with the widest sees fast oscillations, and two narrow kernels see little but single points. A prior
    prefers the pairs that people take: the widest, which are near a correlation of distances, and the medians.
    """
    last = (len(x.kernels) - 1, len(y.kernels) - 1)
    every = list(product(range(last[0] + 1), range(last[1] + 1)))
    kept, customary = every, [last]
    if x.graded and y.graded:
        customary = [last, (MEDIAN, MEDIAN)]
        always = (*customary, (0, last[1]), (last[0], 0))
        kept = [pair for pair in every if pair in always or not {0, MEDIAN} & set(pair)]
    handicaps = [0.0 if pair in customary or not (x.graded or y.graded) else _HANDICAP for pair in kept]
    kernels = [(x.kernels[i], y.kernels[j]) for i, j in kept]
    return _Pairs(np.array([every.index(pair) for pair in kept]), kernels, np.array(handicaps))


class _Outcome(NamedTuple):
    """What was found: together, and by each pair of kernels where they are several."""

    statistic: float
    pvalue: float
    null: Array
    parts: tuple[KernelPart, ...] = ()
    telling: int = 0  # the pair whose statistic is the farthest from chance


def _outcome(
    x: list[CentredGram], y: list[CentredGram], null: Null, resampling: Resampling, factor: float, pairs: _Pairs
) -> _Outcome:
    if null == "gamma":
        statistic, pvalue = gamma_null(x[0], y[0])
        return _Outcome(factor * statistic, pvalue, np.empty(0))
    if null == "spectral":
        statistic, pvalue, draws = spectral_null(x[0], y[0], resampling)
        return _Outcome(factor * statistic, pvalue, factor * draws)
    resampled = reordered if null == "permutation" else wild_bootstrap
    return _scaled(resampled(x, y, resampling, pairs.places), factor, pairs)


def _scaled(found: Statistics, factor: float, pairs: _Pairs) -> _Outcome:
    """What the statistics of the pairs that are looked at say."""
    values, roundings = factor * found.values[pairs.places], factor * found.roundings[pairs.places]
    together = ranked(values, roundings, pairs.handicaps)
    parts = kernel_parts(pairs.kernels, values, together)
    return _Outcome(together.observed, together.pvalue, together.null, parts, together.best)
