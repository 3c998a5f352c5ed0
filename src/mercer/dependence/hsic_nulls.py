"""What HSIC is where X and Y are independent: by reordering, by a wild bootstrap, or by a law fitted to its moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import THREAD_BYTES, panel_rows, row_chunks
from mercer.backends.threads import run_chunks
from mercer.dependence.centred_gram import CentredGram, inner_product
from mercer.dependence.fast_nulls import (
    Traces,
    centred_eigenvalues,
    centred_traces,
    gamma_pvalue,
    permutation_moments,
    spectral_draws,
)
from mercer.dependence.reorderings import affine, explicit
from mercer.dependence.resampling import Scheme, permutation_pvalue
from mercer.dependence.shift_sums import shift_sums, sum_roundings

_MOST_PRODUCTS = 1000  # of eigenvalues that have a χ² each


@dataclass(frozen=True)
class Resampling:
    """How resamples are drawn.

    Attributes
    ----------
    count : int
        How many.
    rng : Generator
        The source of chance.
    scheme : {"rows", "blocks", "shifts"}
        What is reordered.
    block_length : int
        Rows that stay together, or over which multipliers of the wild bootstrap are alike.
    progress : callable or None
        Called with the fraction done.
    """

    count: int
    rng: np.random.Generator
    scheme: Scheme
    block_length: int
    progress: Callable[[float], None] | None


class Statistics(NamedTuple):
    """Sums Σᵢⱼ aᵢⱼ bᵢⱼ of p matrices of X and q of Y.

    Attributes
    ----------
    values : array of shape (p q, 1 + B)
        Those of the data first, then those of the resamples.
    roundings : array of shape (p q,)
        How far equal ones may lie apart.
    """

    values: Array
    roundings: Array


def reordered(
    x: Sequence[CentredGram], y: Sequence[CentredGram], resampling: Resampling, places: Array | None = None
) -> Statistics:
    """The statistics of the data and of reorderings of Y against X; zeros for pairs that are not at these places."""
    n, (count, rng, scheme, length) = x[0].size, _drawn(resampling)
    orders = explicit(n, count, rng, scheme, length)
    if orders is not None:
        return one_by_one(x, y, orders)
    plan = affine(n, count, rng, scheme, length)
    wanted = None if places is None else [divmod(int(place), len(y)) for place in places]
    sums = shift_sums(x, y, plan.x_order, plan.y_orders, resampling.progress, wanted)
    values = sums.values[..., :: plan.step].reshape(len(x) * len(y), -1)
    return Statistics(values[:, np.concatenate([[0], plan.chosen])], sums.roundings.reshape(-1))


def _drawn(resampling: Resampling) -> tuple[int, np.random.Generator, Scheme, int]:
    return resampling.count, resampling.rng, resampling.scheme, resampling.block_length


def one_by_one(x: Sequence[CentredGram], y: Sequence[CentredGram], orders: Array) -> Statistics:
    """The same for reorderings that are written out, of few rows."""
    n = orders.shape[1]
    first = np.stack([gram.block(slice(0, n), slice(0, n)).reshape(-1) for gram in x])
    second = [gram.block(slice(0, n), slice(0, n)) for gram in y]
    orders = np.concatenate([np.arange(n)[None], orders])
    out = np.empty((len(x), len(y), len(orders)))
    for part in row_chunks(len(orders), panel_rows(n * n)):
        rows, cols = orders[part][:, :, None], orders[part][:, None, :]
        for q, values in enumerate(second):
            out[:, q, part] = first @ values[rows, cols].reshape(rows.shape[0], -1).T
    of_x, of_y = np.linalg.norm(first, axis=1), np.array([np.linalg.norm(values) for values in second])
    return Statistics(out.reshape(len(x) * len(y), -1), sum_roundings(x, y, of_x, of_y).reshape(-1))


def wild_bootstrap(
    x: Sequence[CentredGram], y: Sequence[CentredGram], resampling: Resampling, places: Array | None = None
) -> Statistics:
    """Σᵢⱼ wᵢwⱼ aᵢⱼbᵢⱼ with multipliers w that are alike over a stretch of rows (Chwialkowski et al. 2014, (7)).

    w is a stationary autoregression of order one whose correlation falls by a factor e over ``block_length`` rows, less
    its mean, and then brought to variance one again: of some hundred rows the mean takes a fifth of the variance away,
    and of the statistics with it, so that the test would reject twice as often as it says. For dependent rows in the
    order of time; valid for long series. Zeros stand for pairs that are not at these places.
    """
    n, pairs, length = x[0].size, len(x) * len(y), resampling.block_length
    w = centred_autoregressions(resampling.count, n, float(np.exp(-1 / length)), resampling.rng)
    multipliers = np.concatenate([np.ones((n, 1)), w.T], axis=1)

    def of_rows(rows: slice) -> Array:
        first, second = ([gram.block(rows, slice(None)) for gram in grams] for grams in (x, y))
        own, values = multipliers[rows], np.zeros((pairs, multipliers.shape[1]))
        for place in range(pairs) if places is None else places:
            a, b = first[place // len(y)], second[place % len(y)]
            values[place] = np.einsum("ib,ib->b", own, (a * b) @ multipliers)
        return values

    chunks = row_chunks(n, panel_rows(n, most=THREAD_BYTES))
    return Statistics(np.sum(run_chunks(of_rows, chunks), axis=0), np.zeros(pairs))


def centred_autoregressions(count: int, n: int, correlation: float, rng: np.random.Generator) -> Array:
    """Paths of a stationary normal autoregression less their means, one a row, of mean square one on average."""
    from scipy.signal import lfilter

    noise = rng.standard_normal((count, n))
    noise[:, 1:] *= np.sqrt(1 - correlation**2)
    paths = lfilter([1.0], [1.0, -correlation], noise, axis=1)
    lags = np.arange(1, n)
    variance_of_mean = (n + 2 * ((n - lags) @ correlation**lags)) / n**2
    return (paths - paths.mean(axis=1, keepdims=True)) / np.sqrt(1 - variance_of_mean)


def gamma_null(x: CentredGram, y: CentredGram) -> tuple[float, float]:
    """The statistic, and its p-value by the gamma law with its mean and variance over all n! reorderings."""
    statistic, (first, second) = inner_product(x, y), _traces(x, y)
    moments = permutation_moments(first, second, x.size)
    return statistic, gamma_pvalue(statistic / first.unit / second.unit, *moments)


def spectral_null(x: CentredGram, y: CentredGram, resampling: Resampling) -> tuple[float, float, Array]:
    """The statistic, its p-value and draws of Σᵢⱼ λᵢμⱼ zᵢⱼ², z standard normal (Gretton et al. 2008).

    λ and μ are the eigenvalues of the two matrices, of whose products the thousand largest give the law its shape; its
    mean and variance are those over all n! reorderings.
    """
    rng, statistic = resampling.rng, inner_product(x, y)
    traces = _traces(x, y)
    first, second = (centred_eigenvalues(gram.gram, rng) / each.unit for gram, each in zip((x, y), traces, strict=True))
    largest = np.sort(np.multiply.outer(first, second), axis=None)[::-1][:_MOST_PRODUCTS]
    draws = spectral_draws(largest, *permutation_moments(*traces, x.size), resampling.count, rng)
    draws = draws * traces[0].unit * traces[1].unit
    return statistic, permutation_pvalue(statistic, draws), draws


def _traces(x: CentredGram, y: CentredGram) -> tuple[Traces, Traces]:
    return centred_traces(x.matrix), centred_traces(y.matrix)
