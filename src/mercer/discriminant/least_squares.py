"""Numbers and labels from the projected space: linear regression on its coordinates."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.linalg import lstsq

from mercer.backends.arrays import Array


@final
class LeastSquares:
    """The linear function of the coordinates that is nearest to the targets, by the shares of the rows.

    Parameters
    ----------
    scaled, root : arrays of shapes (n, p) and (n,)
        Coordinates of the training points about their mean times the roots of their shares, and these roots.
    targets : array of shape (n, o)
        What is to be predicted.
    """

    _mean: Array
    _coefficients: Array

    def __init__(self, scaled: Array, root: Array, targets: Array) -> None:
        self._mean = (root**2) @ targets
        unit = float(np.max(np.abs(targets), initial=0.0)) or 1.0  # whose squares may be no numbers
        self._coefficients = lstsq(scaled, root[:, None] * ((targets - self._mean) / unit))[0] * unit

    def __call__(self, coordinates: Array) -> Array:
        """The function at some coordinates, n × o."""
        return np.asarray(coordinates @ self._coefficients + self._mean)
