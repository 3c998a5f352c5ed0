"""Has a stream of rows drifted away from a reference? Windows of it against the reference, at a stated rate of alarms.

In features of landmarks the newest w rows have a mean m_w, the N rows of the reference a mean μ, and ‖m_w - μ‖² is MMD²
of the window and the reference under the kernel completed from the landmarks. Without drift it is about 1/w + 1/N times
a variable whose law does not depend on w, so that the score of a row is the largest ‖m_w - μ‖²/(1/w + 1/N) of all
windows, and one threshold does for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.dependence.drift_threshold import Calibration, calibrated
from mercer.dependence.landmark_features import LandmarkFeatures, is_chooser, landmark_features
from mercer.dependence.sliding import largest_scores
from mercer.estimator import KernelEstimator, keeps_earlier_fit
from mercer.validation import at_least, declared, fraction, require_points, whole_number

_WINDOWS = (25, 100, 400)
_LEAST_WINDOW = 2


def _window(value: Any, name: str) -> tuple[int, ...] | None:
    """The windows that a user gives, in rising order."""
    if value is None:
        return None
    if isinstance(value, Integral) or not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return (whole_number(value, name, _LEAST_WINDOW),)
    if len(value) == 0:
        raise ValueError(f"{name} is empty: give a number of rows, or several.")
    return tuple(sorted({whole_number(int(w) if isinstance(w, np.integer) else w, name, _LEAST_WINDOW) for w in value}))


def _landmarks(value: Any, name: str) -> None:
    if not (isinstance(value, str) and value == "landmarks") and not is_chooser(value):
        whole_number(value, name, 2)


class DriftDetector(KernelEstimator):
    """Watch a stream for rows that no longer come from the law of a reference.

    ``fit`` takes the reference, and a threshold that independent rows of its law exceed at a stated rate;
    :meth:`update` takes new rows, one or many at a time, and says whether that happened.

    Parameters
    ----------
    kernel : Kernel, str or None, default=None
        k; None means ``Gaussian("median")``, with the bandwidth of the reference.
    window : int, sequence of int or None, default=None
        How many of the newest rows are compared with the reference: short windows find large changes soon, long ones
        find small changes. None means 25, 100 and 400, or less where the reference has fewer than 800 rows.
    false_alarms : float, default=1e-4
        Alarms a row where nothing changes: one in 10 000 rows. The mean number of rows up to the first is its inverse.
    landmarks : int or estimator, default=64
        How many rows of the reference features are made from, or what chooses them.
    n_simulated_alarms : int, default=100
        How precisely the threshold is found: the rate is met to about 1/√n of itself, beside what the reference does
        not know of its own law.
    random_state : None, int or generator, default=None
        Source of the landmarks and of the simulation.

    Attributes
    ----------
    threshold_ : float
        Scores from here on are alarms.
    statistic_ : float
        The score of the newest row; minus infinity as long as no window is full.
    n_seen_ : int
        Rows since the fit, or since :meth:`reset`.
    alarm_at_ : int or None
        Which of them was the first that raised an alarm, counted from 1.
    window_ : tuple of int
        The windows.
    kernel_ : Kernel
        The kernel with its parameters fixed.

    Notes
    -----
    Cost of a fit: n·m kernel evaluations for m landmarks, and n_simulated_alarms/false_alarms rows of simulated streams
    drawn from the reference, about a second a million. Of a row: m kernel evaluations; memory: the longest window.
    Rows that depend on their neighbours raise more alarms than is stated.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import DriftDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = DriftDetector(window=50, false_alarms=1e-3, random_state=0).fit(rng.normal(size=(500, 2)))
    >>> detector.update(rng.normal(size=(100, 2)))
    False
    >>> detector.update(rng.normal(size=(100, 2)) + 1.0)
    True
    """

    threshold_: float
    statistic_: float
    n_seen_: int
    alarm_at_: int | None
    window_: tuple[int, ...]
    _features: LandmarkFeatures
    _mean: Array
    _recent: Array
    _size: int
    _checks = declared(
        window=_window, false_alarms=fraction, landmarks=_landmarks, n_simulated_alarms=at_least(10)
    )  # fmt: skip

    def __init__(
        self,
        kernel: Any = None,
        *,
        window: Any = None,
        false_alarms: float = 1e-4,
        landmarks: Any = 64,
        n_simulated_alarms: int = 100,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.window = window
        self.false_alarms = false_alarms
        self.landmarks = landmarks
        self.n_simulated_alarms = n_simulated_alarms
        self.random_state = random_state

    @keeps_earlier_fit
    def fit(self, X: Any, y: Any = None) -> DriftDetector:
        """Learn the reference and find the threshold.

        Parameters
        ----------
        X : array of shape (n, d) or data frame
            The reference: independent rows of the law that the stream is to keep to.
        y : ignored
            For pipelines.
        """
        require_points(self.kernel, "A detector evaluates the kernel between new rows and the reference")
        given = self._begin_fit(X)
        n = int(given.points.shape[0])
        self.window_ = _fitting(_window(self.window, "window"), n)
        self.kernel_ = given.kernel
        self._features = landmark_features(self.kernel_, given.points, self.landmarks, given.rng, "landmarks")
        values = to_numpy(self._features.transform(given.points))
        self._mean, self._size = values.mean(axis=0), n
        plan = Calibration(self.window_, float(self.false_alarms), int(self.n_simulated_alarms))
        self.threshold_ = calibrated(values - self._mean, plan, given.rng)
        return self.reset()

    def reset(self) -> DriftDetector:
        """Forget the stream, not the reference: after an alarm that was looked into, say."""
        self._recent = np.empty((0, self._mean.size))
        self.statistic_, self.n_seen_, self.alarm_at_ = -np.inf, 0, None
        return self

    def update(self, X: Any, *, return_scores: bool = False) -> bool | tuple[bool, Array]:
        """Take new rows of the stream and say whether one of them raised an alarm.

        Parameters
        ----------
        X : array of shape (k, d) or (d,), data frame or a row of one
            The next rows in their order, or one of them.
        return_scores : bool, default=False
            Return the score of every row as well, minus infinity as long as no window is full.
        """
        if getattr(X, "ndim", 2) == 1:
            X = X.to_frame().T.infer_objects() if hasattr(X, "to_frame") else X[None, :]
        X = self._new_points(X)
        scores = np.concatenate([self._scores(X[rows]) for rows in row_chunks(int(X.shape[0]), TALL_ROWS)])
        over = np.flatnonzero(scores >= self.threshold_)
        if over.size and self.alarm_at_ is None:
            self.alarm_at_ = self.n_seen_ + int(over[0]) + 1
        self.n_seen_ += scores.size
        self.statistic_ = float(scores[-1])
        return (bool(over.size), scores) if return_scores else bool(over.size)

    def witness(self, Z: Any) -> Array:
        """Where the stream has gone: the mean of k(x, z) over the newest rows less that over the reference.

        It is taken over the longest window, or as many rows as there are; rows of Z where it is large have become more
        frequent, rows where it is far below zero have become rarer.
        """
        Z = self._new_points(Z)
        if not self._recent.shape[0]:
            raise ValueError("The detector has seen no rows since its fit: update it first.")
        return to_numpy(self._features.transform(Z)) @ self._recent.mean(axis=0)

    def _scores(self, X: Any) -> Array:
        """The scores of some rows, which become the newest."""
        new = to_numpy(self._features.transform(X)) - self._mean
        rows = np.concatenate([self._recent, new])
        self._recent = rows[-self.window_[-1] :].copy()
        return largest_scores(rows, np.arange(rows.shape[0]), self.window_, self._size)[-new.shape[0] :]


def _fitting(window: tuple[int, ...] | None, n: int) -> tuple[int, ...]:
    """Windows no longer than half of the reference."""
    if window is None:
        largest = max(_LEAST_WINDOW, n // 2)
        return tuple(sorted({max(_LEAST_WINDOW, min(w, largest * w // _WINDOWS[-1])) for w in _WINDOWS}))
    if 2 * window[-1] > n:
        raise ValueError(
            f"window={window[-1]} needs a reference of twice as many rows, and it has {n}: pass more, or take "
            f"window={max(_LEAST_WINDOW, n // 2)}."
        )
    return window
