"""How the directions of a fit are found: in columns of X, in features of a kernel, or by products with its matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, to_numpy
from mercer.backends.threads import one_thread_for, single_threaded_blas
from mercer.discriminant.labels import LabelBasis, Targets
from mercer.discriminant.penalty import WHERE_SINGULAR, Mixture, cross_validated, shrinkage
from mercer.discriminant.products import kernel_directions
from mercer.discriminant.projection import Projection
from mercer.discriminant.quotient import Quotient
from mercer.discriminant.scatter import FeatureScatter, finite_variance
from mercer.kernelization.features import (
    SampleFeatures,
    refuse_indefinite,
    refuse_indefinite_part,
    sample_features,
)
from mercer.kernels import Kernel, Linear
from mercer.linalg.eigen import deterministic_signs
from mercer.operators import CenteredOperator, GramOperator
from mercer.operators.sections import KernelSections

_FEATURES_UP_TO = 500  # points of a kernel, each of which may have a feature of its own; products are shorter beyond
_LANDMARKS = 1000  # from which a penalty is chosen where the fit itself goes by products


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """What a fit is made from.

    Attributes
    ----------
    kernel, points : Kernel and array of shape (n, d)
        The kernel resolved; for ``Precomputed()`` the points are its matrix.
    root : array of shape (n,)
        Roots of the shares of the rows.
    targets : Targets
        Of the rows.
    landmarks : object
        As :class:`mercer.Kernelized` documents them.
    regularization : object
        As :class:`mercer.RoweisDiscriminant` documents it.
    rng : numpy.random.Generator
        For landmarks, starts and folds.
    """

    kernel: Kernel
    points: Any
    root: Array
    targets: Targets
    landmarks: Any
    regularization: Any
    rng: np.random.Generator

    def labels(self, mixture: Mixture) -> LabelBasis:
        """The basis of the labels."""
        labels = self.targets.basis(self.root, mixture.smoothing)
        if (mixture.r1 or mixture.r2) and not labels.strengths.size:
            raise ValueError("y is the same in every row: there is nothing to tell apart.")
        return labels


class FoundDirections(NamedTuple):
    """Directions, the coordinates that they give to the sample, and the penalty.

    Attributes
    ----------
    values : array of shape (p,)
        λ, in falling order.
    projection : Projection
        The map of points.
    scaled : array of shape (n, p)
        The coordinates of the sample times the roots of shares.
    lengths : array of shape (p, p)
        UᵀU, inner products of the directions in the space of the kernel.
    penalty, part : float
        ε, and as a part of the total variance.
    """

    values: Array
    projection: Projection
    scaled: Array
    lengths: Array
    penalty: float
    part: float


def find_directions(sample: Sample, mixture: Mixture) -> FoundDirections:
    """The leading directions of RDA(r₁, r₂), in the smallest form of the problem that the sample has."""
    refuse_indefinite(sample.kernel)
    if isinstance(sample.kernel, Linear):
        found = _linear(sample, mixture)
    elif _has_features(sample):
        found = _of_features(sample, sample.points, mixture)
    else:
        found = _by_products(sample, sample.points, mixture)
    signs = deterministic_signs(found.scaled)
    lengths = found.lengths * signs * signs[:, None]
    return found._replace(projection=found.projection.turned(signs), scaled=found.scaled * signs, lengths=lengths)


def _has_features(sample: Sample) -> bool:
    """Whether the problem is solved in features: of landmarks, or of all points where they are few."""
    return sample.landmarks is not None or int(sample.points.shape[0]) <= _FEATURES_UP_TO


def _linear(sample: Sample, mixture: Mixture) -> FoundDirections:
    """In the columns of X where they are fewer than its rows, or where no matrix of their order is needed."""
    points = to_numpy(as_double(sample.points))
    n, d = points.shape
    few = d <= n or (mixture.r1 == 1 and mixture.r2 == 0)
    if few and sample.landmarks is None:
        scatter = FeatureScatter(points, sample.root, sample.labels(mixture))
        part, quotient = _penalised(scatter, sample, mixture)
        values, vectors = scatter.leading(quotient, mixture.directions)
        projection = Projection(vectors, np.zeros(values.size), centre=scatter.mean)
        scaled = sample.root[:, None] * scatter.embedded(vectors)
        return FoundDirections(values + quotient.shift, projection, scaled, vectors.T @ vectors, quotient.penalty, part)
    centre = (sample.root**2) @ points
    centred = points - centre
    found = (_of_features if _has_features(sample) else _by_products)(sample, centred, mixture)
    sections = found.projection.sections
    assert sections is not None
    vectors = to_numpy(as_double(sections.components)).T @ found.projection.coefficients
    return found._replace(projection=Projection(vectors, np.zeros(vectors.shape[1]), centre=centre))


def _of_features(sample: Sample, points: Any, mixture: Mixture) -> FoundDirections:
    """In features of all points, as many as their kernel matrix has rank, or of landmarks."""
    made = _features(sample, points, sample.landmarks)
    scatter = FeatureScatter(to_numpy(made.values), sample.root, sample.labels(mixture))
    part, quotient = _penalised(scatter, sample, mixture)
    values, vectors = scatter.leading(quotient, mixture.directions)
    coefficients = to_numpy(as_double(made.map.normalization)) @ vectors
    projection = Projection(coefficients, scatter.mean @ vectors, made.map.sections)
    scaled = sample.root[:, None] * scatter.embedded(vectors)
    return FoundDirections(values + quotient.shift, projection, scaled, vectors.T @ vectors, quotient.penalty, part)


def _features(sample: Sample, points: Any, landmarks: Any) -> SampleFeatures:
    return sample_features(sample.kernel, points, landmarks, sample.root**2, sample.rng)


def _by_products(sample: Sample, points: Any, mixture: Mixture) -> FoundDirections:
    """By products with the kernel matrix of all points."""
    with one_thread_for(points.shape[0], points), single_threaded_blas():  # our own threads multiply
        gram = GramOperator(sample.kernel, points)
        if sample.kernel.properties.positive_definite is not True:
            refuse_indefinite_part(gram)
        operator = CenteredOperator(gram, weights=sample.root**2)
        variance = finite_variance(float(as_double(operator.diagonal()).sum()))
        part = _part_by_products(sample, points, mixture)
        quotient = Quotient(mixture.r1, mixture.r2, part * variance)
        found = kernel_directions(operator, sample.labels(mixture), quotient, mixture.directions, sample.rng)
    unit = sample.root[:, None]
    coefficients = unit * (found.coefficients - unit * (sample.root @ found.coefficients))
    offset = to_numpy(as_double(operator.column_means)) @ coefficients
    sections = KernelSections(sample.kernel, points, np.arange(points.shape[0]))
    lengths = found.coefficients.T @ found.products
    projection = Projection(coefficients, offset, sections)
    return FoundDirections(found.values + quotient.shift, projection, found.products, lengths, quotient.penalty, part)


def _penalised(scatter: FeatureScatter, sample: Sample, mixture: Mixture) -> tuple[float, Quotient]:
    """The penalty as a part of the total variance, and the quotient with it."""
    part = _part(scatter, sample, mixture)
    return part, Quotient(mixture.r1, mixture.r2, part * scatter.total_variance)


def _part(scatter: FeatureScatter, sample: Sample, mixture: Mixture) -> float:
    asked = sample.regularization
    if mixture.r2 == 0:
        return 0.0  # no scatter within classes takes part
    if asked == "cv":
        return cross_validated(scatter.features, sample.root, sample.targets, mixture, sample.rng)
    if asked == "shrinkage":
        return shrinkage(scatter, _columns(sample))
    if asked is not None:
        return float(asked)
    if mixture.r2 < 1:
        return 0.0
    return WHERE_SINGULAR if not isinstance(sample.kernel, Linear) or scatter.is_singular() else 0.0


def _part_by_products(sample: Sample, points: Any, mixture: Mixture) -> float:
    """The same where there are no features: a penalty that is searched is searched in those of some landmarks."""
    asked = sample.regularization
    if mixture.r2 == 0:
        return 0.0
    if asked is None:
        return WHERE_SINGULAR if mixture.r2 == 1 else 0.0
    if not isinstance(asked, str):
        return float(asked)
    made = _features(sample, points, _LANDMARKS)
    return _part(FeatureScatter(to_numpy(made.values), sample.root, sample.labels(mixture)), sample, mixture)


def _columns(sample: Sample) -> int:
    if not isinstance(sample.kernel, Linear):
        raise ValueError(
            "regularization='shrinkage' is for the linear kernel, whose space has as many dimensions as X has columns: "
            "pass a number, or 'cv'."
        )
    return int(sample.points.shape[1])
