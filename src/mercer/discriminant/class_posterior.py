"""Classes in the projected space: normal distributions about their means with one covariance."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.special import log_softmax, softmax

from mercer.backends.arrays import Array, eigh
from mercer.backends.rounding import EPS


@final
class ClassPosterior:
    """Log p(class of z) = log πᵧ - ½ (z - mᵧ)ᵀC⁻¹(z - mᵧ) + const, C the covariance within classes and the penalty's.

    In the coordinates of Fisher's discriminants C is the identity, and this is linear discriminant analysis.

    Parameters
    ----------
    scaled : array of shape (n, p)
        Coordinates of the training points, about their mean, times the roots of their shares.
    root : array of shape (n,)
        These roots.
    indicators : array of shape (n, c)
        One where a row is of a class.
    extra : array of shape (p, p)
        Added to the covariance within classes.
    """

    means: Array
    _whitening: Array
    _log_priors: Array

    def __init__(self, scaled: Array, root: Array, indicators: Array, extra: Array) -> None:
        priors = (root**2) @ indicators
        self.means = (indicators * root[:, None]).T @ scaled / np.maximum(priors, np.finfo(float).tiny)[:, None]
        left = scaled - root[:, None] * (indicators @ self.means)
        values, vectors = eigh(left.T @ left + extra)
        largest, total = float(np.max(values, initial=0.0)), float(np.sum(scaled**2))
        # Classes without any spread have that of the rounding of their coordinates, so that squares stay numbers.
        floor = max(scaled.shape[1] * EPS * largest, EPS**2 * total, np.finfo(float).tiny)
        self._whitening = vectors / np.sqrt(np.maximum(values, floor))
        self._log_priors = np.log(priors, out=np.full(priors.size, -np.inf), where=priors > 0)

    def scores(self, coordinates: Array) -> Array:
        """The logarithms of the probabilities but for a term that all classes share, n × c."""
        points, means = coordinates @ self._whitening, self.means @ self._whitening
        linear = points @ means.T - 0.5 * np.sum(means**2, axis=1)
        return np.asarray(linear + self._log_priors)

    def probabilities(self, coordinates: Array) -> Array:
        """Of the classes, n × c."""
        return np.asarray(softmax(self.scores(coordinates), axis=1))

    def log_probabilities(self, coordinates: Array) -> Array:
        """Of the classes, n × c."""
        return np.asarray(log_softmax(self.scores(coordinates), axis=1))
