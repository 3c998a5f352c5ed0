"""How large the ball of a robust regression is: a number, the MMD's sampling error, or what cross-validation finds.

**Sampling.** Let μ̂ = Σ wᵢ δ(zᵢ) for independent zᵢ of one law μ and weights that do not depend on them, and let the
kernel of pairs be fixed, with values in [0, 1] and k(z, z) = 1. Then E‖μ̂ - μ‖ ≤ (Σ wᵢ²)^{1/2} by Jensen's inequality,
and another zᵢ changes the distance by wᵢ‖φ(z) - φ(z')‖ ≤ √2 wᵢ at most, so McDiarmid's inequality says

    MMD(μ̂, μ) ≤ (Σ wᵢ²)^{1/2} (1 + √(log(1/δ)))      with probability 1 - δ

(1 + √(log 1/δ))/√n for equal weights. A projection shortens vectors, so the bound holds for the ball of the game too,
however its support was drawn.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from mercer.backends.arrays import Array, like, to_numpy
from mercer.estimator import FitInput
from mercer.validation import non_negative

SAMPLING, CROSS_VALIDATED = "sampling", "cv"
RADII = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
_FOLDS = 5
_LEAST_ROWS = 10
_TOL = 1e-4  # of the fits that are compared
_UP = 1 + 1e-12  # for the rounding of a sum of squares


def check_radius(value: Any, name: str) -> None:
    """Refuse what is neither a radius nor a rule."""
    if isinstance(value, str):
        if value not in (SAMPLING, CROSS_VALIDATED):
            raise ValueError(f"{name}={value!r} must be a number of at least 0, 'sampling' or 'cv'.")
        return
    non_negative(value, name)


def sampling_radius(shares: Array, confidence: float) -> float:
    """What the MMD between a sample with these weights, of sum one, and its law exceeds with chance 1 - confidence."""
    concentration = float((shares * shares).sum())
    return float(np.sqrt(concentration) * (1 + np.sqrt(-np.log1p(-confidence))) * _UP)


def cross_validated_radius(model: Any, given: FitInput) -> tuple[float, Array]:
    """The radius of least squared error on rows that were left out, the smaller of equals, and the errors of all.

    Parameters
    ----------
    model : RobustKernelRidge
        Whose other parameters are those of every fit.
    given : FitInput
        The pairs and their weights; its generator deals the rows to five folds and draws the supports.

    Returns
    -------
    radius : float
        One of ``RADII``.
    errors : array of shape (6,)
        The weighted mean squared error of each of them.
    """
    X, y, n = given.points, given.targets, int(given.points.shape[0])
    if n < _LEAST_ROWS:
        raise ValueError(f"radius='cv' takes at least {_LEAST_ROWS} rows, X has {n}: give a number.")
    seed = int(given.rng.integers(2**31))
    quiet = {"callback": None, "verbose": False, "tol": max(float(model.tol), _TOL), "random_state": seed}
    errors = np.zeros(len(RADII))
    for train, test in KFold(_FOLDS, shuffle=True, random_state=seed).split(np.empty(n)):
        train, test = like(train, X), like(test, X)
        weights = None if given.weights is None else given.weights[train]
        if weights is not None and not bool((weights > 0).any()):
            continue
        for place, radius in enumerate(RADII):
            fold = clone(model).set_params(radius=radius, **quiet)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fold.fit(X[train], y[train], weights)
            errors[place] += float(given.shares[test] @ (fold.predict(X[test]) - y[test]) ** 2)
    return RADII[int(np.argmin(errors))], errors


def is_least(radius: float, errors: Any) -> bool:
    """Whether a radius is the one that these errors of a cross-validation choose."""
    errors = np.asarray(to_numpy(errors), np.float64)
    return errors.shape == (len(RADII),) and bool(np.isfinite(errors).all()) and RADII[int(np.argmin(errors))] == radius
