"""Do two samples come from one law? The kernel two-sample test (RKHS section 9.3; Gretton et al. 2012)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, is_source, like, to_numpy
from mercer.backends.collections import takes_dask
from mercer.backends.threads import watch
from mercer.dependence.aggregation import kernel_parts, ranked
from mercer.dependence.block_length import series_block_length
from mercer.dependence.blockwise_mmd import blockwise_statistics, group_order, group_sizes
from mercer.dependence.compressed_mmd import compressed_statistics
from mercer.dependence.fast_nulls import (
    centred_eigenvalues,
    centred_traces,
    contrast_traces,
    gamma_pvalue,
    permutation_moments,
    spectral_draws,
)
from mercer.dependence.mean_embedding import MeanEmbedding
from mercer.dependence.mmd import ALIKE, Estimator
from mercer.dependence.mmd_statistics import Contrasts, Statistics, mmd_statistics
from mercer.dependence.pooled_sample import PooledSample, pooled_sample
from mercer.dependence.relabelling import (
    Drawing,
    Relabellings,
    labellings_up_to,
    relabellings,
    relabellings_in_groups,
)
from mercer.dependence.resampling import Scheme, permutation_pvalue
from mercer.dependence.result import KernelPart, KernelTestResult
from mercer.dependence.vectors import as_table
from mercer.journal import resumable
from mercer.kernels import Gaussian, Precomputed
from mercer.kernels.checks import as_generator, as_points
from mercer.kernels.integrals import GaussianMixture
from mercer.operators import GramOperator
from mercer.operators.signed_measure import overflowing
from mercer.validation import is_precomputed, one_of, warn_if_not, whole_number

Null = Literal["permutation", "gamma", "spectral"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class MMDTestResult(KernelTestResult):
    """The outcome of :func:`mercer.mmd_test`.

    Attributes
    ----------
    statistic : float
        MMD² of the data; of several kernels the largest of their standardised MMD², about normal under the null.
    pvalue, null_distribution, null, n_resamples, kernel, parts
        As :class:`mercer.dependence.KernelTestResult` says.
    sizes : tuple of int
        Rows of the two samples, those of weight zero not counted.
    """

    sizes: tuple[int, int]
    _sides: tuple[MeanEmbedding, MeanEmbedding] | _GivenSides

    def witness(self, Z: Any) -> Array:
        """The function of unit norm whose means differ most between the samples, at the rows of Z.

        It is positive where X has more mass and negative where Y has; of several kernels, that of the one that found
        most. Of ``Precomputed()``, Z holds the kernel between new points and all rows of X and Y, those of weight zero
        left out.
        """
        if isinstance(self._sides, _GivenSides):
            return self._sides.witness(Z)
        first, second = self._sides
        return first.witness(second, as_table(Z))

    def _found(self) -> str:
        return "The two samples differ"

    def _not_found(self) -> str:
        return "No sign that the two samples differ"

    def _statistic_name(self) -> str:
        return f"the largest of {len(self.parts)} standardised MMD²" if self.parts else "MMD²"

    def _resamples_name(self) -> str:
        if labellings_up_to(*self.sizes, self.n_resamples + 1) == self.n_resamples + 1:
            return "possible labellings"
        return super()._resamples_name()


@final
@dataclass(frozen=True, eq=False)
class _GivenSides:
    """The contrast of two samples of which only a kernel matrix is known."""

    contrast: Array
    norm: float

    def witness(self, Z: Any) -> Array:
        Z = to_numpy(as_points(Z, "Z"))
        if Z.shape[1] != self.contrast.shape[0]:
            raise ValueError(
                f"Z has {Z.shape[1]} columns: it needs the kernel with each of the {self.contrast.shape[0]} rows of X "
                "and Y."
            )
        values = Z @ self.contrast
        return values / self.norm if self.norm > 0 else np.zeros_like(values)


@takes_dask
@resumable
def mmd_test(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    estimator: Estimator = "unbiased",
    null: Null = "permutation",
    scheme: Scheme = "rows",
    block_length: int | None = None,
    n_resamples: int = 999,
    x_weights: Any = None,
    y_weights: Any = None,
    compress: Any = None,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> MMDTestResult:
    """Test whether two samples come from one law, by their maximum mean discrepancy.

    The p-value is the share of relabellings of the pooled rows, the data among them, whose MMD² is at least as large:
    where the samples have one law it is at most α with probability at most α, whatever the law, the sizes and the
    kernels (Gretton et al. 2012). A large p-value is no proof that they have one law.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d), vectors of numbers or texts, or data frames with the same columns
        The two samples. Rows must be independent of each other unless ``scheme`` says otherwise.
    kernel : Kernel, list of Kernel or None
        None takes a collection with bandwidths from narrow to wide, a list those that it holds: one p-value over all of
        them. A single kernel gives the plain test. What depends on the data is fixed from both samples together. Of
        ``Precomputed()``, X holds the first n rows of the joint kernel matrix of n + m rows and Y the other m.
    estimator : {"unbiased", "biased", "linear"}, default="unbiased"
        As in :func:`mercer.mmd`; "linear" takes time linear in the rows, which must be in random order, and finds less.
    null : {"permutation", "gamma", "spectral"}, default="permutation"
        What the statistic is compared with. "gamma" and "spectral" are approximations without resamples, for one
        kernel (the Gaussian with the median bandwidth if none is given): see the user guide on their calibration.
    scheme : {"rows", "blocks", "shifts"}, default="rows"
        How labels are exchanged: row by row; in blocks of consecutive rows, for series whose rows depend on their
        neighbours; or by moving the labels of the series X, Y on in a circle.
    block_length : int, optional
        Of "blocks": rows a block; left out, it follows from how far the rows of the samples depend on earlier ones.
    n_resamples : int, default=999
        Relabellings. Where there are no more in all, each is taken once.
    x_weights, y_weights : array or float, optional
        Weights that are not negative, of both samples in one unit: a row takes its weight along to the other sample.
    compress : "landmarks", int, estimator or "thinning", optional
        For large samples, in time linear in the rows: ``"landmarks"``, their number, or an unfitted
        :class:`mercer.Landmarks` or :class:`mercer.QuadratureSparsifier` compares features made from a few rows of both
        samples; ``"thinning"`` compares coresets. Bins of rows are relabelled, and the level stays exact.
    rng : int, Generator or None
        The source of chance.
    progress : callable, optional
        Called with the fraction done, from any thread.

    Returns
    -------
    MMDTestResult
        With ``statistic``, ``pvalue``, ``null_distribution``, ``parts`` and ``witness``; ``str`` says it in a sentence.

    Notes
    -----
    Cost: (n + m)²/2 kernel evaluations and (n + m)² (1 + n_resamples) flops a kernel, on all threads. Memory: a bit for
    each row and resample, and some tiles a thread; never n × n. Statistics that are equal but for rounding count as
    equal.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import mmd_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + [1.0, 0.0]
    >>> result = mmd_test(X, Y, rng=0)
    >>> result.pvalue
    0.001
    >>> statistic, pvalue = result
    >>> result.rejects(0.05)
    True
    """
    one_of("biased", "unbiased", "linear")(estimator, "estimator")
    one_of("permutation", "gamma", "spectral")(null, "null")
    one_of("rows", "blocks", "shifts")(scheme, "scheme")
    generator = as_generator(rng, "rng")
    drawing = Drawing(whole_number(n_resamples, "n_resamples", 1), generator, scheme, block_length)
    plan = _Plan(estimator, null, drawing, compress)
    _require_fitting(plan, kernel, weighted=x_weights is not None or y_weights is not None)
    if kernel is None and null != "permutation":
        kernel = Gaussian()
    sample = pooled_sample(X, Y, kernel, x_weights, y_weights, generator)
    _require_rows(sample, estimator)
    _require_landmarks(sample, plan)
    for each in sample.kernels if not sample.several else ():
        warn_if_not("characteristic", each, ALIKE)
    with nullcontext() if progress is None else watch(progress), np.errstate(over="ignore", invalid="ignore"):
        return (
            _by_permutation(sample, _statistics(sample, plan)) if null == "permutation" else _by_formula(sample, plan)
        )


class _Plan(NamedTuple):
    """How a test is made."""

    estimator: Estimator
    null: Null
    drawing: Drawing
    compress: Any


def _require_fitting(plan: _Plan, kernel: Any, *, weighted: bool) -> None:
    """Refuse options that do not go together."""
    several = isinstance(kernel, list | tuple)
    reasons = {
        "several kernels": several,
        "weights": weighted,
        f"scheme={plan.drawing.scheme!r}": plan.drawing.scheme != "rows",
        "compress": plan.compress is not None,
        'estimator="linear"': plan.estimator == "linear",
    }
    for what, given in reasons.items():
        if given and plan.null != "permutation":
            raise ValueError(f'null={plan.null!r} is a formula that knows no {what}: use null="permutation".')
    reasons = {
        "weights": weighted,
        f"scheme={plan.drawing.scheme!r}": plan.drawing.scheme != "rows",
        "compress": plan.compress is not None,
        "Precomputed()": is_precomputed(kernel),
    }
    for what, given in reasons.items():
        if given and plan.estimator == "linear":
            raise ValueError(f'estimator="linear" does not go with {what}: use estimator="unbiased".')
    if plan.drawing.block_length is not None and plan.drawing.scheme != "blocks":
        raise ValueError(f'block_length belongs to scheme="blocks", not to {plan.drawing.scheme!r}: leave it out.')


def _require_landmarks(sample: PooledSample, plan: _Plan) -> None:
    """Refuse to look at all pairs of rows that come a block at a time."""
    if is_source(sample.points) and (plan.compress is None or plan.compress == "thinning"):
        raise ValueError(
            "Rows that are read a block at a time are compared in features of landmarks: pass compress='landmarks', or "
            "a number of them."
        )


def _require_rows(sample: PooledSample, estimator: str) -> None:
    for count, name in ((sample.n, "X"), (sample.m, "Y")):
        if count < 2 and estimator != "biased":
            raise ValueError(
                f"{name} has one row of positive weight: estimator={estimator!r} needs two in each sample, or use "
                'estimator="biased".'
            )


def _statistics(sample: PooledSample, plan: _Plan) -> Statistics:
    """MMD² of the data and of all relabellings."""
    if plan.estimator == "linear":
        count, n, m = group_sizes(sample.n, sample.m)
        order = like(group_order(sample.n, sample.m), sample.points)
        matrices = sample._replace(points=sample.points[order]).matrices()
        return blockwise_statistics(matrices, relabellings_in_groups(n, m, count, plan.drawing), n, m)
    unbiased = plan.estimator == "unbiased"
    if plan.compress is not None:
        return compressed_statistics(sample, plan.compress, plan.drawing, unbiased=unbiased)
    contrasts = Contrasts(relabellings(sample.n, sample.m, _for_series(sample, plan.drawing)), sample.weights)
    return mmd_statistics(sample.matrices(), contrasts, unbiased=unbiased)


def _for_series(sample: PooledSample, drawing: Drawing) -> Drawing:
    """With a block length that suits the dependence in the series, where none is given."""
    if drawing.scheme != "blocks" or drawing.block_length is not None or isinstance(sample.kernels[0], Precomputed):
        return drawing
    return drawing._replace(block_length=series_block_length(sample.points[: sample.n], sample.points[sample.n :]))


def _by_permutation(sample: PooledSample, statistics: Statistics) -> MMDTestResult:
    values, roundings = statistics
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise ValueError(overflowing(sample.kernels[int(np.argmin(finite))]))
    together = ranked(values, roundings, sample.handicaps)
    parts = kernel_parts(sample.kernels, values, together)
    found = _Finding(together.observed, together.pvalue, together.null, "permutation", parts, together.best)
    return _result(sample, found)


def _by_formula(sample: PooledSample, plan: _Plan) -> MMDTestResult:
    """The biased statistic against a null without resamples; what is told is the statistic that was asked for."""
    n, m, (kernel,), (matrix,) = sample.n, sample.m, sample.kernels, sample.matrices()
    if n + m < 4:
        raise ValueError(f'null={plan.null!r} needs four rows in all, not {n + m}: use null="permutation".')
    contrasts = Contrasts(Relabellings([np.arange(n + m)[None] < n], n + m), sample.weights)
    biased, asked = (
        float(mmd_statistics([matrix], contrasts, unbiased=unbiased).values[0, 0])
        for unbiased in (False, plan.estimator == "unbiased")
    )
    if not np.isfinite(asked):
        raise ValueError(overflowing(kernel))
    traces = centred_traces(matrix)
    moments = permutation_moments(traces, contrast_traces(n, m), n + m)
    if plan.null == "gamma":
        return _result(sample, _Finding(asked, gamma_pvalue(biased / traces.unit, *moments), np.empty(0), "gamma"))
    count, rng = plan.drawing.n_resamples, as_generator(plan.drawing.rng)
    eigenvalues = centred_eigenvalues(GramOperator(kernel, sample.points), rng) / traces.unit
    draws = traces.unit * spectral_draws(eigenvalues, *moments, count, rng) + (asked - biased)
    return _result(sample, _Finding(asked, permutation_pvalue(asked, draws), draws, "spectral"))


class _Finding(NamedTuple):
    """What a test found."""

    statistic: float
    pvalue: float
    null_distribution: Array
    null: str
    parts: tuple[KernelPart, ...] = ()
    best: int = 0


def _result(sample: PooledSample, found: _Finding) -> MMDTestResult:
    return MMDTestResult(
        statistic=found.statistic,
        pvalue=found.pvalue,
        null_distribution=found.null_distribution,
        null=found.null,
        n_resamples=found.null_distribution.shape[0],
        kernel=sample.kernels if sample.several else sample.kernels[0],
        parts=found.parts,
        sizes=(sample.n, sample.m),
        _sides=_sides(sample, found.best),
    )


def _sides(sample: PooledSample, best: int) -> tuple[MeanEmbedding, MeanEmbedding] | _GivenSides:
    """The two samples as vectors of the space of one kernel."""
    n, weights = sample.n, sample.weights
    a, b = weights[:n] / weights[:n].sum(), weights[n:] / weights[n:].sum()
    if isinstance(sample.kernels[0], Precomputed):
        contrast = np.concatenate([a, -b])
        energy = float(contrast @ to_numpy(sample.points @ contrast))
        return _GivenSides(contrast, float(np.sqrt(max(energy, 0.0))))
    parts = sample.points.parts if is_source(sample.points) else (sample.points[:n], sample.points[n:])
    halves = zip((a, b), parts, strict=True)
    first, second = (
        MeanEmbedding._made(sample.kernels[best], [GaussianMixture(like(w, points), points, 0.0)], sample.table)
        for w, points in halves
    )
    return first, second
