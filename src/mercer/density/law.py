"""Questions to a probability density: the base of the closed form and of the table.

Arguments are checked here, and answers brought to the library of the points; what answers them are NumPy arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from mercer.backends.arrays import Array, as_double, is_tensor, like, namespace, to_numpy
from mercer.validation import whole_number


class Law(ABC):
    """A probability density on R^d or a box.

    Parameters
    ----------
    points : array of shape (m, d)
        The support points. Where they are a tensor, so are all answers.
    lower, upper : arrays of shape (d,) or None
        The corners of the box outside of which the density is zero; entries may be infinite. None means none.
    """

    _points: Array
    _lower: Array
    _upper: Array
    _home: Any = None
    _unsaved: ClassVar[frozenset[str]] = frozenset({"_home"})  # a model file holds arrays

    def __init__(self, points: Any, lower: Any, upper: Any) -> None:
        self._home = points[:0] if is_tensor(points) else None
        self._points = np.asarray(to_numpy(points), np.float64)
        d = self._points.shape[1]
        self._lower = np.full(d, -np.inf) if lower is None else np.asarray(to_numpy(lower), np.float64)
        self._upper = np.full(d, np.inf) if upper is None else np.asarray(to_numpy(upper), np.float64)

    @property
    def points(self) -> Any:
        """The support points."""
        return self._answer(self._points)

    @property
    def lower(self) -> Any:
        """The lower corner of the box."""
        return self._answer(self._lower)

    @property
    def upper(self) -> Any:
        """The upper corner of the box."""
        return self._answer(self._upper)

    @property
    def n_features(self) -> int:
        """d."""
        return int(self._lower.size)

    @property
    @abstractmethod
    def sampling_error(self) -> float:
        """An estimate of how far the law of :meth:`sample` is from the density, in total variation."""

    @abstractmethod
    def score_samples(self, X: Any) -> Any:
        """The logarithm of the density at some points; minus infinity outside the box."""

    def density(self, X: Any) -> Any:
        """The density at some points; zero outside the box."""
        logs = self.score_samples(X)
        return namespace(logs).exp(logs)

    def mean(self) -> Any:
        """The expectation."""
        return self._answer(self._mean())

    def covariance(self) -> Any:
        """The covariance."""
        return self._answer(self._covariance())

    def marginal(self, coordinates: Any) -> Self:
        """The density of some coordinates, the others integrated out."""
        kept = self._checked_coordinates(coordinates)
        return self._marginal(kept, self._without(kept))

    def conditional(self, coordinates: Any, values: Any) -> Self:
        """The density of the other coordinates, given the values of these."""
        given = self._checked_coordinates(coordinates)
        at, others = self._checked_values(values, given), self._without(given)
        if others.size == 0:
            raise ValueError("Every coordinate is given: there is nothing left to have a density.")
        return self._conditional(given, at, others)

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x) in one dimension."""
        self._require_line("cdf")
        return self._answer(self._cdf(np.asarray(to_numpy(x), np.float64).reshape(-1)))

    def quantile(self, levels: Any) -> Any:
        """The inverse of the distribution function in one dimension, for levels strictly between 0 and 1."""
        levels = np.asarray(to_numpy(levels), np.float64).reshape(-1)
        if np.any(~((levels > 0) & (levels < 1))):
            raise ValueError("levels must lie strictly between 0 and 1.")
        self._require_line("quantile")
        return self._answer(self._quantile(levels))

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        """Independent draws, n × d, whose law is within ``sampling_error`` of the density in total variation."""
        return self._answer(self._sample(whole_number(n, "n", 1), rng))

    @abstractmethod
    def _mean(self) -> Array: ...

    @abstractmethod
    def _covariance(self) -> Array: ...

    @abstractmethod
    def _marginal(self, kept: Array, others: Array) -> Self: ...

    @abstractmethod
    def _conditional(self, given: Array, at: Array, others: Array) -> Self: ...

    @abstractmethod
    def _cdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _quantile(self, levels: Array) -> Array: ...

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Array: ...

    def _answer(self, values: Array) -> Any:
        """Values in the library of the points."""
        return values if self._home is None else like(values, self._home)

    def _rows(self, X: Any) -> Any:
        """Points of shape (n, d) in double precision, in their own library; on the line n numbers do."""
        X = as_double(X) if is_tensor(X) else np.asarray(X, np.float64)
        if X.ndim == 1 and self.n_features == 1:
            X = X[:, None]
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} columns, not shape {tuple(X.shape)}.")
        return X

    def _without(self, coordinates: Array) -> Array:
        return np.setdiff1d(np.arange(self.n_features), coordinates)

    def _checked_coordinates(self, coordinates: Any) -> Array:
        """Different numbers of coordinates."""
        chosen = np.atleast_1d(to_numpy(coordinates))
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise ValueError("coordinates must be a list of whole numbers.")
        if chosen.min() < 0 or chosen.max() >= self.n_features or np.unique(chosen).size != chosen.size:
            raise ValueError(f"coordinates must be different numbers from 0 to {self.n_features - 1}.")
        return chosen.astype(np.intp)

    def _checked_values(self, values: Any, given: Array) -> Array:
        """One finite number within the box for each coordinate given."""
        at = np.asarray(to_numpy(values), np.float64).reshape(-1)
        if at.size != given.size or not np.all(np.isfinite(at)):
            raise ValueError(f"values must be {given.size} finite numbers, one for each coordinate given.")
        if np.any((at < self._lower[given]) | (at > self._upper[given])):
            raise ValueError(f"values {at.tolist()} lie outside the box, where the density is zero.")
        return at

    def _require_line(self, question: str) -> None:
        if self.n_features != 1:
            raise ValueError(f"{question} is for one dimension, not {self.n_features}: take a marginal first.")
