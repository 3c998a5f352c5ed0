"""The penalty of a discriminant: a number, Ledoit and Wolf's, or by cross-validation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.discriminant.class_posterior import ClassPosterior
from mercer.discriminant.labels import Targets
from mercer.discriminant.least_squares import LeastSquares
from mercer.discriminant.quotient import Quotient
from mercer.discriminant.scatter import FeatureScatter
from mercer.validation import non_negative

WHERE_SINGULAR = 1e-3  # of the total variance, where the scatter within classes is singular
_TRIED = 10.0 ** np.arange(-6, 1.5, 0.5)  # of the total variance
_FOLDS = 5


class Mixture(NamedTuple):
    """What is asked for: RDA(r₁, r₂), how many directions, and the smoothing of targets that are no classes."""

    r1: float
    r2: float
    directions: int
    smoothing: float


def check_regularization(value: Any, name: str) -> None:
    """Refuse what is no penalty."""
    if isinstance(value, str):
        if value not in ("cv", "shrinkage"):
            raise ValueError(f"{name}={value!r} must be a number, 'cv', 'shrinkage' or None.")
    elif value is not None:
        non_negative(value, name)


def shrinkage(scatter: FeatureScatter, n_features: int) -> float:
    """The penalty of Ledoit and Wolf (2004) for the covariance within classes, as a part of the total variance.

    They estimate δ for (1 - δ) S + δ (tr S / d) I; the multiple S + ε I of it has ε = δ/(1 - δ) tr S / d.
    """
    fourth, squared, trace, total = scatter.moments_within()
    mean = trace / n_features
    noise, signal = (fourth - squared) / scatter.effective_size, squared - trace * mean
    delta = 1.0 if signal <= 0 else min(noise / signal, 1.0)
    return delta / max(1 - delta, 1e-3) * mean / max(total, np.finfo(float).tiny)


def cross_validated(
    features: Array, root: Array, targets: Targets, mixture: Mixture, rng: np.random.Generator
) -> float:
    """The penalty, as a part of the total variance, with the least squared error on rows left out of the directions.

    Of classes the error is that of their probabilities (Brier's score), of anything else that of a linear regression on
    the coordinates. Cost: five folds, each with a Cholesky factor of order q for every one of fifteen penalties.
    """
    assert targets.values is not None
    errors = np.zeros(_TRIED.size)
    folds = _folds(targets, rng)
    for fold in range(_FOLDS):
        train, test = folds != fold, folds == fold
        mass = float(np.sum(root[train] ** 2))
        if not test.any() or not mass > 0:
            continue
        own = root[train] / np.sqrt(mass)
        scatter = FeatureScatter(features[train], own, targets.basis(own, mixture.smoothing, train))
        left_out = np.asarray(features[test], np.float64) - scatter.mean
        for k, part in enumerate(_TRIED):
            quotient = Quotient(mixture.r1, mixture.r2, float(part) * scatter.total_variance)
            predicted = _predicted(scatter, own, targets.values[train], quotient, (mixture, targets.kind), left_out)
            errors[k] += float(np.sum((root[test, None] * (predicted - targets.values[test])) ** 2))
    return float(_TRIED[int(np.argmin(errors))])


def _predicted(
    scatter: FeatureScatter,
    root: Array,
    values: Array,
    quotient: Quotient,
    asked: tuple[Mixture, str],
    points: Array,
) -> Array:
    """What a fit to some rows says of centred points."""
    mixture, kind = asked
    vectors = scatter.leading(quotient, mixture.directions).vectors
    scaled = root[:, None] * scatter.embedded(vectors)
    if kind == "classes":
        extra = quotient.penalty * (vectors.T @ vectors)
        return ClassPosterior(scaled, root, values, extra).probabilities(points @ vectors)
    return LeastSquares(scaled, root, values)(points @ vectors)


def _folds(targets: Targets, rng: np.random.Generator) -> Array:
    """The fold of every row, in turn through the rows of each class in random order."""
    n = targets.features.shape[0]
    order = rng.permutation(n)
    if targets.kind == "classes":
        order = order[np.argsort(np.argmax(targets.features[order], axis=1), kind="stable")]
    folds = np.empty(n, int)
    folds[order] = np.arange(n) % _FOLDS
    return folds
