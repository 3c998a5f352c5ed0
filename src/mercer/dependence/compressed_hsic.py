"""The statistics of a test of independence from features of landmarks, in time linear in the rows.

With centred features Φ of X and Ψ of Y, HSIC is ‖ΦᵀΨ‖² but for its scale (RKHS (117)), and a reordering of Y changes
ΦᵀΨ alone. Rows are put in a random order and cut into S bins of b rows; Y then moves on by whole bins in a circle.
These shifts are a subgroup of all reorderings, so that a p-value over them is exact, and their matrices Σₐ Φₐᵀ Ψₐ₊ₛ are
a circular correlation over bins: transforms along the bins, a product of matrices for each frequency, and transforms
back give all S of them for the price of a few. Rows beyond the bins keep their partners.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from mercer.backends.arrays import Array, like, to_numpy
from mercer.backends.chunks import panel_bytes, panel_rows, row_chunks
from mercer.backends.rounding import UNIT, gamma
from mercer.backends.threads import run_chunks
from mercer.dependence.hsic_nulls import Resampling, Statistics
from mercer.dependence.landmark_features import LandmarkFeatures, is_chooser, landmark_features
from mercer.dependence.variables import Variable
from mercer.kernels import Kernel

_LEAST_ROWS = 4  # with fewer, all shifts but the first are alike
_LANDMARKS = 64  # where no number is given
_TRANSFORM = 10  # roundings of a term for each of the log₂ S steps of a transform, with room to spare
_PANEL_BYTES = 2**26  # of features and their transforms at a time
_PRODUCT_BYTES, _PRODUCT_SHARE = 2**28, 1 / 4  # of products at all frequencies
_FREQUENCIES = 16  # of which products are made in one call


class _Side(NamedTuple):
    """One variable: a kernel's features at every row, and the mean of them."""

    features: LandmarkFeatures
    points: Any
    mean: Array
    largest: float

    def at(self, rows: Array) -> Array:
        """The centred features of some rows."""
        return to_numpy(self.features.transform(self.points[like(rows, self.points)])) - self.mean

    @property
    def error(self) -> float:
        """How far a feature vector may be off, over the largest length of one."""
        entries = self.features.kernel.matrix(self.points[:1], self.features.components).entry_error
        value = entries.relative + entries.scaled + gamma(2 * self.features.rank + 2, UNIT)
        return self.features.amplification * (value * self.largest + entries.absolute) / np.sqrt(self.largest)


def compressed_reorderings(x: Variable, y: Variable, compress: Any, resampling: Resampling) -> Statistics:
    """‖ΦᵀΨ‖² of the data and of reorderings of Y, for every kernel of X with every one of Y.

    Parameters
    ----------
    x, y : Variable
        The two variables, n rows each.
    compress : "landmarks", int or estimator
        How features are made, see :func:`mercer.hsic_test`.
    resampling : Resampling
        How many reorderings; there are n - 1 at most.

    Notes
    -----
    Cost, for p and q kernels with r features each: (p + q) n r kernel evaluations and about 4 p q n r² flops; memory:
    8 p q r² bytes for each of more than B bins, up to some hundred megabytes, beyond which the kernels of X take turns
    and those of Y are evaluated again.
    """
    _check(x, y, compress, resampling)
    rng, n = resampling.rng, x.size
    bins = n // max(1, n // (resampling.count + 1))
    order = rng.permutation(n)
    of_x, of_y = ([_side(each, kernel, compress, rng) for kernel in each.kernels] for each in (x, y))
    groups = _groups(of_x, sum(each.features.rank for each in of_y), bins)
    values = np.concatenate([_all_shifts(group, of_y, order, bins) for group in groups])
    chosen = np.concatenate([[0], 1 + np.sort(rng.permutation(bins - 1)[: resampling.count])])
    roundings = [_rounding(one, other, n, bins) for one in of_x for other in of_y]
    return Statistics(values[:, chosen], np.array(roundings))


