"""Null distributions by a formula, for statistics tr(K̃L̃): MMD² and HSIC without resamples.

K̃ and L̃ are centred Gram matrices of the same N rows, L̃ = vvᵀ for two samples, v being their contrast. Two formulas:

``"gamma"``
    The gamma law with the mean and the variance that tr(K̃L̃) has over all N! reorderings of the rows of L. Both are
    known exactly (Kazi-Aoual et al. 1995), so that no sizes need be equal and nothing is estimated, unlike the moments
    of Gretton et al. (2008, 2009), which they agree with as N grows.
``"spectral"``
    Σ λᵢ (zᵢ² - 1) with independent standard normal zᵢ, the law that the statistic less its mean tends to, λ from the
    eigenvalues of the centred matrices (Gretton et al. 2009). Its draws are scaled to the mean and the variance above:
    the eigenvalues of few rows spread more than those that they estimate, in many dimensions so much that without the
    scale the test would never reject.

Neither is exact: the law is that of long samples. The user guide shows the calibration of both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

from mercer.backends.arrays import Array, as_double, namespace, to_numpy
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.backends.matrix import KernelMatrix
from mercer.backends.threads import run_chunks_of, single_threaded_blas
from mercer.linalg import rp_cholesky
from mercer.operators import CenteredOperator, GramOperator

_TILE = 1024
_DENSE = 1000  # rows up to which all eigenvalues are found
_RANK = 400  # of the factor that stands for larger matrices
_LEFT = 1e-4  # of the trace, that a smaller factor may leave out


class Traces(NamedTuple):
    """Of a symmetric centred matrix A of N rows: tr A, tr A² and Σ Aᵢᵢ², those of A over a power of two, the unit."""

    trace: float
    squares: float
    diagonal_squares: float
    unit: float = 1.0


def centred_traces(matrix: KernelMatrix) -> Traces:
    """The sums of HKH that its moments need, in one pass over the tiles of the upper half of K: linear memory.

    Their unit is near the largest k(x, x): squares are numbers wherever the values themselves are.
    """
    N, diagonal = matrix.shape[0], to_numpy(as_double(matrix.diagonal()))
    unit = math.ldexp(1.0, math.frexp(float(np.abs(diagonal).max()) or 1.0)[1] - 1)
    diagonal = diagonal / unit
    chunks = row_chunks(N, _TILE)

    def of_row(k: int) -> float:
        total = 0.0
        for right in chunks[k:]:
            tile = as_double(matrix.block(chunks[k], right)) / unit
            total += (1.0 if right is chunks[k] else 2.0) * float((tile * tile).sum())
        return total

    squares = sum(run_chunks_of(matrix.diagonal(), of_row, range(len(chunks))))
    rows = to_numpy(as_double(matrix.row_sums())) / unit
    whole = float(rows.sum())
    own = diagonal - 2 * rows / N + whole / N**2
    centred = squares - 2 / N * float(rows @ rows) + (whole / N) ** 2
    return Traces(float(own.sum()), max(centred, 0.0), float(own @ own), unit)


def contrast_traces(n: int, m: int) -> Traces:
    """Of vvᵀ, v having n entries 1/n and m entries -1/m."""
    square = 1 / n + 1 / m
    return Traces(square, square**2, 1 / n**3 + 1 / m**3)


def permutation_moments(first: Traces, second: Traces, n: int) -> tuple[float, float]:
    """The mean and the variance of Σᵢⱼ Aᵢⱼ B_{π(i)π(j)} over all reorderings π of n ≥ 4 rows, A and B centred.

    They are those of A and B over their units.
    """
    (t, t2, s2, _), (u, u2, r2, _) = first, second
    mean = t * u / (n - 1)
    spread = 2 * ((n - 1) * t2 - t**2) * ((n - 1) * u2 - u**2) / ((n - 1) ** 2 * (n + 1) * (n - 2))
    tops = (n * (n + 1) * s2 - (n - 1) * (t**2 + 2 * t2)) * (n * (n + 1) * r2 - (n - 1) * (u**2 + 2 * u2))
    return mean, spread + tops / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))


def gamma_pvalue(statistic: float, mean: float, variance: float) -> float:
    """The probability that a gamma variable of this mean and variance is at least as large; never quite zero."""
    if mean <= 0 or variance <= 0:
        return 1.0
    probability = float(gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))
    return max(probability, float(np.finfo(np.float64).tiny))


def centred_eigenvalues(gram: GramOperator, rng: np.random.Generator) -> Array:
    """The positive eigenvalues of HKH: all for up to 1 000 rows, beyond those of a factor of rank at most 400."""
    if gram.shape[0] <= _DENSE:
        with single_threaded_blas():
            values = np.linalg.eigvalsh(to_numpy(as_double(CenteredOperator(gram).to_dense())))
    else:
        factor = as_double(rp_cholesky(gram, _RANK, rng, tolerance=_LEFT).factor)
        factor = to_numpy(factor - namespace(factor).mean(factor, axis=0))
        values = np.linalg.eigvalsh(factor.T @ factor)
    return values[values > 0][::-1]


def spectral_draws(eigenvalues: Array, mean: float, variance: float, count: int, rng: np.random.Generator) -> Array:
    """Draws of Σ λᵢ zᵢ², some at a time, brought to this mean and variance."""
    size = float(np.sqrt(2 * (eigenvalues @ eigenvalues)))
    if size == 0:
        return np.full(count, mean)
    parts = row_chunks(count, panel_rows(eigenvalues.shape[0]))
    draws = [(rng.standard_normal((p.stop - p.start, eigenvalues.shape[0])) ** 2 - 1) @ eigenvalues for p in parts]
    return mean + np.sqrt(max(variance, 0.0)) / size * np.concatenate(draws)
