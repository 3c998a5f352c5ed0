"""How many directions of x are needed: a test of what is left, after each number of them.

Given directions U, y's features f and features g of all of x are both regressed on Uᵀx. If Y is independent of X given
UᵀX, the two residuals are uncorrelated at every point, and

    T = ‖(S + λI)^(-1/2) Σ pᵢ g̃(xᵢ) f̃(yᵢ)ᵀ‖²,      S = Σ pᵢ g̃(xᵢ) g̃(xᵢ)ᵀ

is as large as with the residuals' signs drawn at random. That both are regressed makes the error of either count only
times that of the other (Shah and Peters 2020, section 2). Signs, not permutations: the spread of y may depend on Uᵀx.
Before the first direction rows of one weight are reordered instead, which is exact.

S brings the many directions of x's features to one size, among which a dependence in few of them would drown otherwise.
The regressions are smoother than that of the search, whose residuals follow the sample too closely for signs to imitate
it. Both were chosen by how often the known number is found (benchmarks/results/kernel_dimension_reduction.md).
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import SLAB_ENTRIES, row_chunks, rows_within
from mercer.backends.threads import run_chunks
from mercer.dependence.kdr_search import Found, Sample
from mercer.dependence.landmark_regression import Targets, fit_regression, section
from mercer.dependence.resampling import permutation_pvalue, permutations
from mercer.kernels import Gaussian
from mercer.linalg.eigen import positive_eigenpairs
from mercer.validation import resolved_kernel

_FEATURES = 60  # of x: the leading directions of its kernel
_SMOOTHER = 10.0  # times the regularisation of the search
_RIDGE = 0.1  # λ, of the largest eigenvalue of S
_ROUNDING = 1e-10  # of the statistic, by which two that are equal may differ


class DimensionTest(NamedTuple):
    """Whether more than ``n_components`` directions are needed: the statistic, and how likely chance is to reach it."""

    n_components: int
    statistic: float
    pvalue: float


class LeftoverTest:
    """Tests what some directions leave unexplained, with the same signs for all of them."""

    def __init__(self, sample: Sample, regularization: float, n_resamples: int, rng: np.random.Generator) -> None:
        self._sample, self._regularization = sample, _SMOOTHER * regularization
        self._features, self._rng = _features(sample), rng
        self._signs = 2 * rng.integers(0, 2, (n_resamples, sample.points.shape[0]), dtype=np.int8) - 1

    def __call__(self, found: Found | None) -> DimensionTest:
        """The test after some directions, or after none."""
        targets = self._sample.targets
        left, across = targets.features, self._features
        if found is not None:
            left, across = self._residuals(found, left), self._residuals(found, across)
        across = _of_one_size(across, targets.shares)
        exact = found is None and bool((targets.shares == targets.shares[0]).all())
        statistics = self._reordered(across, left) if exact else self._with_signs(across, left)
        value = float(statistics[0])
        pvalue = permutation_pvalue(value, statistics[1:], _ROUNDING * value)
        return DimensionTest(0 if found is None else found.directions.shape[1], value, pvalue)

    def _residuals(self, found: Found, values: Array) -> Array:
        """What of some values a smooth function of the directions does not explain."""
        Z, regression = self._sample.points @ found.directions, found.regression
        targets = Targets(values, self._sample.targets.shares)
        smooth = fit_regression(regression.kernel, Z, regression.nodes, targets, self._regularization)
        left: Array = values - smooth(Z)
        return left

    def _reordered(self, G: Array, F: Array) -> Array:
        """T, and T for reorderings of the rows of y."""
        n, count = F.shape[0], self._signs.shape[0]
        orders = (order for block in permutations(n, count, self._rng) for order in block)
        squares = [np.sum((G.T @ F[order]) ** 2) for order in chain([slice(None)], orders)]
        return np.array(squares) / n**2

    def _with_signs(self, G: Array, F: Array) -> Array:
        """T, and T for each of the signs: B n q r multiplications, some rows at a time."""
        p, width = self._sample.targets.shares, G.shape[1] * F.shape[1]

        def sums(rows: slice) -> Array:
            products = (G[rows, :, None] * (p[rows, None] * F[rows])[:, None, :]).reshape(-1, width)
            return np.vstack([products.sum(axis=0), self._signs[:, rows].astype(np.float64) @ products])

        total = np.add.reduce(run_chunks(sums, row_chunks(G.shape[0], rows_within(SLAB_ENTRIES, width))))
        squares: Array = np.einsum("ij,ij->i", total, total)
        return squares


def _features(sample: Sample) -> Array:
    """Centred features of all of x, the leading ones of its Gaussian kernel through the landmarks."""
    points, nodes, shares = sample.points, sample.nodes, sample.targets.shares
    kernel = resolved_kernel(Gaussian(), points, shares)
    values, vectors = positive_eigenpairs(section(kernel, nodes, nodes), 1e-10)
    count = min(_FEATURES, values.shape[0])
    features = section(kernel, points, nodes) @ (vectors[:, :count] / np.sqrt(values[:count]))
    centred: Array = features - shares @ features
    return centred


def _of_one_size(G: Array, shares: Array) -> Array:
    """G (S + λI)^(-1/2)."""
    values, vectors = np.linalg.eigh(G.T @ (shares[:, None] * G))
    scaled: Array = (G @ vectors) / np.sqrt(np.maximum(values, 0.0) + _RIDGE * values[-1])
    return scaled
