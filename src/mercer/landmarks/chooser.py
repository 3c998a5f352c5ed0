"""The estimator that chooses landmarks of a sample."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from mercer.backends import get_config
from mercer.backends.arrays import Array, is_source, is_tensor, like, namespace, taken, to_numpy
from mercer.backends.fingerprint import DataSeen
from mercer.backends.moved import brought_back
from mercer.backends.threads import one_thread_for
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.checks import as_generator
from mercer.kernels.tables import Table
from mercer.landmarks.standing import Standing, standing, standing_of_rows
from mercer.landmarks.strategies import STRATEGIES, Strategy
from mercer.operators import GramOperator
from mercer.validation import (
    checked_points,
    checked_weights,
    is_precomputed,
    kernel_on_columns,
    normalised,
    resolved_kernel,
    whole_number,
)
from mercer.wording import OneLine

_PART_SHARE, _MOST_OF_A_SOURCE = 1 / 8, 200_000  # of the memory limit, and rows: among which landmarks are chosen


class Landmarks(OneLine, BaseEstimator):
    """Choose rows of a sample that stand for all of it, and the weights with which they do.

    For ``landmarks=`` of any estimator; one that is given the number alone chooses by ``"k-means"``, or as this class
    does by default where it has no points or no use for weights. :class:`mercer.QuadratureSparsifier` has the same
    interface: it takes longer, and its weights are optimal.

    Parameters
    ----------
    n_landmarks : int, default=100
        How many. All rows, where there are no more of them that differ.
    strategy : str or callable, default="rpcholesky"
        ``"rpcholesky"`` draws by what is not explained yet, ``"greedy"`` takes the row that is explained worst,
        ``"leverage"`` draws by approximate ridge leverage scores, ``"k-means"`` takes the points nearest to the centres
        of clusters, ``"uniform"`` draws by weight alone. A callable is given the :class:`mercer.GramOperator` of the
        rows of positive weight, the number, their shares of the total weight and a generator, and returns row numbers.
    kernel : Kernel, str or None, default=None
        None means the kernel of the estimator that the landmarks are for, where that is known to be positive
        semi-definite or given as a matrix, and ``Gaussian("median")`` otherwise.
    random_state : None, int or generator, default=None
        Source of the draws.

    Attributes
    ----------
    indices_ : array of shape (m,)
        The rows chosen, in rising order.
    weights_ : array of shape (m,)
        The weight of the rows that are nearest to each landmark in the feature space; their sum is the total weight.
    share_left_out_ : float or None
        The share of the trace of the (weighted) kernel matrix K that its Nyström completion K̃ from the landmarks leaves
        out: the norm of K - K̃, operator, Frobenius or nuclear, is at most that share of the trace. None where K shows
        that it is not positive semi-definite.
    kernel_ : Kernel
        The kernel with its parameters fixed.

    Notes
    -----
    Cost: n·m kernel evaluations and n·m² flops for every strategy (k-means: n·m·d flops a step, and the same in the
    end); memory: n·m for the Cholesky factors, 1024·m a thread otherwise. Where such a factor does not fit half of the
    memory limit, its pivots are those of a random part of the rows. Of rows that are read from a file, landmarks are
    chosen among a random part that fits the limit, 200 000 at most; weights and share are those of all rows. Where a
    strategy knows no further rows, as the rank of the kernel matrix is lower, the others are drawn uniformly.

    Examples
    --------
    >>> from mercer import Gaussian, Landmarks
    >>> from mercer.datasets import three_clusters
    >>> X, _ = three_clusters()
    >>> chosen = Landmarks(20, kernel=Gaussian(sigma=2.0), random_state=0).fit(X)
    >>> chosen.indices_.shape, round(float(chosen.weights_.sum()))
    ((20,), 310)
    """

    indices_: Array
    weights_: Array
    share_left_out_: float | None
    kernel_: Kernel
    n_features_in_: int
    _data_seen: DataSeen
    _table: Table | None
    _fits_blocks: ClassVar[bool] = True
    _fitted_like: Any = None  # an empty tensor where the fit was on one; a model file holds arrays
    _unsaved: ClassVar[frozenset[str]] = frozenset({"_fitted_like"})

    def __init__(
        self, n_landmarks: int = 100, *, strategy: Any = "rpcholesky", kernel: Any = None, random_state: Any = None
    ) -> None:
        self.n_landmarks = n_landmarks
        self.strategy = strategy
        self.kernel = kernel
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.sparse = is_precomputed(self.kernel)
        return tags

    @brought_back
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Landmarks:
        """Choose landmarks of X, whose rows may have weights; rows of weight zero are never chosen."""
        count, strategy = whole_number(self.n_landmarks, "n_landmarks", 1), _strategy(self.strategy)
        rng = as_generator(self.random_state)
        points = checked_points(self, X, fitting=True)
        n = int(points.shape[0])
        weights = np.ones(n)
        if sample_weight is not None:
            weights = to_numpy(checked_weights(sample_weight, n, "sample_weight"))
        own = kernel_on_columns(self, self.kernel)
        kernel = resolved_kernel(own, points, None if sample_weight is None else like(weights, points))
        with one_thread_for(n, points):
            present = np.flatnonzero(weights > 0)
            unit = math.ldexp(1.0, math.frexp(float(weights.max()))[1] - 1)  # so that no sum overflows, and none rounds
            if is_source(points):
                rows = _rows_of_a_part(strategy, kernel, points, count, weights, rng)
                stands = standing_of_rows(kernel, points, rows, weights / unit)
                return self._stored(kernel, rows, stands, unit)
            gram = GramOperator(kernel, points if present.size == n else _part(points, present, kernel))
            shares = normalised(weights[present], present.size)
            rows = _chosen(strategy, gram, min(count, present.size), shares, rng)
            stands = standing(gram, rows, weights[present] / unit)
        return self._stored(kernel, like(present[rows], points) if is_tensor(points) else present[rows], stands, unit)

    def _stored(self, kernel: Kernel, indices: Array, stands: Standing, unit: float) -> Landmarks:
        self.kernel_, self.indices_ = kernel, indices
        self.weights_ = _in_units(stands.weights, unit)
        self.share_left_out_ = stands.trace_left_out
        return self


def _rows_of_a_part(
    strategy: Strategy, kernel: Kernel, points: Any, count: int, weights: Array, rng: np.random.Generator
) -> Array:
    """Rows chosen among a random part of a source, drawn by weight, that the memory limit holds with its factor."""
    n, width = int(points.shape[0]), points.shape[1] + count
    most = min(n, max(2 * count, min(_MOST_OF_A_SOURCE, get_config().share(_PART_SHARE) // (8 * width))))
    part = np.flatnonzero(weights)
    shares = weights[part] / weights.max()
    if most < part.size:
        chances = None if bool((shares == shares[0]).all()) else shares / shares.sum()
        drawn = np.sort(rng.choice(part.size, most, replace=False, p=chances))
        part, shares = part[drawn], np.maximum(shares[drawn], _certain(shares, most))
    gram = GramOperator(kernel, points[part])
    return part[_chosen(strategy, gram, min(count, part.size), shares / shares.sum(), rng)]


def _certain(weights: Array, count: int) -> float:
    """The weight from which on a row is sure to be among so many that are drawn by weight.

    Lighter ones are drawn as often as they weigh, and stand for this weight each; heavier ones for their own.
    """
    heaviest = np.sort(weights)[::-1]
    rest = np.cumsum(heaviest[::-1])[::-1][:count]  # of what is left when the first k are in
    bounds = rest / (count - np.arange(count))
    return float(bounds[np.argmax(heaviest[:count] <= bounds)])


def _strategy(strategy: Any) -> Strategy:
    if callable(strategy):
        return strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        return STRATEGIES[strategy]
    names = ", ".join(map(repr, STRATEGIES))
    raise ValueError(f"strategy={strategy!r} must be one of {names}, or a function that chooses rows.")


def _in_units(weights: Array, unit: float) -> Array:
    with np.errstate(over="ignore"):
        restored = weights * unit
    if not namespace(restored).isfinite(restored).all():
        raise ValueError("A landmark stands for more weight than the largest number: divide sample_weight by 1000.")
    return restored


def _part(points: Any, rows: Array, kernel: Kernel) -> Any:
    """Some of the points; of a precomputed kernel matrix, their columns too."""
    which = like(rows, points) if is_tensor(points) else rows
    part = taken(points, which)
    return taken(part, which, axis=1) if isinstance(kernel, Precomputed) else part


def _chosen(strategy: Strategy, gram: GramOperator, count: int, shares: Array, rng: np.random.Generator) -> Array:
    """The rows that the strategy chooses, in rising order; where it knows fewer, others are drawn by their weights."""
    n = shares.size
    if count == n:
        return np.arange(n)
    rows = to_numpy(strategy(gram, count, shares, rng))
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < n):
        raise ValueError(f"The strategy must return row numbers between 0 and {n - 1} in one dimension.")
    if np.unique(rows).size < rows.size or rows.size > count:
        raise ValueError(f"The strategy must return at most {count} row numbers, each once.")
    if rows.size < count:
        chances = shares.copy()
        chances[rows] = 0.0
        further = rng.choice(n, count - rows.size, replace=False, p=chances / chances.sum())
        rows = np.concatenate([rows, further])
    return np.sort(rows)
