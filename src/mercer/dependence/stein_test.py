"""Does a sample come from this density? A test of goodness of fit by the kernel Stein discrepancy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from mercer.backends.arrays import Array, is_tensor, to_numpy
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.threads import run_chunks
from mercer.dependence.aggregation import kernel_parts, ranked
from mercer.dependence.result import KernelTestResult
from mercer.dependence.stein import SteinForm, SteinSums, stein_sums
from mercer.dependence.stein_model import SteinModel
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.checks import as_generator, as_points
from mercer.kernels.radial import Radial, inverse_multiquadric, radial
from mercer.validation import checked_kernel, one_of, resolved_kernel, true_or_false, whole_number

Null = Literal["auto", "wild bootstrap", "parametric bootstrap"]
_SCALES = (0.25, 0.5, 1.0, 2.0)  # of the default lengths, times the median distance
_ROWS_AT_ONCE = 10_000  # that are drawn in one call
_EXACT_UP_TO = 200  # rows up to which "auto" draws new samples: 999 of them take seconds


@final
@dataclass(frozen=True)
class InverseMultiquadric:
    """k(x, y) = (1 + Σᵢ (xᵢ - yᵢ)²/ℓᵢ²)^(-1/2), which sees masses that wander off where a Gaussian does not.

    Attributes
    ----------
    length_scale : tuple of float
        ℓ.
    """

    length_scale: tuple[float, ...]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SteinTestResult(KernelTestResult):
    """What :func:`mercer.stein_test` found.

    Attributes
    ----------
    statistic, pvalue, null_distribution, null, n_resamples, kernel, parts
        As in every :class:`mercer.dependence.KernelTestResult`.
    contributions : array of shape (n,)
        What each point adds to the discrepancy, under the kernel that sees most of it: their mean is its KSD². Large
        where the density does not fit.
    refitted : bool
        Whether the density was fitted again to every resample.
    """

    contributions: Array
    refitted: bool

    def _found(self) -> str:
        return "The density does not fit the sample"

    def _not_found(self) -> str:
        return "No sign that the density does not fit the sample"

    def _statistic_name(self) -> str:
        return "the largest standardised KSD²" if self.parts else "KSD²"


def stein_test(
    density: Any,
    X: Any,
    kernel: Any = None,
    *,
    null: Null = "auto",
    refit: bool = False,
    sampler: Callable[[int, np.random.Generator], Any] | None = None,
    n_resamples: int = 999,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> SteinTestResult:
    """Test whether the rows of X are independent draws from a density, known by the gradient of its logarithm.

    The statistic is the unbiased estimate of KSD², see ``mercer.dependence.stein``. Its law, if the density is the
    right one, comes from

    ``"parametric bootstrap"``
        the same statistic of samples drawn from the density. The p-value is exact for any n, where the density was not
        fitted to X.
    ``"wild bootstrap"``
        random signs on the rows (Chwialkowski et al. 2016), for which X is enough: quick, and right for large n. The
        density has to fall to zero at the boundary, so that one on a box is refused.

    A density that was fitted to X itself fits X better than the truth would: the p-value of either is then too large,
    and a bad fit may pass. ``refit=True`` fits a copy to every sample that is drawn, as the density was fitted to X,
    which is right for large n. Or keep some rows out of the fit, and test on those.

    Parameters
    ----------
    density : SumOfSquaresDensity, OptimalDensity or callable
        A fitted density with ``log_gradient`` and ``sample``; or ∇ log p itself, a function of points (n, d) whose
        values have the same shape.
    X : array of shape (n, d)
        The sample.
    kernel : Kernel or sequence of them, optional
        Gaussian, or Matern of order 1.5 or 2.5. Left out, inverse multiquadrics of 1/4, 1/2, 1 and 2 times the median
        distance are put into one p-value.
    null : {"auto", "wild bootstrap", "parametric bootstrap"}, default="auto"
        See above. "auto" draws samples for up to 200 rows, on a box, with a sampler and for a refit, and signs
        otherwise.
    refit : bool, default=False
        Of the parametric bootstrap: fit the density again to every sample.
    sampler : callable, optional
        Of n and a generator: n draws from the density, where ``density`` is a function.
    n_resamples : int, default=999
        Samples or draws of signs.
    rng : int, Generator or None
        The source of chance.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    SteinTestResult

    Notes
    -----
    Cost: n² d operations for each kernel, and n² for each draw of signs; those of all for each sample drawn. Memory:
    linear in n. Lengths come from X for signs, and from a further sample of the density for samples, which keeps the
    p-value exact.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import stein_test
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> stein_test(lambda x: -x, X, rng=0).rejects()
    False
    >>> print(stein_test(lambda x: 0.5 - x, X, rng=0))
    The density does not fit the sample: the largest standardised KSD² = 9.61, as large in 1 of 1000 wild bootstrap samples (p = 0.001).
    """  # noqa: E501
    one_of("auto", "wild bootstrap", "parametric bootstrap")(null, "null")
    true_or_false(refit, "refit")
    count, generator = whole_number(n_resamples, "n_resamples", 1), as_generator(rng)
    points = np.asarray(as_points(to_numpy(X) if is_tensor(X) else X), np.float64)
    if points.shape[0] < 2:
        raise ValueError(f"X has {points.shape[0]} rows: a discrepancy between pairs of points needs two.")
    model = SteinModel(density, sampler)
    way = _chosen(model, null, refit, points)
    if way == "wild bootstrap":
        kernels = _kernels(kernel, points)
        statistics, found = _signed(kernels, points, model.scores(points), count, generator)
        if progress is not None:
            progress(1.0)
    else:
        kernels = _kernels(kernel, model.sample(points.shape[0], generator))
        samples = _samples(model, points.shape[0], count, generator, progress)
        statistics, found = _redrawn(kernels, model, points, refit, samples)
    together = ranked(statistics, np.array([sums.rounding for sums in found]))
    return SteinTestResult(
        statistic=together.observed,
        pvalue=together.pvalue,
        null_distribution=together.null,
        null=way,
        n_resamples=count,
        kernel=kernels[0] if len(kernels) == 1 else tuple(kernels),
        parts=kernel_parts(kernels, statistics, together),
        contributions=found[together.best].rows,
        refitted=refit,
    )


def _chosen(model: SteinModel, null: str, refit: bool, X: Array) -> str:
    """The way to the law of the statistic, if it is open."""
    if refit and not model.refits:
        raise ValueError("refit=True fits the density again: pass an estimator with fit, such as SumOfSquaresDensity.")
    if refit and null == "wild bootstrap":
        raise ValueError('refit=True needs samples of the density: take null="parametric bootstrap".')
    if null == "auto":
        exact = model.draws and (refit or model.box is not None or X.shape[0] <= _EXACT_UP_TO)
        null = "parametric bootstrap" if exact else "wild bootstrap"
    if null == "parametric bootstrap" and not model.draws:
        raise ValueError('null="parametric bootstrap" draws samples of the density: pass sampler=, or take signs.')
    if null == "wild bootstrap" and model.box is not None:
        raise ValueError(
            'A density on a box does not fall to zero at its sides, as null="wild bootstrap" needs it: take '
            'null="parametric bootstrap".'
        )
    return null


def _kernels(given: Any, X: Array) -> list[Any]:
    """The kernels given with their lengths fixed from some points, or the default ones."""
    if given is None:
        lengths = np.asarray(resolved_kernel(Gaussian("columns"), X).get_params()["sigma"])
        return [InverseMultiquadric(tuple((scale * lengths).tolist())) for scale in _SCALES]
    several = [given] if isinstance(given, Kernel | str) or not isinstance(given, Sequence) else list(given)
    if not several:
        raise ValueError("kernel is an empty list: name a kernel, or leave it out.")
    kernels = [resolved_kernel(checked_kernel(each), X) for each in several]
    for kernel in kernels:
        if radial(kernel, X.shape[1]) is None:
            raise ValueError(
                f"kernel={kernel!r} has no second derivatives that are known here: take Gaussian(), Matern(1.5) or "
                "Matern(2.5), or leave it out."
            )
    return kernels


def _radial(kernel: Any, n_features: int) -> Radial:
    if isinstance(kernel, InverseMultiquadric):
        return Radial(np.asarray(kernel.length_scale), inverse_multiquadric)
    found = radial(kernel, n_features)
    assert found is not None  # _kernels refused it
    return found


def _sums(kernels: Sequence[Any], X: Array, scores: Array, signs: Array) -> list[SteinSums]:
    return [stein_sums(SteinForm(_radial(kernel, X.shape[1]), X, scores), signs) for kernel in kernels]


def _signed(
    kernels: Sequence[Any], X: Array, scores: Array, count: int, rng: np.random.Generator
) -> tuple[Array, list[SteinSums]]:
    """The statistics of the data, then of random signs, the same for all kernels."""
    signs = rng.choice((-1.0, 1.0), size=(X.shape[0], 1 + count))
    signs[:, 0] = 1.0
    found = _sums(kernels, X, scores, signs)
    return np.stack([sums.forms for sums in found]), found


def _redrawn(
    kernels: Sequence[Any], model: SteinModel, X: Array, refit: bool, blocks: Iterator[Array]
) -> tuple[Array, list[SteinSums]]:
    """The statistics of the data, then of samples of the density, each with the density fitted to it if asked for."""
    ones = np.ones((X.shape[0], 1))
    found = _sums(kernels, X, model.scores(X), ones)

    def of_sample(sample: tuple[Array, Array]) -> list[float]:
        return [float(sums.forms[0]) for sums in _sums(kernels, *sample, ones)]

    columns = [[float(sums.forms[0]) for sums in found]]
    for block in blocks:  # of shape (samples, n, d)
        if refit:
            scores = np.stack([model.refitted(sample).scores(sample, "a sample of the density") for sample in block])
        else:
            scores = model.scores(block.reshape(-1, X.shape[1]), "a sample of the density").reshape(block.shape)
        columns += run_chunks(of_sample, list(zip(block, scores, strict=True)))
    return np.array(columns).T, found


def _samples(
    model: SteinModel, n: int, count: int, rng: np.random.Generator, progress: Callable[[float], None] | None
) -> Iterator[Array]:
    """Samples of the density, some at a time since a call costs more than a draw."""
    for part in row_chunks(count, rows_within(_ROWS_AT_ONCE, n)):
        size = part.stop - part.start
        yield model.sample(size * n, rng).reshape(size, n, -1)
        if progress is not None:
            progress(part.stop / count)
