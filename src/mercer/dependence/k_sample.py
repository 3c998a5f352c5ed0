"""Do several samples come from one law? The kernel test of k samples, and which of them differ.

The statistic is the mean of MMD² over pairs of rows of different samples,

    Σ_{g<h} (n_g n_h/N²) MMD²(g, h) = Σ_g (n_g/N) ‖m_g - m‖²   but for the bias,

the spread of the samples' mean embeddings m_g about that of all rows, m; of two samples it is MMD² times n m/N². With
K₀, the kernel matrix without its diagonal, and z_g, the indicator of sample g, it needs the forms z_gᵀK₀z_g alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy
from mercer.backends.chunks import row_chunks
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import UNIT, gamma
from mercer.backends.threads import watch
from mercer.dependence.aggregation import kernel_parts, ranked
from mercer.dependence.bins import Bins, cut, size_of_bins
from mercer.dependence.compressed_mmd import BINS, feature_matrix
from mercer.dependence.kernel_collection import default_kernels
from mercer.dependence.landmark_features import landmark_features
from mercer.dependence.mmd import ALIKE
from mercer.dependence.mmd_statistics import Statistics, quadratic_forms
from mercer.dependence.mmd_test import mmd_test
from mercer.dependence.pooled_sample import listed_kernels
from mercer.dependence.relabelling import Drawing
from mercer.dependence.result import KernelTestResult
from mercer.dependence.vectors import as_table
from mercer.journal import resumable
from mercer.kernels import Kernel
from mercer.kernels.checks import as_generator
from mercer.kernels.tables import Table, is_frame
from mercer.operators.signed_measure import overflowing
from mercer.validation import is_precomputed, resolved_kernel, warn_if_not, weighted_sample, whole_number

_LEAST_ROWS = 2
_LABEL_ROWS = 4096  # rows whose labels are made into indicators at a time


@dataclass(frozen=True)
class SamplePair:
    """Two of the samples compared.

    Attributes
    ----------
    first, second : int
        Which samples, counted from 0.
    statistic, pvalue : float
        Of :func:`mercer.mmd_test` on the two.
    corrected : float
        The p-value by Holm's rule: the chance that *any* pair of equal samples has one of at most α is at most α.
    """

    first: int
    second: int
    statistic: float
    pvalue: float
    corrected: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class KSampleTestResult(KernelTestResult):
    """The outcome of :func:`mercer.k_sample_test`.

    Attributes
    ----------
    statistic, pvalue, null_distribution, null, n_resamples, kernel, parts
        As :class:`mercer.dependence.KernelTestResult` says.
    sizes : tuple of int
        Rows of the samples.
    pairs : tuple of SamplePair
        Every two samples compared; empty where that was not asked for.
    """

    sizes: tuple[int, ...]
    pairs: tuple[SamplePair, ...]

    def differing(self, level: float = 0.05) -> list[tuple[int, int]]:
        """The pairs of samples that differ, with no false one among them but with probability ``level``."""
        return [(pair.first, pair.second) for pair in self.pairs if pair.corrected <= level]

    def _found(self) -> str:
        which = ", ".join(f"{i} and {j}" for i, j in self.differing())
        return f"The {len(self.sizes)} samples are not all alike" + (f" (samples {which} differ)" if which else "")

    def _not_found(self) -> str:
        return f"No sign that the {len(self.sizes)} samples differ"

    def _statistic_name(self) -> str:
        return f"the largest of {len(self.parts)} standardised spreads" if self.parts else "their spread"


@resumable
def k_sample_test(
    *samples: Any,
    kernel: Any = None,
    n_resamples: int = 999,
    pairwise: bool = True,
    compress: Any = None,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> KSampleTestResult:
    """Test whether several samples come from one law, and which of them differ.

    The p-value counts relabellings of the pooled rows whose spread of mean embeddings is as large, and is exact for
    independent rows, whatever their law. Then every two samples are compared by :func:`mercer.mmd_test`, relabelling
    those two alone, and their p-values are corrected by Holm's rule.

    Parameters
    ----------
    *samples : arrays of shape (n_g, d), vectors of numbers or texts, or data frames with the same columns
        Two samples or more, of two rows or more each.
    kernel : Kernel, list of Kernel or None
        As in :func:`mercer.mmd_test`: None takes a collection, and there is one p-value over all of them. What depends
        on the data is fixed from all samples together, and for two of them from those two.
    n_resamples : int, default=999
        Relabellings.
    pairwise : bool, default=True
        Whether to compare every two samples as well.
    compress : "landmarks", int or estimator, optional
        For large samples, as in :func:`mercer.mmd_test`.
    rng : int, Generator or None
        The source of chance.
    progress : callable, optional
        Called with the fraction done of the comparison of all samples, from any thread.

    Returns
    -------
    KSampleTestResult
        With ``statistic``, ``pvalue`` and ``pairs``; ``str`` says it in a sentence.

    Notes
    -----
    Cost, for N rows in k samples: N²/2 kernel evaluations and N² k (1 + n_resamples) flops a kernel; of the pairs k - 1
    times a k-th of that at most. Memory: a byte for each row and resample, never N × N. Compressed, N r evaluations for
    r landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import k_sample_test
    >>> rng = np.random.default_rng(0)
    >>> A, B, C = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)), rng.normal(size=(35, 2)) + 1.0
    >>> result = k_sample_test(A, B, C, n_resamples=199, rng=0)
    >>> result.pvalue, result.differing()
    (0.005, [(0, 2), (1, 2)])
    """
    drawing = Drawing(whole_number(n_resamples, "n_resamples", 1), as_generator(rng), "rows", None)
    pool = _pooled(samples, kernel, drawing.rng)
    with nullcontext() if progress is None else watch(progress), np.errstate(over="ignore", invalid="ignore"):
        statistics = _of_rows(pool, drawing) if compress is None else _compressed(pool, compress, drawing)
    finite = np.isfinite(statistics.values).all(axis=1)
    if not finite.all():
        raise ValueError(overflowing(pool.kernels[int(np.argmin(finite))]))
    pairs = _compared(samples, kernel, compress, drawing) if pairwise else ()
    return _result(pool, statistics, pairs)


class _Pool(NamedTuple):
    """All samples, one after the other, and the kernels that compare them with their handicaps."""

    kernels: tuple[Kernel, ...]
    handicaps: Array
    points: Any
    sizes: tuple[int, ...]

    @property
    def several(self) -> bool:
        """Whether the test is over several kernels."""
        return len(self.kernels) > 1


def _pooled(samples: Sequence[Any], kernel: Any, rng: np.random.Generator) -> _Pool:
    if len(samples) < 2:
        raise ValueError(f"{len(samples)} sample is given: write k_sample_test(A, B, C), with two samples or more.")
    if is_precomputed(kernel):
        raise ValueError("A test of several samples evaluates the kernel: pass points, not Precomputed().")
    samples = [as_table(sample) for sample in samples]
    table = Table.of(*samples) if is_frame(samples[0]) else None
    given = None if kernel is None else listed_kernels(kernel, table)
    arrays = [table.coded(sample) if table is not None else sample for sample in samples]
    points = [weighted_sample(each, None, f"sample {g}", "weights")[0] for g, each in enumerate(arrays)]
    for g, each in enumerate(points):
        if each.shape[1] != points[0].shape[1]:
            raise ValueError(
                f"Sample {g} has {each.shape[1]} features and sample 0 has {points[0].shape[1]}: they must agree."
            )
        if each.shape[0] < _LEAST_ROWS:
            raise ValueError(f"Sample {g} has one row: a sample needs two or more.")
    pooled = namespace(points[0]).concat([like(each, points[0]) for each in points])
    shuffled = pooled[like(rng.permutation(int(pooled.shape[0])), pooled)]  # nothing tells which row came from where
    if given is None:
        kernels, handicaps = default_kernels(shuffled, None, table)
    else:
        kernels, handicaps = [resolved_kernel(each, shuffled) for each in given], np.zeros(len(given))
    if len(kernels) == 1:
        warn_if_not("characteristic", kernels[0], ALIKE)
    return _Pool(tuple(kernels), handicaps, pooled, tuple(int(each.shape[0]) for each in points))


def _of_rows(pool: _Pool, drawing: Drawing) -> Statistics:
    """The statistic of the rows themselves, from quadratic forms over the tiles of the kernel matrices."""
    N, k = sum(pool.sizes), len(pool.sizes)
    bins = Bins(np.arange(N), np.arange(N), np.repeat(np.arange(k, dtype=np.int8), pool.sizes), np.ones(N, bool))
    labels = bins.group_labels(drawing)
    double = namespace(pool.points).float64
    matrices = [kernel.matrix(pool.points, dtype=double) for kernel in pool.kernels]

    def block(rows: slice) -> Array:
        return (labels[:, None, rows] == np.arange(k)[:, None]).reshape(-1, rows.stop - rows.start).astype(np.float64)

    forms = quadratic_forms(matrices, block, k * labels.shape[0]).reshape(len(matrices), -1, k)
    values, roundings = [], []
    for matrix, form in zip(matrices, forms, strict=True):
        diagonal = to_numpy(as_double(matrix.diagonal()))
        own = np.zeros_like(form)
        for rows in row_chunks(N, _LABEL_ROWS):
            own += (block(rows) @ diagonal[rows]).reshape(-1, k)
        off = float(to_numpy(as_double(matrix.row_sums())).sum() - diagonal.sum())
        masses = np.broadcast_to(np.array(pool.sizes, dtype=np.float64), form.shape)
        values.append(_spread(form - own, masses, masses, off))
        roundings.append(_rounding(matrix, N))
    return Statistics(np.stack(values), np.array(roundings))


def _compressed(pool: _Pool, compress: Any, drawing: Drawing) -> Statistics:
    """The same from the matrix of bins, pairs inside a bin left out."""
    if isinstance(compress, str) and compress != "landmarks":
        raise ValueError(f'compress={compress!r} must be "landmarks", their number, or an estimator that chooses them.')
    rng = as_generator(drawing.rng)
    bins = cut(pool.sizes, size_of_bins(pool.sizes, BINS), rng)
    masses, labels = bins.sums(np.ones(sum(pool.sizes))), bins.group_labels(drawing)
    values, roundings = [], []
    for kernel in pool.kernels:
        features = landmark_features(kernel, pool.points, compress, rng)
        matrix = feature_matrix(features, pool.points, np.ones(sum(pool.sizes)), bins)
        off = matrix.values - np.diag(np.diagonal(matrix.values))
        groups = [(labels == g).astype(np.float64) for g in range(len(pool.sizes))]
        forms = np.stack([np.einsum("bs,bs->b", z @ off, z) for z in groups], axis=1)
        mass, square = (np.stack([z @ each for z in groups], axis=1) for each in (masses, masses**2))
        values.append(_spread(forms, mass, square, float(off.sum())))
        roundings.append(8 * matrix.rounding)
    return Statistics(np.stack(values), np.array(roundings))


def _spread(forms: Array, masses: Array, squares: Array, off: float) -> Array:
    """Σ_{g<h} (n_g n_h/N²) MMD²(g, h) for each labelling, without bias.

    Parameters
    ----------
    forms, masses, squares : arrays of shape (1 + B, k)
        z_gᵀK₀z_g, the mass of each sample, and the sum of the squares of what it consists of.
    off : float
        1ᵀK₀1.
    """
    total = masses.sum(axis=1)
    within = forms / (masses**2 - squares)
    spread = (masses * (total[:, None] - masses) * within).sum(axis=1) - (off - forms.sum(axis=1))
    return np.asarray(spread / total**2)


def _rounding(matrix: KernelMatrix, N: int) -> float:
    """How far equal statistics may lie apart: sums of N² entries at most, each with its own error, over N²."""
    error, scale = matrix.entry_error, float(abs(to_numpy(as_double(matrix.diagonal()))).max())
    return 8 * ((error.relative + error.scaled + gamma(2 * N + 32, UNIT)) * scale + error.absolute)


def _compared(samples: Sequence[Any], kernel: Any, compress: Any, drawing: Drawing) -> tuple[SamplePair, ...]:
    """Every two samples by a test of their own."""
    found = [
        (i, j, mmd_test(one, other, kernel, n_resamples=drawing.n_resamples, compress=compress, rng=drawing.rng))
        for (i, one), (j, other) in combinations(enumerate(samples), 2)
    ]
    corrected = _holm([result.pvalue for _, _, result in found])
    return tuple(
        SamplePair(i, j, result.statistic, result.pvalue, each)
        for (i, j, result), each in zip(found, corrected, strict=True)
    )


def _holm(pvalues: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the smallest p-value times their number, the next times one less, never falling."""
    order, count = np.argsort(pvalues, kind="stable"), len(pvalues)
    stepped = np.maximum.accumulate(np.minimum(1.0, np.asarray(pvalues)[order] * (count - np.arange(count))))
    out = np.empty(count)
    out[order] = stepped
    return [float(each) for each in out]


def _result(pool: _Pool, statistics: Statistics, pairs: tuple[SamplePair, ...]) -> KSampleTestResult:
    found = ranked(*statistics, pool.handicaps)
    kernel = pool.kernels if pool.several else pool.kernels[0]
    return KSampleTestResult(
        statistic=found.observed,
        pvalue=found.pvalue,
        null_distribution=found.null,
        null="permutation",
        n_resamples=found.null.size,
        kernel=kernel,
        parts=kernel_parts(pool.kernels, statistics.values, found),
        sizes=pool.sizes,
        pairs=pairs,
    )