def _check(x: Variable, y: Variable, compress: Any, resampling: Resampling) -> None:
    if isinstance(compress, bool) or not (
        (isinstance(compress, str) and compress == "landmarks") or isinstance(compress, int) or is_chooser(compress)
    ):
        raise ValueError(
            f'compress={compress!r} must be "landmarks", a number of landmarks, or an estimator that chooses them, '
            "such as Landmarks(100)."
        )
    if x.size < _LEAST_ROWS:
        raise ValueError(f"compress needs {_LEAST_ROWS} rows, not {x.size}: leave it out.")
    if resampling.scheme != "rows":
        raise ValueError(f"scheme={resampling.scheme!r} does not go with compress: leave one of them out.")
    if x.is_precomputed or y.is_precomputed:
        raise ValueError("compress makes fewer kernel values, and Precomputed() has them all: leave it out.")


def _side(variable: Variable, kernel: Kernel, compress: Any, rng: np.random.Generator) -> _Side:
    """Features made from rows of one variable, whose partners are not looked at, and their mean."""
    count = _LANDMARKS if isinstance(compress, str) else compress
    features, points = landmark_features(kernel, variable.points, count, rng), variable.points
    parts = row_chunks(variable.size, panel_rows(features.rank, most=_PANEL_BYTES))
    mean = np.sum([to_numpy(features.transform(points[rows])).sum(axis=0) for rows in parts], axis=0) / variable.size
    return _Side(features, points, mean, float(abs(to_numpy(kernel.matrix(points).diagonal())).max()))


def _groups(sides: Sequence[_Side], width: int, bins: int) -> list[list[_Side]]:
    """Kernels of X whose products with all of Y are in memory at a time: as many as fit, and one at least."""
    groups: list[list[_Side]] = []
    most = panel_bytes(_PRODUCT_BYTES, _PRODUCT_SHARE) // (16 * (bins // 2 + 1) * width)
    for side in sides:
        if groups and sum(each.features.rank for each in groups[-1]) + side.features.rank <= most:
            groups[-1].append(side)
        else:
            groups.append([side])
    return groups


def _all_shifts(ones: Sequence[_Side], others: Sequence[_Side], order: Array, bins: int) -> Array:
    """‖ΦᵀΨ‖² of some kernels of X with every one of Y, for all shifts by whole bins: an array of shape (p q, S)."""
    size = order.size // bins
    moved, fixed = order[: bins * size].reshape(bins, size), order[bins * size :]
    (x_starts, r), (y_starts, width) = (_places(sides) for sides in (ones, others))
    products = np.zeros((bins // 2 + 1, r, width), np.complex128)
    for part in row_chunks(size, max(1, panel_rows(4 * (r + width), most=_PANEL_BYTES) // bins)):
        rows = moved[:, part].reshape(-1)
        blocks = (_joined(sides, rows).reshape(bins, part.stop - part.start, -1) for sides in (ones, others))
        first, second = (fft.rfft(block, axis=0) for block in blocks)
        run_chunks(partial(_correlate, products, first, second), row_chunks(products.shape[0], _FREQUENCIES))
    constant = _joined(ones, fixed).T @ _joined(others, fixed) if fixed.size else np.zeros((r, width))

    def squares(j: int) -> Array:
        matrices = fft.irfft(products[:, j], n=bins, axis=0) + constant[j]
        return np.add.reduceat(matrices**2, y_starts, axis=1).T

    return np.add.reduceat(np.stack(run_chunks(squares, range(r))), x_starts, axis=0).reshape(-1, bins)


def _places(sides: Sequence[_Side]) -> tuple[Array, int]:
    """Where the features of each kernel begin among those of all, and how many there are."""
    ends = np.cumsum([side.features.rank for side in sides])
    return np.concatenate([[0], ends[:-1]]), int(ends[-1])


def _joined(sides: Sequence[_Side], rows: Array) -> Array:
    """The centred features of some rows, those of all kernels side by side."""
    return np.concatenate([side.at(rows) for side in sides], axis=1)


def _correlate(products: Array, first: Array, second: Array, part: slice) -> None:
    """Add Φ̂ᴴΨ̂ at some frequencies."""
    products[part] += first[part].conj().transpose(0, 2, 1) @ second[part]


def _rounding(one: _Side, other: _Side, n: int, bins: int) -> float:
    """How far equal statistics may lie apart: ‖C‖² ≤ n² k l for the largest k(x, x) and l(y, y), C with its errors."""
    relative = one.error + other.error + gamma(_TRANSFORM * (int(np.log2(bins)) + 2) + n // bins + 64, UNIT)
    return 4 * n**2 * one.largest * other.largest * relative
