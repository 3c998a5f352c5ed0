"""The linear-time MMD² of two samples under all relabellings (Zaremba et al. 2013).

Both samples are cut into groups of some rows; the statistic is the mean of the unbiased MMD² of the groups, as in
:func:`mercer.mmd` with ``estimator="linear"``. Labels are exchanged inside groups alone: the kernel between two groups
is never needed, and such relabellings are a group of permutations, so that the p-value is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy
from mercer.backends.chunks import row_chunks
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import UNIT, gamma
from mercer.backends.threads import run_chunks_of
from mercer.dependence.mmd_statistics import Statistics
from mercer.dependence.relabelling import Relabellings


def group_sizes(n: int, m: int) -> tuple[int, int, int]:
    """How many groups there are, and how many rows of each sample one has; rows beyond are not used."""
    least = min(n, m)
    count = least // max(2, int(np.sqrt(least)))
    if count < 2:
        raise ValueError(
            f"Samples of {n} and {m} rows make {count} group of rows, and the linear estimator needs two of at least "
            'two rows of each sample: use estimator="unbiased".'
        )
    return count, n // count, m // count


def group_order(n: int, m: int) -> Array:
    """The rows of the pooled sample group by group, those of X first in each."""
    count, of_X, of_Y = group_sizes(n, m)
    first, second = np.arange(count * of_X).reshape(count, of_X), n + np.arange(count * of_Y).reshape(count, of_Y)
    return np.concatenate([first, second], axis=1).ravel()


def blockwise_statistics(matrices: Sequence[KernelMatrix], labels: Relabellings, n: int, m: int) -> Statistics:
    """The mean over groups of n rows of X and m of Y of the unbiased MMD², under every labelling: (K, 1 + B) values.

    Time and memory are linear in the rows: each group costs (n + m)² kernel evaluations, and (1 + B) times as many
    multiplications.
    """
    chunks = row_chunks(labels.n_rows, n + m)
    scale = np.array([1 / (n * (n - 1)) + 1 / (m * (m - 1)) + 2 / (n * m), -2 / (m * (m - 1)) - 2 / (n * m)])

    def of_group(rows: slice) -> tuple[Array, Array]:
        own = [as_double(matrix.block(rows, rows)) for matrix in matrices]
        chosen = like(labels.block(rows).astype(np.float64), own[0])
        parts = [_of_group(gram, chosen, scale, m) for gram in own]
        return np.stack([values for values, _ in parts]), np.array([size for _, size in parts])

    values, sizes = np.zeros((len(matrices), labels.count)), np.zeros(len(matrices))
    for one, size in run_chunks_of(matrices[0].diagonal(), of_group, chunks):
        values += one / len(chunks)
        sizes += size / len(chunks)
    roundings = [_rounding(matrix, size, n + m, len(chunks)) for matrix, size in zip(matrices, sizes, strict=True)]
    return Statistics(values, np.array(roundings) * max(abs(scale)) * (n + m) ** 2)


def _of_group(gram: Array, chosen: Array, scale: Array, m: int) -> tuple[Array, float]:
    """The statistics of a group, and the mean size of its entries."""
    xp = namespace(gram)
    own = xp.arange(gram.shape[0], device=gram.device)
    gram[own, own] = 0.0
    sums = xp.sum(gram, axis=0)
    inside = xp.einsum("ci,ci->c", chosen @ gram, chosen)
    values = scale[0] * inside + scale[1] * (chosen @ sums) + float(sums.sum()) / (m * (m - 1))
    return to_numpy(values), float(abs(gram).mean())


def _rounding(matrix: KernelMatrix, size: float, rows: int, groups: int) -> float:
    """Between two statistics that are equal in exact arithmetic, for coefficients of size one over rows²."""
    error, largest = matrix.entry_error, float(abs(to_numpy(matrix.diagonal())).max())
    return 8 * ((error.relative + gamma(2 * rows + groups + 32, UNIT)) * size + error.scaled * largest + error.absolute)
