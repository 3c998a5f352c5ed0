"""The statistics of a two-sample test on a compressed sample, and on relabellings of it.

Both ways end in the matrix of the bins of :mod:`mercer.dependence.bins`, in which every relabelling costs nothing:

- *landmarks*: M = P Pᵀ with the sums P of the features of each bin (:mod:`mercer.dependence.landmark_features`).
  The landmarks are a function of the pooled sample in which no row tells where it came from, so the level is exact,
  and the kernel that is tested with is the completion of the given one from its landmarks.
- *thinning*: each bin is thinned to a coreset of its own (:mod:`mercer.dependence.thinning`), and M are the means of
  the kernel between the coresets. What is done to a bin depends on its rows alone, so the level is exact again.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from mercer.backends.arrays import Array, as_double, is_source, like, namespace, taken, to_numpy
from mercer.backends.chunks import panel_rows, row_chunks, source_rows
from mercer.backends.rounding import UNIT, EntryError, gamma
from mercer.backends.threads import run_chunks_of
from mercer.dependence.bins import Bins, cut, discrepancies, size_of_bins
from mercer.dependence.landmark_features import LandmarkFeatures, is_chooser, landmark_features
from mercer.dependence.mmd_statistics import Statistics
from mercer.dependence.pooled_sample import PooledSample
from mercer.dependence.relabelling import Drawing
from mercer.dependence.thinning import planned, thinned
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.checks import as_generator

BINS = 128  # of the smaller sample, by landmarks: more make no difference to the power
_LEAST_ROWS = 4
_CHUNK = 2048  # rows whose kernel values with the landmarks a thread makes at a time, at most


class BinMatrix(NamedTuple):
    """M, and a bound of the rounding of M_ab over the masses of a and b."""

    values: Array
    rounding: float


def compressed_statistics(sample: PooledSample, compress: Any, drawing: Drawing, *, unbiased: bool) -> Statistics:
    """MMD² on a compressed sample and on its relabellings, under each kernel of the sample.

    Parameters
    ----------
    sample : PooledSample
        Both samples.
    compress : "landmarks", int, estimator or "thinning"
        See :func:`mercer.mmd_test`.
    drawing : Drawing
        How many relabellings. Rows are put into bins at random; with ``scheme="blocks"`` bins are consecutive rows.
    unbiased : bool
        Whether pairs inside a bin are left out.

    Notes
    -----
    Cost, for N rows, r landmarks and S bins: N r kernel evaluations, and B S² flops for all relabellings; memory a few
    megabytes beside the points. By thinning to c points a bin, about 2 N c evaluations to thin and (S c)²/2 to compare.
    """
    _check(sample, compress, drawing)
    rng = as_generator(drawing.rng)
    chance = rng if drawing.scheme == "rows" else None
    if isinstance(compress, str) and compress == "thinning":
        plan = planned(sample.n, sample.m)
        bins = cut((sample.n, sample.m), plan.size, chance, rest=False)
        coresets = thinned(sample.kernels, sample.points, bins, plan, rng)
        masses, matrices = np.ones(bins.starts.size), (_of_coresets(k, sample.points, coresets) for k in sample.kernels)
    else:
        size = drawing.block_length or size_of_bins((sample.n, sample.m), BINS)
        bins = cut((sample.n, sample.m), size, chance)
        masses = bins.sums(sample.weights)
        features = (landmark_features(kernel, sample.points, compress, rng) for kernel in sample.kernels)
        matrices = (feature_matrix(each, sample.points, sample.weights, bins) for each in features)
    labels = bins.labels(drawing._replace(rng=rng, scheme="rows", block_length=None))
    rows, roundings = [], []
    for matrix in matrices:
        rows.append(discrepancies(matrix.values, masses, labels, unbiased=unbiased))
        roundings.append(8 * matrix.rounding)
    return Statistics(np.stack(rows), np.array(roundings))


def _check(sample: PooledSample, compress: Any, drawing: Drawing) -> None:
    number = isinstance(compress, Integral) and not isinstance(compress, bool)
    named = isinstance(compress, str) and compress in ("landmarks", "thinning")
    if not (number or named or is_chooser(compress)):
        raise ValueError(
            f'compress={compress!r} must be "landmarks", a number of landmarks, an estimator that chooses them, such '
            'as Landmarks(200), or "thinning".'
        )
    thinning = isinstance(compress, str) and compress == "thinning"
    if thinning and (sample.weights != sample.weights[0]).any():
        raise ValueError('compress="thinning" takes no weights: use compress="landmarks", or leave them out.')
    if drawing.scheme == "shifts" or (thinning and drawing.scheme != "rows"):
        raise ValueError(f"scheme={drawing.scheme!r} does not go with compress={compress!r}: leave one of them out.")
    if isinstance(sample.kernels[0], Precomputed):
        raise ValueError("compress makes fewer kernel values, and Precomputed() has them all: leave it out.")
    if min(sample.n, sample.m) < _LEAST_ROWS:
        raise ValueError(f"compress needs {_LEAST_ROWS} rows in each sample: leave it out.")


def feature_matrix(features: LandmarkFeatures, points: Any, weights: Array, bins: Bins) -> BinMatrix:
    """P Pᵀ: kernel values with the landmarks, summed over each bin, then made features."""
    if is_source(points):
        return _feature_matrix_by_blocks(features, points, weights, bins)
    matrix = features.kernel.matrix(points, features.components)
    rows = min(_CHUNK, panel_rows(matrix.shape[1]))

    def partial(part: slice) -> tuple[int, Array]:
        which = bins.rows[part]
        own, block = weights[which], to_numpy(as_double(matrix.block(like(which, points), slice(None))))
        first = int(np.searchsorted(bins.starts, part.start, side="right")) - 1
        inside = bins.starts[(bins.starts > part.start) & (bins.starts < part.stop)] - part.start
        ends = zip([0, *inside], [*inside, which.size], strict=True)
        return first, np.stack([own[lo:hi] @ block[lo:hi] for lo, hi in ends])

    sums = np.zeros((bins.starts.size, matrix.shape[1]))
    chunks = row_chunks(bins.rows.size, rows)
    for first, values in run_chunks_of(points, partial, chunks):
        sums[first : first + values.shape[0]] += values
    error = features.kernel.matrix(points[:1], features.components).entry_error
    return _of_sums(features, sums, _largest_diagonal(features.kernel, points), error, rows + len(chunks))


def _feature_matrix_by_blocks(features: LandmarkFeatures, rows: Any, weights: Array, bins: Bins) -> BinMatrix:
    """The same of rows that come a block at a time: every row adds its kernel values to those of its bin."""
    kernel, count = features.kernel, bins.starts.size
    lengths = np.diff(np.append(bins.starts, bins.rows.size))
    place = np.empty(rows.shape[0], np.int32)
    place[bins.rows] = np.repeat(np.arange(count), lengths)
    sums, scale, error, passes = np.zeros((count, int(features.components.shape[0]))), 0.0, EntryError(0.0), 0
    for where, block in rows.blocks(source_rows(4 * (rows.shape[1] + sums.shape[1]))):
        matrix = kernel.matrix(block, features.components)
        into = csr_array((weights[where], (place[where], np.arange(block.shape[0]))), shape=(count, block.shape[0]))
        sums += into @ as_double(matrix.block(slice(None), slice(None)))
        error = error.worse(matrix.entry_error)
        scale, passes = max(scale, _largest_diagonal(kernel, block)), passes + 1
    return _of_sums(features, sums, scale, error, int(lengths.max()) + passes)


def _of_sums(features: LandmarkFeatures, sums: Array, scale: float, error: EntryError, depth: int) -> BinMatrix:
    """P Pᵀ of the kernel values summed over bins, and its rounding."""
    P, depth = sums @ to_numpy(features.whiten), depth + int(sums.shape[1]) + 2
    value = (error.relative + error.scaled + gamma(depth, UNIT)) * scale + error.absolute
    return BinMatrix(P @ P.T, 2 * features.amplification * value * np.sqrt(scale) + gamma(depth, UNIT) * scale)


def _of_coresets(kernel: Kernel, points: Any, coresets: Array) -> BinMatrix:
    """The mean of the kernel between the coresets of every two bins: each pair of points once."""
    count, size = coresets.shape
    chosen = taken(points, like(coresets.reshape(-1), points))
    matrix = kernel.matrix(chosen)
    out = np.zeros((count, count))

    def fill(bin_: int) -> None:
        block = matrix.block(slice(bin_ * size, (bin_ + 1) * size), slice(bin_ * size, None))
        columns = to_numpy(as_double(namespace(block).sum(as_double(block), axis=0)))
        out[bin_, bin_:] = columns.reshape(-1, size).sum(axis=1) / size**2

    run_chunks_of(points, fill, range(count))
    error, scale = matrix.entry_error, _largest_diagonal(kernel, chosen)
    value = (error.relative + error.scaled + gamma(2 * size + count, UNIT)) * scale + error.absolute
    return BinMatrix(np.triu(out) + np.triu(out, 1).T, value)


def _largest_diagonal(kernel: Kernel, points: Any) -> float:
    return float(abs(as_double(kernel.matrix(points).diagonal())).max())
