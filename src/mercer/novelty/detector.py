"""Which rows are unlike the rest? A detector of outliers and novelties in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from mercer.backends.arrays import Array, like
from mercer.estimator import KernelEstimator, keeps_earlier_fit
from mercer.kernels import Kernel, Linear
from mercer.novelty.reference import Asked, Reference
from mercer.novelty.threshold import checked_contamination, checked_rate, offset_of
from mercer.progress import Phases
from mercer.validation import checked_kernel, declared, non_negative, one_of, require_points, whole_number

_MOST_LOCALITY = 1e6


def _counts(value: Any, name: str) -> tuple[int, ...]:
    """The numbers of neighbours that a user gives, in rising order."""
    if isinstance(value, Integral) or not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return (whole_number(value, name, 1),)
    if len(value) == 0:
        raise ValueError(f"{name} is empty: give a number of neighbours, or several.")
    return tuple(sorted({whole_number(int(k) if isinstance(k, np.integer) else k, name, 1) for k in value}))


def _locality(value: Any, name: str) -> float:
    """A weight of the comparison with neighbours; beyond some size all others vanish beside it."""
    if non_negative(value, name) > _MOST_LOCALITY:
        raise ValueError(f"{name}={value!r} must be at most {_MOST_LOCALITY:g}: with 100 hardly anything else counts.")
    return float(value)


class NoveltyDetector(OutlierMixin, KernelEstimator):
    """Find rows that are unlike the rest, among the rows of the fit and among new ones.

    The score of a row says how far its neighbours are, or how far that is beside the distances of their own neighbours,
    whichever is more unusual: so many distances of the quartiles above the median of the training rows. A row of the
    training set is not counted as its own neighbour: :meth:`score_samples` gives it the score that a model of all other
    rows would, so that ``fit_predict`` judges it as it would judge a new row. The user guide says when to take it, and
    when not.

    Parameters
    ----------
    kernel : Kernel, str or None, default=None
        A kernel whose distance √(k(x, x) + k(y, y) - 2k(x, y)) says how far rows are apart, as :class:`mercer.Mixed`
        for columns of words and numbers. None means Euclidean distances.
    n_neighbors : int or sequence of int, default=(10, 20)
        The neighbours a row is compared with, at several sizes of neighbourhood; six times the most say how empty it
        is around the row. No neighbourhood is larger than a quarter of the rows.
    locality : float, default=2/3
        How much the comparison with neighbours counts beside the distance itself, in one of three views of a row; in
        the others it counts by an eighth of that. Zero finds rows in empty places alone, with large values more rows
        are found that stand out from their surroundings, as by a local outlier factor.
    standardize : {"auto", True, False}, default="auto"
        Divide each column by its spread, of quartiles, before distances are taken; ``"auto"`` does where the ranges of
        the columns differ more than eightfold, which columns of one unit seldom do. A kernel sees rows as they are.
    contamination : "auto" or float, default="auto"
        The share of the training rows that :meth:`predict` is to call novel, or a fence: those whose score is farther
        from the nearer quartile than 1.5 times the distance of the quartiles.
    false_alarms : float or None, default=None
        In place of a share: the rate at which new rows of the law of the training rows are called novel, nearly: it is
        measured and not proved. It holds for training rows that are independent, and free of what is to be found.
    verbose : bool, default=False
        Log the phases and the time to the logger ``mercer``.

    Attributes
    ----------
    offset_ : float
        Rows whose score lies below are novel.
    dimension_ : float
        The estimated dimension of what the training rows fill.
    n_neighbors_ : tuple of int
        The sizes of neighbourhoods that were used.
    divisors_ : array of shape (d,) or None
        What columns are divided by, up to one power of two for all; None with a kernel.
    kernel_ : Kernel
        The kernel with its parameters fixed; ``Linear()``, whose distance is Euclidean, where none was given.

    See Also
    --------
    mercer.SDPEmbedding.novelty : The score that comes with an embedding.
    mercer.DriftDetector : Has the law of a stream changed?

    Notes
    -----
    Cost: the neighbours of all rows, found exactly. By a tree that is fast up to fifteen columns; with more of them, or
    a kernel, all pairs are compared, n² d operations, a block at a time. Memory: some 36 bytes a row and neighbour.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NoveltyDetector
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), [[6.0, 0.0], [0.0, -7.0]]])
    >>> detector = NoveltyDetector(contamination=0.01).fit(X)
    >>> np.flatnonzero(detector.predict(X) == -1)
    array([200, 201])
    >>> detector.predict([[0.5, 0.5], [5.0, 5.0]])
    array([ 1, -1])
    """

    offset_: float
    dimension_: float
    n_neighbors_: tuple[int, ...]
    divisors_: Array | None
    _reference: Reference
    _default_kernel = staticmethod(Linear)
    _checks = declared(
        n_neighbors=_counts,
        locality=_locality,
        standardize=one_of("auto", True, False),
        contamination=checked_contamination,
        false_alarms=checked_rate,
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_neighbors: Any = (10, 20),
        locality: float = 2 / 3,
        standardize: bool | str = "auto",
        contamination: float | str = "auto",
        false_alarms: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.locality = locality
        self.standardize = standardize
        self.contamination = contamination
        self.false_alarms = false_alarms
        self.verbose = verbose

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NoveltyDetector:
        """Learn how far rows are apart, and from which score on one is novel.

        Parameters
        ----------
        X : array of shape (n, d) or data frame
            The rows, with or without outliers among them.
        y : ignored
            For pipelines.
        sample_weight : array of shape (n,), optional
            How many rows each row stands for: weight two is the row twice, weight zero leaves it out.
        """
        phases = Phases("reading the points", shown=bool(self.verbose))
        given = self._begin_fit(X, sample_weight=sample_weight)
        self.kernel_ = given.kernel
        asked = Asked(
            None if self.kernel is None else self.kernel_,
            _counts(self.n_neighbors, "n_neighbors"),
            float(self.locality),
            self.standardize,
        )
        found = self._reference = Reference.of(given.points, given.weights, asked, phases)
        self.dimension_, self.divisors_ = found.dimension, found.divisors
        self.n_neighbors_ = tuple(int(k) for k in found.rule.counts)
        share, rate = checked_contamination(self.contamination, ""), checked_rate(self.false_alarms, "")
        self.offset_ = offset_of(-found.scores, found.masses, share, rate)
        return self

    def novelty(self, X: Any) -> Array:
        """Return the score of every row, the higher the more novel: minus :meth:`score_samples`."""
        X = self._new_points(X)
        return like(self._reference.novelty(X), X)

    def score_samples(self, X: Any) -> Array:
        """Return the score of every row, the higher the more normal; a training row's is the one without itself."""
        return -self.novelty(X)

    def decision_function(self, X: Any) -> Array:
        """Return the score of every row less ``offset_``: novel rows are below zero."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Return -1 for novel rows and +1 for the others."""
        return 1 - 2 * (self.decision_function(X) < 0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.false_alarms is not None and self.contamination != "auto":
            raise ValueError(
                "contamination and false_alarms both say from which score on a row is novel: give one of them."
            )
        if self.kernel is None:
            return
        require_points(self.kernel, "A detector evaluates the kernel between new rows and those of the fit")
        _require_distance(checked_kernel(self.kernel))
        if self.standardize is True:
            raise ValueError("standardize=True is for Euclidean distances, and a kernel has its own: pass kernel=None.")


def _require_distance(kernel: Kernel) -> None:
    """Refuse a kernel that has no distance, or one that is the same for nearly all rows."""
    if kernel.is_local:
        raise ValueError(
            f"{kernel!r} compares neighbours alone: pass kernel=None, or a kernel of all pairs such as Gaussian()."
        )
    if kernel.properties.positive_definite is False:
        raise ValueError(f"{kernel!r} is not positive definite, so it has no distance: pass another, or kernel=None.")
